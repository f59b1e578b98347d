"""Slow publishers by the thousand, in played time; and sites, which have a share of the
workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.core.fetched import Fetched
from hub.core.schedule.poll_period import PollingRules
from hub.http.exchange import MEBIBYTE
from hub.http.network_errors import TooManyLargeAnswers
from hub.ingest.fetcher import FetchRequest
from hub.ingest.poller import Poller
from hub.ingest.visit_runner import STORAGE_PAUSE
from hub.ingest.visit_slots import (
    MOST_IN_LINE,
    MOST_SLOW,
    PATIENCE,
    NoSiteSlot,
    SiteSlots,
    SlowFeeds,
    VisitSlots,
    slow_slots,
)
from hub.runtime.metrics import Metrics
from protocols.urls import host_name
from storage.errors import StorageFull
from storage.records import FeedId, Polling, StoredFeed
from tests.simulation.loop import VirtualLoop
from tests.support.fake_fetcher import LineParser
from tests.support.fetch_targets import START, a_feed, an_answer
from tests.support.openfeeder import WELL_KNOWN
from tests.support.polled import PolledStorage, a_limiter
from tests.support.site_visits import Reading
from tests.support.waiting import in_background


def after(seconds: float) -> Fetched:
    return replace(an_answer(), at=START + timedelta(seconds=seconds))


def test_a_feed_is_slow_by_how_long_its_last_answer_took() -> None:
    feeds, feed = SlowFeeds(), FeedId(1)
    for seconds, is_slow in ((0, False), (PATIENCE, True), (PATIENCE - 0.1, False)):
        feeds.note(feed, after(seconds))
        assert (feed in feeds) is is_slow


def test_only_so_many_are_known_those_that_were_slow_last() -> None:
    feeds = SlowFeeds(most=2)
    for number in (1, 2, 1, 3):
        feeds.note(FeedId(number), after(PATIENCE))
    assert [number for number in (1, 2, 3) if FeedId(number) in feeds] == [1, 3]


SITE = replace(a_feed(1), format="openfeeder")


@pytest.mark.parametrize(("concurrency", "slots"), [(1, 1), (4, 1), (8, 2), (64, 16)])
def test_a_quarter_is_for_sites_and_a_slot_is_given_back(
    concurrency: int, slots: int
) -> None:
    free = SiteSlots(concurrency)

    for _ in range(2):
        with ExitStack() as held:
            got = [held.enter_context(free.hold(SITE)) for _ in range(slots + 1)]
            assert got == [True] * slots + [False]
            assert held.enter_context(free.hold(a_feed(2)))


@pytest.mark.parametrize("feed", [SITE, a_feed(1)], ids=["known", "new"])
def test_a_host_is_known_whose_site_is_read(feed: StoredFeed) -> None:
    slots = SiteSlots(4)
    host = host_name(feed.url)
    with slots.read(feed), slots.read(SITE):
        assert slots.is_read(host)
        assert not slots.is_read("other.example")
    assert not slots.is_read(host)


async def test_a_site_that_is_new_takes_a_slot_once_it_shows_to_be_one() -> None:
    reading = Reading()
    reading.site.add("/a")
    with reading.slots.hold(SITE), pytest.raises(NoSiteSlot):
        await reading.visit()
    assert reading.requests == [f"{reading.site.base}{WELL_KNOWN}"]
    assert await reading.entries() == {}

    await reading.visit()
    with reading.slots.hold(SITE) as is_free:
        assert is_free
        await reading.visit()  # whoever visits what is known to be a site holds a slot
    assert set(await reading.entries()) == {"/a"}


DEADLINE = 20.0
"""Seconds of a fetch (`hub.http.ResponseLimits`)."""
SLOTS = 64
LARGE = 30 * MEBIBYTE
"""As a few small slots have room for one of."""
ALL_AT_ONCE = SLOTS + slow_slots(SLOTS)


class LoopClock:
    """Goes with the loop."""

    def __init__(self) -> None:
        self._start = asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() - self._start


@dataclass
class Publishers:
    """Black holes never answer, and of those who drip no answer is ever whole; the
    others answer after ``seconds``."""

    clock: LoopClock
    seconds: float = 0.5
    requests: list[str] = field(default_factory=list)
    answered: dict[str, float] = field(default_factory=dict)  # when, at last
    at_once: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0
    most_of_a_feed: int = 0

    async def fetch(self, request: FetchRequest) -> Fetched:
        url = request.url
        self.requests.append(url)
        self.at_once[url] = self.at_once.get(url, 0) + 1
        self.most_at_once = max(self.most_at_once, sum(self.at_once.values()))
        self.most_of_a_feed = max(self.most_of_a_feed, self.at_once[url])
        if "large" in (urlsplit(url).hostname or ""):
            assert request.allowance is not None
            request.allowance.take(LARGE)
        host, started = urlsplit(url).hostname or "", self.clock.now()
        is_hole, is_dripping = "hole" in host, "drip" in host
        try:
            await asyncio.sleep(DEADLINE if is_hole or is_dripping else self.seconds)
        finally:
            self.at_once[url] -= 1
            if not self.at_once[url]:
                del self.at_once[url]
        self.answered[url] = self.clock.monotonic()
        now = self.clock.now()
        if is_hole:
            error = "no answer in time"
            return Fetched(
                at=now, started=now, url=url, status=0, error=error, is_unanswered=True
            )
        error = "no whole answer in time" if is_dripping else ""
        answer = an_answer(200, b"a", at=now, url=url, error=error)
        return replace(answer, started=started)


class Scene:
    """A poller in played time; it is to be made in its loop."""

    def __init__(self, concurrency: int = SLOTS, seconds: float = 0.5) -> None:
        self.clock = LoopClock()
        self.storage = PolledStorage()
        self.metrics = Metrics()
        self.publishers = Publishers(self.clock, seconds)
        self.poller = Poller(
            self.storage,
            self.publishers,
            LineParser(),
            a_limiter(self.clock),
            self.clock,
            PollingRules(),
            concurrency=concurrency,
            jitter=lambda: 0.0,
            metrics=self.metrics,
        )

    @property
    def slow_polls(self) -> dict[str, int]:
        counted = self.metrics.slow_polls
        return {state: counted[state] for state in ("under_way", "waiting")}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.poller.run):
            yield
        assert self.publishers.at_once == {}

    def add(self, count: int, kind: str, **polling: object) -> list[StoredFeed]:
        first = len(self.storage.known) + 1
        feeds = [
            a_feed(
                number,
                f"https://{kind}{number}.example/",
                polling=Polling(**polling),  # type: ignore[arg-type]
                next_fetch=self.clock.now(),
            )
            for number in range(first, first + count)
        ]
        for feed in feeds:
            self.storage.put(feed)
        self.poller.wake()
        return feeds

    def ask_again(self, feeds: list[StoredFeed]) -> None:
        """As if all of them were due now."""
        for each in feeds:
            known = self.storage.known[FeedId(each.id)].feed
            self.storage.put(replace(known, next_fetch=self.clock.now()))
        self.poller.wake()

    def status(self, feed: StoredFeed) -> Polling:
        return self.storage.known[FeedId(feed.id)].feed.polling

    async def fetched(self, feeds: list[StoredFeed], within: float) -> None:
        """Raises TimeoutError if they are not."""
        async with asyncio.timeout(within):
            while any(self.status(each).code is None for each in feeds):  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # played


def played(story: Callable[[], Coroutine[object, object, None]]) -> None:
    with capture_logs() as logs, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(story())
    assert [each for each in logs if each["event"] == "visit_failed"] == []


def test_new_feeds_do_not_wait_for_a_thousand_black_holes() -> None:
    async def story() -> None:
        scene = Scene()
        holes = scene.add(1_000, "hole")
        async with scene.running():
            await asyncio.sleep(4.5 * PATIENCE)  # no slot is free, nor a slow one
            assert scene.publishers.most_at_once == ALL_AT_ONCE
            well = scene.add(20, "well")
            async with asyncio.timeout(2 * PATIENCE), asyncio.TaskGroup() as adding:
                for each in well:  # as whoever adds one waits for its first fetch
                    adding.create_task(scene.poller.fetch_now(each.id))
            assert {scene.status(each).code for each in well} == {200}

            await scene.fetched(holes, within=150)

        assert {scene.status(each).error for each in holes} == {"no answer in time"}
        assert scene.publishers.most_at_once <= ALL_AT_ONCE
        assert scene.publishers.most_of_a_feed == 1

    played(story)


def test_feeds_behind_a_thousand_black_holes_have_their_turn_in_patience_each() -> None:
    async def story() -> None:
        scene = Scene()
        scene.add(1_000, "hole")
        well = scene.add(20, "well")
        async with scene.running():
            await scene.fetched(well, within=(1_000 / SLOTS + 1) * PATIENCE)

    played(story)


def test_known_feeds_do_not_wait_for_publishers_who_did_not_answer_before() -> None:
    async def story() -> None:
        scene = Scene()
        holes = scene.add(1_000, "hole", code=0, failures=1, error="no answer in time")
        well = scene.add(20, "well")
        async with scene.running():
            await scene.fetched(well, within=PATIENCE)
            await asyncio.sleep(1_000 / slow_slots(SLOTS) * DEADLINE + DEADLINE)

        assert {scene.status(each).failures for each in holes} >= {2}
        assert min(scene.status(each).failures for each in holes) == 2
        assert scene.publishers.most_at_once <= ALL_AT_ONCE
        assert len(set(scene.publishers.requests)) == 1_020

    played(story)


def test_known_feeds_do_not_wait_for_publishers_who_dripped_before() -> None:
    """Their answers begin, and that is the status of their feeds."""

    async def story() -> None:
        scene = Scene()
        drips = scene.add(1_000, "drip")
        async with scene.running():
            await scene.fetched(drips, within=150)
            assert {scene.status(each).code for each in drips} == {200}
            scene.ask_again(drips)
            well = scene.add(20, "well")
            await scene.fetched(well, within=PATIENCE)

        assert scene.publishers.most_at_once <= ALL_AT_ONCE

    played(story)


def test_a_publisher_who_is_quick_again_has_a_quick_slot_again() -> None:
    async def story() -> None:
        scene = Scene(concurrency=1, seconds=2 * PATIENCE)
        (feed,) = scene.add(1, "once")
        async with scene.running():
            await scene.fetched([feed], within=DEADLINE)
            scene.publishers.seconds = PATIENCE / 2
            for slow in (1, 0):  # begins where the last time ended
                asked = len(scene.publishers.requests)
                scene.ask_again([feed])
                while len(scene.publishers.requests) == asked:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)  # played
                assert scene.slow_polls["under_way"] == slow
                await asyncio.sleep(PATIENCE)

    played(story)


def test_a_slow_publisher_is_asked_once_while_there_is_room_among_the_slow() -> None:
    async def story() -> None:
        scene = Scene(concurrency=2, seconds=2 * PATIENCE)
        slow = scene.add(2 + slow_slots(2), "slow")
        async with scene.running():
            await scene.fetched(slow, within=10 * PATIENCE)

        assert len(scene.publishers.requests) == len(slow)

    played(story)


def test_whoever_waits_for_a_feed_in_line_is_told_when_it_was_fetched() -> None:
    async def story() -> None:
        scene = Scene(concurrency=1)
        holes = scene.add(20, "hole")
        async with scene.running():
            await asyncio.sleep(1)
            feed = await scene.poller.fetch_now(holes[-1].id)
            assert feed.polling.error == "no answer in time"

    played(story)


def test_feeds_that_find_even_the_line_full_hold_up_nobody() -> None:
    async def story() -> None:
        scene = Scene(concurrency=8)
        room = slow_slots(8)
        crowd = MOST_IN_LINE + room + 50
        scene.add(crowd, "hole", code=0, failures=1, error="no answer in time")
        async with scene.running():
            await asyncio.sleep(1)
            assert len(scene.publishers.requests) == room
            well = scene.add(20, "well")
            await scene.fetched(well, within=PATIENCE)

        assert len(scene.publishers.requests) == room + len(well)

    played(story)


def test_a_line_outlives_storage_that_fails() -> None:
    async def story() -> None:
        scene = Scene(concurrency=1)
        holes = scene.add(1 + slow_slots(1) + 1, "hole")
        async with scene.running():
            await asyncio.sleep((slow_slots(1) + 3) * PATIENCE)
            scene.storage.commit_failure = scene.storage.failure = StorageFull("full")
            await asyncio.sleep(DEADLINE)
            scene.storage.commit_failure = scene.storage.failure = None
            await scene.fetched(holes, within=2 * STORAGE_PAUSE)

    played(story)


def test_what_has_been_answered_is_never_broken_off_and_moves_when_it_can() -> None:
    async def story() -> None:
        slots = VisitSlots(concurrency=1)
        async with AsyncExitStack() as slow:
            for _ in range(slow_slots(1)):
                slot = await slow.enter_async_context(slots.enter())
                assert slot.become_slow()
            async with slots.enter() as slot:
                async with slot.asking():
                    await asyncio.sleep(PATIENCE / 2)
                await asyncio.sleep(PATIENCE)  # a large document, or a site
                assert not slot.is_slow
                await slow.aclose()
                await asyncio.sleep(PATIENCE)
                assert slot.is_slow

    played(story)


def test_documents_of_slow_and_quick_visits_take_no_more_than_the_slots_say() -> None:
    slots = VisitSlots(SLOTS)
    most = SLOTS * 10 * MEBIBYTE
    with ExitStack() as visits:
        for _ in range(ALL_AT_ONCE):
            with suppress(TooManyLargeAnswers), ExitStack() as visit:
                share = visit.enter_context(slots.memory.reserve())
                for _ in range(10):
                    share.take(MEBIBYTE)
                visits.enter_context(visit.pop_all())
        assert slots.memory.taken <= most
        small = visits.enter_context(slots.memory.reserve())
        small.take(MEBIBYTE)
    assert slots.memory.taken == 0


def test_a_visit_gives_back_what_its_document_took() -> None:
    async def story() -> None:
        scene = Scene(concurrency=1)
        feeds = scene.add(30, "large")
        async with scene.running():
            await scene.fetched(feeds, within=60.0)
        assert {scene.status(each).error for each in feeds} == {""}

    played(story)


def test_slow_visits_and_those_that_wait_for_a_slow_slot_are_counted() -> None:
    async def story() -> None:
        scene = Scene(concurrency=1)
        holes = scene.add(1 + slow_slots(1) + 2, "hole")
        async with scene.running():
            await asyncio.sleep((slow_slots(1) + 2) * PATIENCE)
            assert scene.slow_polls == {"under_way": slow_slots(1), "waiting": 1}
            await scene.fetched(holes, within=5 * DEADLINE)
        assert scene.slow_polls == {"under_way": 0, "waiting": 0}

    played(story)


def test_a_feed_that_is_removed_in_line_is_not_asked_again() -> None:
    async def story() -> None:
        scene = Scene(concurrency=1)
        *holes, last = scene.add(1 + slow_slots(1) + 1, "hole")
        async with scene.running():
            await asyncio.sleep((slow_slots(1) + 3) * PATIENCE)
            assert scene.publishers.requests.count(last.url) == 1
            del scene.storage.known[last.id]
            await scene.fetched(holes, within=5 * DEADLINE)
            await asyncio.sleep(DEADLINE)

        assert scene.publishers.requests.count(last.url) == 1

    played(story)


@pytest.mark.parametrize(
    ("concurrency", "slow"), [(1, 4), (64, 256), (1_000, MOST_SLOW)]
)
def test_slow_slots_are_bounded(concurrency: int, slow: int) -> None:
    assert slow_slots(concurrency) == slow
