-- Parts of a page are known by it, so that whoever says that the page has news has its
-- parts looked at, too: by the hash of its URL; x'' of what is no part.
ALTER TABLE feeds ADD COLUMN page_hash BLOB NOT NULL DEFAULT x'';

UPDATE feeds SET page_hash = resource_hash(substr(url, 1, instr(url, '#') - 1))
WHERE instr(url, '#') > 0
    AND resource_hash(url) <> resource_hash(substr(url, 1, instr(url, '#') - 1));

CREATE INDEX feeds_by_page ON feeds (page_hash) WHERE page_hash <> x'';
