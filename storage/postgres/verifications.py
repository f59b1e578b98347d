"""`storage.contract.VerificationStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from protocols.urls import host_name, normal_url
from storage.errors import NotFound
from storage.postgres.connections import Connections
from storage.postgres.control import PostgresControl
from storage.postgres.fetch_commits import to_jsonb
from storage.postgres.subscriptions import SUBSCRIBED, subscription_arguments
from storage.postgres.write_lanes import WriteLane
from storage.records import (
    NewSubscription,
    NewVerification,
    SubscriptionId,
    Verification,
    VerificationState,
    VerificationTry,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds_or_none, to_milliseconds
from storage.sqlite.rows import hash_key
from storage.sqlite.verifications import (
    UNSUBSCRIBED,
    read_verification,
    write_account_request,
)

MOST_AT_ONCE: Final = 250
ADDING_PAUSE: Final = 0.02
"""Seconds in which further requests gather: somebody waits for the first."""
_ADD: Final = "SELECT add_verifications(convert_from(%s, 'UTF8')::jsonb)"
_DUE: Final = """
WITH turns AS (
    SELECT id, due, row_number() OVER (PARTITION BY host ORDER BY due, id) AS turn
    FROM due_verifications(%(now)s, '{}')
    WHERE (%(owner)s = 0 OR owns_shard(%(owner)s, 'callbacks', callback))
        AND id <> ALL(%(without)s::bigint[])
        AND host <> ALL(%(without_hosts)s::text[])
)
SELECT v.* FROM turns JOIN stored_verifications v ON v.id = turns.id
WHERE turn <= %(per_host)s ORDER BY turns.due, turns.id LIMIT %(limit)s
"""
_ENDED: Final = """
WITH held AS (
    SELECT end_claims('verifications', ARRAY[%(id)s], %(lease)s, %(term)s) ids),
done AS (UPDATE verifications SET attempts = attempts + 1, tried_at = %(at)s,
    status = %(status)s, excerpt = %(excerpt)s, reason = %(reason)s, {changes}
    WHERE id = ANY((SELECT ids FROM held)::bigint[]) AND due IS NOT NULL)
SELECT cardinality(ids) > 0 FROM held
"""
_RETRY: Final = _ENDED.format(changes="due = %(due)s")
_FINISH: Final = _ENDED.format(
    changes="due = NULL, state = %(state)s, secret = '', asker = '',"
    " kept_until = %(kept_until)s"
)
_HELD: Final = (
    "WITH held AS (SELECT holds_claim('verifications', %(id)s, %(lease)s, %(term)s) it)"
    " SELECT it, CASE WHEN it THEN {done} END FROM held"
)
_CONFIRMED: Final = "%(id)s, %(status)s, %(excerpt)s, %(reason)s, %(kept_until)s"
_SUBSCRIBE: Final = _HELD.format(
    done=f"subscribe_confirmed({SUBSCRIBED}, {_CONFIRMED})"
)
_UNSUBSCRIBE: Final = _HELD.format(
    done=f"unsubscribe_confirmed(%(subscription)s, %(why)s, %(at)s, {_CONFIRMED})"
)


class PostgresVerifications:
    def __init__(
        self, connections: Connections, box: SecretBox, control: PostgresControl
    ) -> None:
        self._connections = connections
        self._box = box
        self._control = control
        self._additions = WriteLane[dict[str, Any], bytes, bool](
            to_jsonb, self._add_all, most=MOST_AT_ONCE, pause=ADDING_PAUSE
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
                "account_request": write_account_request(
                    new.account_request, self._box
                ),
                "now": to_milliseconds(now),
                "most": most,
                "most_of_host": most_of_host,
                "asker": new.asker,
                "most_of_asker": most_of_asker,
            }
        )

    async def _add_all(self, wanted: bytes) -> Sequence[bool]:
        ((taken,),) = await self._connections.write(_ADD, (wanted,))
        return list(taken)

    async def due(
        self,
        now: datetime,
        *,
        per_host: int,
        limit: int,
        without: Collection[int] = (),
        without_hosts: Collection[str] = (),
    ) -> list[Verification]:
        parameters = {
            "now": now,
            "owner": self._connections.owner,
            "without": list(without),
            "without_hosts": list(without_hosts),
            "per_host": per_host,
            "limit": limit,
        }
        rows = await self._connections.all(_DUE, parameters)
        return [read_verification(row, self._box) for row in rows]

    async def next_due(self) -> datetime | None:
        row = await self._connections.first(
            "SELECT min(due) FROM verifications WHERE due IS NOT NULL"
            " AND (%(owner)s = 0 OR owns_shard(%(owner)s, 'callbacks', callback))",
            {"owner": self._connections.owner},
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
        ((is_held,),) = await self._connections.write(
            _RETRY, {**self._tried(verification_id, lease_id, last), "due": due}
        )
        return bool(is_held)

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        parameters = {"state": state.value, "kept_until": kept_until}
        ((is_held,),) = await self._connections.write(
            _FINISH, {**self._tried(verification_id, lease_id, last), **parameters}
        )
        return bool(is_held)

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        parameters = {
            **subscription_arguments(new, last.at, self._box),
            **self._tried(verification_id, lease_id, last),
            "kept_until": kept_until,
        }
        ((is_held, is_active),) = await self._connections.write(_SUBSCRIBE, parameters)
        if is_held and not is_active:
            raise NotFound("feed", new.feed_id)
        return bool(is_held)

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        parameters = {
            **self._tried(verification_id, lease_id, last),
            "subscription": subscription_id,
            "why": UNSUBSCRIBED,
            "kept_until": kept_until,
        }
        rows = await self._connections.write(
            _UNSUBSCRIBE,
            parameters,
            then=lambda rows: self._control.ended(
                [subscription_id] if rows[0][0] else []
            ),
        )
        return bool(rows[0][0])

    async def find(self, token: str) -> Verification | None:
        row = await self._connections.first(
            "SELECT v.* FROM verifications t JOIN stored_verifications v ON v.id = t.id"
            " WHERE t.token_hash = %s",
            (hash_key(token),),
        )
        return None if row is None else read_verification(row, self._box)

    async def trim(self, now: datetime, limit: int) -> int:
        return await self._connections.change(
            "DELETE FROM verifications WHERE id IN (SELECT id FROM verifications"
            " WHERE kept_until < %s ORDER BY kept_until LIMIT %s)",
            (now, limit),
        )

    def _tried(
        self, verification_id: int, lease_id: int, last: VerificationTry
    ) -> dict[str, object]:
        return {
            "term": self._connections.incarnation,
            "id": verification_id,
            "lease": lease_id,
            "at": last.at,
            "status": last.status,
            "excerpt": last.excerpt,
            "reason": last.reason,
        }
