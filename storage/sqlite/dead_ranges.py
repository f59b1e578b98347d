"""Records that a subscription did not get: buried with the reason, dug up on demand."""

from __future__ import annotations

import sqlite3

from storage.errors import NotFound, StorageBusy
from storage.sqlite.wanted_records import last_passed, wanted_range


def bury(
    subscription_id: int,
    first: int,
    last: int,
    reason: str,
    at: int,
    connection: sqlite3.Connection,
) -> None:
    """Add a dead range, or extend the last one if nothing wanted lies between them.

    What was trimmed in between may have been wanted, and delivered.
    """
    extended = connection.execute(
        "UPDATE dead SET first = min(first, :first), last = max(last, :last),"
        " reason = :reason, at = :at"
        " WHERE id = (SELECT max(id) FROM dead WHERE subscription_id = :subscription)"
        " AND (reason = 'trimmed') = (:reason = 'trimmed')"
        " AND first <= :first"
        " AND (last + 1 >= :first OR last >= (SELECT tail FROM meta))"
        " AND NOT EXISTS (SELECT 1 FROM subscriptions s JOIN records r"
        "  ON r.feed_id = s.feed_id WHERE s.id = :subscription"
        "  AND r.position > dead.last AND r.position < :first"
        "  AND EXISTS (SELECT 1 FROM temp.wanted w"
        "   WHERE w.taker = s.format || '/' || s.updates"
        "   AND w.news = r.news))",
        {
            "subscription": subscription_id,
            "first": first,
            "last": last,
            "reason": reason,
            "at": at,
        },
    )
    if not extended.rowcount:
        connection.execute(
            "INSERT INTO dead (subscription_id, first, last, reason, at)"
            " VALUES (?, ?, ?, ?, ?)",
            (subscription_id, first, last, reason, at),
        )


def replay(dead_id: int, now: int, connection: sqlite3.Connection) -> None:
    """Turn a dead range, as far as the log still has it, into a straggler due now.

    Raises `NotFound`, `StorageBusy`.
    """
    found = connection.execute(
        "SELECT d.subscription_id, d.first, d.last, m.tail"
        " FROM dead d JOIN subscriptions s ON s.id = d.subscription_id, meta m"
        " WHERE d.id = ? AND s.state = 'active'",
        (dead_id,),
    ).fetchone()
    if found is None:
        raise NotFound("dead range of an active subscription with the id", dead_id)
    subscription_id, first, last, tail = found
    if last <= tail:
        raise NotFound("record left of the dead range", dead_id)
    _refuse_if_at_work(subscription_id, connection)
    position = max(first - 1, tail)
    if not _set_back(subscription_id, position, last, now, connection):
        _open(subscription_id, position, last, now, connection)
    if first <= tail:
        connection.execute("UPDATE dead SET last = ? WHERE id = ?", (tail, dead_id))
    else:
        connection.execute("DELETE FROM dead WHERE id = ?", (dead_id,))


def _refuse_if_at_work(subscription_id: int, connection: sqlite3.Connection) -> None:
    in_chunk = connection.execute(
        "SELECT 1 FROM subscriptions s JOIN chunks c ON c.feed_id = s.feed_id"
        " WHERE s.id = ? AND s.id IN (SELECT value FROM json_each(c.members))",
        (subscription_id,),
    ).fetchone()
    if in_chunk is not None:
        raise StorageBusy(f"subscription {subscription_id} is being delivered to")


def _set_back(
    subscription_id: int,
    position: int,
    last: int,
    now: int,
    connection: sqlite3.Connection,
) -> bool:
    """Whether there is a straggler. It must stand right behind the range."""
    straggler = connection.execute(
        "SELECT position, lease_id, skip_to FROM stragglers WHERE subscription_id = ?",
        (subscription_id,),
    ).fetchone()
    if straggler is None:
        return False
    standing, lease_id, skip_to = straggler
    is_behind = standing >= position and not wanted_range(
        subscription_id, last, standing, connection
    )
    if lease_id or skip_to is not None or not is_behind:
        raise StorageBusy(f"subscription {subscription_id} is catching up elsewhere")
    connection.execute(
        "UPDATE stragglers SET position = ?, attempts = 0, next_try = ?, due = ?,"
        " tried_to = NULL WHERE subscription_id = ?",
        (position, now, now, subscription_id),
    )
    return True


def _open(
    subscription_id: int,
    position: int,
    last: int,
    now: int,
    connection: sqlite3.Connection,
) -> None:
    """What fan-out passed since the range was delivered, and is skipped."""
    passed = last_passed(subscription_id, connection)
    is_ahead = passed > last
    connection.execute(
        "INSERT INTO stragglers (subscription_id, feed_id, position, attempts,"
        " next_try, failing_since, last_status, last_error, skip_after, skip_to,"
        " lease_id, due)"
        " SELECT id, feed_id, :position, 0, :now, :now, 0, '', :skip_after, :skip_to,"
        " 0, :now FROM subscriptions WHERE id = :subscription",
        {
            "subscription": subscription_id,
            "position": position,
            "now": now,
            "skip_after": last if is_ahead else None,
            "skip_to": passed if is_ahead else None,
        },
    )
