-- Feeds by how many subscribe to them, for lists: all, and those of a section.
CREATE INDEX feeds_by_health_subscribers ON feeds (health, subscribers);
CREATE INDEX feeds_by_section_subscribers ON feeds (health, section, subscribers);
