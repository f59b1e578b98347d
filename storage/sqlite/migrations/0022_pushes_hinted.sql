-- Feeds of which a hub has told, and no fetch has heeded it yet: asked after a restart.
CREATE INDEX pushes_hinted ON pushes (feed_id) WHERE hinted_at IS NOT NULL;
