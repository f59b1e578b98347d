from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from msgspec import structs
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.ingest.committer import MOST_MATCHINGS
from hub.ingest.fetch_pipeline import FetchPipeline
from hub.ingest.tracker import FEW_BYTES, FEW_QUERIES, PAGE, Tracker
from hub.runtime.metrics import Metrics, Tally
from protocols.model import Entry, Feed, Link, Status
from storage.contract import FeedStore, LogStore, Storage, TrackStore
from storage.errors import StaleQueries, WriteFailed
from storage.packing import pack
from storage.records import (
    CommitOutcome,
    DecisionsMissed,
    FeedId,
    FetchCommit,
    Matched,
    MatchWrite,
    Polling,
    PollReason,
    QueriesCame,
    QueriesWent,
    RecordKind,
    RecordWrite,
    TrackQuery,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher, LineParser
from tests.support.fetch_pipelines import a_pipeline
from tests.support.fetch_targets import START, a_feed, a_target

TARGET = a_target()


class Queries:
    """The stored queries that a test puts in."""

    def __init__(self, *queries: str) -> None:
        self.all = [TrackQuery(FeedId(n), each) for n, each in enumerate(queries, 1)]

    stored: tuple[str, ...] = ()  # titles of entries

    async def version(self) -> int:
        return len(self.all)

    async def sample(self, limit: int, most_bytes: int) -> list[bytes]:
        return [
            pack(Entry(key=each, id=each, title=each)) for each in self.stored[:limit]
        ]

    async def page(self, *, after: FeedId, limit: int) -> list[TrackQuery]:
        return [each for each in self.all if each.feed_id > after][:limit]


async def a_tracker(*queries: str, metrics: Metrics | None = None) -> Tracker:
    store = cast("TrackStore", Queries(*queries))
    tracker = Tracker(store, metrics or Metrics())
    await tracker.load()
    return tracker


def news(
    *titles: str, kind: RecordKind = RecordKind.ENTRIES, status: Status | None = None
) -> FetchCommit:
    entries = (Entry(key=title, id=title, title=title) for title in titles)
    head = Feed(links=(Link(href="https://site.example/"),))
    return FetchCommit(
        feed_id=TARGET.feed.id,
        at=START,
        next_fetch=START,
        polling=Polling(),
        head=head,
        entries=tuple(entries),
        records=(
            RecordWrite(
                kind=kind,
                status=status or Status(),
                entries=tuple((title, True) for title in titles),
            ),
        ),
    )


class WatchedTally(Tally):
    """Knows which threads have counted."""

    def __init__(self) -> None:
        super().__init__("tracking", "", "what", ("entries", "matches"))
        self.threads: set[str] = set()

    def add(self, value: str, count: int = 1) -> None:
        self.threads.add(threading.current_thread().name.partition("_")[0])


async def matches_of(tracker: Tracker, commit: FetchCommit) -> tuple[MatchWrite, ...]:
    matched = (await tracker.match(TARGET, commit)).matched
    assert matched is not None
    return matched.matches


async def test_each_query_gets_the_entries_it_matches_in_one_record() -> None:
    tracker = await a_tracker("laurel", "laurel hardy", "chaplin")

    found = await matches_of(tracker, news("Laurel", "Keaton", "Hardy, Laurel"))

    assert found == (
        MatchWrite(FeedId(1), ("Laurel", "Hardy, Laurel")),
        MatchWrite(FeedId(2), ("Hardy, Laurel",)),
    )


async def test_many_entries_are_matched_beside_the_loop_and_told_in_parts() -> None:
    metrics = Metrics()
    tracker = await a_tracker("laurel", metrics=metrics)
    titles = [f"Laurel {number}" for number in range(501)]

    found = await matches_of(tracker, news(*titles))

    assert [len(each.keys) for each in found] == [500, 1]
    assert metrics.tracking["entries"] == metrics.tracking["matches"] == 501


@pytest.mark.parametrize(
    ("titles", "queries", "thread"),
    [
        (["Laurel"], 1, "MainThread"),
        (["Laurel", "and", "Hardy", "again"], 1, "beside"),
        (["Laurel " + "x" * FEW_BYTES], 1, "beside"),
        (["Laurel"], FEW_QUERIES + 1, "beside"),
        (["Laurel " + "x" * 2**20], 1, "long"),
    ],
)
async def test_the_thread_is_chosen_by_bytes_entries_and_queries(
    titles: list[str], queries: int, thread: str
) -> None:
    metrics = Metrics()
    metrics.tracking = WatchedTally()
    tracker = await a_tracker(*["laurel"] * queries, metrics=metrics)

    await matches_of(tracker, news(*titles))

    assert metrics.tracking.threads == {thread}


async def test_without_queries_nothing_is_looked_at() -> None:
    metrics = Metrics()
    commit = news("Laurel")
    unreadable = replace(commit, entries=(Entry(key="Laurel", id="", title=5),))  # type: ignore[arg-type]

    found = await (await a_tracker(metrics=metrics)).match(TARGET, unreadable)

    assert found.matched == Matched(version=0)
    assert metrics.tracking["entries"] == 0


@pytest.mark.parametrize(
    "kind", [each for each in RecordKind if each is not RecordKind.ENTRIES]
)
async def test_only_new_entries_are_tracked(kind: RecordKind) -> None:
    tracker = await a_tracker("laurel")
    commit = news("Laurel", kind=kind)

    assert await tracker.match(TARGET, commit) is commit


async def test_private_feeds_are_tracked_for_those_who_may_read_them() -> None:
    """Who may is known when it is committed."""
    tracker = await a_tracker("laurel")
    private = a_target(replace(a_feed(), private=True))

    matched = (await tracker.match(private, news("Laurel"))).matched

    assert matched is not None
    assert [each.keys for each in matched.matches] == [("Laurel",)]


async def test_what_is_to_be_kept_out_of_sight_is_not_tracked() -> None:
    tracker = await a_tracker("laurel")
    commit = news("Laurel", "Laurel again")
    hidden, shown = commit.entries
    partly = replace(commit, entries=(structs.replace(hidden, unlisted=True), shown))

    assert await matches_of(tracker, partly) == (
        MatchWrite(FeedId(1), ("Laurel again",)),
    )
    wholly = replace(commit, polling=Polling(unlisted=True))
    assert await tracker.match(TARGET, wholly) is wholly


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("laurel site:site.example", True),
        ("laurel site:feed.example", True),
        ("laurel site:other.example", False),
        ("laurel popularity:>1", True),
        ("laurel popularity:>2", False),
        ("laurel porn:ok", False),
        ("laurel porn:ok bozo:ok", True),
    ],
)
async def test_the_feed_counts_as_well(query: str, is_found: bool) -> None:
    ranks = Status(porn_rank=0.3, bozo_rank=0.4, popularity=1.5)
    if "ok" not in query:
        ranks = Status(popularity=1.5)
    tracker = await a_tracker(query)

    assert bool(await matches_of(tracker, news("Laurel", status=ranks))) is is_found


async def test_queries_come_and_go_while_it_runs() -> None:
    tracker = await a_tracker("laurel")

    tracker.note(QueriesCame(5, (TrackQuery(FeedId(9), "hardy"),)))
    assert await matches_of(tracker, news("Hardy")) == (
        MatchWrite(FeedId(9), ("Hardy",)),
    )
    tracker.note(QueriesWent((FeedId(9), FeedId(10))))
    told = (await tracker.match(TARGET, news("Hardy"))).matched

    assert told == Matched(version=5)
    assert len(tracker) == 1


async def test_all_pages_are_loaded_and_what_cannot_be_read_is_passed_over() -> None:
    queries = [f"word{number}" for number in range(PAGE)]
    with capture_logs() as lines:
        tracker = await a_tracker(*queries, "-nothing", "laurel")

    assert len(tracker) == PAGE + 1
    assert [(each["event"], each["feed"]) for each in lines] == [
        ("query_unreadable", PAGE + 1)
    ]


async def test_after_a_decision_that_could_not_be_read_all_queries_are_read_anew() -> (
    None
):
    store = Queries("laurel", "hardy")
    tracker = Tracker(cast("TrackStore", store), Metrics())
    await tracker.load()
    store.all = [store.all[0], TrackQuery(FeedId(9), "chaplin")]
    tracker.note(DecisionsMissed("nobody can read it"))

    found = await asyncio.gather(
        *(matches_of(tracker, news(each)) for each in ("Laurel", "Hardy", "Chaplin"))
    )

    ids = [[match.feed_id for match in each] for each in found]
    assert ids == [[1], [], [9]]


async def test_what_comes_and_goes_while_queries_are_read_anew_is_in_step() -> None:
    store = Queries("laurel", "hardy")
    tracker = Tracker(cast("TrackStore", store), Metrics())
    await tracker.load()
    read = store.page

    async def page(*, after: FeedId, limit: int) -> list[TrackQuery]:
        """Read before the decisions that are told then."""
        found = await read(after=after, limit=limit)
        tracker.note(QueriesWent((FeedId(1),)))
        tracker.note(QueriesCame(5, (TrackQuery(FeedId(9), "chaplin"),)))
        return found

    store.page = page  # type: ignore[method-assign]
    tracker.note(DecisionsMissed("nobody can read it"))

    matched = await matches_of(tracker, news("Laurel Hardy Chaplin"))
    assert {each.feed_id for each in matched} == {2, 9}


async def test_queries_that_cannot_be_read_anew_are_read_with_the_next_commit() -> None:
    store = Queries("laurel")
    tracker = Tracker(cast("TrackStore", store), Metrics())
    await tracker.load()
    read, failures = store.version, [WriteFailed("away")]

    async def version() -> int:
        for failure in failures:
            failures.remove(failure)
            raise failure
        return await read()

    store.version = version  # type: ignore[method-assign]
    store.all.append(TrackQuery(FeedId(9), "hardy"))
    tracker.note(DecisionsMissed("nobody can read it"))

    with pytest.raises(WriteFailed):
        await tracker.match(TARGET, news("Hardy"))
    assert len(await matches_of(tracker, news("Hardy"))) == 1


# --- with the commit ---


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[tuple[Storage, Tracker]]:
    storage = await open_chosen(directory / "hub.db")
    try:
        tracker = Tracker(storage.tracking, Metrics())
        with storage.control.watch(tracker.note):
            await tracker.load()
            yield storage, tracker
    finally:
        await storage.close()


def pipeline(feeds: FeedStore, log: LogStore, tracker: Tracker) -> FetchPipeline:
    clock = ManualClock()
    return a_pipeline(
        feeds, log, FakeFetcher(clock), LineParser(), clock, tracker=tracker
    )


class LateQueries:
    """A log before which queries come, as often as the test wants."""

    def __init__(self, log: LogStore, times: float = 1) -> None:
        self._log = log
        self._left = times
        self.tries: list[Matched | None] = []

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        self.tries.append(fetch.matched)
        self._left -= 1
        if self._left >= 0:
            raise StaleQueries("there is another")
        return await self._log.commit(replace(fetch, matched=None))


async def test_entries_are_held_once_more_against_queries_that_came_meanwhile(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (storage, tracker):
        log = LateQueries(storage.log)
        commits = pipeline(storage.feeds, cast("LogStore", log), tracker)

        await commits.run(a_target(), PollReason.PLANNED)

        assert len(log.tries) == 2


async def test_a_commit_that_queries_keep_from_is_given_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as (storage, tracker):
        log = LateQueries(storage.log, float("inf"))
        commits = pipeline(storage.feeds, cast("LogStore", log), tracker)

        with pytest.raises(StaleQueries):
            await commits.run(a_target(), PollReason.PLANNED)

        assert len(log.tries) == MOST_MATCHINGS


async def test_it_is_in_step_with_what_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as (storage, tracker):
        query = await storage.tracking.add("laurel", "laurel", START)
        assert len(tracker) == 1

        matched = (await tracker.match(TARGET, news("Laurel"))).matched
        assert matched == Matched(
            version=1, matches=(MatchWrite(query.id, ("Laurel",)),)
        )
        later = START + timedelta(days=1)
        await storage.tracking.retire(later, [], later, 1)
        assert len(tracker) == 0


async def test_after_a_restart_queries_wait_under_the_words_that_are_rare() -> None:
    """By their lengths alone the long word would be taken for the rare one."""
    queries = Queries("yak government")
    queries.stored = tuple(f"the government of day {n}" for n in range(200))
    store = cast("TrackStore", queries)
    tracker = Tracker(store, Metrics())

    await tracker.load()

    assert tracker.waits_under(FeedId(1)) == {"yak"}
    assert tracker.waits_under(FeedId(2)) == frozenset()
    assert (await a_tracker("yak government")).waits_under(FeedId(1)) == {"government"}
