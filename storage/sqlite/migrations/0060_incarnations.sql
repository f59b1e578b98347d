-- How often a hub has joined the database.
ALTER TABLE meta ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0;
