-- The polls of the last day are kept, at most 1,440, and of feeds polled less often the
-- last 64. Of 14 bytes of a poll the first six are its time in milliseconds; the first
-- three of these count units of 4.66 hours, seven of which are more than a day.
DROP TRIGGER polls_moved;

CREATE TRIGGER polls_moved AFTER UPDATE OF recent_polls ON feed_hot
WHEN length(NEW.recent_polls) < length(OLD.recent_polls)
BEGIN
    INSERT INTO earlier_polls VALUES (OLD.feed_id, OLD.recent_polls)
        ON CONFLICT (feed_id) DO UPDATE SET
            polls = CAST(polls || excluded.polls AS BLOB);
    UPDATE earlier_polls SET polls = substr(polls, iif(
            length(polls) >= 1792 AND hex(substr(polls, 883, 3)) < day.begin, 897, 113))
        FROM (
            SELECT printf('%06X', sum((instr('0123456789ABCDEF',
                substr(hex(substr(NEW.recent_polls, 1, 3)), digit, 1)) - 1)
                << (24 - 4 * digit)) - 6) AS begin
            FROM (SELECT 1 AS digit UNION ALL SELECT 2 UNION ALL SELECT 3
                UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6)
        ) AS day
        WHERE feed_id = OLD.feed_id AND length(polls) > 896
            AND (length(polls) > 20160 OR hex(substr(polls, 99, 3)) < day.begin);
END;
