"""Appends to the log: positions of new records, and fan-outs to those who want them."""

from __future__ import annotations

import sqlite3

FEW_SUBSCRIBERS = 20
"""Up to so many subscribers, a commit checks whether each wants the record; with more,
the check is made when the fan-out is split."""

_FAN_OUT = """
INSERT INTO fanouts (position, feed_id, after_id, is_next)
SELECT r.position, f.feed_id, 0,
    NOT EXISTS (SELECT 1 FROM fanouts WHERE feed_id = f.feed_id)
FROM records r CROSS JOIN feed_audience f
WHERE r.position = :position AND f.feed_id = :feed_id AND f.subscribers > 0
    AND (f.subscribers > :few OR EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.feed_id = f.feed_id AND s.state = 'active'
        AND s.from_position < r.position
        AND EXISTS (SELECT 1 FROM temp.wanted w
            WHERE w.taker = s.format || '/' || s.updates AND w.news = r.news)))
"""


def assign_positions(count: int, connection: sqlite3.Connection) -> tuple[int, int]:
    """Assign ``count`` new positions, at least one; returns the last of them, and the
    version of the track queries.

    There are no gaps between positions, since a rollback returns them.
    """
    ((last, queries),) = connection.execute(
        "UPDATE meta SET head = head + ? RETURNING head, queries", (count,)
    ).fetchall()
    return int(last), int(queries)


def fan_out(position: int, feed_id: int, connection: sqlite3.Connection) -> None:
    """Write a fan-out if anybody receives the record.

    Units of work run one after the other, so a subscription made later starts above the
    record.
    """
    connection.execute(
        _FAN_OUT, {"position": position, "feed_id": feed_id, "few": FEW_SUBSCRIBERS}
    )
