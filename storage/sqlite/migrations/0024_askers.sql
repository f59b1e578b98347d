-- Who asked for a verification, an address or an account: no one may fill the queue of
-- all. Known only while it is pending; "" when it is not told.
ALTER TABLE verifications ADD COLUMN asker TEXT NOT NULL DEFAULT '';

DROP TRIGGER verification_added;
DROP TRIGGER verification_done;

-- In pending_counts an asker stands as "of " and its name: no host has a blank.
CREATE TRIGGER verification_added AFTER INSERT ON verifications
WHEN NEW.due IS NOT NULL
BEGIN
    INSERT INTO pending_counts VALUES ('', 1), (NEW.host, 1)
        ON CONFLICT (host) DO UPDATE SET pending = pending + 1;
    INSERT INTO pending_counts SELECT 'of ' || NEW.asker, 1 WHERE NEW.asker <> ''
        ON CONFLICT (host) DO UPDATE SET pending = pending + 1;
END;

CREATE TRIGGER verification_done AFTER UPDATE OF due ON verifications
WHEN OLD.due IS NOT NULL AND NEW.due IS NULL
BEGIN
    UPDATE pending_counts SET pending = pending - 1
        WHERE host IN ('', NEW.host, 'of ' || OLD.asker);
    DELETE FROM pending_counts
        WHERE host IN (NEW.host, 'of ' || OLD.asker) AND pending = 0;
END;
