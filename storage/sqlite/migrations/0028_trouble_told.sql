-- Which feeds are in trouble, as far as their subscribers were told.
CREATE INDEX records_of_trouble ON records (feed_id, position)
    WHERE kind IN ('error', 'recovered');
