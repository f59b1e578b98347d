"""Ending subscriptions: one, those of a feed, or those whose lease is over."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Subscribers,
    SubscriptionId,
    SubscriptionState,
)
from storage.sqlite.id_lists import pack_ids
from storage.sqlite.readers import Row

LEASE_OVER = "the lease is over"
NO_LIMIT = -1

_OF_FEED = {
    whose: "SELECT id FROM subscriptions WHERE feed_id = ? AND state = 'active'"
    f"{accounts} ORDER BY id LIMIT ?"
    for whose, accounts in (
        (Subscribers.ALL, ""),
        (Subscribers.STRANGERS, f" AND account_id = {ANONYMOUS}"),
        (Subscribers.OTHERS, f" AND account_id <> {OPERATOR}"),
    )
}
_EXPIRED = (
    "SELECT id FROM subscriptions WHERE state = 'active' AND lease_end <= ?"
    " ORDER BY lease_end LIMIT ?"
)


def end_one(
    subscription_id: int,
    reason: str,
    state: SubscriptionState,
    now: int,
    connection: sqlite3.Connection,
) -> Row | None:
    """Its row as it is then; an ended one stays as it was. None if there is none."""
    end_all([subscription_id], reason, state, now, connection)
    row: Row | None = connection.execute(
        "SELECT * FROM stored_subscriptions WHERE id = ?", (subscription_id,)
    ).fetchone()
    return row


def end_of_feed(
    feed_id: int,
    reason: str,
    now: int,
    limit: int,
    whose: Subscribers,
    connection: sqlite3.Connection,
) -> list[SubscriptionId]:
    """Which ones it ended. ``limit``: see `NO_LIMIT`."""
    found = connection.execute(_OF_FEED[whose], (feed_id, limit)).fetchall()
    ids = [subscription_id for (subscription_id,) in found]
    end_all(ids, reason, SubscriptionState.ENDING, now, connection)
    return ids


def end_expired(
    now: int, limit: int, connection: sqlite3.Connection
) -> list[SubscriptionId]:
    """Which ones it ended."""
    found = connection.execute(_EXPIRED, (now, limit)).fetchall()
    ids = [subscription_id for (subscription_id,) in found]
    end_all(ids, LEASE_OVER, SubscriptionState.ENDING, now, connection)
    return ids


def end_all(
    ids: Sequence[int],
    reason: str,
    state: SubscriptionState,
    now: int,
    connection: sqlite3.Connection,
) -> None:
    """End those that have not ended yet; their stragglers go with them."""
    listed = pack_ids(ids)
    connection.execute(
        "UPDATE subscriptions SET state = ?, ended_reason = ?, ended_at = ?"
        " WHERE id IN (SELECT value FROM json_each(?))"
        " AND state IN ('pending', 'active')",
        (state, reason, now, listed),
    )
    connection.execute(
        "DELETE FROM stragglers"
        " WHERE subscription_id IN (SELECT value FROM json_each(?))",
        (listed,),
    )
