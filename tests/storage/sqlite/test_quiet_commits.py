from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields, replace

from storage.records import FeedId, FetchCommit, Polling
from storage.sqlite.fetch_commits import is_quiet
from tests.support.storage_scene import START

NOTHING_NEW = FetchCommit(
    feed_id=FeedId(1), at=START, next_fetch=START, polling=Polling(period=60.0)
)
CHANGES = [each.name for each in fields(FetchCommit)][4:]
CHANGES.remove("poll")  # each fetch has one


def test_a_fetch_that_found_nothing_is_quiet() -> None:
    assert is_quiet(NOTHING_NEW)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("value", ["", "more"])
def test_one_that_changes_anything_else_is_not(change: str, value: Any) -> None:
    assert not is_quiet(replace(NOTHING_NEW, **{change: value}))
