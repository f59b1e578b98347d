-- What publishers want kept out of whatever many can find (Polling.unlisted, and of single
-- entries), as columns for the readers that leave it out.
ALTER TABLE feeds ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0;

-- All that a source which lists everything was last known to have (hub.core.inventory).
CREATE TABLE inventories (
    feed_id INTEGER PRIMARY KEY,
    inventory BLOB NOT NULL
) STRICT;

-- The last valid document of feeds whose format may say more than entries hold; packed.
CREATE TABLE raw_documents (
    feed_id INTEGER PRIMARY KEY,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- A fragment that selects a part of a resource makes another feed: resource_hash knows
-- that now.
UPDATE feeds SET resource_hash = resource_hash(url) WHERE instr(url, '#') > 0;
