-- How the hub was in the last hour, ten seconds a row: what the plots of the minutes
-- before a restart are drawn from.
CREATE TABLE fine_samples (
    at bigint PRIMARY KEY,
    body bytea NOT NULL             -- `storage.records.SeriesSample` as MessagePack
);
