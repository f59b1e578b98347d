"""Which entries were committed in a span of time, and how late they were."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hub.runtime.metrics import Metrics
from hub.runtime.series_memory import DelaySlot
from hub.services.committed_entries import (
    MOST_RANKED,
    MOST_RECORDS,
    RANKED_AT_ONCE,
    RECORD_PAGE,
    CommittedEntry,
    CommittedEntryService,
    CommittedFilter,
    EntryOrder,
)
from storage.contract import DeliveryStore, Storage
from storage.records import (
    FeedId,
    Position,
    RecordKind,
    StoredFeed,
)
from tests.support.chosen_engine import open_chosen
from tests.support.documents import an_entry
from tests.support.storage_scene import START, Scene, at, fetch, record


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    yield Scene(storage)
    await storage.close()


async def titles(
    scene: Scene,
    since: float,
    until: float,
    limit: int = 99,
    order: EntryOrder = EntryOrder.EARLIEST,
) -> list[str]:
    """On all pages of so many, each of which is full but for the last."""
    service, cursor, found = CommittedEntryService(scene.storage), None, []
    while True:
        page = await service.page(
            at(since), at(until), limit=limit, cursor=cursor, order=order
        )
        found += [each.title for each in page.entries]
        cursor = page.next
        if cursor is None:
            return found
        assert len(page.entries) == limit


async def committed(scene: Scene, metrics: Metrics | None = None) -> CommittedEntry:
    page = await CommittedEntryService(scene.storage, metrics).page(
        START, at(3_600), limit=9
    )
    (entry,) = page.entries
    return entry


async def test_new_and_updated_entries_of_the_span_are_found_in_order(
    scene: Scene,
) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    for number in range(6):
        await scene.publish(feeds[number % 2], f"{number}", when=at(60 * number))
    await scene.publish(feeds[1], "5", kind=RecordKind.UPDATED, when=at(330))
    await scene.publish(feeds[0], "6", kind=RecordKind.BASELINE, when=at(331))
    await scene.publish(feeds[0], "0", kind=RecordKind.DELETED, when=at(332))
    assert await titles(scene, 60, 240) == ["1", "2", "3"]
    assert await titles(scene, 241, 400) == ["5", "5"]
    assert await titles(scene, 400, 999) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
async def test_pages_go_on_within_a_record(scene: Scene, limit: int) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, *"abc", when=at(1))
    await scene.publish(feed, "d", when=at(2))
    await scene.publish(feed, *"ef", when=at(3))
    assert await titles(scene, 0, 9, limit) == [*"abcdef"]
    assert await titles(scene, 0, 9, limit, EntryOrder.LATEST) == [*"fedcba"]


@pytest.mark.parametrize("order", EntryOrder)
@pytest.mark.parametrize("limit", [1, 9])
async def test_those_of_a_feed_and_with_words_in_the_title_are_found(
    scene: Scene, order: EntryOrder, limit: int
) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    for feed in feeds:
        await publish_dated(scene, feed, "big news", "NEWS, so big", "news", when=1)
    service, span = CommittedEntryService(scene.storage), (at(0), at(9))

    async def found(wanted: CommittedFilter) -> list[tuple[str, str]]:
        page = await service.page(*span, limit=9, order=order, wanted=wanted)
        return sorted((each.feed.url, each.title) for each in page.entries)

    of_first = await found(CommittedFilter(feed_id=feeds[0].id))
    assert {url for url, _ in of_first} == {feeds[0].url}
    assert len(of_first) == 3
    both = CommittedFilter(feed_id=feeds[1].id, words=("Big", "news"))
    assert [title for _, title in await found(both)] == ["NEWS, so big", "big news"]
    first = await service.page(*span, limit=limit, order=order, wanted=both)
    assert len(first.entries) == min(limit, 2)
    assert await found(CommittedFilter(words=("bigger",))) == []


@pytest.mark.parametrize("order", EntryOrder)
async def test_those_of_a_feed_are_found_behind_more_of_others_than_is_read_at_once(
    scene: Scene, order: EntryOrder
) -> None:
    rare, busy = [await scene.add_feed(name) for name in "ab"]
    await publish_dated(scene, rare, "rare", when=1)
    await record_many(scene, busy, MOST_RECORDS + 1)

    page = await CommittedEntryService(scene.storage).page(
        at(0), at(9), limit=9, order=order, wanted=CommittedFilter(feed_id=rare.id)
    )

    assert [each.title for each in page.entries] == ["rare"]
    assert (page.next, page.has_more) == (None, False)


async def test_what_was_not_read_for_an_order_by_delay_is_not_said_to_be_none(
    scene: Scene,
) -> None:
    rare, busy = [await scene.add_feed(name) for name in "ab"]
    await scene.publish(rare, "rare", when=at(1))
    parts = MOST_RANKED // RANKED_AT_ONCE
    await record_many(scene, busy, MOST_RECORDS * parts)

    page = await CommittedEntryService(scene.storage).page(
        at(0), at(9), limit=9, order=EntryOrder.DELAY
    )

    assert (page.entries, page.examined, page.has_more) == ((), 0, True)


async def test_words_are_looked_for_among_more_entries_than_are_ranked(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await publish_dated(scene, feed, "wanted", when=1)
    keys = [f"{number}" for number in range(MOST_RANKED)]
    await scene.publish(feed, *keys, when=at(2))

    page = await CommittedEntryService(scene.storage).page(
        at(0),
        at(9),
        limit=9,
        order=EntryOrder.DELAY,
        wanted=CommittedFilter(words=("wanted",)),
    )

    assert [each.title for each in page.entries] == ["wanted"]
    assert (page.examined, page.has_more) == (MOST_RANKED + 1, False)


async def record_many(scene: Scene, feed: StoredFeed, count: int) -> None:
    """Fill the log with records that tell of no entry."""
    one = record(kind=RecordKind.ERROR)
    await scene.storage.log.commit(fetch(feed, when=at(2), records=(one,) * count))


@dataclass(frozen=True)
class ReadingDeliveries:
    """Deliveries of which nothing is asked but when records were first accepted."""

    store: DeliveryStore
    asked: list[tuple[FeedId, Position]] = field(default_factory=list)

    async def first_successes(
        self, records: Sequence[tuple[FeedId, Position]]
    ) -> dict[Position, datetime | None]:
        self.asked.extend(records)
        return await self.store.first_successes(records)


@pytest.mark.parametrize("order", EntryOrder)
async def test_deliveries_are_read_only_of_what_is_shown(
    scene: Scene, order: EntryOrder
) -> None:
    feed = await scene.add_feed()
    for number in range(4):
        title = f"{'wanted' if number % 2 else 'other'} {number}"
        await publish_dated(scene, feed, title, when=number)
    deliveries = ReadingDeliveries(scene.storage.deliveries)
    storage = SimpleNamespace(
        log=scene.storage.log, entries=scene.storage.entries, deliveries=deliveries
    )
    await CommittedEntryService(cast("Storage", storage)).page(
        at(0),
        at(9),
        limit=1,
        order=order,
        wanted=CommittedFilter(words=("wanted",)),
    )
    assert len(deliveries.asked) == 1
    await CommittedEntryService(cast("Storage", storage)).page(
        at(0), at(9), limit=9, order=order, wanted=CommittedFilter(words=("none",))
    )
    assert len(deliveries.asked) == 1


@pytest.mark.parametrize(
    ("order", "reached"), [(EntryOrder.EARLIEST, 1), (EntryOrder.LATEST, 2)]
)
async def test_a_page_of_words_says_how_far_was_looked_until_all_was(
    scene: Scene, order: EntryOrder, reached: float
) -> None:
    feed = await scene.add_feed()
    for number in range(4):
        title = f"{'wanted' if number in (1, 2) else 'other'} {number}"
        await scene.publish(feed, title, when=at(number))
    service = CommittedEntryService(scene.storage)
    wanted = CommittedFilter(words=("wanted",))
    first = await service.page(at(0), at(9), limit=1, order=order, wanted=wanted)
    assert first.reached == at(reached)
    plain = await service.page(at(0), at(9), limit=1, order=order)
    assert (plain.reached, plain.next is None) == (None, False)
    last = await service.page(at(0), at(9), limit=9, order=order, wanted=wanted)
    assert (len(last.entries), last.next, last.reached) == (2, None, None)


async def test_one_that_was_committed_out_of_order_is_found(scene: Scene) -> None:
    feed = await scene.add_feed()
    for key, seconds in (("a", 63), ("b", 58), ("c", 61), ("d", 59), ("e", 70)):
        await scene.publish(feed, key, when=at(seconds))
    assert await titles(scene, 60, 65) == ["a", "c"]
    assert await titles(scene, 60, 65, 1, EntryOrder.LATEST) == ["c", "a"]
    assert await titles(scene, 0, 60) == ["b", "d"]


async def test_the_latest_come_first_of_a_log_longer_than_what_is_read_at_once(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    for number in range(RECORD_PAGE + 2):
        kind = RecordKind.BASELINE if 1 < number < RECORD_PAGE else RecordKind.ENTRIES
        await scene.publish(feed, f"{number}", kind=kind, when=at(number))
    expected = [f"{RECORD_PAGE + 1}", f"{RECORD_PAGE}", "1", "0"]
    assert await titles(scene, 0, 9_999, order=EntryOrder.LATEST) == expected
    assert await titles(scene, 0, 0, order=EntryOrder.LATEST) == []


@pytest.mark.parametrize(
    ("ago", "delay"),
    [(90, 90), (8 * 86_400, None), (-5, None), (None, None)],
)
async def test_how_late_it_was_is_told_where_its_date_is_believable(
    scene: Scene, ago: float | None, delay: float | None
) -> None:
    feed, when = await scene.add_feed(), at(77)
    published = None if ago is None else when - timedelta(seconds=ago)
    entry = an_entry("a", published=published, updated=None)
    commit = fetch(feed, when=when, entries=(entry,), records=(record("a"),))
    await scene.storage.log.commit(commit)
    found = await committed(scene)
    assert (found.delay, found.published) == (delay, published)


async def test_those_that_were_the_longest_on_their_way_come_first(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    for number, minutes in enumerate((9, 5, None, 7, 30)):
        when = at(60 * number)
        published = None if minutes is None else when - timedelta(minutes=minutes)
        entry = an_entry(f"{minutes}", published=published, updated=None)
        records = (record(f"{minutes}"),)
        commit = fetch(feed, when=when, entries=(entry,), records=records)
        await scene.storage.log.commit(commit)

    service = CommittedEntryService(scene.storage)
    span, by_delay = (at(0), at(200)), EntryOrder.DELAY
    first = await service.page(*span, limit=2, order=by_delay)
    whole = await service.page(*span, limit=9, order=by_delay)

    delays = [each.delay for each in whole.entries]
    assert delays == [9 * 60, 7 * 60, 5 * 60]
    assert whole.undated == first.undated == 1
    assert first.entries == whole.entries[:2]
    assert (first.examined, first.has_more, first.next) == (4, False, None)


async def test_only_the_last_of_many_are_ordered_by_their_delay(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "early", when=at(1))
    keys = [f"{number}" for number in range(MOST_RANKED)]
    await scene.publish(feed, *keys, when=at(2))

    service = CommittedEntryService(scene.storage)
    page = await service.page(at(0), at(9), limit=999, order=EntryOrder.DELAY)

    assert (page.examined, page.has_more) == (MOST_RANKED, True)
    assert "early" not in {each.title for each in page.entries}


@dataclass
class FakeTimes:
    """Times with delays, the longest first."""

    slots: Sequence[DelaySlot]
    counted_from: datetime | None = START

    def late_times(self, since: datetime, until: datetime) -> list[DelaySlot]:
        return [*self.slots]


def slot(seconds: int, longest: float) -> DelaySlot:
    since = int(at(seconds).timestamp())
    return DelaySlot(since=since, until=since + 10, longest=longest)


async def publish_late(
    scene: Scene, feed: StoredFeed, when: float, **ago: int | None
) -> None:
    """Entries that were published so many seconds before; None: they have no date."""
    entries = tuple(
        an_entry(
            each,
            title=each,
            published=None if seconds is None else at(when - seconds),
            updated=None,
        )
        for each, seconds in ago.items()
    )
    found = fetch(feed, when=at(when), entries=entries, records=(record(*ago),))
    await scene.storage.log.commit(found)


async def publish_dated(
    scene: Scene, feed: StoredFeed, *keys: str, when: float
) -> None:
    await publish_late(scene, feed, when, **dict.fromkeys(keys, 2))


async def publish_many(scene: Scene, feed: StoredFeed, when: float) -> None:
    """So many entries without dates that no others are looked at."""
    many = {f"{number}": None for number in range(MOST_RANKED)}
    await publish_late(scene, feed, when, **many)


@pytest.mark.parametrize(
    ("times", "limit", "keys", "others_within"),
    [
        pytest.param(
            [slot(0, inf), slot(40, 60.0), slot(20, 5.0)], 2, "ab", 5.0, id="settled"
        ),
        pytest.param(
            [slot(0, inf), slot(40, 60.0), slot(20, 60.0)], 2, "ab", 60.0, id="one bin"
        ),
        pytest.param(
            [slot(0, inf), slot(40, 60.0), slot(20, 5.0)], 9, "abdc", 0.0, id="all"
        ),
    ],
)
async def test_of_a_long_time_the_latest_are_found_by_the_times_when_they_came(
    scene: Scene,
    times: Sequence[DelaySlot],
    limit: int,
    keys: str,
    others_within: float,
) -> None:
    feed = await scene.add_feed()
    await publish_late(scene, feed, 5, a=300)
    await publish_late(scene, feed, 6, undated=None)
    await publish_late(scene, feed, 22, c=2)
    await publish_late(scene, feed, 45, b=60, d=3)
    await publish_many(scene, feed, 70)

    service = CommittedEntryService(scene.storage, times=FakeTimes(times))
    page = await service.page(at(0), at(99), limit=limit, order=EntryOrder.DELAY)

    assert "".join(each.title[-1] for each in page.entries) == keys
    assert (page.others_within, page.has_more) == (others_within, True)
    assert page.undated == 1


async def test_the_rest_of_a_time_that_is_too_full_may_have_come_as_late(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await publish_late(scene, feed, 3, a=9)
    await publish_many(scene, feed, 5)

    times = FakeTimes([slot(0, 15.0)])
    service = CommittedEntryService(scene.storage, times=times)
    page = await service.page(at(0), at(99), limit=9, order=EntryOrder.DELAY)

    assert (page.examined, page.others_within) == (MOST_RANKED, 15.0)


@pytest.mark.parametrize(
    ("counted_from", "is_covered"),
    [(None, False), (30, False), (12, True), (0, True)],
)
async def test_times_are_looked_at_only_if_nothing_came_before_they_were_counted(
    scene: Scene, counted_from: int | None, is_covered: bool
) -> None:
    feed = await scene.add_feed()
    await publish_late(scene, feed, 5, a=9)
    await publish_many(scene, feed, 45)

    known = None if counted_from is None else at(counted_from)
    times = FakeTimes([slot(0, 15.0)], known)
    service = CommittedEntryService(scene.storage, times=times)
    page = await service.page(at(-20), at(99), limit=1, order=EntryOrder.DELAY)

    assert (page.others_within == 0.0) is is_covered
    assert page.examined == (1 if is_covered else MOST_RANKED)


async def test_an_update_is_late_by_its_own_date(scene: Scene) -> None:
    feed = await scene.add_feed()
    entry = an_entry("a", published=at(0), updated=at(50))
    commit = fetch(
        feed,
        when=at(60),
        entries=(entry,),
        records=(record("a", kind=RecordKind.UPDATED),),
    )
    await scene.storage.log.commit(commit)

    found = await committed(scene)
    assert (found.delay, found.published) == (10, at(0))


async def test_the_first_delivery_is_known_exactly_or_from_what_is_stored(
    scene: Scene,
) -> None:
    feed, metrics = await scene.add_feed(), Metrics()
    await scene.subscribe(feed)
    position = await scene.publish(feed, "a", when=at(1))
    found = await committed(scene)
    assert (found.first_delivery, found.is_sent) == (None, False)
    await scene.deliver(at(1.5))
    found = await committed(scene)
    assert (found.first_delivery, found.is_exact, found.is_sent) == (0.5, False, True)
    metrics.freshness.expect_delivery(feed.id, position, 1, 10.0)
    metrics.freshness.deliver(position, lambda: 10.25)
    found = await committed(scene, metrics)
    assert (found.first_delivery, found.is_exact) == (0.25, True)


async def test_one_that_no_callback_took_at_once_says_so(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe_retrying(feed)
    found = await committed(scene)
    assert (found.first_delivery, found.is_sent) == (None, True)
