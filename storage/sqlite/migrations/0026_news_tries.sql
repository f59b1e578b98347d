-- From when on (milliseconds) news makes a straggler due, before its next try by the
-- schedule: some seconds after a failure, later if the callback asked for that.
ALTER TABLE stragglers ADD COLUMN news_from INTEGER NOT NULL DEFAULT 0;
CREATE INDEX stragglers_by_news ON stragglers (feed_id, news_from);
