"""Feeds, subscribers and news, in as few words as a storage test needs."""

from __future__ import annotations

import base64
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from protocols.model import Deletion, Status
from storage.contract import Storage
from storage.records import (
    ANONYMOUS,
    Attempt,
    ChunkOutcome,
    ClaimedChunk,
    ClaimTerms,
    CommitOutcome,
    DeliveryFlush,
    DocumentWrite,
    FeedId,
    FetchCommit,
    Flushed,
    NewFeed,
    NewNode,
    NewSubscription,
    Polling,
    Position,
    RecordKind,
    RecordWrite,
    RetryingSubscription,
    RetryOpened,
    Stored,
    StoredFeed,
    Subscription,
)
from storage.sqlite.columns import to_milliseconds
from storage.subscription_filter import DOCUMENT_KINDS
from tests.support.documents import an_entry

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEASE = 4711
NO_FEED = FeedId(99)
NODE = NewNode(name="node")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class Scene:
    """A storage, and what tests do with it often."""

    storage: Storage

    async def add_feed(self, name: str = "a", **more: Any) -> StoredFeed:
        new = NewFeed(url=f"https://{name}.example/feed", **more)
        feed, _is_new = await self.storage.feeds.add(new, START)
        return feed

    async def subscribe(
        self, feed: StoredFeed, name: str = "s", **more: Any
    ) -> Subscription:
        new = new_subscription(feed, name, **more)
        return await self.storage.subscriptions.add(new, START)

    async def publish(
        self,
        feed: StoredFeed,
        *keys: str,
        kind: RecordKind = RecordKind.ENTRIES,
        is_fresh: bool = True,
        when: datetime = START,
    ) -> Position:
        """Commit one record about entries of these keys, and the entries."""
        commit = fetch(
            feed,
            when=when,
            **written(*keys, is_deletion=kind is RecordKind.DELETED),
            records=(record(*keys, kind=kind, is_fresh=is_fresh),),
            body=DOCUMENT if kind in DOCUMENT_KINDS else None,
        )
        (position,) = await stored_at(self.storage.log.commit(commit))
        return position

    async def claim(
        self, now: datetime = START, *, limit: int = 10, lease_id: int = LEASE
    ) -> list[ClaimedChunk]:
        return await self.storage.deliveries.claim_chunks(
            ClaimTerms(lease_id=lease_id, seconds=60.0, now=now, limit=limit)
        )

    async def claim_retrying(
        self, now: datetime, *, lease_id: int = LEASE, limit: int = 10
    ) -> list[RetryingSubscription]:
        return await self.storage.deliveries.claim_retrying(
            ClaimTerms(lease_id=lease_id, seconds=60.0, now=now, limit=limit)
        )

    async def flush(self, *, when: datetime = START, **parts: Any) -> Flushed:
        return await self.storage.deliveries.flush(DeliveryFlush(at=when, **parts))

    async def deliver(self, when: datetime = START) -> list[Position]:
        """Claim and acknowledge until nothing is left; return all positions in turn."""
        done = []
        while chunks := await self.claim(when):
            for chunk in chunks:
                done.append(chunk.record.position)
                outcomes = all_of(chunk, when=when)
                await self.flush(when=when, outcomes=outcomes)
        return done

    async def fail(
        self,
        chunk: ClaimedChunk,
        subscription: Subscription,
        *,
        when: datetime = START,
        lease_id: int = 0,
        retry_after: float = 5,
    ) -> None:
        """Deliver a chunk to all its members but one, which is to be retried."""
        opened = RetryOpened(
            subscription_id=subscription.id,
            position=Position(chunk.record.position - 1),
            attempts=1,
            next_try=when + timedelta(seconds=retry_after),
            failing_since=when,
            last_status=500,
            last_error="answered 500",
            lease_id=lease_id,
        )
        failed = Attempt(
            subscription_id=subscription.id,
            position=chunk.record.position,
            at=when,
            status=500,
            milliseconds=30,
            error="answered 500",
        )
        outcomes = tuple(
            outcome_of(chunk, index, 500 if member.id == subscription.id else 200)
            for index, member in chunk.pending
        )
        await self.flush(
            when=when, outcomes=outcomes, opened=(opened,), attempts=(failed,)
        )

    async def subscribe_retrying(
        self, feed: StoredFeed, name: str = "late", **more: Any
    ) -> Subscription:
        """A subscription that did not take the record at the log's end."""
        subscription = await self.subscribe(feed, name, **more)
        await self.publish(feed, f"for {name}")
        (chunk,) = await self.claim()
        await self.fail(chunk, subscription)
        return subscription


async def stored_at(committing: Awaitable[CommitOutcome]) -> tuple[Position, ...]:
    """The positions of its records. Fails if it was not stored."""
    outcome = await committing
    assert isinstance(outcome, Stored), outcome
    return outcome.positions


def new_subscription(feed: StoredFeed, name: str = "s", **more: Any) -> NewSubscription:
    terms = {
        "account": ANONYMOUS,
        "topic": feed.url,
        "feed_id": feed.id,
        "callback": f"https://subscriber.example/{name}",
    }
    return NewSubscription(**{**terms, **more})


DOCUMENT = DocumentWrite(content_type="text/xml", body=b"as it came")


def noise(size: int) -> str:
    """A text that takes so many bytes even when it is packed."""
    return base64.b64encode(Random(size).randbytes(size)).decode()


def written(*keys: str, is_deletion: bool = False, **more: Any) -> dict[str, Any]:
    """Arguments of `fetch`: entries of these keys, or their deletions."""
    if is_deletion:
        return {"deletions": tuple(Deletion(key=key, id=key) for key in keys)}
    return {"entries": tuple(an_entry(key, title=key, **more) for key in keys)}


def fetch(feed: StoredFeed, *, when: datetime = START, **more: Any) -> FetchCommit:
    changes = {"next_fetch": when + MINUTE, "polling": Polling(code=200)}
    return FetchCommit(feed_id=feed.id, at=when, **{**changes, **more})


def record(
    *keys: str, kind: RecordKind = RecordKind.ENTRIES, is_fresh: bool = True
) -> RecordWrite:
    entries = tuple((key, is_fresh) for key in keys)
    return RecordWrite(kind=kind, status=Status(code=200), entries=entries)


def outcome_of(
    chunk: ClaimedChunk, index: int, status: int = 200, when: datetime | None = None
) -> ChunkOutcome:
    return ChunkOutcome(
        chunk_id=chunk.id,
        lease_id=chunk.lease_id,
        index=index,
        status=status,
        milliseconds=12,
        at=to_milliseconds(when) if when else 0,
    )


def all_of(
    chunk: ClaimedChunk, status: int = 200, when: datetime | None = None
) -> tuple[ChunkOutcome, ...]:
    return tuple(outcome_of(chunk, index, status, when) for index, _ in chunk.pending)
