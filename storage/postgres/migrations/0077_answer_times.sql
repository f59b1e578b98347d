-- When each member of a chunk answered: the last 32 bits of its milliseconds, 4 bytes each in
-- the order of the members; 0, or NULL for all: it is not known.
ALTER TABLE chunks ADD COLUMN times bytea;
ALTER TABLE deliveries ADD COLUMN times bytea;
