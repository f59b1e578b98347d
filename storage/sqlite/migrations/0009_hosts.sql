-- A host in letters is the same as in punycode: resource_hash knows that now. Feeds that
-- were added as both before stay apart, as in 0006.
UPDATE feeds SET resource_hash = resource_hash(url)
 WHERE length(url) <> length(CAST(url AS BLOB));
