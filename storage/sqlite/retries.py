"""Retrying subscriptions, and the dead letters they leave.

Which records a subscription would get is `storage.subscription_filter.wants`, in SQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from enum import Enum, auto

from storage.errors import NotFound, StorageBusy, SubscriptionPaused
from storage.records import NewDeadLetter, RetryMoved, RetryOpened
from storage.sqlite.columns import pack_ids, to_milliseconds
from storage.sqlite.event_queue import queue_given_up, queue_turns

END = 2**63 - 1
"""Above every position."""

Skipped = tuple[int | None, int | None]
"""Positions (after, to] that are skipped; (None, None): none are. An empty range skips
nothing either, and says up to where records are sent again."""

# --- what is wanted ---

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
    """The position up to which fan-out has served the subscription, or skipped it."""
    ((position,),) = connection.execute(
        "SELECT coalesce((SELECT min(f.position) - 1 FROM fanouts f"
        "  WHERE f.feed_id = s.feed_id AND f.after_id < s.id),"
        " (SELECT head FROM meta)) FROM subscriptions s WHERE s.id = ?",
        (subscription_id,),
    ).fetchall()
    return int(position)


# --- dead letters ---


def add_dead_letter(
    subscription_id: int,
    first: int,
    last: int,
    reason: str,
    at: int,
    connection: sqlite3.Connection,
) -> None:
    """Add a dead letter, or extend the last one if nothing wanted lies between them.

    It is not extended over trimmed records: they may have been wanted, and delivered.
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


def retry_dead_letter(dead_id: int, now: int, connection: sqlite3.Connection) -> None:
    """Turn a dead letter, as far as the log still has it, into a retry due now.

    Raises `NotFound`, `StorageBusy`, `SubscriptionPaused`.
    """
    found = connection.execute(
        "SELECT d.subscription_id, d.first, d.last, m.tail, s.paused_at"
        " FROM dead d JOIN subscriptions s ON s.id = d.subscription_id, meta m"
        " WHERE d.id = ? AND s.state = 'active'",
        (dead_id,),
    ).fetchone()
    if found is None:
        raise NotFound("dead letter of an active subscription with the id", dead_id)
    subscription_id, first, last, tail, paused_at = found
    if last <= tail:
        raise NotFound("record left of the dead letter", dead_id)
    if paused_at is not None:
        raise SubscriptionPaused(subscription_id)
    _refuse_if_at_work(subscription_id, connection)
    position = max(first - 1, tail)
    if not _set_back(subscription_id, position, last, now, connection):
        _open(subscription_id, position, last, now, connection)
    if first <= tail:
        connection.execute("UPDATE dead SET last = ? WHERE id = ?", (tail, dead_id))
    else:
        connection.execute("DELETE FROM dead WHERE id = ?", (dead_id,))
    note_conditions([subscription_id], now, connection)


def replay(
    subscription_id: int, after: int, now: int, connection: sqlite3.Connection
) -> None:
    """Have a subscription catch up from ``after``, wherever its retry stands.

    Raises `NotFound`, `StorageBusy`, `SubscriptionPaused`.
    """
    found = connection.execute(
        "SELECT s.paused_at, m.tail, coalesce(g.lease_id, 0), g.position"
        " FROM subscriptions s LEFT JOIN stragglers g ON g.subscription_id = s.id,"
        " meta m WHERE s.id = ? AND s.state = 'active'",
        (subscription_id,),
    ).fetchone()
    if found is None:
        raise NotFound("active subscription", subscription_id)
    paused_at, tail, lease_id, reached = found
    if paused_at is not None:
        raise SubscriptionPaused(subscription_id)
    if lease_id:
        raise StorageBusy(f"subscription {subscription_id} is catching up already")
    _refuse_if_at_work(subscription_id, connection)
    position = max(after, tail)
    if reached is None:
        passed = last_passed(subscription_id, connection)
        _open(subscription_id, position, passed, now, connection)
    else:
        _send_again_from(position, subscription_id, now, connection)
    note_conditions([subscription_id], now, connection)


def make_due(subscription_id: int, now: int, connection: sqlite3.Connection) -> None:
    """Schedule a retry for now; a leased one is being tried already, and is not
    changed."""
    connection.execute(
        "UPDATE stragglers SET next_try = iif(lease_id, next_try, :now),"
        " due = iif(lease_id, due, :now) WHERE subscription_id = :subscription",
        {"subscription": subscription_id, "now": now},
    )


def _refuse_if_at_work(subscription_id: int, connection: sqlite3.Connection) -> None:
    in_chunk = connection.execute(
        "SELECT 1 FROM subscriptions s JOIN chunks c ON c.feed_id = s.feed_id"
        " WHERE s.id = ? AND s.id IN (SELECT value FROM json_each(c.members))",
        (subscription_id,),
    ).fetchone()
    if in_chunk is not None:
        raise StorageBusy(f"a delivery to subscription {subscription_id} is in flight")


def _set_back(
    subscription_id: int,
    position: int,
    last: int,
    now: int,
    connection: sqlite3.Connection,
) -> bool:
    """Set an open retry back before the range; returns False if there is none.

    The retry must stand right behind the range. Raises `StorageBusy`.
    """
    retrying = connection.execute(
        "SELECT position, lease_id, coalesce(skip_after < skip_to, FALSE)"
        " FROM stragglers WHERE subscription_id = ?",
        (subscription_id,),
    ).fetchone()
    if retrying is None:
        return False
    reached, lease_id, is_skipping = retrying
    is_behind = reached >= position and not wanted_range(
        subscription_id, last, reached, connection
    )
    if lease_id or is_skipping or not is_behind:
        raise StorageBusy(f"subscription {subscription_id} is catching up already")
    _send_again_from(position, subscription_id, now, connection)
    return True


def _send_again_from(
    position: int, subscription_id: int, now: int, connection: sqlite3.Connection
) -> None:
    """Set an open retry back, never forward; nothing is skipped any more.

    What it had passed is sent again, and so is what a retry that was set back before
    has not come to yet.
    """
    connection.execute(
        "UPDATE stragglers SET position = min(position, :position),"
        " skip_after = max(position, coalesce(skip_to, 0)),"
        " skip_to = max(position, coalesce(skip_to, 0)),"
        " attempts = 0, next_try = :now, due = :now, tried_to = NULL"
        " WHERE subscription_id = :subscription",
        {"position": position, "now": now, "subscription": subscription_id},
    )


def _open(
    subscription_id: int,
    position: int,
    last: int,
    now: int,
    connection: sqlite3.Connection,
) -> None:
    """Open a retry that sends the range (position, last] again.

    What fan-out has delivered since the range is skipped.
    """
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
            "skip_after": last,
            "skip_to": max(last, last_passed(subscription_id, connection)),
        },
    )


def discard_retry(
    subscription_id: int, now: int, connection: sqlite3.Connection
) -> bool:
    """Close the retry at fan-out's position; returns False if there is none. A try
    under way will find that it has lost its lease."""
    is_open = connection.execute(
        "SELECT 1 FROM stragglers WHERE subscription_id = ?", (subscription_id,)
    ).fetchone()
    if is_open is None:
        return False
    _close(subscription_id, last_passed(subscription_id, connection), connection)
    note_conditions([subscription_id], now, connection)
    return True


# --- how subscriptions are ---

_CONDITIONS = """
UPDATE subscriptions AS s SET
    condition_since = iif(s.condition = n.condition, s.condition_since, n.since),
    condition = n.condition, failure = n.failure
FROM (
    SELECT b.id,
        CASE WHEN b.exhausted OR g.attempts > 0 THEN 'failing'
            WHEN g.subscription_id IS NULL THEN 'ok'
            WHEN g.skip_to IS NOT NULL AND b.condition = 'ok' THEN 'ok'
            ELSE 'slow' END AS condition,
        coalesce(g.failing_since, :at) AS since,
        CASE WHEN g.attempts > 0 OR g.attempts = 0 AND NOT b.exhausted
            THEN g.last_error WHEN b.exhausted THEN b.failure ELSE '' END AS failure
    FROM json_each(:ids) a CROSS JOIN subscriptions b ON b.id = a.value
    LEFT JOIN stragglers g ON g.subscription_id = b.id WHERE b.state = 'active'
) n WHERE s.id = n.id AND (s.condition, s.failure) <> (n.condition, n.failure)
"""
"""A subscription stays ``exhausted`` until a 2xx, and keeps the reason why its last
record was given up. One that is well stays so while it is sent something again because
somebody asked (``skip_to``), until that fails."""


def note_conditions(
    ids: Collection[int], at: int, connection: sqlite3.Connection
) -> None:
    """Store whether subscriptions fail, are behind or are well, and since when.

    Called in the unit of work in which that may have changed.
    """
    connection.execute(_CONDITIONS, {"ids": pack_ids(ids), "at": at})
    queue_turns(ids, at, connection)


# --- outcomes ---

Lease = tuple[int, int]
"""A subscription and the lease on its retry."""


class RetryFate(Enum):
    """The result of applying an outcome; see `storage.records.Flushed`."""

    DONE = auto()
    UNFINISHED = auto()
    LOST = auto()


def open_retry(opened: RetryOpened, connection: sqlite3.Connection) -> None:
    """Open a retry for an active subscription.

    One that is open already stays as it is, but must not stand above the record that
    was not delivered.
    """
    connection.execute(
        "INSERT INTO stragglers (subscription_id, feed_id, position, attempts,"
        " next_try, failing_since, last_status, last_error, lease_id, due, tried_to,"
        " news_from, is_paused)"
        " SELECT id, feed_id, :position, :attempts, :next_try,"
        " :failing_since, :last_status, :last_error, :lease, :next_try, :tried_to,"
        " :news_from, paused_at IS NOT NULL FROM subscriptions"
        " WHERE id = :subscription AND state = 'active'"
        " ON CONFLICT (subscription_id) DO UPDATE"
        " SET position = excluded.position, tried_to = excluded.tried_to"
        " WHERE excluded.position < position",
        {
            "subscription": opened.subscription_id,
            "position": opened.position,
            "attempts": opened.attempts,
            "next_try": to_milliseconds(opened.next_try),
            "failing_since": to_milliseconds(opened.failing_since),
            "last_status": opened.last_status,
            "last_error": opened.last_error,
            "lease": opened.lease_id,
            "tried_to": opened.tried_to,
            "news_from": to_milliseconds(opened.news_from or opened.next_try),
        },
    )


def move(moved: RetryMoved, at: int, connection: sqlite3.Connection) -> RetryFate:
    """Apply the outcome of a try.

    A retry never goes back: trimming may have moved it further than the caller knew.
    """
    found = connection.execute(
        "SELECT max(position, ?), skip_after, skip_to FROM stragglers"
        " WHERE subscription_id = ? AND lease_id = ?",
        (moved.position, moved.subscription_id, moved.lease_id),
    ).fetchone()
    if found is None:
        return RetryFate.LOST
    position, *skipped = found
    if moved.finished and _is_done(moved, position, skipped, connection):
        _close(moved.subscription_id, max(position, skipped[1] or 0), connection)
        return RetryFate.DONE
    _write_move(moved, at, connection)
    return RetryFate.UNFINISHED if moved.finished else RetryFate.DONE


def _is_done(
    moved: RetryMoved,
    position: int,
    skipped: list[int | None],
    connection: sqlite3.Connection,
) -> bool:
    skip: Skipped = (skipped[0], skipped[1])
    newer = wanted_range(moved.subscription_id, position, END, connection, skip)
    return newer is None


def _write_move(moved: RetryMoved, at: int, connection: sqlite3.Connection) -> None:
    """Store where the retry stands now.

    The subscription counts as told what it missed once a request for a later record has
    succeeded.
    """
    connection.execute(
        "UPDATE stragglers SET position = max(position, :position),"
        " failing_since = iif(:position > position, :at, failing_since),"
        " missed_first = iif(:position > position AND :is_told, NULL, missed_first),"
        " missed_last = iif(:position > position AND :is_told, NULL, missed_last),"
        " attempts = :attempts, next_try = :next_try, due = :due,"
        " news_from = :news_from,"
        " last_status = :last_status, last_error = :last_error, tried_to = :tried_to,"
        " lease_id = iif(:is_released, 0, lease_id)"
        " WHERE subscription_id = :subscription",
        {
            "subscription": moved.subscription_id,
            "position": moved.position,
            "attempts": moved.attempts,
            "next_try": to_milliseconds(moved.next_try),
            "due": to_milliseconds(moved.due or moved.next_try),
            "news_from": to_milliseconds(moved.news_from or moved.next_try),
            "last_status": moved.last_status,
            "last_error": moved.last_error,
            "tried_to": moved.tried_to,
            "is_told": 200 <= moved.last_status < 300,
            "is_released": moved.release and not moved.finished,
            "at": at,
        },
    )


def give_up(
    given_up: NewDeadLetter, closed: set[Lease], connection: sqlite3.Connection
) -> RetryFate:
    """Make a dead letter of the undelivered records, and close the retry.

    ``closed``: retries that the same flush has closed; it may give up a retry twice.
    """
    lease = (given_up.subscription_id, given_up.lease_id)
    retrying = connection.execute(
        "SELECT lease_id, position, skip_after, skip_to FROM stragglers"
        " WHERE subscription_id = ?",
        (given_up.subscription_id,),
    ).fetchone()
    if retrying is None:
        is_ours = not given_up.lease_id or lease in closed
        reached, skipped = 0, (None, None)
    else:
        is_ours = given_up.lease_id == retrying[0] != 0
        reached, skipped = retrying[1], retrying[2:]
    if not is_ours or not _is_active(given_up.subscription_id, connection):
        return RetryFate.LOST
    last = _keep_undelivered(given_up, reached, skipped, connection)
    closed.add(lease)
    _close(given_up.subscription_id, last, connection)
    if not given_up.was_untried:
        queue_given_up(given_up, connection)
        connection.execute(
            "UPDATE subscriptions SET exhausted = 1, failure = ? WHERE id = ?",
            (given_up.reason, given_up.subscription_id),
        )
    return RetryFate.DONE


def _keep_undelivered(
    given_up: NewDeadLetter,
    reached: int,
    skipped: Skipped,
    connection: sqlite3.Connection,
) -> int:
    """Keep undelivered records as dead letters; returns the subscription's position.

    They include records that fan-out passed by while the retry was open, even above
    ``last``, but not those that the subscription got before its retry was set back.
    """
    subscription_id = given_up.subscription_id
    passed = last_passed(subscription_id, connection)
    above = wanted_range(subscription_id, given_up.last, passed, connection, skipped)
    last = above[1] if above else int(given_up.last)
    first = max(int(given_up.first), reached + 1)
    for part in _around(first, last, skipped, subscription_id, connection):
        at = to_milliseconds(given_up.at)
        add_dead_letter(subscription_id, *part, given_up.reason, at, connection)
    return max(last, skipped[1] or 0)


def _around(
    first: int,
    last: int,
    skipped: Skipped,
    subscription_id: int,
    connection: sqlite3.Connection,
) -> list[tuple[int, int]]:
    """The parts of the range that are not skipped."""
    skip_after, skip_to = skipped
    if skip_after is None or skip_to is None or skip_after == skip_to:
        return [(first, last)] if first <= last else []
    parts = []
    if first <= min(last, skip_after):
        parts.append((first, min(last, skip_after)))
    rest = wanted_range(subscription_id, max(skip_to, first - 1), last, connection)
    return parts if rest is None else [*parts, rest]


def _is_active(subscription_id: int, connection: sqlite3.Connection) -> bool:
    found = connection.execute(
        "SELECT 1 FROM subscriptions WHERE id = ? AND state = 'active'",
        (subscription_id,),
    ).fetchone()
    return found is not None


def _close(subscription_id: int, position: int, connection: sqlite3.Connection) -> None:
    """Close the retry: from here on fan-out serves the subscription again."""
    connection.execute(
        "DELETE FROM stragglers WHERE subscription_id = ?", (subscription_id,)
    )
    connection.execute(
        "UPDATE subscriptions SET from_position = max(from_position, ?) WHERE id = ?",
        (position, subscription_id),
    )
