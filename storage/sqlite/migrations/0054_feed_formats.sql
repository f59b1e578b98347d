-- Feeds of a format, for lists; those of a host are found by the trigrams of their URL.
CREATE INDEX feeds_by_format ON feeds (format);
