-- The polls of the last day are kept, so that a value may be long: its beginning is read
-- alone unless it is compressed.
ALTER TABLE earlier_polls ALTER COLUMN polls SET STORAGE EXTERNAL;
