"""Topics with subscribers in a database, and news of them as a fetch finds it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hub.runtime.clock import SystemClock
from protocols.model import Entry, Feed, Status, Text
from scripts.benchmarks.bare import Delivery
from storage.contract import Storage
from storage.records import (
    OPERATOR,
    DocumentWrite,
    FeedId,
    FetchCommit,
    Format,
    NewFeed,
    NewSubscription,
    Polling,
    RecordKind,
    RecordWrite,
)

BODY_BYTES = 4_096
SENT = "~sent~"
"""What stands before and behind the monotonic second of a body's commit."""


def callbacks(port: int, path: str, count: int) -> list[Delivery]:
    """So many callbacks under a path, each with a secret of its own."""
    return [
        Delivery(
            url=f"http://127.0.0.1:{port}/{path}/{number}",
            secret=f"the secret of {number}".encode(),
        )
        for number in range(count)
    ]


async def add_topic(
    storage: Storage,
    name: str,
    deliveries: Sequence[Delivery],
    format: Format = Format.AS_IS,
) -> FeedId:
    """A feed that is not polled, and a subscription of each callback."""
    now = SystemClock().now()
    topic = f"https://publisher.example/{name}"
    feed, _is_new = await storage.feeds.add(NewFeed(url=topic), now)
    await storage.feeds.defer([(feed.id, now + timedelta(days=30))])
    async with asyncio.TaskGroup() as group:
        for delivery in deliveries:
            new = NewSubscription(
                account=OPERATOR,
                topic=topic,
                feed_id=feed.id,
                callback=delivery.url,
                secret=delivery.secret.decode(),
                format=format,
            )
            group.create_task(storage.subscriptions.add(new, now))
    return feed.id


FILLER = "x" * 3_200


def news(feed_id: FeedId, text: str = FILLER) -> FetchCommit:
    """One new entry, of which and of whose document the first words say when it was
    committed."""
    now = SystemClock().now()
    mark = SENT + f"{time.monotonic():.6f}" + SENT
    key = f"urn:bench:{now.timestamp()}"
    entry = Entry(
        key=key,
        id=key,
        title="News",
        content=Text(value=mark + text),
        published=datetime(2026, 1, 1, tzinfo=UTC),
    )
    status = Status(code=200, http="Fetched (ring) 200 900", title="Bench")
    document = f"<!-- {mark}{'x' * (BODY_BYTES - 9 - len(mark))} -->".encode()
    return FetchCommit(
        feed_id=feed_id,
        at=now,
        next_fetch=now + timedelta(days=30),
        polling=Polling(),
        head=Feed(title="Bench"),
        entries=(entry,),
        records=(
            RecordWrite(kind=RecordKind.ENTRIES, status=status, entries=((key, True),)),
        ),
        body=DocumentWrite(content_type="application/atom+xml", body=document),
    )


async def is_recorded(storage: Storage) -> bool:
    """Whether nothing is left to deliver or to acknowledge."""
    backlog = await storage.backlog()
    if backlog.retrying:
        raise RuntimeError("a delivery took too long or failed")
    return not backlog.fanouts and not backlog.chunks
