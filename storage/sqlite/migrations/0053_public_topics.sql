-- Pages of public topics, the latest added first, however many private feeds there are.
CREATE INDEX feeds_public ON feeds (id)
    WHERE NOT private AND NOT unlisted AND state NOT IN ('removed', 'track');
