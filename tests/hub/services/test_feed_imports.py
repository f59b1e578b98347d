"""Lists that are imported while something else is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from hub.services.feed_imports import FeedImportService, ImportState
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import AddFeed, ImportedFeed, ImportOutcome
from hub.services.planned_actions import FAULT
from storage.errors import WriteFailed
from storage.records import OPERATOR, Account
from tests.support.clock import ManualClock
from tests.support.waiting import eventually, in_background

DOCUMENT = b"""
<opml version="2.0"><body><outline text="A" xmlUrl="https://a.example/"/></body></opml>
"""


class FailingFeeds:
    """They fail once, and then there are none that are known."""

    def __init__(self, error: Exception) -> None:
        self._errors = [error]

    async def add_all(
        self, requests: Sequence[AddFeed], *, is_dry: bool, keeps_known: bool
    ) -> list[ImportedFeed]:
        if self._errors:
            raise self._errors.pop()
        outcome = ImportOutcome.ADDABLE if is_dry else ImportOutcome.ADDED
        return [ImportedFeed(url=each.url, outcome=outcome) for each in requests]


@pytest.mark.parametrize(
    ("error", "state", "notes"),
    [
        (WriteFailed("the disk is full"), ImportState.CHECKED, ()),
        (RuntimeError("a fault"), ImportState.STOPPED, (FAULT,)),
    ],
)
async def test_what_storage_refuses_is_tried_again_and_a_fault_stops_the_import(
    error: Exception, state: ImportState, notes: tuple[str, ...]
) -> None:
    feeds = cast("FeedService", FailingFeeds(error))
    service = FeedImportService(feeds, ManualClock(), retry_seconds=0.001)
    account = Account(id=OPERATOR, name="operator")
    made = await service.make(account, DOCUMENT, category="", private=False)

    async def is_idle() -> bool:
        return not made.is_at_work

    async with in_background(service.run):
        await eventually(is_idle)

    assert (made.state, made.notes) == (state, notes)
