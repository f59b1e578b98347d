"""Subscriptions and records for tests that care about one field of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from protocols.model import Status
from storage.records import (
    OPERATOR,
    EntryId,
    EntryRef,
    FeedId,
    Format,
    Position,
    Record,
    RecordKind,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    Updates,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
_SUBSCRIPTION = Subscription(
    id=SubscriptionId(1),
    account=OPERATOR,
    topic="https://feeds.example/1",
    feed_id=FeedId(1),
    callback="https://callback.example/1",
    secret="",
    algorithm="sha256",
    format=Format.JSON,
    updates=Updates.FRESH,
    batch=False,
    state=SubscriptionState.ACTIVE,
    from_position=Position(0),
    lease_end=None,
    created_at=START,
    exhausted=False,
)


def a_subscription(**fields: Any) -> Subscription:
    return replace(_SUBSCRIPTION, **fields)


def a_record(
    position: int, *, kind: RecordKind = RecordKind.ENTRIES, entries: int = 1
) -> Record:
    """A record of feed 1; its entries have ids counting from 10 times its position."""
    refs = tuple(
        EntryRef(EntryId(position * 10 + number), 1) for number in range(entries)
    )
    return Record(
        position=Position(position),
        at=START,
        feed_id=FeedId(1),
        kind=kind,
        status=Status(code=200, title="Feed 1"),
        entries=refs,
    )
