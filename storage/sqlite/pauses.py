"""Paused subscriptions: they are sent nothing, and keep what they are owed.

A record for a paused subscription is owed by its retry, as if it had failed; but a
retry of a paused subscription is not claimed. Until a record comes, the subscription
needs no retry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from storage.errors import SubscriptionPaused
from storage.records import WAS_PAUSED
from storage.sqlite.columns import pack_ids
from storage.sqlite.retries import make_due, note_conditions


def pause(subscription_id: int, now: int, connection: sqlite3.Connection) -> bool:
    """Pause a subscription. Returns False, and changes nothing, unless it is active."""
    paused = connection.execute(
        "UPDATE subscriptions SET paused_at = coalesce(paused_at, ?)"
        " WHERE id = ? AND state = 'active'",
        (now, subscription_id),
    )
    connection.execute(
        "UPDATE stragglers SET is_paused = 1 WHERE subscription_id = ?",
        (subscription_id,),
    )
    return paused.rowcount > 0


def resume(subscription_id: int, now: int, connection: sqlite3.Connection) -> bool:
    """Resume a subscription: its retry is due at once, unless one of its requests is
    still under way."""
    resumed = connection.execute(
        "UPDATE subscriptions SET paused_at = NULL WHERE id = ? AND state = 'active'",
        (subscription_id,),
    )
    retrying = connection.execute(
        "UPDATE stragglers SET is_paused = 0 WHERE subscription_id = ? AND is_paused",
        (subscription_id,),
    )
    if retrying.rowcount:
        make_due(subscription_id, now, connection)
    note_conditions([subscription_id], now, connection)
    return resumed.rowcount > 0


def refuse_if_paused(subscription_id: int, connection: sqlite3.Connection) -> None:
    """Raises `SubscriptionPaused`."""
    found = connection.execute(
        "SELECT 1 FROM subscriptions WHERE id = ? AND paused_at IS NOT NULL",
        (subscription_id,),
    ).fetchone()
    if found is not None:
        raise SubscriptionPaused(subscription_id)


_OPEN_RETRIES = """
INSERT OR IGNORE INTO stragglers (subscription_id, feed_id, position, attempts,
    next_try, failing_since, last_status, last_error, lease_id, due, is_paused)
SELECT id, feed_id, :position - 1, 0, :now, :now, 0, :reason, 0, :now, 1
FROM subscriptions INDEXED BY subscriptions_paused
WHERE feed_id = :feed_id AND paused_at IS NOT NULL AND id BETWEEN :first AND :last
    AND +id IN (SELECT value FROM json_each(:ids)) AND from_position < :position
RETURNING subscription_id
"""
"""``+id`` keeps the ids out of the search of the index, so that they are read only if a
subscription is paused."""


def owe_to_paused(
    position: int,
    feed_id: int,
    ids: Sequence[int],
    now: int,
    connection: sqlite3.Connection,
) -> frozenset[int]:
    """Open a retry, from that record on, for the paused ones of these subscriptions;
    returns which they are.

    ``ids``: in rising order, the subscriptions that are about to get the record.
    """
    if not ids:
        return frozenset()
    opened = connection.execute(
        _OPEN_RETRIES,
        {
            "position": position,
            "feed_id": feed_id,
            "now": now,
            "reason": WAS_PAUSED,
            "first": ids[0],
            "last": ids[-1],
            "ids": pack_ids(ids),
        },
    ).fetchall()
    return frozenset(subscription_id for (subscription_id,) in opened)
