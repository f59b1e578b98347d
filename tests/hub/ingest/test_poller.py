from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.core.fetched import Fetched
from hub.core.schedule.budget import Budget
from hub.core.schedule.poll_period import PollingRules
from hub.core.schedule.posting_profile import NOTHING_KNOWN, count_habits, pack_habits
from hub.ingest.document_parser import Parser
from hub.ingest.fetcher import FetcherIdentity, FetchRequest
from hub.ingest.poller import Poller
from hub.limits.host_limiter import RequestKind
from storage.errors import BodyRequired, NotFound, StorageBusy, StorageFull
from storage.records import (
    CommitOutcome,
    FeedId,
    FeedState,
    FetchCommit,
    FetchTarget,
    NotStored,
    Polling,
    PollReason,
    Posting,
    RecordKind,
)
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher, InlineParser, LineParser
from tests.support.fetch_targets import START, a_feed, an_answer
from tests.support.polled import PolledStorage, a_limiter, feeds_of_hosts
from tests.support.waiting import eventually, in_background

HOUR = timedelta(hours=1)
FETCH = RequestKind.FETCH
LATER = START + HOUR
Answers = Callable[[FetchRequest], object]


@dataclass
class Stage:
    """A poller and all that it works with, its clock moved by the test alone."""

    storage: PolledStorage = field(default_factory=PolledStorage)
    clock: ManualClock = field(default_factory=ManualClock)
    concurrency: int = 8
    parser: Parser = field(default_factory=LineParser)
    in_hand: set[str] = field(default_factory=set)
    budget: Budget = field(default_factory=Budget)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    is_trusted: bool = True

    def __post_init__(self) -> None:
        self.fetcher = FakeFetcher(self.clock)
        self.limiter = a_limiter(self.clock, self.sleep)
        self.poller = Poller(
            self.storage,
            self.fetcher,
            self.parser,
            self.limiter,
            self.clock,
            PollingRules(),
            concurrency=self.concurrency,
            identity=FetcherIdentity(product="Fanfare/1.0", url="https://hub.example"),
            is_pushed=self.in_hand.__contains__,
            is_trusted=lambda: self.is_trusted,
            budget=self.budget,
        )

    def add(self, *feeds: object) -> None:
        for feed in feeds:
            self.storage.put(feed)

    def advance(self, time: timedelta) -> None:
        self.clock.advance(time.total_seconds())
        self.poller.wake()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.poller.run):
            yield

    async def committed(self, count: int) -> None:
        await eventually(lambda: len(self.storage.commits) >= count)

    async def settled(self) -> None:
        """Nothing more comes, though the poller had every chance."""
        before = -1
        while before != len(self.fetcher.requests):
            before = len(self.fetcher.requests)
            for _ in range(200):
                await asyncio.sleep(0)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def polled(number: int, url: str, *, next_fetch: datetime = START, **state: object):
    return a_feed(number, url, polling=Polling(**state), next_fetch=next_fetch)


# --- when ----------------------------------------------------------------------


async def test_a_due_feed_is_fetched_and_its_next_fetch_stored(stage: Stage) -> None:
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)

    assert stage.fetcher.urls == ["https://feed.example/feed"]
    assert stage.storage.feed(1).next_fetch > stage.clock.now()
    (record,) = stage.storage.commits[0].records
    assert record.kind is RecordKind.BASELINE


async def test_a_feed_is_not_fetched_before_it_is_due(stage: Stage) -> None:
    stage.add(a_feed(1, next_fetch=START + HOUR))

    async with stage.running():
        await stage.settled()
        assert stage.fetcher.requests == []

        stage.advance(HOUR)
        await stage.committed(1)


async def test_the_second_request_carries_the_validators(stage: Stage) -> None:
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)
        stage.advance(48 * HOUR)
        await stage.committed(2)

    first, second = stage.fetcher.requests
    assert first.validators is None
    assert second.validators is not None
    assert second.validators.etag == '"1"'
    assert stage.storage.commits[1].polling.code == 304


async def test_a_feed_that_is_added_is_fetched_at_once(stage: Stage) -> None:
    async with stage.running():
        await stage.settled()
        stage.add(a_feed(1))
        stage.poller.wake()
        await stage.committed(1)


async def test_a_feed_that_is_added_while_storage_is_read_is_not_overlooked(
    stage: Stage,
) -> None:
    class Slow(PolledStorage):
        async def next_due(self) -> datetime | None:
            answer = await super().next_due()
            if not self.known:
                self.put(a_feed(1))
                stage.poller.wake()
            return answer

    stage = Stage(storage=Slow())

    async with stage.running():
        await stage.committed(1)


async def test_a_feed_fetched_while_storage_is_read_is_not_put_off(
    stage: Stage,
) -> None:
    class Slow(PolledStorage):
        async def due(self, *args: object, **options: object) -> list[object]:
            page = await super().due(*args, **options)
            stage.fetcher.gate.set()
            if stage.fetcher.requests:
                await eventually(lambda: bool(self.commits))
                await stage.settled()
            return page

    stage = Stage(storage=Slow())
    stage.add(*(a_feed(n, f"https://one.example/{n}") for n in range(1, 9)))

    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        stage.poller.wake()
        await stage.committed(1)
        await stage.settled()

    assert FeedId(1) not in dict(stage.storage.deferred)
    assert stage.storage.feed(1).next_fetch >= START + timedelta(minutes=1)


async def test_a_feed_removed_during_its_fetch_is_not_missed(stage: Stage) -> None:
    class Removing(PolledStorage):
        async def commit(self, fetch: FetchCommit) -> CommitOutcome:
            self.commits.append(fetch)
            self.change(1, state=FeedState.REMOVED)
            return NotStored.GONE

    stage = Stage(storage=Removing())
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)
        await stage.settled()

    assert len(stage.fetcher.requests) == 1


async def test_an_as_is_subscription_that_begins_during_a_fetch_gets_its_document(
    stage: Stage,
) -> None:
    class Insisting(PolledStorage):
        async def commit(self, fetch: FetchCommit) -> CommitOutcome:
            if self.commits and fetch.body is None:
                raise BodyRequired
            return await super().commit(fetch)

    stage = Stage(storage=Insisting())
    bodies = iter([b"a", b"a b"])
    stage.fetcher.answers = lambda request: an_answer(200, next(bodies))
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)
        stage.advance(48 * HOUR)
        await stage.committed(2)

    baseline, news = stage.storage.commits
    assert baseline.body is None
    assert news.body is not None
    assert news.body.body == b"a b"
    assert len(stage.fetcher.requests) == 2


async def test_workers_who_wait_keep_nothing_of_the_feeds_they_were_at(
    stage: Stage,
) -> None:
    def targets() -> list[FetchTarget]:
        gc.collect()
        return [it for it in gc.get_objects() if type(it) is FetchTarget]

    of_others = targets()  # other tests'
    stage.add(*feeds_of_hosts(8))

    async with stage.running():
        await stage.committed(8)
        await stage.settled()
        stage.storage.known.clear()

        assert [it for it in targets() if it not in of_others] == []


async def test_paused_feeds_are_left_alone(stage: Stage) -> None:
    stage.add(a_feed(1, state=FeedState.PAUSED))

    async with stage.running():
        await stage.settled()

    assert stage.fetcher.requests == []


async def test_a_feed_that_dies_is_named_in_the_log_and_polled_no_more_until_it_answers(
    stage: Stage,
) -> None:
    long_ago = START - timedelta(days=8)
    missing = {"missing_sightings": 9, "missing_since": long_ago, "failures": 9}
    stage.add(polled(1, "https://feed.example/feed", **missing))
    stage.fetcher.answers = lambda request: an_answer(404)

    with capture_logs() as lines:
        async with stage.running():
            await stage.committed(1)
            stage.advance(48 * HOUR)
            await stage.settled()
            assert len(stage.fetcher.requests) == 1
            assert stage.storage.feed(1).state is FeedState.DEAD

            stage.fetcher.answers = lambda request: None
            feed = await stage.poller.fetch_now(FeedId(1))
            assert feed.state is FeedState.ACTIVE

    stopped = [line for line in lines if line.get("kind") == "feed_stopped"]
    (line,) = stopped
    assert line["feed"] == 1
    assert "is no longer polled: it answered nothing but 404" in line["event"]


async def test_a_believed_redirect_is_fetched_directly(stage: Stage) -> None:
    stage.add(polled(1, "https://old.example/", fetch_url="https://new.example/"))

    async with stage.running():
        await stage.committed(1)

    (request,) = stage.fetcher.requests
    assert request.url == "https://new.example/"
    assert request.credentials_origin == "https://old.example/"


async def test_publishers_are_told_who_asks_and_for_how_many(stage: Stage) -> None:
    stage.add(a_feed(7))

    async with stage.running():
        await stage.committed(1)

    assert stage.fetcher.requests[0].user_agent == (
        "Fanfare/1.0 (+https://hub.example; 0 subscribers; feed-id=7)"
    )


async def test_bytes_that_are_known_are_not_parsed_again(stage: Stage) -> None:
    stage.fetcher.answers = lambda request: an_answer(200, b"a b")
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)
        stage.advance(48 * HOUR)
        await stage.committed(2)

    assert stage.storage.commits[0].head is not None
    assert stage.storage.commits[1].head is None
    assert stage.storage.commits[1].polling.unchanged == 1


async def test_a_large_document_is_decided_on_like_any_other(stage: Stage) -> None:
    body = b"a" + b" " * 300_000
    stage.fetcher.answers = lambda request: an_answer(200, body)
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)

    assert [each.key for each in stage.storage.commits[0].entries] == ["a"]


async def test_a_body_that_is_no_feed_is_an_error(stage: Stage) -> None:
    stage.fetcher.answers = lambda request: an_answer(200, b"")
    stage.add(a_feed(1))

    async with stage.running():
        await stage.committed(1)

    assert stage.storage.feed(1).polling.error == "the document is empty"


# --- how many ------------------------------------------------------------------


async def test_no_more_feeds_are_fetched_at_once_than_allowed(stage: Stage) -> None:
    stage.add(*feeds_of_hosts(100))
    stage.fetcher.gate.clear()

    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 8)
        await stage.settled()
        assert len(stage.fetcher.requests) == 8

        stage.fetcher.gate.set()
        await stage.committed(100)

    assert stage.fetcher.most_at_once == 8


async def test_sites_take_a_quarter_of_the_workers_and_come_back(stage: Stage) -> None:
    stage.fetcher.gate.clear()
    sites = feeds_of_hosts(6)
    stage.add(*(replace(site, format="openfeeder") for site in sites))
    feeds = [a_feed(10 + n, f"https://other{n}.example/") for n in range(9)]
    stage.add(*feeds)

    async with stage.running():
        await eventually(lambda: len(stage.storage.deferred) == 4)
        await eventually(lambda: len(stage.fetcher.requests) == 8)

        of_sites = [url for url in stage.fetcher.urls if "other" not in url]
        assert len(of_sites) == 2
        times = [moment for _, moment in stage.storage.deferred]
        assert len(set(times)) == 4
        assert min(times) > START + timedelta(seconds=10)


async def test_what_turns_out_to_be_a_site_has_a_place_or_comes_back() -> None:
    stage = Stage(parser=InlineParser())
    discovery = an_answer(
        200, b'{"version": "1.0", "site": {}, "feed": {"endpoint": "/of"}}'
    )

    def answer(request: FetchRequest) -> Fetched:
        stage.fetcher.gate.clear()  # for whatever is asked next
        return discovery

    stage.fetcher.answers = answer
    stage.fetcher.gate.clear()
    stage.add(*feeds_of_hosts(3))
    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 3)
        stage.fetcher.gate.set()
        await eventually(lambda: len(stage.fetcher.requests) == 5)
        await eventually(lambda: len(stage.storage.deferred) == 1)
        await stage.settled()
        assert [url for url in stage.fetcher.urls if "/of?" in url] == [
            "https://h1.example/of?page=1&limit=50",
            "https://h2.example/of?page=1&limit=50",
        ]
    assert stage.storage.commits == []


async def test_who_waits_for_a_site_that_has_no_place_is_told(stage: Stage) -> None:
    stage.fetcher.gate.clear()
    sites = [replace(site, format="scp") for site in feeds_of_hosts(2)]
    last = a_feed(3, format="scp", next_fetch=START + HOUR)
    stage.add(*sites, last)

    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 2)

        feed = await stage.poller.fetch_now(last.id)

        assert feed.polling.last_fetch is None
        await eventually(lambda: len(stage.storage.deferred) == 1)
        assert stage.storage.feed(3).next_fetch < START + HOUR


async def test_storage_is_read_in_batches_not_per_feed(stage: Stage) -> None:
    stage.add(*feeds_of_hosts(100))

    async with stage.running():
        await stage.committed(100)

    assert stage.storage.reads["targets"] < 40
    assert stage.storage.reads["due"] < 10


async def test_one_host_is_asked_once_at_a_time_and_once_a_second(stage: Stage) -> None:
    stage.add(*(a_feed(n, f"https://one.example/{n}") for n in range(1, 4)))

    async with stage.running():
        for count in (1, 2, 3):
            await stage.committed(count)
            await stage.settled()
            assert len(stage.storage.commits) == count
            stage.advance(timedelta(seconds=1))

    assert stage.fetcher.most_of_a_host == 1
    starts = [at for _, at in stage.fetcher.started]
    assert starts == [0, 1, 2]


async def test_many_due_feeds_of_one_host_starve_no_other(stage: Stage) -> None:
    stage.add(*(a_feed(n, f"https://big.example/{n}") for n in range(1, 1001)))
    stage.add(a_feed(2000, "https://small.example/", next_fetch=START))

    async with stage.running():
        await eventually(lambda: "https://small.example/" in stage.fetcher.urls)
        await stage.committed(2)

    times = [moment for _, moment in stage.storage.deferred]
    assert len(times) == len(set(times)) > 990
    assert max(times) <= START + timedelta(seconds=1000)
    assert stage.storage.reads["defer"] <= 4


async def test_exempt_hosts_are_not_paced(stage: Stage) -> None:
    stage.add(*(a_feed(n, f"https://lan.exempt/{n}") for n in range(1, 101)))

    async with stage.running():
        await stage.committed(100)

    assert stage.fetcher.most_of_a_host == 8
    assert stage.storage.deferred == []


async def test_a_429_leaves_the_whole_host_alone(stage: Stage) -> None:
    stage.add(*(a_feed(n, f"https://busy.example/{n}") for n in range(1, 4)))
    stage.fetcher.answers = lambda request: an_answer(429, retry_after="7200")

    async with stage.running():
        await stage.committed(1)
        await eventually(lambda: len(stage.storage.deferred) == 2)
        stage.add(a_feed(4, "https://busy.example/4", next_fetch=START))
        stage.advance(HOUR)
        await eventually(lambda: len(stage.storage.deferred) == 3)
        await stage.settled()

    assert len(stage.fetcher.requests) == 1
    assert all(at >= START + 2 * HOUR for _, at in stage.storage.deferred)


async def test_a_429_holds_back_a_visit_that_waits_for_its_turn_already() -> None:
    """It is put off, takes up no slot meanwhile, and who waits for it is told."""
    turn = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        await turn.wait()

    stage = Stage(concurrency=1, sleep=sleep)
    stage.add(a_feed(1, "https://busy.example/1"))
    stage.limiter.count("busy.example")
    async with stage.running():
        waiting = asyncio.create_task(stage.poller.fetch_now(FeedId(1)))
        await eventually(lambda: stage.limiter.is_waited_for("busy.example", FETCH))
        stage.limiter.hold("busy.example", 7_200)
        turn.set()

        assert (await waiting).polling.code is None
        await eventually(lambda: stage.storage.deferred)
        stage.add(a_feed(2, "https://quiet.example/2"))
        stage.advance(timedelta(seconds=1))
        await stage.committed(1)

    assert stage.fetcher.urls == ["https://quiet.example/2"]
    assert stage.storage.feed(1).next_fetch >= START + 2 * HOUR


async def test_a_restart_forgets_no_host_that_wants_no_requests(stage: Stage) -> None:
    stage.add(a_feed(1, "https://busy.example/1"))
    stage.fetcher.answers = lambda request: an_answer(429, retry_after="7200")
    async with stage.running():
        await eventually(lambda: stage.storage.held)
    assert stage.storage.held == {"busy.example": START + 2 * HOUR}

    again = Stage(storage=stage.storage)
    again.add(a_feed(2, "https://busy.example/2"), a_feed(3))
    async with again.running():
        await eventually(lambda: again.storage.deferred)
        await again.settled()

    assert again.fetcher.urls == ["https://feed.example/feed"]
    assert again.storage.feed(2).next_fetch >= START + 2 * HOUR


async def test_a_503_that_asks_for_no_patience_concerns_its_feed_only(
    stage: Stage,
) -> None:
    stage.add(*(a_feed(n, f"https://ill.example/{n}") for n in (1, 2)))
    stage.fetcher.answers = lambda request: an_answer(503)

    async with stage.running():
        await stage.committed(1)
        stage.advance(timedelta(seconds=1))
        await stage.committed(2)


# --- fetch now -----------------------------------------------------------------


async def test_a_fetch_now_is_a_ping_and_gives_the_feed_afterwards(
    stage: Stage,
) -> None:
    stage.add(a_feed(1, next_fetch=START + 9 * HOUR))

    async with stage.running():
        feed = await stage.poller.fetch_now(FeedId(1))

    assert feed.polling.message.startswith("Fetched (ping) 200")


async def test_fetches_asked_for_together_are_one(stage: Stage) -> None:
    stage.add(a_feed(1))
    stage.fetcher.gate.clear()

    async with stage.running(), asyncio.TaskGroup() as group:
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        for _ in range(5):
            group.create_task(stage.poller.fetch_now(FeedId(1)))
        await stage.settled()
        stage.fetcher.gate.set()

    assert len(stage.fetcher.requests) == 1


@pytest.mark.parametrize(
    ("also_again", "requests"),
    [
        pytest.param(False, 0, id="nobody wants another"),
        pytest.param(True, 1, id="somebody wants another"),
    ],
)
async def test_a_first_fetch_is_not_made_if_there_was_one_meanwhile(
    stage: Stage, also_again: bool, requests: int
) -> None:
    feed = a_feed(1, next_fetch=START + 9 * HOUR)
    stage.add(feed)

    async with asyncio.TaskGroup() as group:
        first = group.create_task(stage.poller.fetch_now(feed.id, only_first=True))
        if also_again:
            group.create_task(stage.poller.fetch_now(feed.id))
        await eventually(lambda: stage.poller.is_pinged(feed.id))
        fetched = replace(feed, polling=Polling(last_fetch=START, last_success=START))
        stage.add(fetched)
        async with stage.running():
            await first

    assert len(stage.fetcher.requests) == requests
    assert first.result().polling.last_fetch


async def test_a_ping_is_a_fetch_that_nobody_waits_for(stage: Stage) -> None:
    feed = a_feed(1, next_fetch=START + 9 * HOUR)
    stage.add(feed)

    async with stage.running():
        assert stage.poller.ping(feed)
        assert stage.poller.is_pinged(feed.id)
        assert stage.poller.pinged == 1
        await stage.committed(1)

    assert stage.storage.commits[0].polling.message.startswith("Fetched (ping) 200")


async def test_each_poll_is_told_with_its_reason(stage: Stage) -> None:
    def reasons() -> list[PollReason | None]:
        polls = [commit.poll for commit in stage.storage.commits]
        return [poll and poll.reason for poll in polls]

    polling = Polling(
        last_fetch=START, last_success=START, next_reason=PollReason.HELD_BACK
    )
    feed = a_feed(1, polling=polling)
    stage.add(feed)
    wanted = [PollReason.HELD_BACK]

    async with stage.running():
        await stage.committed(1)
        assert reasons() == wanted
        for reason in (PollReason.PINGED, PollReason.WOKEN_BY_PUSH):
            stage.clock.advance(1)
            stage.poller.ping(stage.storage.feed(1), reason)
            wanted.append(reason)
            await stage.committed(len(wanted))
        stage.clock.advance(1)
        await stage.poller.fetch_now(feed.id)
        stage.advance(25 * HOUR)
        await stage.committed(len(wanted) + 2)

    assert reasons() == [*wanted, PollReason.ASKED_FOR, PollReason.PLANNED]


async def test_pings_during_a_fetch_bring_one_more_after_it(stage: Stage) -> None:
    feed = a_feed(1)
    stage.add(feed)
    stage.fetcher.gate.clear()

    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        for _ in range(9):
            assert stage.poller.ping(feed)
        assert stage.poller.is_pinged(feed.id)
        stage.fetcher.gate.set()
        await stage.committed(2)
        await stage.settled()

    assert len(stage.fetcher.requests) == 2
    assert not stage.poller.is_pinged(feed.id)


async def test_a_ping_during_a_fetch_heeds_what_that_learns(stage: Stage) -> None:
    feed = a_feed(1)
    stage.add(feed)
    stage.fetcher.gate.clear()
    stage.fetcher.answers = lambda request: an_answer(200, b"a", retry_after="3600")

    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        assert stage.poller.ping(feed)
        stage.fetcher.gate.set()
        await stage.committed(1)
        await stage.settled()

    assert len(stage.fetcher.requests) == 1
    assert not stage.poller.is_pinged(feed.id)


async def test_a_server_that_asked_for_patience_is_not_pinged(stage: Stage) -> None:
    later = START + HOUR
    feed = polled(1, "https://a.example/", retry_after=later, next_fetch=later)
    stage.add(feed)

    async with stage.running():
        assert not stage.poller.ping(feed)
        await stage.settled()

    assert stage.fetcher.requests == []


async def test_it_comes_before_the_other_feeds_of_its_host(stage: Stage) -> None:
    stage.add(*(a_feed(n, f"https://one.example/{n}") for n in range(1, 5)))
    stage.fetcher.gate.clear()

    async with stage.running(), asyncio.TaskGroup() as group:
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        group.create_task(stage.poller.fetch_now(FeedId(4)))
        await stage.settled()
        stage.fetcher.gate.set()
        await stage.committed(1)
        stage.advance(timedelta(seconds=1))

    assert stage.fetcher.urls[1] == "https://one.example/4"


async def test_whoever_gives_up_waiting_does_not_stop_the_fetch(stage: Stage) -> None:
    stage.add(a_feed(1))
    stage.fetcher.gate.clear()

    async with stage.running():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await stage.poller.fetch_now(FeedId(1))
        stage.fetcher.gate.set()
        await stage.committed(1)


async def test_a_paused_feed_can_be_fetched(stage: Stage) -> None:
    stage.add(a_feed(1, state=FeedState.PAUSED))

    async with stage.running():
        feed = await stage.poller.fetch_now(FeedId(1))

    assert feed.polling.code == 200
    assert feed.state is FeedState.PAUSED


async def test_a_server_that_asked_for_patience_gets_it(stage: Stage) -> None:
    stage.add(polled(1, "https://a.example/", retry_after=START + HOUR))

    async with stage.running():
        await stage.poller.fetch_now(FeedId(1))

    assert stage.fetcher.requests == []


async def test_what_was_brought_is_taken_although_its_server_wants_patience(
    stage: Stage,
) -> None:
    """Nobody is asked for it, and so nobody's pace counts."""
    urls = ["https://a.example/1", "https://a.example/2"]
    stage.add(
        *(
            polled(n, url, retry_after=LATER, next_fetch=LATER)
            for n, url in enumerate(urls, 1)
        )
    )
    stage.in_hand.add(urls[0])

    async with stage.running():
        await stage.poller.fetch_now(FeedId(1))
        await stage.poller.fetch_now(FeedId(2))

    assert [each.url for each in stage.fetcher.requests] == urls[:1]


async def test_what_was_brought_and_withdrawn_has_no_impatient_request_made(
    stage: Stage,
) -> None:
    url = "https://a.example/1"
    stage.add(polled(1, url, retry_after=LATER, next_fetch=LATER))
    stage.in_hand.add(url)
    asking = asyncio.create_task(stage.poller.fetch_now(FeedId(1)))
    await stage.settled()
    stage.in_hand.clear()

    async with stage.running():
        await asking

    assert stage.fetcher.requests == []


async def test_who_waits_for_a_feed_of_a_throttled_host_is_told(stage: Stage) -> None:
    stage.add(*(a_feed(n, f"https://busy.example/{n}") for n in (1, 2)))
    stage.fetcher.answers = lambda request: an_answer(429)
    stage.fetcher.gate.clear()

    async with stage.running():
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        waiting = asyncio.create_task(stage.poller.fetch_now(FeedId(2)))
        await stage.settled()
        stage.fetcher.gate.set()
        assert (await waiting).polling.code is None
        assert (await stage.poller.fetch_now(FeedId(2))).polling.code is None


@pytest.mark.parametrize("state", [FeedState.REMOVED, None])
async def test_an_unknown_or_removed_feed_cannot_be_fetched(
    stage: Stage, state: FeedState | None
) -> None:
    if state:
        stage.add(a_feed(1, state=state))

    async with stage.running():
        with pytest.raises(NotFound):
            await stage.poller.fetch_now(FeedId(1))


async def test_at_the_end_nobody_is_kept_waiting(stage: Stage) -> None:
    stage.add(a_feed(1))
    stage.fetcher.gate.clear()

    async with stage.running():
        waiting = asyncio.create_task(stage.poller.fetch_now(FeedId(1)))
        await eventually(lambda: len(stage.fetcher.requests) == 1)

    assert (await waiting).polling.code is None


# --- when something fails ------------------------------------------------------


async def test_a_full_disk_makes_no_storm_of_fetches(stage: Stage) -> None:
    stage.add(*feeds_of_hosts(200))
    stage.storage.commit_failure = StorageFull("no space left")

    async with stage.running():
        await eventually(lambda: stage.storage.reads["check"] > 0, 20)
        in_vain = len(stage.fetcher.requests)
        assert in_vain <= 8

        stage.storage.commit_failure = None
        await stage.committed(200)

    assert len(stage.fetcher.requests) == 200 + in_vain


class Choosy(PolledStorage):
    """Takes a trial write, but not what is fetched."""

    async def check(self) -> None:
        self._read("check")


async def test_a_feed_whose_news_alone_cannot_be_stored_rests() -> None:
    stage = Stage(storage=Choosy())
    stage.add(*feeds_of_hosts(20))
    stage.storage.commit_failure = StorageFull("too large")

    async with stage.running():
        await eventually(lambda: stage.storage.reads["check"] > 0, 20)
        in_vain = len(stage.fetcher.requests)
        stage.storage.commit_failure = None
        await stage.committed(20 - in_vain)
        await stage.settled()
        assert len(stage.fetcher.requests) == 20
        stage.advance(timedelta(seconds=300))
        await stage.committed(20)


@pytest.mark.parametrize("storage", [PolledStorage, Choosy])
async def test_a_ping_whose_news_could_not_be_stored_is_served_afterwards(
    storage: type[PolledStorage],
) -> None:
    stage = Stage(storage=storage())
    feed = a_feed(1, next_fetch=START + 9 * HOUR)
    stage.add(feed)
    stage.storage.commit_failure = StorageFull("no space left")

    async with stage.running():
        assert stage.poller.ping(feed)
        await eventually(lambda: len(stage.fetcher.requests) == 1)
        await stage.settled()
        stage.storage.commit_failure = None
        await stage.committed(1)


async def test_but_not_for_ever_if_nothing_else_is_at_fault() -> None:
    stage = Stage(storage=Choosy())
    feed = a_feed(1, next_fetch=START + 9 * HOUR)
    stage.add(feed)
    stage.storage.commit_failure = StorageFull("too large")

    async with stage.running():
        assert stage.poller.ping(feed)
        await eventually(lambda: stage.storage.reads["check"] > 1)
        await stage.settled()

    assert len(stage.fetcher.requests) == 2
    assert not stage.poller.is_pinged(feed.id)


async def test_who_asks_for_a_fetch_during_an_outage_is_told_so_at_once(
    stage: Stage,
) -> None:
    stage.add(a_feed(1))
    stage.storage.commit_failure = StorageFull("no space left")

    async with stage.running():
        for _ in range(3):
            with pytest.raises(StorageFull):
                await stage.poller.fetch_now(FeedId(1))
        assert len(stage.fetcher.requests) == 1
        stage.storage.commit_failure = None
        feed = await stage.poller.fetch_now(FeedId(1))

    assert feed.polling.code == 200


async def test_whoever_waits_is_told_that_nothing_could_be_stored(
    stage: Stage,
) -> None:
    stage.add(a_feed(1))
    stage.storage.commit_failure = StorageFull("no space left")

    async with stage.running():
        with pytest.raises(StorageFull):
            await stage.poller.fetch_now(FeedId(1))


async def test_while_the_term_may_be_over_nothing_is_begun(stage: Stage) -> None:
    """Another node may have taken over its feeds, and polls them."""
    stage.add(*feeds_of_hosts(20))
    stage.is_trusted = False

    async with stage.running():
        with pytest.raises(StorageBusy, match="term at the database may be over"):
            await stage.poller.fetch_now(FeedId(1))
        await stage.settled()
        assert stage.fetcher.requests == []

        stage.is_trusted = True
        await stage.poller.fetch_now(FeedId(1))
        await stage.committed(20)


async def test_visits_that_were_handed_out_before_are_not_begun_either() -> None:
    stage = Stage(concurrency=4)
    stage.add(*feeds_of_hosts(20))

    def lose_the_term(request: FetchRequest) -> None:
        stage.is_trusted = False

    stage.fetcher.answers = lose_the_term
    async with stage.running():
        await stage.committed(4)
        await stage.settled()
        assert len(stage.fetcher.requests) == 4


async def test_polling_goes_on_when_storage_can_be_read_again(stage: Stage) -> None:
    stage.add(a_feed(1))
    stage.storage.failure = StorageFull("cannot be read")

    async with stage.running():
        await stage.settled()
        stage.storage.failure = None
        await stage.committed(1)


async def test_a_fault_of_one_visit_harms_no_other(stage: Stage) -> None:
    def answers(request: FetchRequest) -> None:
        if "h1." in request.url:
            raise RuntimeError("a fault")

    stage.fetcher.answers = answers
    stage.add(*feeds_of_hosts(3))

    def asked() -> int:
        return sum("h1." in each.url for each in stage.fetcher.requests)

    async with stage.running():
        await stage.committed(2)
        stage.advance(timedelta(seconds=3599))
        await stage.settled()
        assert asked() == 1
        stage.fetcher.answers = lambda request: None
        stage.advance(timedelta(seconds=1))
        await eventually(lambda: asked() == 2)


async def test_a_feed_that_was_paused_meanwhile_is_not_fetched() -> None:
    class Pausing(PolledStorage):
        async def targets(self, ids: list[FeedId]) -> list[FetchTarget]:
            self.change(1, state=FeedState.PAUSED)
            return await super().targets(ids)

    stage = Stage(storage=Pausing())
    stage.add(a_feed(1))

    async with stage.running():
        await eventually(lambda: stage.storage.reads["targets"] > 0)
        await stage.settled()

    assert stage.fetcher.requests == []


async def test_who_waits_is_told_when_storage_cannot_be_read(stage: Stage) -> None:
    class Unreadable(PolledStorage):
        async def targets(self, ids: list[FeedId]) -> list[FetchTarget]:
            raise StorageFull("cannot be read")

    stage = Stage(storage=Unreadable())
    stage.add(a_feed(1))

    async with stage.running():
        with pytest.raises(StorageFull):
            await stage.poller.fetch_now(FeedId(1))


async def test_a_feed_that_was_removed_meanwhile_is_not_fetched(stage: Stage) -> None:
    class Forgetful(PolledStorage):
        async def targets(self, ids: object) -> list[object]:
            return []

    stage = Stage(storage=Forgetful())
    stage.add(a_feed(1))

    async with stage.running():
        feed = await stage.poller.fetch_now(FeedId(1))

    assert feed.polling.code is None
    assert stage.fetcher.requests == []


async def test_feeds_are_planned_by_the_habits_of_all(stage: Stage) -> None:
    habits = pack_habits(count_habits(NOTHING_KNOWN, [START.timestamp()] * 400))
    watched_since = START - timedelta(days=60)
    posting = Posting(habits=habits, at=START, since=watched_since)
    stage.add(polled(1, "https://a.example/", posting=posting))
    stage.add(a_feed(2))

    async with stage.running():
        await stage.poller.fetch_now(FeedId(2))

    feed = polled(3, "https://c.example/", last_fetch=START)
    terms = {term.name: term.value for term in stage.poller.explain(feed).terms}
    assert terms["habit"] > 2


def test_the_explanation_is_that_of_the_last_plan(stage: Stage) -> None:
    feed = polled(1, "https://a.example/", subscribers=8, last_fetch=START)

    terms = {term.name: term.value for term in stage.poller.explain(feed).terms}

    assert terms["weight"] == 4
    assert stage.poller.explain(a_feed(2)).period > 0


# --- after a standstill --------------------------------------------------------


async def test_feeds_that_are_overdue_at_the_start_are_spread_once(
    stage: Stage,
) -> None:
    stage.add(polled(1, "https://a.example/"))
    async with stage.running():
        await stage.committed(1)
        stage.advance(timedelta(days=2))
        await stage.committed(2)
    assert stage.storage.reads["spread"] == 1


async def test_a_budget_of_polls_a_second_spreads_them_by_itself() -> None:
    stage = Stage(budget=Budget(polls_per_second=5.0))
    stage.add(polled(1, "https://a.example/"))
    async with stage.running():
        await stage.committed(1)
    assert stage.storage.reads["spread"] == 0


async def test_a_feed_is_under_way_from_its_request_until_it_is_stored(
    stage: Stage,
) -> None:
    stage.fetcher.gate.clear()
    stage.add(polled(1, "https://a.example/"))
    assert stage.poller.under_way == set()
    async with stage.running():
        await eventually(lambda: bool(stage.fetcher.requests))
        assert stage.poller.under_way == {1}
        stage.fetcher.gate.set()
        await stage.committed(1)
        await stage.settled()
        assert stage.poller.under_way == set()


async def test_nobody_waits_for_a_fetch_once_polling_is_over(stage: Stage) -> None:
    stage.add(polled(1, "https://a.example/"))
    async with stage.running():
        await stage.committed(1)
    async with asyncio.timeout(10):
        feed = await stage.poller.fetch_now(FeedId(1))
    assert feed.id == 1
    assert len(stage.storage.commits) == 1
