-- How the hub was, five minutes a row: what its plots of 30 days are drawn from.
CREATE TABLE series_samples (
    at INTEGER PRIMARY KEY,
    body BLOB NOT NULL              -- `storage.records.SeriesSample` as MessagePack
) STRICT;
