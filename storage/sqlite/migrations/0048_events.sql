-- Operational events, JSON of storage.records.OperationalEvent. They are queued in the
-- transaction that brings them about, and from there appended to the log: each to the
-- feed of each topic of events that takes it, a feed in the state 'events', which is
-- never fetched. Nothing is queued while nobody subscribes to such a topic.
CREATE TABLE event_queue (
    id INTEGER PRIMARY KEY,
    event TEXT NOT NULL
) STRICT;

ALTER TABLE records ADD COLUMN event TEXT;      -- NULL but for records of such feeds

-- Since when it has failed, as an event has told; NULL: none has.
ALTER TABLE subscriptions ADD COLUMN told_since INTEGER;

-- Conditions of the hub of which an event has told that they hold.
CREATE TABLE hub_conditions (
    name TEXT PRIMARY KEY,
    event TEXT NOT NULL
) STRICT, WITHOUT ROWID;
