"""The list of all pages is read along indexes, and its counts are true."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from hub.publishing.page_visibility import PageUpdater
from storage.contract import Storage
from storage.sqlite.publishing import CHANGES, LAST_BEFORE, PAGE
from storage.sqlite.schema import run_pending
from storage.sqlite.shown_pages import SHIFTS
from tests.support.clock import ManualClock
from tests.support.new_database import open_new
from tests.support.public_feeds import PublicFeeds, publish_far_apart
from tests.support.storage_scene import START


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    storage = await open_new(tmp_path / "hub.db")
    yield storage
    await storage.close()


@pytest.fixture
def keeper(storage: Storage) -> PageUpdater:
    return PageUpdater(storage.pages, ManualClock(START), "https://hub.example")


async def test_the_counts_are_those_of_the_pages(
    storage: Storage, keeper: PageUpdater, tmp_path: Path
) -> None:
    await publish_far_apart(storage, keeper)
    feeds = PublicFeeds(storage)
    feed = (await storage.feeds.page(after=0, limit=1))[0]  # type: ignore[arg-type]
    await feeds.withdraw(feed, "0-0", "6-1")
    await keeper.catch_up()
    connection = sqlite3.connect(tmp_path / "hub.db")
    for level, shift in enumerate(SHIFTS):
        counted = connection.execute(
            "SELECT bucket, pages FROM page_counts WHERE level = ? AND pages <> 0"
            " ORDER BY bucket",
            (level,),
        ).fetchall()
        real = connection.execute(
            "SELECT dated >> ?, count(*) FROM pages WHERE entry_id > 0"
            " GROUP BY 1 ORDER BY 1",
            (shift,),
        ).fetchall()
        assert counted == real
    connection.close()


def plan(sql: str, parameters: Mapping[str, object] | Sequence[object]) -> list[str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        return [row[3] for row in rows]


def test_a_part_of_the_list_is_read_from_indexes_in_their_order() -> None:
    steps = plan(PAGE, {"skip": 5, "limit": 10})
    assert "SEARCH pages USING INDEX pages_by_date (dated<?)" in steps
    assert "SEARCH p USING INTEGER PRIMARY KEY (rowid=?)" in steps
    counts = [step for step in steps if " c " in step]
    assert len(counts) == len(SHIFTS)
    for step in counts:
        assert step.startswith("SEARCH c USING PRIMARY KEY (level=?")
    scanned = {step.split()[1] for step in steps if step.startswith("SCAN")}
    of_few = {"f", "places", *(f"level{n}" for n in range(4))}
    assert {each for each in scanned if not each.startswith("(subquery")} <= of_few


def test_changes_are_read_from_indexes_in_their_order() -> None:
    steps = plan(CHANGES, {"after": 5, "through": 99, "limit": 10})
    assert steps[0] == "SEARCH p USING INDEX pages_by_change (change>? AND change<?)"
    assert not any("TEMP B-TREE" in step for step in steps)
    (step,) = plan(LAST_BEFORE, (5,))
    assert step == "SEARCH pages USING COVERING INDEX pages_by_time (changed_at<?)"
