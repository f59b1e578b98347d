"""How much a commit takes in a call, by which so many go into one."""

from __future__ import annotations

import pytest

from storage.postgres.fetch_commits import RowTypes, pack_call, pack_news
from storage.records import FeedId, FetchCommit, Polling
from storage.sqlite.fetch_commits import encode_values
from tests.support.documents import an_entry
from tests.support.storage_scene import START, record

KEYS = [f"entry {number}" for number in range(99)]
MOST_OF_A_PLACE = 24
"""Bytes that a row takes beside its own; an array takes 20."""


@pytest.mark.parametrize(
    ("stored", "records"), [(KEYS, 1), ([], 1), ([], 99), (KEYS, 0)]
)
def test_the_size_of_a_commit_is_that_of_all_its_rows(
    stored: list[str], records: int
) -> None:
    fetch = FetchCommit(
        feed_id=FeedId(1),
        at=START,
        next_fetch=START,
        polling=Polling(code=200),
        entries=tuple(an_entry(key) for key in stored),
        records=(record(*KEYS),) * records,
    )
    packed = pack_news(fetch, encode_values(fetch))

    *arrays, _ = pack_call(RowTypes(1, 2, 3), [packed])

    rows = 1 + len(packed.entries) + len(packed.named) + len(packed.records)
    whole = sum(map(len, arrays))
    assert 0 <= whole - packed.size <= MOST_OF_A_PLACE * rows + 20 * len(arrays)
