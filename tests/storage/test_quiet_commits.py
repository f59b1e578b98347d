from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields, replace

from storage.records import FeedId, FetchCommit, Polling
from tests.support.storage_scene import START

NOTHING_NEW = FetchCommit(
    feed_id=FeedId(1), at=START, next_fetch=START, polling=Polling(period=60.0)
)
CHANGES = [each.name for each in fields(FetchCommit)][4:]
for each in ("version", "former", "poll"):  # each fetch has them
    CHANGES.remove(each)


def test_a_fetch_that_found_nothing_is_quiet() -> None:
    assert NOTHING_NEW.is_quiet


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("value", ["", "more"])
def test_one_that_changes_anything_else_is_not(change: str, value: Any) -> None:
    assert not replace(NOTHING_NEW, **{change: value}).is_quiet
