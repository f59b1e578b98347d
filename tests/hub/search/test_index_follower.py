"""The index of words follows the log."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from math import inf
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.search.index_follower import SearchIndex
from hub.services.token_authentication import ADMINISTRATOR
from protocols.model import Entry, Status
from storage.contract import LogStore, SearchStore, Storage
from storage.records import EntryId, Position, RecordKind, RecordWrite, StoredEntry
from tests.support.library import START, Library
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import fetch
from tests.support.waiting import eventually


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def library(hub: Hub) -> Library:
    library = await Library.open(hub)
    await library.add_feed("news")
    return library


async def found(hub: Hub, query: str) -> list[str]:
    collected = await hub.services.search.find(ADMINISTRATOR, query, 50)
    return [entry.key.rpartition("/")[2] for entry in collected.entries]


async def test_what_is_committed_is_found_soon(hub: Hub, library: Library) -> None:
    index = SearchIndex(hub.storage, hub.clock, gather_seconds=0)
    running = asyncio.create_task(index.run())
    try:
        await library.publish("news", "one", text="a word")

        async def is_found() -> bool:
            return await found(hub, "word") == ["one"]

        await eventually(is_found)
        await library.publish("news", "two", text="a word", minutes=1)

        async def both_are() -> bool:
            return await found(hub, "word") == ["two", "one"]

        await eventually(both_are)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_an_entry_that_changed_is_found_by_what_it_says_now(
    hub: Hub, library: Library
) -> None:
    await library.publish("news", "one", text="before")
    await library.index()
    await library.publish("news", "one", text="after")
    await library.index()

    assert await found(hub, "before") == []
    assert await found(hub, "after") == ["one"]


async def test_reading_goes_on_where_it_ended(hub: Hub, library: Library) -> None:
    await library.publish("news", "one")
    index = SearchIndex(hub.storage, hub.clock)

    assert await index.catch_up() == Position(1)
    assert (await hub.storage.search.state()).position == Position(1)
    assert await index.catch_up() == Position(1)


async def test_a_record_of_many_entries_is_indexed_in_pages(
    hub: Hub, library: Library
) -> None:
    await library.publish("news", *[f"n{number}" for number in range(450)], text="all")
    await library.index()

    assert len(await found(hub, "all")) == 50
    assert await found(hub, "n449") == ["n449"]
    assert await found(hub, "n0") == ["n0"]


async def test_a_search_gives_up_after_many_that_do_not_match(
    hub: Hub, library: Library
) -> None:
    """The index does not know case, so it finds them all."""
    await library.publish("news", "first", text="Word")
    await library.publish("news", *map(str, range(2_100)), text="word", minutes=1)
    await library.index()

    assert await found(hub, '"Word"') == []
    assert len(await found(hub, '"word"')) == 50


async def test_an_entry_that_cannot_be_indexed_is_passed_over(
    hub: Hub, library: Library
) -> None:
    feed = await hub.storage.feeds.find("https://news.example/feed")
    assert feed is not None
    unreadable = Entry(key="odd", id=5)  # type: ignore[arg-type]
    record = RecordWrite(
        kind=RecordKind.ENTRIES, status=Status(code=200), entries=(("odd", True),)
    )
    await hub.storage.log.commit(fetch(feed, entries=(unreadable,), records=(record,)))
    await library.publish("news", "one")

    with capture_logs() as lines:
        await library.index()

    assert await found(hub, "one") == ["one"]
    failures = [line["event"] for line in lines if "exc_info" in line]
    assert failures == ["entry_not_indexed"]


# --- fewer days, none, and all again ---

DAY = 24 * 60
"""Minutes."""


@pytest.fixture
async def month(hub: Hub, library: Library) -> Hub:
    """An entry of every tenth day, named after its age."""
    hub.clock.advance((START - hub.clock.now()).total_seconds())
    for age in (30, 20, 10, 0):
        await library.publish("news", f"d{age}", text="word", minutes=-age * DAY)
    return hub


def index_of(hub: Hub, days: float = inf) -> SearchIndex:
    """As of a hub that was started anew."""
    return SearchIndex(hub.storage, hub.clock, days=days)


@pytest.mark.parametrize(
    ("days", "found_then"),
    [
        (inf, ["d0", "d10", "d20", "d30"]),
        (30, ["d0", "d10", "d20", "d30"]),
        (15, ["d0", "d10"]),
        (0.5, ["d0"]),
        (0, []),
    ],
)
@pytest.mark.parametrize("before", [inf, 15, 0])
async def test_entries_of_so_many_days_are_found_whatever_was_kept_before(
    month: Hub, before: float, days: float, found_then: list[str]
) -> None:
    await index_of(month, before).catch_up()
    await index_of(month, days).catch_up()

    assert await found(month, "word") == found_then
    assert (await month.storage.search.state()).days == days


async def test_entries_that_grow_too_old_are_forgotten(
    month: Hub, library: Library
) -> None:
    index = index_of(month, 15)
    await index.catch_up()
    month.clock.advance(6 * 86_400)
    await library.publish("news", "late", text="word", minutes=-5 * DAY)
    await library.publish("news", "later", text="word", minutes=-12 * DAY)
    await index.catch_up()
    assert await found(month, "word") == ["d0", "late"]


async def test_without_a_search_nothing_is_written(
    month: Hub, library: Library, hub: Hub
) -> None:
    empty = (await hub.storage.usage())["search"]
    index = index_of(month, 0)
    position = await index.catch_up()
    assert position == (await hub.storage.log.end()).position
    await library.publish("news", "more", text="word")
    assert await index.catch_up() == position + 1
    state = await month.storage.search.state()
    assert (state.days, state.position, state.unread) == (0, 0, 0)
    assert (await hub.storage.usage())["search"] == empty


class Interrupted(Exception):
    pass


class Dying:
    """A store whose calls go through until one of them, which raises."""

    def __init__(self, store: SearchStore, calls: int) -> None:
        self._store = store
        self._calls = calls

    def __getattr__(self, name: str) -> object:
        method = getattr(self._store, name)

        async def call(*arguments: object, **named: object) -> object:
            self._calls -= 1
            if self._calls < 0:
                raise Interrupted
            return await method(*arguments, **named)

        return call


class DyingStorage:
    def __init__(self, storage: Storage, calls: int) -> None:
        self.log, self.entries = storage.log, storage.entries
        self.search = cast("SearchStore", Dying(storage.search, calls))


@pytest.mark.parametrize("days", [inf, 15, 0])
async def test_what_was_cut_off_anywhere_is_gone_on_with(
    month: Hub, library: Library, days: float
) -> None:
    await index_of(month, 0 if days else inf).catch_up()
    died = 0
    while True:
        storage = DyingStorage(month.storage, calls=died)
        try:
            await SearchIndex(storage, month.clock, days=days).catch_up()
        except Interrupted:
            died += 1
        else:
            break
    assert died > 3
    wanted = {inf: ["d0", "d10", "d20", "d30"], 15: ["d0", "d10"], 0: []}
    assert await found(month, "word") == wanted[days]
    assert await month.storage.find_damage() == ()


async def test_news_is_read_between_two_steps_of_what_can_wait(
    hub: Hub, library: Library
) -> None:
    """So what is new is found before all that is old."""
    await library.publish("news", *map(str, range(150)), text="old")
    shares: defaultdict[bool, list[float]] = defaultdict(list)

    class Publishing:
        """A log in which an entry appears whenever entries are read."""

        def __getattr__(self, name: str) -> object:
            return getattr(hub.storage.log, name)

        async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
            if not shares:
                await library.publish("news", "new", text="new", minutes=9)
            state = await hub.storage.search.state()
            shares[len(await found(hub, "new")) > 0].append(state.share_read)
            return await hub.storage.log.entries(ids)

    class PublishingStorage:
        log = cast("LogStore", Publishing())
        entries = hub.storage.entries
        search = hub.storage.search

    await SearchIndex(PublishingStorage(), hub.clock).catch_up()

    assert min(shares[True]) < 1, (
        "the new entry was found before all old ones were read"
    )
    assert len(await found(hub, "old")) == 50


async def test_it_is_logged_when_an_index_is_built_and_when_it_is_complete(
    month: Hub,
) -> None:
    with capture_logs() as lines:
        await index_of(month).catch_up()
        await index_of(month).catch_up()
        await index_of(month, 0).catch_up()
        await index_of(month, 0).catch_up()
    assert [line["event"] for line in lines] == [
        "the search index is being built",
        "the search index is complete",
        "search is off: its index is removed",
    ]
