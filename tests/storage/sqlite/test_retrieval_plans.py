"""What retrieval and search cost: each step goes by an index, in the index's order.

Only the rows of a page are ever sorted, when it is put together.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest

from storage.records import ANONYMOUS, EntryId, EntryPlace, FeedId, Phrase
from storage.sqlite.schema import run_pending
from storage.sqlite.search import select_matches
from storage.sqlite.stored_entries import select_newest
from storage.sqlite.tracking import MATCHES
from tests.support.storage_scene import START

FEEDS = [FeedId(1), FeedId(2)]
PLACE = EntryPlace(START, EntryId(5))


@dataclass(frozen=True)
class Step:
    within: int
    text: str


def plan(statement: tuple[str, dict[str, object]]) -> list[Step]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        sql, parameters = statement
        rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        return [Step(within, text) for _, within, _, text in rows.fetchall()]


def is_sorted(steps: list[Step], step: Step) -> bool:
    """Whether what a step finds is put in order after it."""
    return any(
        each.within == step.within and "TEMP B-TREE" in each.text for each in steps
    )


@pytest.mark.parametrize("before", [None, PLACE], ids=["from the first", "before"])
@pytest.mark.parametrize("after", [None, PLACE], ids=["to the last", "after"])
def test_a_page_of_entries_is_read_from_the_index_in_its_order(
    before: EntryPlace | None, after: EntryPlace | None
) -> None:
    steps = plan(select_newest(FEEDS, 10, before, after))

    (page,) = [step for step in steps if "entries_latest" in step.text]
    assert page.text.startswith("SEARCH entries USING INDEX")
    assert ("sorted_at" in page.text) is bool(before or after)
    assert not is_sorted(steps, page)
    scanned = [step.text.split()[1] for step in steps if step.text.startswith("SCAN")]
    assert scanned == ["f", "chosen"]


def test_entries_that_queries_found_are_looked_up_one_by_one() -> None:
    steps = plan(select_newest(FEEDS, 10, PLACE, None, [EntryId(3)]))

    found = [step.text for step in steps if "entries USING INTEGER" in step.text]
    assert found == ["SEARCH entries USING INTEGER PRIMARY KEY (rowid=?)"]
    (page,) = [step for step in steps if "entries_latest" in step.text]
    assert not is_sorted(steps, page)


def test_the_last_records_of_a_query_are_read_from_the_index() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {MATCHES}", ("[1]", 5))
        told = [text for *_, text in rows.fetchall()]

    assert [each for each in told if each.startswith("SCAN")] == [
        "SCAN q VIRTUAL TABLE INDEX 1:"
    ]
    assert any("records_by_feed" in each for each in told)


@pytest.mark.parametrize("below", [None, 7])
def test_matches_are_taken_from_the_index_of_words_in_its_order(
    below: int | None,
) -> None:
    steps = plan(select_matches(Phrase(("word",)), ANONYMOUS, 10, below))

    (first,) = [step for step in steps if step.text.startswith("SCAN search")]
    assert "VIRTUAL TABLE INDEX" in first.text
    assert not is_sorted(steps, first)
    scanned = [step.text.split()[1] for step in steps if step.text.startswith("SCAN")]
    assert scanned == ["search", "found"]
    assert any("subscriptions_by_holder" in step.text for step in steps)
