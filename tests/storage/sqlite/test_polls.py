from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from storage.records import Poll, PollOutcome, PollReason
from storage.sqlite.polls import APPENDED, pack_poll, unpack_polls
from tests.support.new_database import open_new
from tests.support.storage_scene import Scene, fetch

AT = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=123)


def a_poll(**more: object) -> Poll:
    polled = {
        "at": AT,
        "reason": PollReason.PLANNED,
        "outcome": PollOutcome.NEW,
        "code": 200,
        "milliseconds": 250,
        "entries": 7,
    }
    return Poll(**{**polled, **more})


@pytest.mark.parametrize(
    ("outcome", "reason"), [*product(PollOutcome, PollReason)], ids=str
)
def test_a_poll_is_the_same_after_it_was_packed(
    outcome: PollOutcome, reason: PollReason
) -> None:
    poll = a_poll(outcome=outcome, reason=reason)

    assert unpack_polls(pack_poll(poll)) == [poll]


def test_what_is_more_than_a_record_holds_is_the_most_that_it_holds() -> None:
    poll = a_poll(code=599, milliseconds=10**9, entries=10**6)

    (kept,) = unpack_polls(pack_poll(poll))

    assert (kept.code, kept.milliseconds, kept.entries) == (599, 2**24 - 1, 65_535)


@pytest.mark.parametrize(
    ("seconds", "least", "most"), [(3_600, 64, 64), (600, 144, 200), (1, 1_440, 1_440)]
)
async def test_the_history_of_a_feed_that_is_polled_seldom_takes_a_kilobyte(
    tmp_path: Path, seconds: int, least: int, most: int
) -> None:
    """By the database's own means, without the cost of a commit for each poll."""
    storage = await open_new(tmp_path / "hub.db")
    try:
        await Scene(storage).add_feed()
    finally:
        await storage.close()
    with closing(sqlite3.connect(tmp_path / "hub.db")) as connection:
        for number in range(1_600):
            poll = pack_poll(a_poll(at=AT + timedelta(seconds=seconds * number)))
            connection.execute(
                f"UPDATE feed_hot SET recent_polls = {APPENDED.format('?')}",  # noqa: S608
                (poll,),
            )
        recent, earlier = connection.execute(
            "SELECT length(recent_polls) / 14, length(polls) / 14"
            " FROM feed_hot JOIN earlier_polls USING (feed_id)"
        ).fetchone()

    assert recent == 8
    assert least <= earlier <= most


async def test_fetches_of_a_feed_that_are_written_together_are_all_kept(
    tmp_path: Path,
) -> None:
    storage = await open_new(tmp_path / "hub.db")
    try:
        feed = await Scene(storage).add_feed()
        polls = [a_poll(entries=number) for number in range(30)]
        await asyncio.gather(
            *(storage.log.commit(fetch(feed, poll=each)) for each in polls)
        )
        assert await storage.feeds.polls(feed.id) == polls[::-1]
    finally:
        await storage.close()
