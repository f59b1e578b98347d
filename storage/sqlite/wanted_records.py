"""Which records of its feed a subscription would get; `storage.wanted.wants` in SQL."""

from __future__ import annotations

import sqlite3

END = 2**63 - 1
"""Above every position."""

Skipped = tuple[int | None, int | None]
"""Positions (after, to] that do not count; (None, None) is none."""

_RANGE = """
SELECT min(r.position), max(r.position)
FROM subscriptions s JOIN records r ON r.feed_id = s.feed_id
WHERE s.id = :subscription AND r.position > :after AND r.position <= :to
    AND NOT (r.position > :skip_after AND r.position <= :skip_to)
    AND EXISTS (SELECT 1 FROM temp.wanted w
        WHERE w.taker = s.format || '/' || s.updates
        AND w.news = r.news)
"""


def wanted_range(
    subscription_id: int,
    after: int,
    to: int,
    connection: sqlite3.Connection,
    skipped: Skipped = (None, None),
) -> tuple[int, int] | None:
    """The first and the last wanted record in (after, to]; None if there is none."""
    skip_after, skip_to = skipped
    ((first, last),) = connection.execute(
        _RANGE,
        {
            "subscription": subscription_id,
            "after": after,
            "to": to,
            "skip_after": skip_after or 0,
            "skip_to": skip_to or 0,
        },
    ).fetchall()
    return None if first is None else (first, last)


def last_passed(subscription_id: int, connection: sqlite3.Connection) -> int:
    """Up to where fan-out has passed the subscription: served it, or left it out."""
    ((position,),) = connection.execute(
        "SELECT coalesce((SELECT min(f.position) - 1 FROM fanouts f"
        "  WHERE f.feed_id = s.feed_id AND f.after_id < s.id),"
        " (SELECT head FROM meta)) FROM subscriptions s WHERE s.id = ?",
        (subscription_id,),
    ).fetchall()
    return int(position)
