"""`storage.contract.VerificationStore` on SQLite.

Verifications that come at the same time are written together, as one unit of work.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from enum import Enum
from functools import partial
from typing import NamedTuple, TypedDict

import msgspec

from protocols.urls import host_name, normal_url
from storage.errors import NotFound
from storage.records import (
    AccountRequest,
    Format,
    NewSubscription,
    NewVerification,
    SubscriptionId,
    SubscriptionState,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
    WorkKind,
)
from storage.secrets import SecretBox
from storage.sqlite.batches import Batches, parted
from storage.sqlite.claims import OLDEST_OF_KEY, OTHER_VERIFICATIONS, holds_claim
from storage.sqlite.columns import (
    HASHES,
    from_milliseconds,
    from_milliseconds_or_none,
    pack_hashes,
    pack_ids,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.control import SqliteControl
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import hash_key
from storage.sqlite.subscription_writes import (
    SubscriptionParameters,
    end_one,
    subscribe_all,
    subscription_parameters,
)
from storage.sqlite.writer import Writer

# --- rows ---


def read_verification(row: Row, box: SecretBox) -> Verification:
    """Read a row of the view ``stored_verifications``."""
    return Verification(
        id=row[0],
        account=row[1],
        mode=VerificationMode(row[2]),
        topic=row[3],
        callback=row[4],
        lease_seconds=row[5],
        secret=box.decrypt(row[6]),
        algorithm=row[7],
        format=Format(row[8]),
        verify_token=row[9],
        state=VerificationState(row[10]),
        created_at=from_milliseconds(row[11]),
        attempts=row[12],
        due=from_milliseconds_or_none(row[13]),
        last=_read_last(*row[14:18]),
        account_request=_read_account_request(row[18], box),
    )


def write_account_request(request: AccountRequest | None, box: SecretBox) -> str:
    """Encrypt a request, whose parameters and headers may hold anything."""
    return "" if request is None else box.encrypt(msgspec.json.encode(request).decode())


def _read_account_request(text: str, box: SecretBox) -> AccountRequest | None:
    return msgspec.json.decode(box.decrypt(text), type=AccountRequest) if text else None


def _read_last(
    tried_at: int | None, status: int, excerpt: str, reason: str
) -> VerificationTry | None:
    if tried_at is None:
        return None
    at = from_milliseconds(tried_at)
    return VerificationTry(at=at, status=status, excerpt=excerpt, reason=reason)


# --- units of work ---

UNSUBSCRIBED = "unsubscribed"
_OTHER_MODE = {"subscribe": "unsubscribe", "unsubscribe": "subscribe"}


class AddParameters(TypedDict):
    """A request, and how many may be pending: in all, for its callback's host, and for
    its asker."""

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
    """The outcome of a try, and what follows from it."""

    id: int
    lease_id: int
    at: int
    status: int
    excerpt: str
    reason: str
    due: int | None
    state: str
    kept_until: int | None


class ConfirmedFate(Enum):
    STORED = "stored"
    LOST = "lost"  # the claim is not held any more
    FEED_GONE = "feed gone"


class Confirmed(NamedTuple):
    """A request to subscribe that its callback confirmed."""

    last: TryParameters
    subscription: SubscriptionParameters


def add_all(
    wanted: Sequence[AddParameters], connection: sqlite3.Connection
) -> list[bool]:
    """Store requests as pending; returns False for those that found no room."""
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
    """Replace pending requests that are made again; returns for each if one was
    there."""
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
    """The pending requests in each group that these requests count in."""
    names = {name for each in wanted for name in _counted(each)}
    found = connection.execute(
        "SELECT host, pending FROM pending_counts"
        " WHERE host IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(names)).decode(),),
    )
    return Counter(dict(found.fetchall()))


def _counted(each: AddParameters) -> tuple[str, str, str]:
    """The groups that a request counts in: all, its callback's host, and its asker."""
    return "", each["host"], f"of {each['asker']}"


def _has_room(each: AddParameters, pending: Counter[str]) -> bool:
    of_all, of_host, of_asker = map(pending.__getitem__, _counted(each))
    if of_all >= each["most"] or of_host >= each["most_of_host"]:
        return False
    most = each["most_of_asker"]
    return most is None or not each["asker"] or of_asker < most


def try_later(parameters: TryParameters, connection: sqlite3.Connection) -> bool:
    return _end(parameters, _RETRY, connection)


def finish(parameters: TryParameters, connection: sqlite3.Connection) -> bool:
    return _end(parameters, _FINISH, connection)


def _end(parameters: TryParameters, sql: str, connection: sqlite3.Connection) -> bool:
    """End the claim with what came of it; False if it is not held."""
    is_held = bool(connection.execute(_END_CLAIM, parameters).rowcount)
    if is_held:
        connection.execute(sql, parameters)
    return is_held


def subscribe_confirmed(
    confirmed: Sequence[Confirmed], connection: sqlite3.Connection
) -> list[ConfirmedFate]:
    """Begin confirmed subscriptions, those under claims that are held. If its feed is
    gone, a request stays pending and claimed."""
    fates = [ConfirmedFate.LOST] * len(confirmed)
    stored: list[TryParameters] = []
    held = [
        (number, each)
        for number, each in enumerate(confirmed)
        if _is_held(each.last, connection)
    ]
    for part in parted(held, lambda one: one[1].subscription["callback_hash"]):
        active = subscribe_all([each.subscription for _, each in part], connection)
        for (number, each), is_active in zip(part, active, strict=True):
            if is_active:
                stored.append(each.last)
            fates[number] = (
                ConfirmedFate.STORED if is_active else ConfirmedFate.FEED_GONE
            )
    connection.executemany(_CONFIRM, stored)
    connection.executemany(_END_CLAIM, stored)
    return fates


def _is_held(tried: TryParameters, connection: sqlite3.Connection) -> bool:
    kind = WorkKind.VERIFICATIONS
    return holds_claim(kind, tried["id"], tried["lease_id"], connection)


def unsubscribe_confirmed(
    parameters: TryParameters,
    subscription_id: int,
    connection: sqlite3.Connection,
) -> bool:
    if not _end(parameters, _CONFIRM, connection):
        return False
    at, ended = parameters["at"], SubscriptionState.ENDED
    end_one(subscription_id, UNSUBSCRIBED, ended, at, connection)
    return True


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
"""Ends a request whose callback did not answer, once the opposite is requested."""

_END_CLAIM = (
    "DELETE FROM claims WHERE kind = 'verifications' AND item = :id"
    " AND lease_id = :lease_id"
)

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
"""A request replaced while its callback was asked is confirmed all the same."""


# --- the store ---

ADDING_PAUSE = 0.04
CONFIRMING_PAUSE = 0.1
"""Seconds in which further requests and confirmations gather. Somebody waits for a
request's answer, nobody for a confirmation's."""


class SqliteVerifications:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        box: SecretBox,
        control: SqliteControl,
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box
        self._control = control
        self._additions = Batches(writer, add_all, pause=ADDING_PAUSE)
        self._confirmations = Batches(
            writer, subscribe_confirmed, pause=CONFIRMING_PAUSE
        )

    async def add(
        self,
        new: NewVerification,
        now: datetime,
        *,
        most: int,
        most_of_host: int,
        most_of_asker: int | None = None,
    ) -> bool:
        topic, callback = normal_url(new.topic), normal_url(new.callback)
        return await self._additions.submit(
            {
                "account": new.account,
                "mode": new.mode.value,
                "topic": new.topic,
                "callback": new.callback,
                "host": host_name(callback),
                "key_hash": hash_key(f"{new.account} {topic} {callback}"),
                "token_hash": hash_key(new.token),
                "lease_seconds": new.lease_seconds,
                "secret": self._box.encrypt(new.secret),
                "algorithm": new.algorithm,
                "format": new.format.value,
                "verify_token": new.verify_token,
                "wish": write_account_request(new.account_request, self._box),
                "now": to_milliseconds(now),
                "most": most,
                "most_of_host": most_of_host,
                "asker": new.asker,
                "most_of_asker": most_of_asker,
            }
        )

    async def due(
        self,
        now: datetime,
        *,
        per_host: int,
        limit: int,
        without: Collection[int] = (),
        without_hosts: Collection[str] = (),
    ) -> list[Verification]:
        in_hand = pack_ids(without)
        hosts = msgspec.json.encode(list(without_hosts)).decode()
        rows = await self._readers.all(
            _DUE,
            {
                **{"now": to_milliseconds(now), "in_hand": in_hand, "hosts": hosts},
                **{"per_host": per_host, "limit": limit},
            },
        )
        return [read_verification(row, self._box) for row in rows]

    async def next_due(self) -> datetime | None:
        row = await self._readers.first(
            "SELECT min(due) FROM verifications WHERE due IS NOT NULL"
        )
        return from_milliseconds_or_none(row[0] if row else None)

    async def retry(
        self,
        verification_id: int,
        last: VerificationTry,
        due: datetime,
        *,
        lease_id: int,
    ) -> bool:
        parameters = _tried(verification_id, lease_id, last, due=due)
        return await self._writer.submit(partial(try_later, parameters))

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        parameters = _tried(verification_id, lease_id, last, state, kept_until)
        return await self._writer.submit(partial(finish, parameters))

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        verified = VerificationState.VERIFIED
        confirmed = Confirmed(
            _tried(verification_id, lease_id, last, verified, kept_until),
            subscription_parameters(new, last.at, self._box),
        )
        fate = await self._confirmations.submit(confirmed)
        if fate is ConfirmedFate.FEED_GONE:
            raise NotFound("feed", new.feed_id)
        return fate is ConfirmedFate.STORED

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        verified = VerificationState.VERIFIED
        parameters = _tried(verification_id, lease_id, last, verified, kept_until)
        unit = partial(unsubscribe_confirmed, parameters, subscription_id)
        return await self._writer.submit(
            unit,
            then=lambda is_held: self._control.ended(
                [subscription_id] if is_held else []
            ),
        )

    async def find(self, token: str) -> Verification | None:
        row = await self._readers.first(
            "SELECT v.* FROM verifications t JOIN stored_verifications v ON v.id = t.id"
            " WHERE t.token_hash = ?",
            (hash_key(token),),
        )
        return None if row is None else read_verification(row, self._box)

    async def trim(self, now: datetime, limit: int) -> int:
        unit = partial(trim, to_milliseconds(now), limit)
        return await self._writer.submit(unit, is_single=True)


_DUE = f"""
WITH turns AS (
    SELECT id, due, row_number() OVER (PARTITION BY host ORDER BY due, id) AS turn
    FROM verifications v
    WHERE due <= :now AND id NOT IN (SELECT value FROM json_each(:in_hand))
        AND host NOT IN (SELECT value FROM json_each(:hosts))
        AND {OLDEST_OF_KEY} AND {OTHER_VERIFICATIONS}
)
SELECT v.* FROM turns JOIN stored_verifications v ON v.id = turns.id
WHERE turn <= :per_host ORDER BY turns.due, turns.id LIMIT :limit
"""


def _tried(
    verification_id: int,
    lease_id: int,
    last: VerificationTry,
    state: VerificationState = VerificationState.PENDING,
    kept_until: datetime | None = None,
    *,
    due: datetime | None = None,
) -> TryParameters:
    return {
        "id": verification_id,
        "lease_id": lease_id,
        "at": to_milliseconds(last.at),
        "status": last.status,
        "excerpt": last.excerpt,
        "reason": last.reason,
        "due": to_milliseconds_or_none(due),
        "state": state.value,
        "kept_until": to_milliseconds_or_none(kept_until),
    }
