-- Events of the hub itself are published before all others that are queued.
CREATE INDEX event_queue_of_hub ON event_queue (id)
    WHERE event ->> '$.condition' IS NOT NULL;
