"""Lists of subscriptions: by filter, of a feed, of track queries, and by condition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.services import SelectedSubscriptionService
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    ListingSearch,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionSort,
)
from tests.support.services import PUBLIC_URL, Hub, open_hub
from tests.support.storage_scene import Scene

QUERY = f"{PUBLIC_URL}/track?query=laurel+hardy"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
def scene(hub: Hub) -> Scene:
    return Scene(hub.storage)


@pytest.fixture
def selected(hub: Hub) -> SelectedSubscriptionService:
    return hub.services.selected_subscriptions


async def test_a_list_shows_whose_each_is_and_how_far_those_are_behind_that_fail(
    scene: Scene, selected: SelectedSubscriptionService
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    well = await scene.subscribe(feed, "well", account=OPERATOR)

    page = await selected.page(
        SubscriptionFilter(), SubscriptionSort.ID, after=None, limit=9
    )
    rows = await selected.activities(page.subscriptions)
    assert page.total == 2
    assert [(each.subscription.id, each.account) for each in rows] == [
        (late.id, "anonymous"),
        (well.id, "operator"),
    ]
    assert [each.lag and each.lag.records for each in rows] == [1, None]


async def test_the_subscribers_of_a_feed_are_listed_uncounted(
    scene: Scene, selected: SelectedSubscriptionService
) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    ids = [(await scene.subscribe(feed, n)).id for feed in feeds for n in "xyz"]

    page = await selected.of_feed(feeds[1].id, 2)
    assert [each.subscription.id for each in page.subscriptions] == ids[3:5]
    assert page.total is None
    assert page.next is not None


async def test_the_conditions_are_those_of_subscriptions_that_exist(
    scene: Scene, selected: SelectedSubscriptionService
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())

    found = await selected.conditions([late.id, SubscriptionId(99)])
    assert {id: each.health for id, each in found.items()} == {
        late.id: SubscriptionHealth.FAILING
    }
    assert await selected.conditions([]) == {}


@pytest.mark.parametrize(
    ("account", "expected"),
    [(ANONYMOUS, ["laurel hardy"]), (OPERATOR, ["laurel"]), (None, None)],
)
async def test_track_queries_are_told_from_topics_that_have_a_name_like_it(
    scene: Scene,
    selected: SelectedSubscriptionService,
    account: AccountId | None,
    expected: list[str] | None,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, topic=QUERY)
    await scene.subscribe(feed, topic="https://a.example/soundtrack")
    own = f"{PUBLIC_URL}/track?query=laurel"
    await scene.subscribe(feed, topic=own, account=OPERATOR)

    page = await selected.tracked(account, after=None, limit=9)
    queries = [each.query for each in page.queries]
    assert queries == (expected or ["laurel hardy", "laurel"])
    assert page.next is None


async def test_a_query_that_can_no_longer_be_read_is_listed_as_its_topic(
    scene: Scene, selected: SelectedSubscriptionService
) -> None:
    unreadable = f"{PUBLIC_URL}/track?query=("
    await scene.subscribe(await scene.add_feed(), topic=unreadable)

    page = await selected.tracked(ANONYMOUS, after=None, limit=9)
    assert [each.query for each in page.queries] == [unreadable]


@pytest.mark.parametrize(("page", "names"), [(1, ["x", "y"]), (2, ["z"]), (3, [])])
async def test_pages_of_superfeedrs_list_are_counted_from_one(
    scene: Scene,
    selected: SelectedSubscriptionService,
    page: int,
    names: list[str],
) -> None:
    feed = await scene.add_feed()
    for name in "xyz":
        await scene.subscribe(feed, name, account=OPERATOR)

    found = await selected.listing(
        OPERATOR, ListingSearch(), page=page, by_page=2, has_total=True
    )
    callbacks = [each.subscription.callback for each in found.items]
    assert callbacks == [f"https://subscriber.example/{name}" for name in names]
    assert found.total == 3
