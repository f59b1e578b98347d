-- How large the database was, and how much of its disk was free: some times of a day.
CREATE TABLE disk_samples (
    at INTEGER NOT NULL,
    used_bytes INTEGER NOT NULL,
    free_bytes INTEGER NOT NULL
) STRICT;
