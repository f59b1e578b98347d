-- Of which schema the program of a node is.
ALTER TABLE nodes ADD COLUMN schema_version bigint NOT NULL DEFAULT 71;
