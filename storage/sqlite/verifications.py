"""`storage.interface.VerificationStore` on SQLite."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

import msgspec

from protocols.urls import normal_url
from storage.errors import NotFound
from storage.records import (
    NewSubscription,
    NewVerification,
    SubscriptionId,
    Verification,
    VerificationState,
    VerificationTry,
)
from storage.secrets import SecretBox
from storage.sqlite.batches import Batches
from storage.sqlite.ended import EndedSubscriptions
from storage.sqlite.id_lists import pack_ids
from storage.sqlite.log_rows import hash_key
from storage.sqlite.readers import Readers
from storage.sqlite.subscribing import subscription_parameters
from storage.sqlite.times import (
    from_milliseconds_or_none,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.verification_rows import read_verification, write_wish
from storage.sqlite.verification_writes import (
    Confirmed,
    TryParameters,
    add_all,
    finish,
    subscribe_confirmed,
    trim,
    try_later,
    unsubscribe_confirmed,
)
from storage.sqlite.writer import Writer

ADDING_PAUSE = 0.04
CONFIRMING_PAUSE = 0.1
"""Seconds in which further ones gather. Somebody waits for the first, nobody for the
second."""


class SqliteVerifications:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        box: SecretBox,
        ended: EndedSubscriptions,
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box
        self._ended = ended
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
                "host": urlsplit(callback).hostname or "",
                "key_hash": hash_key(f"{new.account} {topic} {callback}"),
                "token_hash": hash_key(new.token),
                "lease_seconds": new.lease_seconds,
                "secret": self._box.encrypt(new.secret),
                "algorithm": new.algorithm,
                "format": new.format.value,
                "verify_token": new.verify_token,
                "wish": write_wish(new.wish, self._box),
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
            _DUE, (to_milliseconds(now), in_hand, hosts, per_host, limit)
        )
        return [read_verification(row, self._box) for row in rows]

    async def next_due(self) -> datetime | None:
        row = await self._readers.first(
            "SELECT min(due) FROM verifications WHERE due IS NOT NULL"
        )
        return from_milliseconds_or_none(row[0] if row else None)

    async def retry(
        self, verification_id: int, last: VerificationTry, due: datetime
    ) -> None:
        parameters = _tried(verification_id, last, due=due)
        await self._writer.submit(partial(try_later, parameters), is_single=True)

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        parameters = _tried(verification_id, last, state, kept_until)
        await self._writer.submit(partial(finish, parameters), is_single=True)

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        confirmed = Confirmed(
            _tried(verification_id, last, VerificationState.VERIFIED, kept_until),
            subscription_parameters(new, last.at, self._box),
        )
        if not await self._confirmations.submit(confirmed):
            raise NotFound("feed", new.feed_id)

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        parameters = _tried(
            verification_id, last, VerificationState.VERIFIED, kept_until
        )
        unit = partial(unsubscribe_confirmed, parameters, subscription_id)
        await self._writer.submit(
            unit, then=lambda _: self._ended.tell([subscription_id])
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


_DUE = """
WITH turns AS (
    SELECT id, due, row_number() OVER (PARTITION BY host ORDER BY due, id) AS turn
    FROM verifications v
    WHERE due <= ? AND id NOT IN (SELECT value FROM json_each(?))
        AND host NOT IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
        SELECT 1 FROM verifications earlier WHERE earlier.key_hash = v.key_hash
            AND earlier.id < v.id AND earlier.due IS NOT NULL
    )
)
SELECT v.* FROM turns JOIN stored_verifications v ON v.id = turns.id
WHERE turn <= ? ORDER BY turns.due, turns.id LIMIT ?
"""


def _tried(
    verification_id: int,
    last: VerificationTry,
    state: VerificationState = VerificationState.PENDING,
    kept_until: datetime | None = None,
    *,
    due: datetime | None = None,
) -> TryParameters:
    return {
        "id": verification_id,
        "at": to_milliseconds(last.at),
        "status": last.status,
        "excerpt": last.excerpt,
        "reason": last.reason,
        "due": to_milliseconds_or_none(due),
        "state": state.value,
        "kept_until": to_milliseconds_or_none(kept_until),
    }
