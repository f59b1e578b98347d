"""Feeds that somebody edits between the beginning of a fetch and its commit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from hub.core.fetched import Fetched
from hub.ingest.committer import StaleTarget
from hub.ingest.fetch_pipeline import MOST_DECISIONS, CommittedFetch
from hub.ingest.fetcher import FetchRequest
from storage.records import (
    Credentials,
    FeedChange,
    FeedState,
    PollReason,
    StoredFeed,
    Validators,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher, LineParser
from tests.support.fetch_pipelines import a_pipeline
from tests.support.fetch_targets import an_answer
from tests.support.storage_scene import START, Scene

Edit = Callable[[], Awaitable[object]]


class EditedFeed:
    """A feed, a visit to it, and what happens during its first fetches."""

    def __init__(self, scene: Scene, feed: StoredFeed) -> None:
        self.scene = scene
        self.feed = feed
        self.clock = ManualClock()
        self.fetcher = FakeFetcher(self.clock, answers=self._answer)
        storage = scene.storage
        self._pipeline = a_pipeline(
            storage.feeds, storage.log, self.fetcher, LineParser(), self.clock
        )
        self.edits: list[Edit] = []

    async def _answer(self, request: FetchRequest) -> Fetched | None:
        if self.edits:
            await self.edits.pop(0)()
        return an_answer(200, b"a b", url=request.url, etag=f'"{request.url}"')

    async def visit(self) -> CommittedFetch:
        (target,) = await self.scene.storage.feeds.targets([self.feed.id])
        return await self._pipeline.run(target, PollReason.PLANNED)

    def edit(self, **changes: object) -> Edit:
        change = FeedChange(**changes)  # type: ignore[arg-type]
        feeds = self.scene.storage.feeds
        return lambda: feeds.edit(self.feed.id, change, "", START)

    async def stored(self) -> StoredFeed:
        found = await self.scene.storage.feeds.get(self.feed.id)
        assert found is not None
        return found


@pytest.fixture
async def edited(tmp_path: Path) -> AsyncIterator[EditedFeed]:
    storage = await open_chosen(tmp_path / "hub.db")
    try:
        scene = Scene(storage)
        yield EditedFeed(scene, await scene.add_feed())
    finally:
        await storage.close()


async def test_one_that_moves_keeps_nothing_of_what_its_former_url_answered(
    edited: EditedFeed,
) -> None:
    moved = "https://moved.example/feed"
    edited.edits = [edited.edit(url=moved)]

    await edited.visit()

    assert edited.fetcher.urls == [edited.feed.url, moved]
    stored = await edited.stored()
    assert stored.url == moved
    assert stored.polling.validators == Validators(url=moved, etag=f'"{moved}"')


async def test_new_credentials_are_asked_with_at_once(edited: EditedFeed) -> None:
    edited.edits = [edited.edit(credentials=Credentials(username="u"))]

    await edited.visit()

    sent = [request.credentials for request in edited.fetcher.requests]
    assert sent == [None, Credentials(username="u")]


async def test_what_is_no_matter_of_the_fetch_has_it_decided_anew_only(
    edited: EditedFeed,
) -> None:
    edited.edits = [edited.edit(own_period=7_200.0)]

    visit = await edited.visit()

    assert len(edited.fetcher.requests) == 1
    stored = await edited.stored()
    assert stored.polling.period == visit.commit.polling.period == 7_200.0
    entries = await edited.scene.storage.log.latest_entries(edited.feed.id, 9)
    assert [each.revision for each in entries] == [1, 1]


async def test_one_that_is_paused_meanwhile_stays_paused(edited: EditedFeed) -> None:
    feeds = edited.scene.storage.feeds
    edited.edits = [lambda: feeds.set_state(edited.feed.id, FeedState.PAUSED, START)]

    await edited.visit()

    stored = await edited.stored()
    assert (stored.state, stored.polling.code) == (FeedState.PAUSED, 200)


async def test_one_that_is_removed_meanwhile_takes_nothing(edited: EditedFeed) -> None:
    feeds = edited.scene.storage.feeds
    edited.edits = [lambda: feeds.set_state(edited.feed.id, FeedState.REMOVED, START)]

    await edited.visit()

    assert (await edited.stored()).polling == edited.feed.polling


async def test_one_that_moves_again_and_again_is_left_for_later(
    edited: EditedFeed,
) -> None:
    urls = [f"https://{number}.example/feed" for number in range(MOST_DECISIONS)]
    edited.edits = [edited.edit(url=each) for each in urls]

    with pytest.raises(StaleTarget):
        await edited.visit()

    assert edited.fetcher.urls == [edited.feed.url, *urls[:-1]]
    stored = await edited.stored()
    assert (stored.url, stored.polling) == (urls[-1], edited.feed.polling)
