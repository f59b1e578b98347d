"""`SubscriptionStore` and `DigestStore` of `storage.contract` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from protocols.urls import normal_url
from storage.errors import NotFound
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
from storage.sqlite.claims import end_claims, unclaimed
from storage.sqlite.columns import pack_ids, to_milliseconds
from storage.sqlite.control import SqliteControl
from storage.sqlite.pauses import pause, resume
from storage.sqlite.purging import purge_ended_subscriptions
from storage.sqlite.readers import Readers
from storage.sqlite.rows import hash_key, read_subscription
from storage.sqlite.subscription_writes import (
    edit_active,
    end_expired,
    end_of_feed,
    end_one,
    subscribe_one,
    subscription_parameters,
)
from storage.sqlite.writer import Writer


class SqliteSubscriptions:
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

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        parameters = subscription_parameters(new, now, self._box)
        row = await self._writer.submit(partial(subscribe_one, parameters))
        if row is None:
            raise NotFound("feed", new.feed_id)
        return read_subscription(row, self._box)

    async def edit(
        self, subscription_id: SubscriptionId, new: NewSubscription, now: datetime
    ) -> Subscription | None:
        parameters = subscription_parameters(new, now, self._box)
        unit = partial(edit_active, subscription_id, parameters)
        row = await self._writer.submit(unit)
        return None if row is None else read_subscription(row, self._box)

    async def get(self, subscription_id: SubscriptionId) -> Subscription | None:
        row = await self._readers.first(
            "SELECT * FROM stored_subscriptions WHERE id = ?", (subscription_id,)
        )
        return None if row is None else read_subscription(row, self._box)

    async def find(
        self, account: AccountId, topic: str, callback: str
    ) -> Subscription | None:
        sql = (
            "SELECT v.* FROM subscriptions s JOIN stored_subscriptions v ON v.id = s.id"
            " WHERE s.callback_hash = ? AND s.account_id = ? AND",
            _OF_TOPIC,
        )
        row = await self._readers.first(
            " ".join(sql),
            (hash_key(normal_url(callback)), account, *_topic_keys(topic)),
        )
        return None if row is None else read_subscription(row, self._box)

    async def holds(self, account: AccountId, feed_id: FeedId) -> bool:
        row = await self._readers.first(
            "SELECT 1 FROM subscriptions"
            " WHERE account_id = ? AND feed_id = ? AND state = 'active' LIMIT 1",
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
        rows = await self._readers.all(
            *page_query(after, limit, account, topic, callback)
        )
        return [read_subscription(row, self._box) for row in rows]

    async def end(
        self, subscription_id: SubscriptionId, reason: str, now: datetime, *, tell: bool
    ) -> Subscription:
        state = SubscriptionState.ENDING if tell else SubscriptionState.ENDED
        unit = partial(end_one, subscription_id, reason, state, to_milliseconds(now))
        row = await self._writer.submit(
            unit, then=lambda _: self._control.ended([subscription_id])
        )
        if row is None:
            raise NotFound("subscription", subscription_id)
        return read_subscription(row, self._box)

    async def end_all(
        self,
        feed_id: FeedId,
        reason: str,
        now: datetime,
        limit: int,
        whose: SubscriberGroup = SubscriberGroup.ALL,
    ) -> int:
        at = to_milliseconds(now)
        unit = partial(end_of_feed, feed_id, reason, at, limit, whose)
        ended = await self._writer.submit(unit, then=self._control.ended)
        return len(ended)

    async def expire(self, now: datetime, limit: int) -> int:
        unit = partial(end_expired, to_milliseconds(now), limit)
        ended = await self._writer.submit(unit, then=self._control.ended)
        return len(ended)

    async def pause(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        return await self._writer.submit(
            partial(pause, subscription_id, to_milliseconds(now)),
            then=lambda is_active: self._tell_paused(subscription_id, is_active),
        )

    async def resume(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        return await self._writer.submit(
            partial(resume, subscription_id, to_milliseconds(now)),
            then=lambda _: self._control.paused(subscription_id, is_paused=False),
        )

    def _tell_paused(self, subscription_id: SubscriptionId, is_active: bool) -> None:
        if is_active:
            self._control.paused(subscription_id, is_paused=True)

    async def ending(self, now: datetime, limit: int) -> list[Subscription]:
        rows = await self._readers.all(
            "SELECT v.* FROM subscriptions s JOIN stored_subscriptions v ON v.id = s.id"
            f" WHERE s.state = 'ending' AND {unclaimed(WorkKind.DENIALS, 's.id')}"
            " ORDER BY s.id LIMIT ?",
            (to_milliseconds(now), limit),
        )
        return [read_subscription(row, self._box) for row in rows]

    async def mark_denied(
        self, ids: Sequence[SubscriptionId], *, lease_id: int
    ) -> frozenset[SubscriptionId]:
        held = await self._writer.submit(partial(_told, ids, lease_id))
        return frozenset(map(SubscriptionId, held))

    async def purge_ended(self, before: datetime, limit: int) -> int:
        unit = partial(purge_ended_subscriptions, to_milliseconds(before), limit)
        return await self._writer.submit(unit)

    async def forget_secrets(self, now: datetime, limit: int) -> int:
        unit = partial(_forget_secrets, to_milliseconds(now), limit)
        return await self._writer.submit(unit, is_single=True)

    async def count(self, feed_id: FeedId) -> int:
        row = await self._readers.first(
            "SELECT subscribers FROM feed_audience WHERE feed_id = ?", (feed_id,)
        )
        return row[0] if row else 0

    async def counts(self, feeds: Sequence[FeedId]) -> dict[FeedId, int]:
        rows = await self._readers.all(
            "SELECT feed_id, subscribers FROM feed_audience"
            " WHERE feed_id IN (SELECT value FROM json_each(?))",
            (pack_ids(feeds),),
        )
        return {FeedId(feed_id): number for feed_id, number in rows}


_OF_TOPIC = (
    "s.topic_id IN (SELECT id FROM topics WHERE url IN (?, ?) UNION ALL"
    " SELECT id FROM topics WHERE normal = ? AND normal <> '')"
)


def _topic_keys(topic: str) -> tuple[str, str, str]:
    """The parameters of `_OF_TOPIC`: a topic, in any spelling."""
    return topic, normal_url(topic), normal_url(topic)


def page_query(
    after: SubscriptionId,
    limit: int,
    account: AccountId | None,
    topic: str | None,
    callback: str | None,
) -> tuple[str, tuple[object, ...]]:
    """The statement for a page, and its parameters."""
    conditions, parameters = _chosen(account, topic, callback)
    # Otherwise SQLite would choose an index in this order, and read all of it.
    index = "" if callback is None else "INDEXED BY subscriptions_by_key"
    sql = (
        f"SELECT v.* FROM subscriptions s {index}"
        " JOIN stored_subscriptions v ON v.id = s.id"
        " WHERE s.state IN ('pending', 'active')",
        *conditions,
        "AND s.id > ? ORDER BY s.id LIMIT ?",
    )
    return " ".join(sql), (*parameters, after, limit)


def _chosen(
    account: AccountId | None, topic: str | None, callback: str | None
) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    parameters: list[object] = []
    if callback is not None:
        conditions.append("AND s.callback_hash = ?")
        parameters.append(hash_key(normal_url(callback)))
    if topic is not None:
        conditions.append(f"AND {_OF_TOPIC}")
        parameters.extend(_topic_keys(topic))
    if account is not None:
        conditions.append("AND s.account_id = ?")
        parameters.append(account)
    return conditions, parameters


# --- units of work ---


def _forget_secrets(now: int, limit: int, connection: sqlite3.Connection) -> int:
    return connection.execute(
        "UPDATE subscriptions SET former_secret = '', former_until = NULL"
        " WHERE id IN (SELECT id FROM subscriptions WHERE former_until <= ?"
        " ORDER BY former_until LIMIT ?)",
        (now, limit),
    ).rowcount


def _told(
    ids: Sequence[SubscriptionId], lease_id: int, connection: sqlite3.Connection
) -> list[int]:
    held = end_claims(WorkKind.DENIALS, ids, lease_id, connection)
    connection.execute(
        "UPDATE subscriptions SET state = 'ended'"
        " WHERE id IN (SELECT value FROM json_each(?)) AND state = 'ending'",
        (pack_ids(held),),
    )
    return held


class SqliteDigests:
    def __init__(self, writer: Writer, readers: Readers, box: SecretBox) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box

    async def set(self, subscription_id: SubscriptionId, due: datetime | None) -> None:
        if due is None:
            await self._writer.execute(
                "DELETE FROM digests WHERE subscription_id = ?", (subscription_id,)
            )
            return
        await self._writer.execute(
            "INSERT INTO digests SELECT id, ? FROM subscriptions"
            " WHERE id = ? AND state = 'active'"
            " ON CONFLICT (subscription_id) DO UPDATE SET due = excluded.due",
            (to_milliseconds(due), subscription_id),
        )

    async def settle(
        self, subscription_id: SubscriptionId, due: datetime, *, lease_id: int
    ) -> bool:
        unit = partial(_settle_digest, subscription_id, to_milliseconds(due), lease_id)
        return await self._writer.submit(unit)

    async def due(self, now: datetime, limit: int) -> list[Subscription]:
        rows = await self._readers.all(
            "SELECT v.* FROM digests d"
            " CROSS JOIN subscriptions s ON s.id = d.subscription_id"
            " CROSS JOIN stored_subscriptions v ON v.id = s.id"
            " WHERE d.due <= ? AND s.paused_at IS NULL"
            f" AND {unclaimed(WorkKind.DIGESTS, 'd.subscription_id')}"
            " ORDER BY d.due LIMIT ?",
            (to_milliseconds(now), to_milliseconds(now), limit),
        )
        return [read_subscription(row, self._box) for row in rows]


def _settle_digest(
    subscription_id: SubscriptionId,
    due: int,
    lease_id: int,
    connection: sqlite3.Connection,
) -> bool:
    held = end_claims(WorkKind.DIGESTS, [subscription_id], lease_id, connection)
    if held:
        connection.execute(
            "UPDATE digests SET due = ? WHERE subscription_id = ?",
            (due, subscription_id),
        )
    return bool(held)
