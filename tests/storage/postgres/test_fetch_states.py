"""What a fetch writes of a feed is numbers, and the schedule an index that a crash of
the server empties."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from storage.contract import Storage
from storage.postgres import open_database
from storage.postgres.connections import MOST_CONNECTIONS
from storage.postgres.schema import scripts
from storage.records import (
    UNKNOWN_PACE,
    FeedId,
    FeedState,
    FetchCommit,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
    Stored,
    kept_polls,
    pace_of,
)
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.polling_state import encode_hot
from storage.sqlite.polls import pack_poll
from tests.support.postgres_server import shared_server
from tests.support.storage_scene import MINUTE, START, Scene
from tests.support.waiting import eventually

FIRST = FeedId(1)
HOUR = timedelta(hours=1)
FETCHED = START + timedelta(microseconds=123_456)
STATES = (
    Polling(last_fetch=FETCHED, last_success=FETCHED, last_parse=FETCHED, period=0.1),
    Polling(last_fetch=FETCHED, fresh_until=FETCHED + timedelta(seconds=90)),
    Polling(last_fetch=FETCHED, fresh_until=FETCHED + timedelta(seconds=0.5)),
    Polling(last_fetch=FETCHED, last_success=START, failures=3, error='"\n'),
    Polling(last_parse=FETCHED, price=1e-7, velocity=1e300, unchanged=2**31 - 1),
)
POLLED = Polling(last_fetch=FETCHED, last_success=FETCHED, last_parse=FETCHED)


@pytest.fixture
def location() -> Iterator[str]:
    with shared_server().database() as url:
        yield url


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "hub.key"


def execute(location: str, *statements: str) -> list[Any]:
    with psycopg.connect(location, autocommit=True) as connection:
        for each in statements:
            found = connection.execute(each)
        return found.fetchall() if found.description else []


def poll(number: int) -> Poll:
    return Poll(
        at=START + timedelta(hours=number),
        reason=PollReason.PLANNED,
        outcome=PollOutcome.UNCHANGED,
        code=304,
        milliseconds=number,
    )


async def fetch(storage: Storage, number: int = 0, **more: Any) -> None:
    """One of the first feed, that finds nothing."""
    (target,) = await storage.feeds.targets([FIRST])
    found = FetchCommit(
        feed_id=FIRST,
        version=target.version,
        at=START,
        next_fetch=START + timedelta(hours=number + 1),
        polling=target.feed.polling,
        former=target.feed.polling,
        poll=poll(number),
    )
    assert isinstance(await storage.log.commit(replace(found, **more)), Stored)


@asynccontextmanager
async def opened(location: str, key: Path) -> AsyncIterator[Storage]:
    storage = await open_database(location, key)
    try:
        yield storage
    finally:
        await storage.close()


async def test_a_polling_state_is_what_was_committed(location: str, key: Path) -> None:
    async with opened(location, key) as storage:
        await Scene(storage).add_feed()
        for state in STATES:
            await fetch(storage, polling=state)
            found = await storage.feeds.get(FIRST)
            assert found is not None
            assert found.polling == state


async def test_of_earlier_polls_those_of_a_day_are_kept_and_else_the_last_64(
    location: str, key: Path
) -> None:
    moments = [
        *(number * HOUR for number in range(160)),
        *(160 * HOUR + number * MINUTE for number in range(1_600)),
        *(200 * HOUR + number * HOUR for number in range(96)),
    ]
    polls = [replace(poll(0), at=START + moment) for moment in moments]
    async with opened(location, key) as storage:
        await Scene(storage).add_feed()
        with psycopg.connect(location, autocommit=True) as connection:
            for end in range(8, len(polls) + 1, 8):
                latest = b"".join(map(pack_poll, polls[end - 8 : end][::-1]))
                connection.execute("SELECT keep_polls('{1}', %s)", ([latest],))
                if end % 400 == 0 or end == len(polls):
                    kept = kept_polls(polls[:end][::-1])
                    assert await storage.feeds.polls(FIRST) == kept
            ((rows, slots),) = connection.execute(
                "SELECT count(*), max(slot) FROM earlier_polls"
            ).fetchall()
    assert (rows, slots < 200) == (8, True)


async def test_an_unchanged_outcome_is_not_written_again(
    location: str, key: Path
) -> None:
    async with opened(location, key) as storage:
        await Scene(storage).add_feed()
        outcome = "SELECT xmin FROM feed_outcomes"
        await fetch(storage, polling=POLLED)
        before = execute(location, outcome)
        await fetch(storage, polling=replace(POLLED, unchanged=2, period=7.0))
        assert execute(location, outcome) == before
        await fetch(storage, polling=replace(POLLED, code=500))
        assert execute(location, outcome) != before


@pytest.mark.parametrize("asked", ["due", "next_due", "spread"])
async def test_a_schedule_that_a_crash_has_emptied_is_filled_again(
    location: str, key: Path, asked: str
) -> None:
    async with opened(location, key) as storage:
        scene = Scene(storage)
        await scene.add_feed()
        paused = await scene.add_feed("b")
        await fetch(storage, polling=replace(POLLED, period=64.0))
        await storage.feeds.set_state(paused.id, FeedState.PAUSED, START)
        execute(location, "TRUNCATE schedule")
        added = await scene.add_feed("c")
        later = START + timedelta(days=1)

        if asked == "next_due":
            assert await storage.feeds.next_due() == START
        elif asked == "spread":
            spread = storage.feeds.spread
            assert await spread(later, longest=timedelta(0), per_second=1.0) == 1
        due = await storage.feeds.due(later, after={}, limit=9)
        paces = {each.id: each.pace for each in due}
        assert paces == {FIRST: pace_of(64.0), added.id: UNKNOWN_PACE}


async def test_an_upgrade_keeps_polling_states_polls_and_schedules(
    location: str, key: Path
) -> None:
    polls = [poll(number) for number in range(30)]
    packed = b"".join(map(pack_poll, polls))
    execute(
        location,
        *(each.text for each in scripts() if each.version < 69),
        "CREATE TABLE fanfare_schema (version bigint, functions text)",
        "INSERT INTO fanfare_schema VALUES (68, '')",
    )
    with psycopg.connect(location, autocommit=True) as connection:
        for state in (*STATES, Polling()):
            ((feed_id,),) = connection.execute(
                "INSERT INTO feeds (url, state, private, category, title, format,"
                " created_at, fetch_url, credentials, credentials_hash, resource_hash,"
                " page_hash, version) VALUES ('https://a.example/', 'active', FALSE,"
                " '', '', '', 0, '', '', '', '', '', 5) RETURNING id"
            ).fetchall()
            hot = b"" if state == Polling() else encode_hot(state)
            connection.execute(
                "INSERT INTO feed_hot VALUES (%s, %s, %s)",
                (feed_id, hot, packed[-6 * 14 :]),
            )
            connection.execute(
                "INSERT INTO earlier_polls VALUES (%s, %s)", (feed_id, packed[:-84])
            )
            connection.execute(
                "INSERT INTO schedule VALUES (%s, %s, TRUE, 3)",
                (feed_id, to_milliseconds(FETCHED)),
            )
            connection.execute("INSERT INTO feed_audience VALUES (%s)", (feed_id,))

    async with opened(location, key) as storage:
        ids = [FeedId(number) for number in range(1, len(STATES) + 2)]
        found = await storage.feeds.targets(ids)
        assert [each.feed.polling for each in found] == [*STATES, Polling()]
        assert {each.version for each in found} == {5}
        assert await storage.feeds.polls(ids[-1]) == polls[::-1]
        due = await storage.feeds.due(START + timedelta(days=9), after={}, limit=9)
        assert [(each.id, each.pace) for each in due] == [(each, 3) for each in ids]
        await fetch(storage, 30, version=5)
        assert await storage.feeds.polls(FIRST) == [poll(30), *polls[::-1]]


async def test_a_process_has_ten_connections_at_most(location: str, key: Path) -> None:
    count = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend'"
    )
    others = 2  # who holds the lock, and who counts
    async with opened(location, key) as storage:
        await Scene(storage).add_feed()
        with psycopg.connect(location) as held:
            held.execute("LOCK TABLE schedule, feeds")
            async with asyncio.TaskGroup() as group:
                for _ in range(20):
                    group.create_task(storage.feeds.next_due())
                    group.create_task(storage.feeds.defer([(FIRST, START)]))
                await eventually(
                    lambda: execute(location, count) == [(MOST_CONNECTIONS + others,)]
                )
                held.rollback()
            assert execute(location, count) == [(MOST_CONNECTIONS + others,)]
