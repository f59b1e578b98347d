-- A feed is known by what its URL asks for, in whatever spelling: resource_hash is that
-- URL's hash, made outside. Feeds that were added under several spellings before stay
-- apart; each is found by its own, and any further spelling leads to the first of them.
ALTER TABLE feeds ADD COLUMN resource_hash BLOB NOT NULL DEFAULT x'';

UPDATE feeds SET resource_hash = resource_hash(url);

CREATE INDEX feeds_by_resource ON feeds (resource_hash);
