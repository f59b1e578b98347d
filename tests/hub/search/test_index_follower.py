"""The index of words follows the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hub.search.index_follower import SearchIndex
from hub.services.token_authentication import ADMINISTRATOR
from protocols.model import Entry, Status
from storage.records import Position, RecordKind, RecordWrite
from tests.support.library import Library
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
    index = SearchIndex(hub.storage, gather_seconds=0)
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
    index = SearchIndex(hub.storage)

    assert await index.catch_up() == Position(1)
    assert await hub.storage.search.position() == Position(1)
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
    assert [(line["event"], line["exc_info"]) for line in lines] == [
        ("entry_not_indexed", True)
    ]
