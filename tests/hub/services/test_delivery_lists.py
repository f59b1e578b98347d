"""Lists of deliveries: what callbacks lack, what failed, what was accepted at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from hub.services import DeliveryListService
from hub.services.delivery_lists import FirstTries
from storage.records import (
    AttemptFilter,
    NewDeadLetter,
    Subscription,
    SubscriptionId,
    UndeliveredFilter,
    UndeliveredOutcome,
)
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import LEASE, START, Scene

EVERY = AttemptFilter()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
def scene(hub: Hub) -> Scene:
    return Scene(hub.storage)


@pytest.fixture
def lists(hub: Hub) -> DeliveryListService:
    return hub.services.delivery_lists


async def give_up(scene: Scene, name: str = "lost") -> Subscription:
    """A subscription that was sent the record at the log's end in vain."""
    late = await scene.subscribe_retrying(await scene.add_feed(name), name)
    end = (await scene.storage.log.end()).position
    await scene.claim_retrying(START + timedelta(minutes=1))
    dead = NewDeadLetter(
        subscription_id=late.id,
        lease_id=LEASE,
        first=end,
        last=end,
        reason="answered 500 (after 11 tries)",
        at=START,
    )
    await scene.flush(given_up=(dead,))
    return late


@pytest.mark.parametrize(
    ("outcome", "has_retrying", "has_dead_letters"),
    [
        (None, True, True),
        (UndeliveredOutcome.RETRIED, True, False),
        (UndeliveredOutcome.GIVEN_UP, False, True),
    ],
)
async def test_what_callbacks_lack_is_retried_or_given_up(
    scene: Scene,
    lists: DeliveryListService,
    outcome: UndeliveredOutcome | None,
    has_retrying: bool,
    has_dead_letters: bool,
) -> None:
    lost = await give_up(scene)
    late = await scene.subscribe_retrying(await scene.add_feed())

    found = await lists.undelivered(UndeliveredFilter(outcome=outcome), limit=9)
    retrying = [each.subscription.id for each in found.retrying]
    assert retrying == ([late.id] if has_retrying else [])
    dead_letters = [each.subscription_id for each in found.dead_letters]
    assert dead_letters == ([lost.id] if has_dead_letters else [])
    assert [each.entries for each in found.lost.values()] == [1] * has_dead_letters


async def test_what_callbacks_lack_goes_on_behind_the_last_that_was_listed(
    scene: Scene, lists: DeliveryListService
) -> None:
    await give_up(scene)
    late = await scene.subscribe_retrying(await scene.add_feed())
    [dead] = (await lists.undelivered(UndeliveredFilter(), limit=1)).dead_letters

    rest = await lists.undelivered(
        UndeliveredFilter(),
        retrying_after=late.id,
        dead_letters_after=dead.id,
        limit=1,
    )
    assert (rest.retrying, rest.dead_letters) == ((), ())


@pytest.mark.parametrize(
    ("most_counted", "total", "has_more"), [(1, 1, True), (2, 2, False)]
)
async def test_failed_requests_are_counted_so_far_and_come_by_page(
    scene: Scene,
    lists: DeliveryListService,
    most_counted: int,
    total: int,
    has_more: bool,
) -> None:
    for name in "ab":
        await scene.subscribe_retrying(await scene.add_feed(name), name)

    first = await lists.failed(EVERY, before=None, limit=1, most_counted=most_counted)
    assert (first.total, first.has_more) == (total, has_more)
    assert first.next == (START, first.requests[0].attempt.id)
    second = await lists.failed(EVERY, before=first.next, limit=2, most_counted=9)
    assert len(second.requests) == 1
    assert second.next is None


async def test_what_was_accepted_at_once_comes_by_page(
    scene: Scene, lists: DeliveryListService
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    for key in "ab":
        await scene.publish(feed, key)
        await scene.deliver()

    first = await lists.sent(EVERY, before=None, limit=1)
    assert [each.feed and each.feed.id for each in first.sent] == [feed.id]
    assert first.next == first.sent[0].chunk.id
    second = await lists.sent(EVERY, before=first.next, limit=2)
    assert len(second.sent) == 1
    assert second.next is None


@pytest.mark.parametrize(
    ("wanted", "is_known"),
    [
        (AttemptFilter(topic="https://other.example/feed"), True),
        (AttemptFilter(host="you.example"), False),
        (AttemptFilter(statuses=(200, 299)), False),
        (AttemptFilter(subscription_id=SubscriptionId(1)), False),
    ],
)
async def test_first_tries_are_found_by_topic_and_time_alone(
    scene: Scene, lists: DeliveryListService, wanted: AttemptFilter, is_known: bool
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed, "a")
    await scene.deliver()

    found = await lists.sent(wanted, before=None, limit=9)
    assert found == FirstTries(is_known=is_known)
