-- How many subscriptions of an account are so, that lists and the overview tell them
-- without counting; and the lists of one account, in each order.
CREATE TABLE subscription_counts (
    account_id INTEGER NOT NULL,
    health TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (account_id, health)
) STRICT, WITHOUT ROWID;

INSERT INTO subscription_counts
SELECT account_id, health, count(*) FROM subscriptions GROUP BY 1, 2;

CREATE TRIGGER subscription_counted AFTER INSERT ON subscriptions
BEGIN
    INSERT INTO subscription_counts VALUES (NEW.account_id, NEW.health, 1)
        ON CONFLICT (account_id, health) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER subscription_counted_anew
AFTER UPDATE OF state, condition, paused_at ON subscriptions
WHEN NEW.health <> OLD.health
BEGIN
    UPDATE subscription_counts SET total = total - 1
        WHERE account_id = OLD.account_id AND health = OLD.health;
    INSERT INTO subscription_counts VALUES (NEW.account_id, NEW.health, 1)
        ON CONFLICT (account_id, health) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER subscription_not_counted AFTER DELETE ON subscriptions
BEGIN
    UPDATE subscription_counts SET total = total - 1
        WHERE account_id = OLD.account_id AND health = OLD.health;
END;

CREATE INDEX subscriptions_of_account_unwell ON subscriptions (account_id, health)
    WHERE health <> 'ok';
CREATE INDEX subscriptions_of_account_since
    ON subscriptions (account_id, health, health_since);
