"""Lists of feeds: by filter or URL, and what a list shows of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.services import SelectedFeedService
from storage.records import (
    FeedFilter,
    FeedHealth,
    FeedSort,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
    StoredFeed,
)
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import START, Scene, fetch, stored_at

FAILED = Poll(
    at=START,
    reason=PollReason.PLANNED,
    outcome=PollOutcome.FAILED,
    code=503,
    milliseconds=9,
)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
def scene(hub: Hub) -> Scene:
    return Scene(hub.storage)


@pytest.fixture
def selected(hub: Hub) -> SelectedFeedService:
    return hub.services.selected_feeds


async def fail(hub: Hub, feed: StoredFeed, error: str) -> None:
    """Store a poll that failed; ``error`` "": the feed has recovered since."""
    commit = fetch(
        feed,
        poll=FAILED,
        polling=Polling(error=error),
        condition=FeedHealth.FAILING if error else FeedHealth.OK,
    )
    await stored_at(hub.storage.log.commit(commit))


async def test_a_page_has_so_many_feeds_and_says_how_many_there_are(
    scene: Scene, selected: SelectedFeedService
) -> None:
    feeds = [await scene.add_feed(name) for name in "abc"]

    first = await selected.page(FeedFilter(), FeedSort.ID, after=None, limit=2)
    assert [each.feed.id for each in first.feeds] == [each.id for each in feeds[:2]]
    assert first.total == 3
    rest = await selected.page(FeedFilter(), FeedSort.ID, after=first.next, limit=2)
    assert [each.feed.id for each in rest.feeds] == [feeds[2].id]
    assert rest.next is None


@pytest.mark.parametrize(
    ("url", "is_found"),
    [("HTTPS://A.example:443/feed", True), ("https://b.example/feed", False)],
)
async def test_a_feed_is_found_by_its_url_in_whatever_spelling(
    scene: Scene, selected: SelectedFeedService, url: str, is_found: bool
) -> None:
    feed = await scene.add_feed()

    page = await selected.of_url(url)
    assert [each.feed.id for each in page.feeds] == ([feed.id] if is_found else [])
    assert (page.total, page.next) == (int(is_found), None)


@pytest.mark.parametrize(("error", "shown"), [("", FAILED), ("answered 503", None)])
async def test_a_row_tells_the_last_failure_only_of_a_feed_that_is_well(
    hub: Hub,
    scene: Scene,
    selected: SelectedFeedService,
    error: str,
    shown: Poll | None,
) -> None:
    await fail(hub, await scene.add_feed(), error)

    page = await selected.page(FeedFilter(), FeedSort.ID, after=None, limit=9)
    [row] = await selected.activities(page.feeds)
    assert [each.last_failure for each in page.feeds] == [FAILED]
    assert row.last_failure == shown


async def test_rows_are_in_the_order_of_the_list_and_count_subscribers(
    scene: Scene, selected: SelectedFeedService
) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    for name in "xy":
        await scene.subscribe(feeds[1], name)

    page = await selected.page(FeedFilter(), FeedSort.LAST_ID, after=None, limit=9)
    rows = await selected.activities(page.feeds)
    assert [(each.feed.id, each.subscribers) for each in rows] == [
        (feeds[1].id, 2),
        (feeds[0].id, 0),
    ]
