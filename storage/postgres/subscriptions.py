"""`SubscriptionStore` and `DigestStore` of `storage.contract` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from protocols.urls import normal_url
from storage.errors import NotFound
from storage.postgres.claims import unclaimed
from storage.postgres.connections import Connections, Row
from storage.postgres.control import PostgresControl
from storage.postgres.rows import wanted_news_of
from storage.records import (
    AccountId,
    FeedId,
    NewSubscription,
    SubscriberGroup,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    WorkKind,
)
from storage.secrets import SecretBox
from storage.sqlite.rows import hash_key, read_subscription
from storage.sqlite.subscription_writes import LEASE_OVER

SUBSCRIBED: Final = (
    "%(account)s, %(topic)s, %(normal_topic)s, %(feed_id)s, %(callback_hash)s,"
    " %(callback)s, %(secret)s, %(secret_hash)s, %(algorithm)s, %(format)s,"
    " %(updates)s, %(wants)s, %(batch)s, %(lease_end)s, %(former_until)s,"
    " %(is_silent)s, %(now)s"
)
"""Arguments of the database's functions that subscribe."""
_SUBSCRIBE: Final = f"SELECT * FROM subscribe({SUBSCRIBED}, %(edited)s)"
OF_TOPIC: Final = (
    "s.topic_id = ANY(ARRAY("
    "SELECT id FROM topics WHERE url IN (%(topic)s, %(normal)s)"
    " UNION ALL SELECT id FROM topics WHERE normal = %(normal)s AND normal <> ''))"
)
"""A topic in any spelling; its parameters are `topic_keys`."""
_STORED: Final = (
    "SELECT v.* FROM subscriptions s JOIN stored_subscriptions v ON v.id = s.id"
)
_OWNED: Final = "(%(owner)s = 0 OR owns_shard(%(owner)s, 'callbacks', s.callback))"


def subscription_arguments(
    new: NewSubscription, now: datetime, box: SecretBox
) -> dict[str, object]:
    """The parameters of `SUBSCRIBED`."""
    until = new.former_until
    return {
        "account": new.account,
        "topic": new.topic,
        "normal_topic": normal_url(new.topic),
        "feed_id": new.feed_id,
        "callback_hash": hash_key(normal_url(new.callback)),
        "callback": new.callback,
        "secret": box.encrypt(new.secret),
        "secret_hash": box.fingerprint(new.secret),
        "algorithm": new.algorithm,
        "format": new.format.value,
        "updates": new.updates.value,
        "wants": wanted_news_of(new.format, new.updates),
        "batch": new.batch,
        "lease_end": new.lease_end,
        "former_until": None if until is None or until <= now else until,
        "is_silent": new.is_silent,
        "now": now,
    }


def topic_keys(topic: str) -> dict[str, object]:
    return {"topic": topic, "normal": normal_url(topic)}


class PostgresSubscriptions:
    def __init__(
        self, connections: Connections, box: SecretBox, control: PostgresControl
    ) -> None:
        self._connections = connections
        self._box = box
        self._control = control

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        rows = await self._subscribe(new, now, None)
        if not rows:
            raise NotFound("feed", new.feed_id)
        return read_subscription(rows[0], self._box)

    async def edit(
        self, subscription_id: SubscriptionId, new: NewSubscription, now: datetime
    ) -> Subscription | None:
        rows = await self._subscribe(new, now, subscription_id)
        return read_subscription(rows[0], self._box) if rows else None

    async def _subscribe(
        self, new: NewSubscription, now: datetime, edited: SubscriptionId | None
    ) -> list[Row]:
        arguments = subscription_arguments(new, now, self._box)
        return await self._connections.write(
            _SUBSCRIBE, {**arguments, "edited": edited}
        )

    async def get(self, subscription_id: SubscriptionId) -> Subscription | None:
        row = await self._connections.first(
            "SELECT * FROM stored_subscriptions WHERE id = %s", (subscription_id,)
        )
        return None if row is None else read_subscription(row, self._box)

    async def find(
        self, account: AccountId, topic: str, callback: str
    ) -> Subscription | None:
        row = await self._connections.first(
            f"{_STORED} WHERE s.callback_hash = %(hash)s AND s.account_id = %(account)s"
            f" AND {OF_TOPIC}",
            {
                "hash": hash_key(normal_url(callback)),
                "account": account,
                **topic_keys(topic),
            },
        )
        return None if row is None else read_subscription(row, self._box)

    async def holds(self, account: AccountId, feed_id: FeedId) -> bool:
        row = await self._connections.first(
            "SELECT 1 FROM subscriptions WHERE account_id = %s AND feed_id = %s"
            " AND state = 'active' LIMIT 1",
            (account, feed_id),
        )
        return row is not None

    async def page(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        account: AccountId | None = None,
        topic: str | None = None,
        callback: str | None = None,
    ) -> list[Subscription]:
        conditions = ["s.state IN ('pending', 'active')", "s.id > %(after)s"]
        parameters: dict[str, object] = {"after": after, "limit": limit}
        if callback is not None:
            conditions.append("s.callback_hash = %(hash)s")
            parameters["hash"] = hash_key(normal_url(callback))
        if topic is not None:
            conditions.append(OF_TOPIC)
            parameters |= topic_keys(topic)
        if account is not None:
            conditions.append("s.account_id = %(account)s")
            parameters["account"] = account
        rows = await self._connections.all(
            f"{_STORED} WHERE {' AND '.join(conditions)} ORDER BY s.id LIMIT %(limit)s",
            parameters,
        )
        return [read_subscription(row, self._box) for row in rows]

    async def end(
        self, subscription_id: SubscriptionId, reason: str, now: datetime, *, tell: bool
    ) -> Subscription:
        state = SubscriptionState.ENDING if tell else SubscriptionState.ENDED
        rows = await self._connections.write(
            "SELECT * FROM end_subscription(%s, %s, %s, %s)",
            (subscription_id, reason, state.value, now),
            then=lambda _: self._control.ended([subscription_id]),
        )
        if not rows:
            raise NotFound("subscription", subscription_id)
        return read_subscription(rows[0], self._box)

    async def end_all(
        self,
        feed_id: FeedId,
        reason: str,
        now: datetime,
        limit: int,
        whose: SubscriberGroup = SubscriberGroup.ALL,
    ) -> int:
        return await self._end_several(
            "SELECT end_of_feed(%s, %s, %s, %s, %s)",
            (feed_id, reason, now, limit, whose.value),
        )

    async def expire(self, now: datetime, limit: int) -> int:
        return await self._end_several(
            "SELECT end_expired(%s, %s, %s)", (now, LEASE_OVER, limit)
        )

    async def _end_several(self, sql: str, parameters: Sequence[object]) -> int:
        ((ids,),) = await self._connections.write(
            sql, parameters, then=lambda rows: self._control.ended(rows[0][0])
        )
        return len(ids)

    async def pause(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        ((is_active,),) = await self._connections.write(
            "SELECT pause_subscription(%s, %s)",
            (subscription_id, now),
            then=lambda rows: self._tell_paused(subscription_id, rows[0][0]),
        )
        return bool(is_active)

    async def resume(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        ((is_active,),) = await self._connections.write(
            "SELECT resume_subscription(%s, %s)",
            (subscription_id, now),
            then=lambda _: self._control.paused(subscription_id, is_paused=False),
        )
        return bool(is_active)

    def _tell_paused(self, subscription_id: SubscriptionId, is_active: bool) -> None:
        if is_active:
            self._control.paused(subscription_id, is_paused=True)

    async def ending(self, now: datetime, limit: int) -> list[Subscription]:
        rows = await self._connections.all(
            f"{_STORED} WHERE s.state = 'ending' AND {_OWNED}"
            f" AND {unclaimed(WorkKind.DENIALS, 's.id')} ORDER BY s.id LIMIT %(limit)s",
            {"now": now, "owner": self._connections.owner, "limit": limit},
        )
        return [read_subscription(row, self._box) for row in rows]

    async def mark_denied(
        self, ids: Sequence[SubscriptionId], *, lease_id: int
    ) -> frozenset[SubscriptionId]:
        ((held,),) = await self._connections.write(
            "WITH held AS (SELECT end_claims('denials', %s::bigint[], %s, %s) ids),"
            " told AS (UPDATE subscriptions SET state = 'ended'"
            " WHERE id = ANY((SELECT ids FROM held)::bigint[]) AND state = 'ending')"
            " SELECT ids FROM held",
            (list(ids), lease_id, self._connections.incarnation),
        )
        return frozenset(map(SubscriptionId, held))

    async def purge_ended(self, before: datetime, limit: int) -> int:
        ((purged,),) = await self._connections.write(
            "SELECT purge_ended(%s, %s)", (before, limit)
        )
        return int(purged)

    async def forget_secrets(self, now: datetime, limit: int) -> int:
        return await self._connections.change(
            "UPDATE subscriptions SET former_secret = '', former_until = NULL"
            " WHERE id IN (SELECT id FROM subscriptions WHERE former_until <= %s"
            " ORDER BY former_until LIMIT %s)",
            (now, limit),
        )

    async def count(self, feed_id: FeedId) -> int:
        row = await self._connections.first(
            "SELECT subscribers FROM feed_audience WHERE feed_id = %s", (feed_id,)
        )
        return row[0] if row else 0

    async def counts(self, feeds: Sequence[FeedId]) -> dict[FeedId, int]:
        rows = await self._connections.all(
            "SELECT id, subscribers FROM stored_feeds WHERE id = ANY(%s::bigint[])",
            (list(feeds),),
        )
        return {FeedId(feed_id): number for feed_id, number in rows}


class PostgresDigests:
    def __init__(self, connections: Connections, box: SecretBox) -> None:
        self._connections = connections
        self._box = box

    async def set(self, subscription_id: SubscriptionId, due: datetime | None) -> None:
        if due is None:
            await self._connections.write(
                "DELETE FROM digests WHERE subscription_id = %s", (subscription_id,)
            )
            return
        await self._connections.write(
            "INSERT INTO digests SELECT id, %s FROM subscriptions, require_term(%s)"
            " WHERE id = %s AND state = 'active'"
            " ON CONFLICT (subscription_id) DO UPDATE SET due = excluded.due",
            (due, self._connections.incarnation, subscription_id),
        )

    async def settle(
        self, subscription_id: SubscriptionId, due: datetime, *, lease_id: int
    ) -> bool:
        ((held,),) = await self._connections.write(
            "WITH held AS (SELECT end_claims('digests', ARRAY[%s], %s, %s) ids),"
            " done AS (UPDATE digests SET due = %s"
            " WHERE subscription_id = ANY((SELECT ids FROM held)::bigint[]))"
            " SELECT ids FROM held",
            (subscription_id, lease_id, self._connections.incarnation, due),
        )
        return bool(held)

    async def due(self, now: datetime, limit: int) -> list[Subscription]:
        rows = await self._connections.all(
            "SELECT v.* FROM digests d JOIN subscriptions s ON s.id = d.subscription_id"
            " JOIN stored_subscriptions v ON v.id = s.id"
            f" WHERE d.due <= %(now)s AND s.paused_at IS NULL AND {_OWNED}"
            f" AND {unclaimed(WorkKind.DIGESTS, 'd.subscription_id')}"
            " ORDER BY d.due LIMIT %(limit)s",
            {"now": now, "owner": self._connections.owner, "limit": limit},
        )
        return [read_subscription(row, self._box) for row in rows]
