-- Which programs may use the schema, and of which schema the program of a node is.
ALTER TABLE fanfare_schema ADD COLUMN oldest_program bigint NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN schema_version bigint NOT NULL DEFAULT 71;
