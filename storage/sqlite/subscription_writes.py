"""Units of work that begin subscriptions or end them: one, many, or all of a feed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from protocols.urls import normal_url
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    NewSubscription,
    SubscriberGroup,
    SubscriptionId,
    SubscriptionState,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import (
    HASHES,
    pack_hashes,
    pack_ids,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.event_queue import queue_endings
from storage.sqlite.readers import Row
from storage.sqlite.rows import hash_key

# --- ending ---

LEASE_OVER = "the lease has expired"
NO_LIMIT = -1

_OF_FEED = {
    whose: "SELECT id FROM subscriptions WHERE feed_id = ? AND state = 'active'"
    f"{accounts} ORDER BY id LIMIT ?"
    for whose, accounts in (
        (SubscriberGroup.ALL, ""),
        (SubscriberGroup.STRANGERS, f" AND account_id = {ANONYMOUS}"),
        (SubscriberGroup.OTHERS, f" AND account_id <> {OPERATOR}"),
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
    """End a subscription; returns its row afterwards, None if there is none.

    One that has ended already is not changed.
    """
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
    whose: SubscriberGroup,
    connection: sqlite3.Connection,
) -> list[SubscriptionId]:
    """End subscriptions of a feed; returns which.

    ``limit``: see `NO_LIMIT`.
    """
    found = connection.execute(_OF_FEED[whose], (feed_id, limit)).fetchall()
    ids = [subscription_id for (subscription_id,) in found]
    end_all(ids, reason, SubscriptionState.ENDING, now, connection)
    return ids


def end_expired(
    now: int, limit: int, connection: sqlite3.Connection
) -> list[SubscriptionId]:
    """End subscriptions whose lease is over; returns which."""
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
    """End those that have not ended yet, and delete their retries."""
    queue_endings(ids, reason, now, connection)
    listed = pack_ids(ids)
    connection.execute(
        "UPDATE subscriptions SET state = ?, ended_reason = ?, ended_at = ?,"
        " paused_at = NULL"
        " WHERE id IN (SELECT value FROM json_each(?))"
        " AND state IN ('pending', 'active')",
        (state, reason, now, listed),
    )
    connection.execute(
        "DELETE FROM stragglers"
        " WHERE subscription_id IN (SELECT value FROM json_each(?))",
        (listed,),
    )


# --- beginning ---

LARGEST_POSITION = 2**63 - 1


class SubscriptionParameters(TypedDict):
    """Parameters of this module's statements."""

    account: int
    topic: str
    normal: str  # the normal form; "" if the topic is in it already
    normal_topic: str
    feed_id: int
    callback_hash: bytes
    callback: str
    secret: str  # encrypted
    algorithm: str
    format: str
    updates: str
    batch: bool
    lease_end: int | None
    former_until: int | None
    silent_from: int | None  # above every position; None: from the log's end
    now: int


def subscription_parameters(
    new: NewSubscription, now: datetime, box: SecretBox
) -> SubscriptionParameters:
    normal = normal_url(new.topic)
    return {
        "account": new.account,
        "topic": new.topic,
        "normal": "" if new.topic == normal else normal,
        "normal_topic": normal,
        "feed_id": new.feed_id,
        "callback_hash": hash_key(normal_url(new.callback)),
        "callback": new.callback,
        "secret": box.encrypt(new.secret),
        "algorithm": new.algorithm,
        "format": new.format.value,
        "updates": new.updates.value,
        "batch": new.batch,
        "lease_end": to_milliseconds_or_none(new.lease_end),
        "former_until": _still_to_come(new.former_until, now),
        "silent_from": LARGEST_POSITION if new.is_silent else None,
        "now": to_milliseconds(now),
    }


def _still_to_come(until: datetime | None, now: datetime) -> int | None:
    return None if until is None or until <= now else to_milliseconds(until)


def subscribe_one(
    parameters: SubscriptionParameters, connection: sqlite3.Connection
) -> Row | None:
    """Make a subscription; returns its row, None if the account has no such feed."""
    found = connection.execute(
        f"SELECT 1 FROM feeds WHERE id = :feed_id AND {_IS_OPEN}", parameters
    ).fetchone()
    if found is None:
        return None
    connection.execute(_ADD_TOPIC, parameters)
    connection.execute(_RESPELL, parameters)
    to_tell = _new_to_failing_feed([parameters], connection)
    ((subscription_id,),) = connection.execute(
        f"{_UPSERT} RETURNING id", parameters
    ).fetchall()
    connection.executemany(_TELL_OF_ERROR, to_tell)
    row: Row = connection.execute(
        "SELECT * FROM stored_subscriptions WHERE id = ?", (subscription_id,)
    ).fetchone()
    return row


def edit_active(
    subscription_id: int,
    parameters: SubscriptionParameters,
    connection: sqlite3.Connection,
) -> Row | None:
    """Edit an active subscription, whose lease stays; returns its row, or None."""
    found = connection.execute(
        "SELECT lease_end FROM subscriptions WHERE id = ? AND state = 'active'",
        (subscription_id,),
    ).fetchone()
    if found is None:
        return None
    return subscribe_one({**parameters, "lease_end": found[0]}, connection)


def subscribe_all(
    wanted: Sequence[SubscriptionParameters], connection: sqlite3.Connection
) -> list[bool]:
    """Make these subscriptions; returns for each whether that was possible.

    Its feed must exist for the account, and not be removed. No two may have the same
    callback.
    """
    feeds = _feeds_there(wanted, connection)
    is_there = [(each["feed_id"], each["account"]) in feeds for each in wanted]
    active = [each for each, is_one in zip(wanted, is_there, strict=True) if is_one]
    for topic in {each["topic"]: each for each in active}.values():
        connection.execute(_ADD_TOPIC, topic)
    known = _callbacks_known(active, connection)
    for each in active:
        if each["callback_hash"] in known:
            connection.execute(_RESPELL, each)
    to_tell = _new_to_failing_feed(active, connection)
    connection.executemany(_UPSERT, active)
    connection.executemany(_TELL_OF_ERROR, to_tell)
    return is_there


def _new_to_failing_feed(
    wanted: Sequence[SubscriptionParameters], connection: sqlite3.Connection
) -> list[Mapping[str, object]]:
    """The parameters of subscriptions that are to begin, not renew, to a failing feed.

    Each comes with the position of the record of the error. If the log no longer has
    that record, the next failure tells them.
    """
    feeds = pack_ids({each["feed_id"] for each in wanted})
    failing = dict(connection.execute(_FAILING, (feeds,)).fetchall())
    new = [
        each
        for each in wanted
        if each["feed_id"] in failing
        and connection.execute(_IS_ACTIVE, each).fetchone() is None
    ]
    untold = {each["feed_id"] for each in new if failing[each["feed_id"]] is None}
    connection.execute(_AWAIT_ERROR, (pack_ids(untold),))
    return [
        {**each, "error_at": failing[each["feed_id"]]}
        for each in new
        if each["feed_id"] not in untold
    ]


def _feeds_there(
    wanted: Sequence[SubscriptionParameters], connection: sqlite3.Connection
) -> set[tuple[int, int]]:
    """Which feeds are there, each with an account that may subscribe to it."""
    found: set[tuple[int, int]] = set()
    for account in {each["account"] for each in wanted}:
        ids = {each["feed_id"] for each in wanted if each["account"] == account}
        rows = connection.execute(
            "SELECT id FROM feeds WHERE id IN (SELECT value FROM json_each(:ids))"
            f" AND state <> 'removed' AND {_IS_OPEN}",
            {"ids": pack_ids(ids), "account": account},
        )
        found |= {(feed_id, account) for (feed_id,) in rows}
    return found


def _callbacks_known(
    wanted: Sequence[SubscriptionParameters], connection: sqlite3.Connection
) -> set[bytes]:
    rows = connection.execute(
        _KNOWN_CALLBACKS,
        pack_hashes([each["callback_hash"] for each in wanted]),
    )
    return {callback_hash for (callback_hash,) in rows}


_IS_OPEN = f"(credentials = '' OR :account = {OPERATOR})"
"""A feed with credentials is the operator's alone, also for earlier subscribers."""

_KNOWN_CALLBACKS = " ".join(
    ("SELECT DISTINCT callback_hash FROM subscriptions WHERE callback_hash IN", HASHES)
)

_ADD_TOPIC = """
INSERT INTO topics (url, feed_id, normal) VALUES (:topic, :feed_id, :normal)
ON CONFLICT (url) DO UPDATE SET normal = excluded.normal
WHERE normal <> excluded.normal
"""

_RESPELL = """
UPDATE OR IGNORE subscriptions
SET topic_id = (SELECT id FROM topics WHERE url = :topic),
    callback = :callback
WHERE account_id = :account AND callback_hash = :callback_hash AND topic_id IN (
    SELECT id FROM topics WHERE url IN (:topic, :normal_topic) UNION ALL
    SELECT id FROM topics WHERE normal = :normal_topic AND normal <> ''
) AND (callback, topic_id) <> (:callback, (SELECT id FROM topics WHERE url = :topic))
"""
"""Writes a subscription's topic and callback as they are spelled now."""

_UPSERT = """
INSERT INTO subscriptions (account_id, topic_id, feed_id, callback_hash, callback,
    secret, algorithm, format, updates, batch, state, from_position, lease_end,
    created_at, exhausted, ended_reason)
VALUES (:account, (SELECT id FROM topics WHERE url = :topic), :feed_id, :callback_hash,
    :callback, :secret, :algorithm, :format, :updates, :batch, 'active',
    coalesce(:silent_from, (SELECT head FROM meta)), :lease_end, :now, 0, '')
ON CONFLICT (callback_hash, topic_id, account_id) DO UPDATE SET
    former_secret = CASE
        WHEN secret = '' OR excluded.secret = '' OR state IN ('ending', 'ended') THEN ''
        WHEN is_same_secret(secret, excluded.secret) THEN former_secret
        WHEN :former_until IS NULL THEN ''
        ELSE secret END,
    former_until = CASE
        WHEN secret = '' OR excluded.secret = '' OR state IN ('ending', 'ended')
            THEN NULL
        WHEN is_same_secret(secret, excluded.secret) THEN former_until
        ELSE :former_until END,
    secret = excluded.secret,
    algorithm = excluded.algorithm,
    format = excluded.format,
    updates = excluded.updates,
    batch = excluded.batch,
    lease_end = excluded.lease_end,
    condition = iif(state IN ('ending', 'ended'), 'ok', condition),
    condition_since = iif(state IN ('ending', 'ended'), NULL, condition_since),
    failure = iif(state IN ('ending', 'ended'), '', failure),
    told_since = iif(state IN ('ending', 'ended'), NULL, told_since),
    state = 'active',
    ended_reason = '',
    ended_at = NULL,
    feed_id = iif(state IN ('ending', 'ended'), excluded.feed_id, feed_id),
    from_position =
        iif(state IN ('ending', 'ended'), excluded.from_position, from_position),
    created_at = iif(state IN ('ending', 'ended'), excluded.created_at, created_at),
    exhausted = iif(state IN ('ending', 'ended'), 0, exhausted)
"""

_FAILING = """
SELECT f.id, r.position FROM json_each(?) asked JOIN feeds f ON f.id = asked.value
LEFT JOIN records r ON r.position = (SELECT max(position) FROM records
    WHERE feed_id = f.id AND kind IN ('error', 'recovered')) AND r.kind = 'error'
LEFT JOIN feed_hot h ON h.feed_id = f.id
WHERE r.position OR json_extract(nullif(CAST(h.polling AS TEXT), ''), '$.failures') > 0
"""

_AWAIT_ERROR = """
INSERT OR IGNORE INTO awaited_errors SELECT value FROM json_each(?)
"""

_ITS_KEY = """s.callback_hash = :callback_hash AND s.account_id = :account
    AND s.topic_id = (SELECT id FROM topics WHERE url = :topic)
    AND s.state = 'active'"""

_IS_ACTIVE = f"SELECT 1 FROM subscriptions s WHERE {_ITS_KEY}"

_TELL_OF_ERROR = f"""
INSERT INTO stragglers (subscription_id, feed_id, position, attempts, next_try,
    failing_since, last_status, last_error, skip_after, skip_to, lease_id, due)
SELECT s.id, s.feed_id, :error_at - 1, 0, :now, :now, 0, '',
    iif(m.head > :error_at, :error_at, NULL), iif(m.head > :error_at, m.head, NULL),
    0, :now
FROM subscriptions s, meta m WHERE {_ITS_KEY} AND s.from_position = m.head
    AND EXISTS (SELECT 1 FROM temp.wanted w JOIN records r ON w.news = r.news
        WHERE r.position = :error_at AND w.taker = s.format || '/' || s.updates)
"""
"""Opens a retry that stands before the record and skips what came after it. A
subscription that is never told anything gets none: it stands above every record."""
