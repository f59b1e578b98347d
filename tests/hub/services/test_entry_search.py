"""Searches that have much to look at: a thread of their own, and an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from math import inf
from pathlib import Path
from threading import Event

import pytest

from hub.services.entry_search import (
    COUNTED_OF_FEED,
    MOST_BYTES,
    MOST_WAITING,
    IndexState,
    MatchRate,
    SearchService,
)
from hub.services.service_errors import SearchOff, TooManyWaiting
from hub.services.token_authentication import CreateToken, Principal
from protocols.model import Entry
from storage.packing import unpack
from storage.records import (
    EntryId,
    FeedId,
    FeedStatistics,
    FeedStatisticsWrite,
    RecordKind,
    TokenScope,
)
from tests.support.library import START, Library
from tests.support.services import Hub, open_hub
from tests.support.work_claims import save_statistics


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    """With thirty entries that have a word, the newest first."""
    async with open_hub(tmp_path) as hub:
        library = await Library.open(hub)
        await library.add_feed("public")
        for number in range(30):
            await library.publish("public", f"word {number}", minutes=number)
        await library.index()
        yield hub


async def principal_of(hub: Hub, account: str) -> Principal:
    made = await hub.services.tokens.create(
        CreateToken(account=account, scopes=frozenset({TokenScope.RETRIEVE}))
    )
    found = await hub.services.tokens.authenticate(made.secret)
    assert found is not None
    return found


async def found_by(
    search: SearchService, principal: Principal, query: str = "word", count: int = 50
) -> list[str]:
    found = await search.find(principal, query, count)
    return [unpack(each.body, Entry).title for each in found.entries]


async def test_a_search_goes_on_turn_by_turn_until_all_is_looked_at(hub: Hub) -> None:
    """In each turn there is time for one entry."""
    ticks = count()
    search = SearchService(
        hub.storage, "http://hub.example", monotonic=lambda: float(next(ticks))
    )
    me = await principal_of(hub, "me")
    assert len(await found_by(search, me)) == 30
    assert await found_by(search, me, "word -3", 2) == ["word 29", "word 28"]


async def test_a_search_that_takes_too_long_is_answered_with_what_it_found(
    hub: Hub,
) -> None:
    search = SearchService(hub.storage, "http://hub.example", seconds=0)
    me = await principal_of(hub, "me")
    found = await search.find(me, "word", 10)
    assert list(found.entries) == []
    assert found.line == "0 entries found; older ones may match; stopped after 0 s"
    assert await search.rate(found, START) is None
    assert found.next is not None
    again = await hub.services.search.find(me, "word", 50, found.next)
    assert again.line == "30 entries found"


async def test_a_search_knows_how_popular_and_how_decent_a_feed_is(hub: Hub) -> None:
    search = SearchService(hub.storage, "http://hub.example")
    me = await principal_of(hub, "me")
    [feed] = await hub.storage.feeds.page(after=FeedId(0), limit=9)
    at = hub.clock.now()
    statistics = FeedStatistics(maintained_at=at, popularity=1.79, porn_rank=0.9)
    await save_statistics(
        hub.storage,
        FeedStatisticsWrite(
            feed_id=feed.id,
            statistics=statistics,
            site="",
            places=frozenset(),
            due=at,
        ),
    )
    assert await found_by(search, me, "word porn:ok popularity:<1") == []
    assert len(await found_by(search, me, "word porn:ok popularity:>1")) == 30
    assert await found_by(search, me, "word") == []


async def test_an_account_has_few_searches_waiting_and_others_are_served(
    hub: Hub,
) -> None:
    may_go_on = Event()

    def monotonic() -> float:
        """The first search stands still until all others were asked for."""
        may_go_on.wait()
        return 0.0

    search = SearchService(hub.storage, "", monotonic=monotonic)
    me, other = await principal_of(hub, "me"), await principal_of(hub, "other")
    asked = [asyncio.create_task(found_by(search, me)) for _ in range(2 * MOST_WAITING)]
    try:
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        others = asyncio.create_task(found_by(search, other))
    finally:
        may_go_on.set()
    assert len(await others) == 30
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, TooManyWaiting)]
    assert 0 < len(refused) < len(answers)
    assert "searches of this account are waiting already" in str(refused[0])
    assert all(len(each) == 30 for each in answers if isinstance(each, list))


async def test_large_entries_are_read_a_few_at_a_time_and_end_a_search(
    hub: Hub,
) -> None:
    library = await Library.open(hub)
    await library.add_feed("large")
    for number in range(3):
        text = f"word {'many ' * (MOST_BYTES // 10)}"
        await library.publish(
            "large", f"large {number}", text=text, minutes=60 + number
        )
    await library.index()
    me = await principal_of(hub, "me")

    found = await found_by(hub.services.search, me)

    assert found == ["large 2", "large 1"]  # which are MOST_BYTES together


async def test_a_search_goes_on_where_a_page_ended_whatever_ended_it(hub: Hub) -> None:
    """A page that was full, one for which enough was looked at, and the last one."""
    search = SearchService(hub.storage, "", most=8)
    me, below, said, titles = await principal_of(hub, "me"), None, [], list[str]()
    for query, most in (("word", 2), *[("word -27 -19 -18", 50)] * 4):
        page = await search.find(me, query, most, below)
        said.append(page.line)
        titles += [unpack(each.body, Entry).title for each in page.entries]
        below = page.next
    assert below is None
    assert titles == [f"word {each}" for each in range(29, -1, -1) if each not in GONE]
    assert said == [
        "the newest 2 entries of more that were found",
        *(
            f"{found} more entries found among 8 with these words, back to"
            f" 2026-11-21 00:{minute}:00Z; older ones may match"
            for found, minute in ((7, 20), (6, 12), (8, "04"))
        ),
        "4 more entries found",
    ]


GONE = (27, 19, 18)


async def test_pages_of_more_matches_are_told_from_those_without_any(hub: Hub) -> None:
    search, me = hub.services.search, await principal_of(hub, "me")
    first = await search.find(me, "word", 20)
    second = await search.find(me, "word", 5, first.next)
    assert second.line == "the next 5 entries of more that were found"
    assert (second.looked_at, second.reached) == (6, START + timedelta(minutes=4))
    last = await search.find(me, "word -0 -1 -2 -3 -4", 5, second.next)
    assert (last.line, last.next) == ("no more entries found", None)


# --- what the index covers ---


async def test_a_search_says_that_its_index_is_being_built(hub: Hub) -> None:
    me = await principal_of(hub, "me")
    for search in (hub.services.search, SearchService(hub.storage, "", days=30)):
        assert (await search.find(me, "word", 2)).line == (
            "the newest 2 entries of more that were found"
        )
    await hub.storage.search.keep(0)
    await hub.storage.search.keep(30)
    assert (await hub.services.search.find(me, "word", 2)).line == (
        "0 entries found; the index is being built, so older ones may be missing"
    )


@pytest.mark.parametrize(
    ("kept", "days", "state", "share"),
    [
        (inf, inf, IndexState.COMPLETE, 1.0),
        (inf, 7, IndexState.COMPLETE, 1.0),
        (7, inf, IndexState.BUILDING, 0.0),
        (7, 7, IndexState.BUILDING, 0.5),
        (inf, 0, IndexState.OFF, 0.0),
    ],
)
async def test_the_report_says_how_much_of_what_it_is_to_cover_was_read(
    hub: Hub, kept: float, days: float, state: IndexState, share: float
) -> None:
    if kept == 7:
        await hub.storage.search.keep(0)
        await hub.storage.search.keep(7)
        await hub.storage.search.index([], [], unread=EntryId(16))
    report = await SearchService(hub.storage, "", days=days).report()
    assert (report.state, report.days, report.share) == (state, days, share)


async def test_without_an_index_nothing_is_searched(hub: Hub) -> None:
    with pytest.raises(SearchOff, match="FANFARE_SEARCH_DAYS=0"):
        await SearchService(hub.storage, "", days=0).find(
            await principal_of(hub, "me"), "word", 2
        )


async def test_how_many_come_a_day_is_told_by_when_the_hub_saw_them(hub: Hub) -> None:
    search, me = hub.services.search, await principal_of(hub, "me")
    newest = await search.find(me, "word", 9)
    alone = replace(newest, next=None)
    seen = START + timedelta(days=1)
    for days, page, expected in (
        (3, newest, 3),
        (3, alone, 9 / 7),
        (8, alone, 0),
        (8, newest, 0),
    ):
        rate = await search.rate(page, seen + timedelta(days))
        is_of_week = (days, page) != (3, newest)
        assert rate == MatchRate(per_day=expected, is_of_week=is_of_week)


@pytest.mark.parametrize("feeds", [1, 6])
async def test_of_busy_feeds_the_latest_records_tell_how_many_come_a_day(
    hub: Hub, feeds: int
) -> None:
    """They have more records in a week than are read."""
    library = await Library.open(hub)
    names = [f"busy{number}" for number in range(feeds)]
    for name in names:
        await library.add_feed(name)
        await library.publish(name, f"rare {name} first", days=2)
        await library.append_records(name, COUNTED_OF_FEED - 10, days=3)
        for number in range(20):
            await library.publish(name, f"rare {name} {number}", days=5)
    await library.index()
    search, me = hub.services.search, await principal_of(hub, "me")
    page = await search.find(me, "rare", 200)
    assert len(page.entries) == 21 * feeds
    rate = await search.rate(page, START + timedelta(days=7))
    assert rate == MatchRate(per_day=20 * feeds / 4, is_of_week=False)


async def test_how_many_come_a_day_is_not_known_if_none_is_among_what_was_read(
    hub: Hub,
) -> None:
    library = await Library.open(hub)
    await library.add_feed("busy")
    await library.publish("busy", "rare", days=2)
    await library.append_records("busy", COUNTED_OF_FEED, days=3)
    await library.index()
    search, me = hub.services.search, await principal_of(hub, "me")
    page = await search.find(me, "rare", 9)
    assert len(page.entries) == 1
    assert await search.rate(page, START + timedelta(days=7)) is None
    assert await search.rate(page, START + timedelta(days=11)) == MatchRate(
        per_day=0, is_of_week=True
    )


async def test_what_a_feed_had_at_its_first_fetch_is_not_counted_as_news(
    hub: Hub,
) -> None:
    library = await Library.open(hub)
    await library.add_feed("late")
    titles = [f"word late {number}" for number in range(40)]
    await library.publish("late", *titles, minutes=60, kind=RecordKind.BASELINE)
    await library.publish("late", "word later", minutes=90)
    await library.index()
    search, me = hub.services.search, await principal_of(hub, "me")
    two_days_later = START + timedelta(days=3)
    for found, is_all, expected in (
        (80, True, 31 / 7),
        (41, False, 1 / 2),
        (40, True, 1 / 7),
    ):
        page = await search.find(me, "word", found)
        rate = await search.rate(
            replace(page, next=None) if is_all else page, two_days_later
        )
        assert rate is not None
        assert rate.per_day == expected
