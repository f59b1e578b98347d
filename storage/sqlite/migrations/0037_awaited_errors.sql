-- Feeds in trouble to which somebody has subscribed when the log had the record no more
-- that told of it: the next failure is told.
CREATE TABLE awaited_errors (feed_id INTEGER PRIMARY KEY) STRICT;
