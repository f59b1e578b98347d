"""Adding a page adds the feed that it names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from hub.http.guard import Guard
from hub.runtime.clock import SystemClock
from hub.services import FeedService
from hub.services.feed_requests import AddFeed
from hub.services.service_errors import SeveralFeeds
from hub.services.topic_addresses import AddressCheck
from protocols.protocol_errors import InvalidValue
from storage.records import Credentials, FeedId
from tests.support.services import BLOG, FOLDER, PAGE, Hub, open_hub

SECRET = Credentials(username="me", password="secret")
FEED = "https://example.org/feed.xml"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


async def test_the_feed_that_a_page_names_is_added_with_all_that_was_asked_for(
    hub: Hub,
) -> None:
    added = await hub.services.feeds.add(
        AddFeed(url=FOLDER, section="news", credentials=SECRET, discover=True)
    )

    assert added.feed.url == "https://example.org/folder/feed"
    assert (added.feed.section, added.feed.has_credentials) == ("news", True)
    assert hub.finder.looked == [(FOLDER, SECRET)]


async def test_credentials_for_a_page_are_not_for_a_feed_elsewhere(hub: Hub) -> None:
    wanted = AddFeed(url=BLOG, credentials=SECRET, discover=True)

    added = await hub.services.feeds.add(wanted)

    assert added.feed.url == "https://you.example/feed"
    assert not added.feed.has_credentials


async def test_what_credentials_open_is_handed_over_to_nobody(hub: Hub) -> None:
    for credentials in (None, SECRET):
        url = f"{FEED}?{credentials is None}"
        await hub.services.feeds.add(
            AddFeed(url=url, credentials=credentials, discover=True)
        )

    assert hub.finder.looked == [(f"{FEED}?True", None), (f"{FEED}?False", SECRET)]
    assert hub.finder.provided == [f"{FEED}?True"]


async def test_of_several_feeds_none_is_added(hub: Hub) -> None:
    with pytest.raises(SeveralFeeds, match="names 2 feeds; add the one that is meant"):
        await hub.services.feeds.add(AddFeed(url=PAGE, discover=True))

    assert await hub.storage.feeds.page(after=FeedId(0), limit=9) == []


async def test_what_is_known_is_not_looked_at(hub: Hub) -> None:
    for _ in range(2):
        await hub.services.feeds.add(AddFeed(url=FEED, discover=True))

    assert hub.finder.looked == [(FEED, None)]
    assert hub.finder.provided == [FEED]


async def test_nothing_is_looked_at_unless_that_is_asked_for(hub: Hub) -> None:
    await hub.services.feeds.add(AddFeed(url=PAGE))

    assert hub.finder.looked == []


async def test_a_hub_that_cannot_look_adds_what_it_is_told(hub: Hub) -> None:
    async def look_up(host: str) -> list[str]:
        raise OSError(host)

    check = AddressCheck(topics=Guard(), callbacks=Guard(), lookup=look_up)
    feeds = FeedService(
        hub.storage, hub.poller, check, SystemClock(), hub.services.tracks
    )

    added = await feeds.add(AddFeed(url=PAGE, discover=True))

    assert added.feed.url == PAGE
    assert (await feeds.discover(PAGE)).choice.feeds == ()


@pytest.mark.parametrize(
    "fragment", ["[[[", ".a::before", "%24.a[(@.length-1)]", "." + "a" * 600]
)
async def test_a_part_whose_path_cannot_be_read_is_not_added(
    hub: Hub, fragment: str
) -> None:
    with pytest.raises(InvalidValue, match=r"hub\.topic: expected a CSS path or a JS"):
        await hub.services.feeds.add(
            AddFeed(url=f"{FEED}#{fragment}"), field="hub.topic"
        )


async def test_a_part_whose_path_may_take_forever_is_not_added(hub: Hub) -> None:
    path = quote("$[?match(@, '(a+)+b')]")
    with pytest.raises(InvalidValue, match=r"hub\.topic: expected a JSONPath without"):
        await hub.services.feeds.add(AddFeed(url=f"{FEED}#{path}"), field="hub.topic")
