"""Units of work on verifications: many at once where they come at once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import msgspec

from storage.records import SubscriptionState
from storage.sqlite.batches import parted
from storage.sqlite.endings import end_one
from storage.sqlite.id_lists import HASHES, pack_hashes
from storage.sqlite.subscribing import SubscriptionParameters, subscribe_all

UNSUBSCRIBED = "unsubscribed"
_OTHER_MODE = {"subscribe": "unsubscribe", "unsubscribe": "subscribe"}


class AddParameters(TypedDict):
    """A request, and how many may be pending: of all, of its callback's host, and of
    who asks."""

    account: int
    mode: str
    topic: str
    callback: str
    host: str
    key_hash: bytes
    token_hash: bytes
    lease_seconds: int
    secret: str  # encrypted
    algorithm: str
    format: str
    verify_token: str
    wish: str
    now: int
    most: int
    most_of_host: int
    asker: str
    most_of_asker: int | None


class TryParameters(TypedDict):
    """What came of a try, and what then."""

    id: int
    at: int
    status: int
    excerpt: str
    reason: str
    due: int | None
    state: str
    kept_until: int | None


class Confirmed(NamedTuple):
    """A request to subscribe that its callback confirmed."""

    last: TryParameters
    subscription: SubscriptionParameters


def add_all(
    wanted: Sequence[AddParameters], connection: sqlite3.Connection
) -> list[bool]:
    """Whether each is pending; others found no room."""
    taken: list[bool] = []
    for each in parted(wanted, lambda one: (one["key_hash"], one["mode"])):
        taken += _add_different(each, connection)
    return taken


def _add_different(
    wanted: Sequence[AddParameters], connection: sqlite3.Connection
) -> list[bool]:
    is_renewed = _replace_pending(wanted, connection)
    pending = _pending_counts(connection, wanted)
    for each, renewed in zip(wanted, is_renewed, strict=True):
        if renewed:  # it takes the place of the one it replaces
            pending.update(_counted(each))
    taken: list[bool] = []
    for each, renewed in zip(wanted, is_renewed, strict=True):
        has_room = _has_room(each, pending)
        if has_room and not renewed:
            pending.update(_counted(each))
        taken.append(has_room or renewed)
    connection.executemany(
        _INSERT,
        [each for each, is_taken in zip(wanted, taken, strict=True) if is_taken],
    )
    return taken


def _replace_pending(
    wanted: Sequence[AddParameters], connection: sqlite3.Connection
) -> list[bool]:
    """Whether the same was pending, and is not any more."""
    found = connection.execute(
        _PENDING,
        pack_hashes([each["key_hash"] for each in wanted]),
    )
    known = set(found.fetchall())
    renewing = [(each["key_hash"], each["mode"]) in known for each in wanted]
    for each, is_renewing in zip(wanted, renewing, strict=True):
        if is_renewing:
            connection.execute(_REPLACE, each)
        if (each["key_hash"], _OTHER_MODE[each["mode"]]) in known:
            connection.execute(_SUPERSEDE, each)
    return renewing


def _pending_counts(
    connection: sqlite3.Connection, wanted: Sequence[AddParameters]
) -> Counter[str]:
    """All that those requests count among."""
    names = {name for each in wanted for name in _counted(each)}
    found = connection.execute(
        "SELECT host, pending FROM pending_counts"
        " WHERE host IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(names)).decode(),),
    )
    return Counter(dict(found.fetchall()))


def _counted(each: AddParameters) -> tuple[str, str, str]:
    """What a request counts among: all, its callback's host, and its asker's."""
    return "", each["host"], f"of {each['asker']}"


def _has_room(each: AddParameters, pending: Counter[str]) -> bool:
    of_all, of_host, of_asker = map(pending.__getitem__, _counted(each))
    if of_all >= each["most"] or of_host >= each["most_of_host"]:
        return False
    most = each["most_of_asker"]
    return most is None or not each["asker"] or of_asker < most


def try_later(parameters: TryParameters, connection: sqlite3.Connection) -> None:
    connection.execute(_RETRY, parameters)


def finish(parameters: TryParameters, connection: sqlite3.Connection) -> None:
    connection.execute(_FINISH, parameters)


def subscribe_confirmed(
    confirmed: Sequence[Confirmed], connection: sqlite3.Connection
) -> list[bool]:
    """Whether each is active now; if not, its feed is gone and the request pending."""
    active: list[bool] = []
    for part in parted(confirmed, lambda one: one.subscription["callback_hash"]):
        active += subscribe_all([each.subscription for each in part], connection)
    connection.executemany(
        _CONFIRM,
        [
            each.last
            for each, is_active in zip(confirmed, active, strict=True)
            if is_active
        ],
    )
    return active


def unsubscribe_confirmed(
    parameters: TryParameters,
    subscription_id: int,
    connection: sqlite3.Connection,
) -> None:
    at, ended = parameters["at"], SubscriptionState.ENDED
    end_one(subscription_id, UNSUBSCRIBED, ended, at, connection)
    connection.execute(_CONFIRM, parameters)


def trim(now: int, limit: int, connection: sqlite3.Connection) -> int:
    return connection.execute(
        "DELETE FROM verifications WHERE id IN (SELECT id FROM verifications"
        " WHERE kept_until < ? ORDER BY kept_until LIMIT ?)",
        (now, limit),
    ).rowcount


_PENDING = " ".join(
    (
        "SELECT key_hash, mode FROM verifications",
        "WHERE due IS NOT NULL AND key_hash IN",
        HASHES,
    )
)

_INSERT = """
INSERT INTO verifications (account_id, mode, topic, callback, host, key_hash,
    token_hash, lease_seconds, secret, algorithm, format, verify_token, wish, state,
    created_at, attempts, due, status, excerpt, reason, asker)
VALUES (:account, :mode, :topic, :callback, :host, :key_hash, :token_hash,
    :lease_seconds, :secret, :algorithm, :format, :verify_token, :wish, 'pending',
    :now, 0, :now, 0, '', '', :asker)
"""

_REPLACE = """
UPDATE verifications SET due = NULL, state = 'replaced', secret = '', asker = '',
    kept_until = :now + 86400000
WHERE key_hash = :key_hash AND mode = :mode AND due IS NOT NULL
"""

_SUPERSEDE = """
UPDATE verifications SET due = NULL, state = 'replaced', secret = '', asker = '',
    kept_until = :now + 86400000
WHERE key_hash = :key_hash AND mode <> :mode AND attempts > 0 AND due > :now
"""
"""A callback was silent when it was asked; now it is about the opposite."""

_RETRY = """
UPDATE verifications SET attempts = attempts + 1, due = :due, tried_at = :at,
    status = :status, excerpt = :excerpt, reason = :reason
WHERE id = :id AND due IS NOT NULL
"""

_DONE = """
UPDATE verifications SET attempts = attempts + 1, due = NULL, tried_at = :at,
    status = :status, excerpt = :excerpt, reason = :reason,
    state = :state, secret = '', asker = '', kept_until = :kept_until
WHERE id = :id"""

_FINISH = f"{_DONE} AND due IS NOT NULL"

_CONFIRM = f"{_DONE} AND state IN ('pending', 'replaced')"
"""One that was replaced while its callback was asked is confirmed all the same."""
