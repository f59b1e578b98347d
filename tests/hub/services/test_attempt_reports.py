"""What requests to a callback told of, as far as it may still be shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from hub.runtime.callback_durations import REQUESTS
from hub.runtime.metrics import Metrics
from hub.services.delivery_reports import (
    COUNTED,
    LATEST_CHUNKS,
    PAGE,
    DeliveryReportService,
    LostEntries,
    ToldEntries,
    ToldEntry,
)
from protocols.model import Status
from protocols.operational_events import EventType, event_topic
from storage.contract import LogStore, Storage
from storage.errors import NotFound
from storage.records import (
    OPERATOR,
    AccountId,
    Attempt,
    AttemptRange,
    DeadLetter,
    EntryId,
    FeedChange,
    FeedId,
    Matched,
    MatchWrite,
    OperationalEvent,
    Position,
    RecordKind,
    RecordWrite,
    SourceFeed,
    StoredEntry,
    Subscription,
    Updates,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.documents import an_entry
from tests.support.failures import failed
from tests.support.storage_scene import (
    START,
    Scene,
    all_of,
    at,
    fetch,
    record,
    stored_at,
    written,
)

ALICE = AccountId(7)
HUB_URL = "https://hub.example/hub"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    try:
        yield Scene(storage)
    finally:
        await storage.close()


async def told(
    storage: Storage, subscription: Subscription, account: AccountId | None = None
) -> list[tuple[str, int]]:
    reports = DeliveryReportService(storage, HUB_URL, Metrics(), ManualClock(START))
    found = await reports.attempts(subscription.id, AttemptRange(), 9, account=account)
    return [(each.title, each.entries) for each in found]


async def test_each_request_is_shown_with_what_it_told_of(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, account=OPERATOR)
    assert await told(scene.storage, subscription) == []
    for keys in (("One", "Two"), ("Three",)):
        await scene.publish(feed, *keys)
        await scene.deliver(at(1))
    assert await told(scene.storage, subscription) == [("Three", 1), ("One", 2)]
    await scene.publish(feed, "Three", kind=RecordKind.DELETED)
    assert await told(scene.storage, subscription) == [("", 0), ("One", 2)]


async def test_what_lies_far_apart_in_the_log_is_told_too(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, account=OPERATOR)
    await scene.publish(feed, "Early")
    await scene.deliver(at(1))
    for _ in range(PAGE):
        await scene.publish(feed, "Between")
    last = await scene.publish(feed, "Late")
    caught_up = Attempt(
        subscription_id=subscription.id,
        position=last,
        at=at(2),
        status=204,
        milliseconds=1,
    )
    await scene.flush(attempts=(caught_up,))

    assert await told(scene.storage, subscription) == [("Late", 1), ("Early", 1)]


async def test_an_account_is_told_as_long_as_it_may_read_the_feed(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, account=OPERATOR)
    await scene.publish(feed, "One")
    await scene.deliver(at(1))
    assert await told(scene.storage, subscription, OPERATOR) == [("One", 1)]
    with pytest.raises(NotFound):
        await told(scene.storage, subscription, ALICE)
    await scene.storage.subscriptions.end(subscription.id, "", START, tell=False)
    assert await told(scene.storage, subscription, OPERATOR) == [("", 0)]
    assert await told(scene.storage, subscription) == [("One", 1)]


async def test_matches_of_a_feed_that_became_private_are_not_told(
    scene: Scene,
) -> None:
    storage = scene.storage
    feed = await scene.add_feed()
    query = await storage.tracking.add("laurel", "laurel", START)
    subscription = await scene.subscribe(query)
    commit = fetch(
        feed,
        entries=(an_entry("One"),),
        records=(record("One", kind=RecordKind.ENTRIES),),
    )
    matched = Matched(
        version=await storage.tracking.version(),
        matches=(MatchWrite(query.id, ("One",)),),
    )
    await storage.log.commit(replace(commit, matched=matched))
    await scene.deliver(at(1))
    assert await told(storage, subscription) == [("Title of One", 1)]
    await storage.feeds.edit(feed.id, FeedChange(private=True), "", START)
    assert await told(storage, subscription) == [("", 0)]


@pytest.mark.parametrize(
    ("last", "lost"),
    [
        (2, LostEntries(entries=3, titles=("One", "Entry 0"), has_more=False)),
        (
            COUNTED + 9,
            LostEntries(
                entries=COUNTED + 1, titles=("One", "Entry 0", "Entry 1"), has_more=True
            ),
        ),
    ],
)
async def test_a_dead_letter_is_told_by_its_entries_as_far_as_they_are_counted(
    scene: Scene, last: int, lost: LostEntries
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, account=OPERATOR)
    first = await scene.publish(feed, "One", "Two")
    for number in range(COUNTED):
        await scene.publish(feed, f"Entry {number}")
    dead_letter = DeadLetter(
        id=5,
        subscription_id=subscription.id,
        topic=feed.url,
        callback=subscription.callback,
        first=first,
        last=Position(last),
        reason="answered 500",
        at=START,
    )
    reports = DeliveryReportService(
        scene.storage, HUB_URL, Metrics(), ManualClock(START)
    )
    assert await reports.lost_entries([dead_letter]) == {5: lost}
    assert await reports.lost_entries([dead_letter], account=OPERATOR) == {5: lost}
    await scene.storage.subscriptions.end(subscription.id, "", START, tell=False)
    assert await reports.lost_entries([dead_letter], account=OPERATOR) == {}
    assert await reports.lost_entries([dead_letter]) == {5: lost}


class CountingLog:
    """A log, the entries read of it, and the sources asked for."""

    def __init__(self, log: LogStore) -> None:
        self.entries_read: list[EntryId] = []
        self.sources_asked: list[FeedId] = []
        self._log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        self.entries_read += ids
        return await self._log.entries(ids)

    async def source(self, feed_id: FeedId, query: FeedId) -> SourceFeed | None:
        self.sources_asked.append(feed_id)
        return await self._log.source(feed_id, query)


class StorageWith:
    """A storage with another log."""

    def __init__(self, storage: Storage, log: CountingLog) -> None:
        self._storage = storage
        self.log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


async def test_what_many_callbacks_lack_is_read_once(scene: Scene) -> None:
    storage = scene.storage
    feed = await scene.add_feed()
    query = await storage.tracking.add("laurel", "laurel", START)
    late = [await scene.subscribe(query, f"s{number}") for number in range(3)]
    commit = fetch(
        feed,
        entries=(an_entry("One"),),
        records=(record("One", kind=RecordKind.ENTRIES),),
    )
    matched = Matched(
        version=await storage.tracking.version(),
        matches=(MatchWrite(query.id, ("One",)),),
    )
    done = await storage.log.commit(replace(commit, matched=matched))
    assert done is not None
    [match] = await storage.log.records(after=Position(0), limit=9, feed_id=query.id)
    dead_letters = [
        DeadLetter(
            id=number,
            subscription_id=each.id,
            topic=query.url,
            callback=each.callback,
            first=match.position,
            last=match.position,
            reason="answered 500",
            at=START,
        )
        for number, each in enumerate(late)
    ]
    log = CountingLog(storage.log)
    counting = cast("Storage", StorageWith(storage, log))
    clock = ManualClock(START)
    reports = DeliveryReportService(counting, HUB_URL, Metrics(), clock)
    found = await reports.lost_entries(dead_letters)
    assert [each.titles for each in found.values()] == [("Title of One",)] * 3
    assert (len(log.entries_read), log.sources_asked) == (1, [feed.id])


@pytest.mark.parametrize(
    ("at_once", "looked_after", "since"),
    [
        (1, 60.0, at(999 + 60) - timedelta(days=7)),
        (1, 30 * 86_400.0, at(999)),
        (LATEST_CHUNKS, 0.0, at(1)),
        (LATEST_CHUNKS + 9, 0.0, at(10)),
    ],
)
async def test_who_is_slow_is_known_from_before_the_start(
    scene: Scene, at_once: int, looked_after: float, since: datetime
) -> None:
    feed = await scene.add_feed()
    quick, slow, ended = [await scene.subscribe(feed, name) for name in "abc"]
    for number in range(at_once):
        await scene.publish(feed, f"{number}")
        (chunk,) = await scene.claim(at(number + 1))
        taken = [
            replace(outcome, milliseconds=milliseconds)
            for outcome, milliseconds in zip(
                all_of(chunk), (9, 4_000, 5_000), strict=True
            )
        ]
        await scene.flush(when=at(number + 1), outcomes=tuple(taken))
    later = at(999)
    failure = failed(slow, later - timedelta(seconds=1), status=500)
    await scene.flush(attempts=(replace(failure, milliseconds=7_000),))
    await scene.flush(attempts=(replace(failure, at=later, milliseconds=9_000),))
    await scene.storage.subscriptions.end(ended.id, "", START, tell=False)
    metrics = Metrics()
    durations = metrics.callback_durations
    durations.note(slow.id, 6_000, at=later.timestamp(), is_delivered=True)

    clock = ManualClock(later)
    reports = DeliveryReportService(scene.storage, HUB_URL, metrics, clock)
    clock.advance(looked_after)
    for _ in range(2):  # what was before is read once
        found = await reports.slowest(9)

        assert found.since == since
        [listed] = found.callbacks
        assert listed.subscription.id == slow.id
        assert listed.condition.id == slow.id
        took = listed.duration
        assert took.requests == min(at_once + 2, REQUESTS)
        assert (took.failed, took.slowest_milliseconds) == (1, 7_000)
        assert took.last == later
    assert quick.id not in {each.subscription_id for each in durations.slowest(9)}


async def test_all_entries_of_a_record_are_told_to_those_who_may_read_them(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, account=OPERATOR)
    position = await scene.publish(feed, "One", "Two")
    reports = DeliveryReportService(
        scene.storage, HUB_URL, Metrics(), ManualClock(START)
    )

    async def titles(account: AccountId | None = None) -> list[str]:
        told = await reports.told_of(subscription.id, position, account=account)
        return [each.title for each in told.entries]

    assert await titles() == await titles(OPERATOR) == ["One", "Two"]
    with pytest.raises(NotFound):
        await titles(ALICE)
    await scene.storage.subscriptions.end(subscription.id, "", START, tell=False)
    assert (await titles(OPERATOR), await titles()) == ([], ["One", "Two"])


async def test_an_event_is_told_by_its_type(scene: Scene) -> None:
    topic = event_topic(("hub.disk",))
    feed = await scene.storage.events.topic(topic, START)
    subscription = await scene.subscribe(feed, account=OPERATOR, topic=topic)
    event = OperationalEvent(type=EventType.HUB_DISK, at=START)
    await scene.storage.events.note_conditions((event,), START)
    await scene.storage.events.publish(START, 9)
    await scene.deliver(at(1))
    assert await told(scene.storage, subscription) == [("hub.disk", 1)]
    await scene.flush(attempts=(failed(subscription),))
    reports = DeliveryReportService(
        scene.storage, HUB_URL, Metrics(), ManualClock(START)
    )
    in_full = (await reports.get(1)).told
    assert in_full == ToldEntries(
        entries=(ToldEntry(id=None, title="hub.disk"),), total=1
    )


@pytest.mark.parametrize(
    ("updates", "sent"), [(Updates.FRESH, ["New"]), (Updates.ALL, ["Old", "New"])]
)
async def test_only_those_updates_are_told_of_that_the_subscription_is_sent(
    scene: Scene, updates: Updates, sent: list[str]
) -> None:
    storage = scene.storage
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed, account=OPERATOR, updates=updates)
    updated = RecordWrite(
        kind=RecordKind.UPDATED,
        status=Status(code=200),
        entries=(("Old", False), ("New", True)),
    )
    commit = fetch(feed, **written("Old", "New"), records=(updated,))
    (position,) = await stored_at(storage.log.commit(commit))
    await scene.deliver(at(1))
    dead_letter = DeadLetter(
        id=5,
        subscription_id=subscription.id,
        topic=feed.url,
        callback=subscription.callback,
        first=position,
        last=position,
        reason="answered 500",
        at=START,
    )
    reports = DeliveryReportService(storage, HUB_URL, Metrics(), ManualClock(START))

    assert await told(storage, subscription) == [(sent[0], len(sent))]
    named = await reports.told_of(subscription.id, position)
    assert ([each.title for each in named.entries], named.total) == (sent, len(sent))
    lost = LostEntries(entries=len(sent), titles=(sent[0],), has_more=False)
    assert await reports.lost_entries([dead_letter]) == {5: lost}


@pytest.mark.parametrize(
    ("position", "total"), [(1, 0), (2, None)], ids=["without entries", "trimmed"]
)
async def test_that_a_record_has_no_entries_is_not_the_same_as_not_to_know(
    scene: Scene, position: int, total: int | None
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed, kind=RecordKind.ERROR)
    clock = ManualClock(START)
    reports = DeliveryReportService(scene.storage, HUB_URL, Metrics(), clock)
    found = await reports.told_of(subscription.id, Position(position))
    assert found == ToldEntries(total=total)
