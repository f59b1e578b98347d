"""What a feed has left in the log, the same on the engine and on the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from storage.contract import LogStore
from storage.records import FeedId, FeedState, FeedTrail, Position, RecordKind
from tests.support.live_hub import START, LiveHub, live_hub

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        yield hub


async def trail(hub: LiveHub, through: int) -> tuple[int, int]:
    log: LogStore = hub.hub.storage.log
    (found,) = await log.trails([(hub.feeds[NEWS], Position(through))])
    assert isinstance(found, FeedTrail)
    return found.last, found.trimmed


async def test_it_ends_with_the_last_record_up_to_a_position(hub: LiveHub) -> None:
    assert await trail(hub, 9) == (0, 0)
    await hub.publish(NEWS, "known", kind=RecordKind.BASELINE)
    assert await trail(hub, 9) == (0, 0)
    await hub.publish(NEWS, "two")
    await hub.publish(OTHER, "three")
    await hub.publish(NEWS, "four")
    assert await trail(hub, 1) == (0, 0)
    assert await trail(hub, 3) == (2, 0)
    assert await trail(hub, 9) == (4, 0)


async def test_many_are_told_in_the_order_asked_for(hub: LiveHub) -> None:
    for topic in (NEWS, OTHER, NEWS):
        await hub.publish(topic, topic)
    news, other = hub.feeds[NEWS], hub.feeds[OTHER]
    asked = [(news, 9), (other, 9), (news, 2), (FeedId(99), 9), (other, 9)]

    found = await hub.hub.storage.log.trails([(f, Position(at)) for f, at in asked])

    assert [each.last for each in found] == [3, 2, 1, 0, 2]
    assert await hub.hub.storage.log.trails([]) == []


async def test_it_knows_what_was_trimmed_of_that_feed_only(hub: LiveHub) -> None:
    await hub.publish(NEWS, "one")
    await hub.publish(NEWS, "two", kind=RecordKind.BASELINE)
    for number in range(3):
        await hub.publish(OTHER, f"{number}")
    await hub.trim(keep=2)
    assert await trail(hub, 9) == (1, 1)
    await hub.publish(NEWS, "six")
    assert await trail(hub, 9) == (6, 1)
    await hub.trim(keep=0)
    assert await trail(hub, 9) == (6, 6)


async def test_it_goes_with_the_feed(hub: LiveHub) -> None:
    await hub.publish(NEWS, "one")
    await hub.trim(keep=0)
    feeds = hub.hub.storage.feeds
    await feeds.set_state(FeedId(hub.feeds[NEWS]), FeedState.REMOVED, START)
    await feeds.purge_removed(START + timedelta(days=1), 10)
    assert await trail(hub, 9) == (0, 0)
