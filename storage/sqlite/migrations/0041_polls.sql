-- The last polls of each feed, packed by storage.sqlite.polls: what came of them, and why
-- they were made when they were. The latest lie in the feed's row, which each poll writes
-- anyway; eight at a time go to the others, which would make that row long.
ALTER TABLE feeds ADD COLUMN recent_polls BLOB NOT NULL DEFAULT x'';

CREATE TABLE earlier_polls (
    feed_id INTEGER PRIMARY KEY,
    polls BLOB NOT NULL
) STRICT;

-- Records have 14 bytes: 112 are eight of them, 896 sixty-four. What `||` makes is text,
-- of which substr would count characters.
CREATE TRIGGER polls_moved AFTER UPDATE OF recent_polls ON feeds
WHEN length(NEW.recent_polls) < length(OLD.recent_polls)
BEGIN
    INSERT INTO earlier_polls VALUES (OLD.id, OLD.recent_polls)
        ON CONFLICT (feed_id) DO UPDATE SET
            polls = substr(CAST(polls || excluded.polls AS BLOB), -896);
END;
