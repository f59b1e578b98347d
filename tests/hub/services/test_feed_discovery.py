"""Adding a page adds the feed that it names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from hub.core.fetched import Fetched
from hub.http.guard import Guard
from hub.services import FeedService
from hub.services.feed_requests import AddFeed
from hub.services.service_errors import SeveralFeeds
from hub.services.topic_addresses import AddressCheck
from hub.sites.feed_finder import LookupKind, LookupResult
from protocols.feeds.feed_links import choose
from protocols.protocol_errors import FeedLink, InvalidValue
from storage.records import Credentials, FeedId
from tests.support.services import Hub, look_up, open_hub

SECRET = Credentials(username="me", password="secret")
FEED = "https://example.org/feed.xml"


PAGE = "https://example.org/page"
BLOG = "https://example.org/blog"
FOLDER = "https://example.org/folder/"
NAMED = {
    PAGE: (
        FeedLink(href="https://a.example/", title="A"),
        FeedLink(href="https://b.example/", title="B"),
    ),
    BLOG: (FeedLink(href="https://you.example/feed"),),
    FOLDER: (FeedLink(href=f"{FOLDER}feed"),),
}


class FakeFinder:
    """Sees the feeds that some pages name; ``provided`` are URLs whose answer is kept
    for their first fetch."""

    def __init__(self) -> None:
        self.looked: list[tuple[str, Credentials | None]] = []
        self.provided: list[str] = []

    async def look(
        self,
        url: str,
        credentials: Credentials | None = None,
        kind: LookupKind = LookupKind.ANY,
    ) -> LookupResult:
        self.looked.append((url, credentials))
        return LookupResult(choice=choose(NAMED.get(url, ())))

    @contextmanager
    def provide(self, url: str, fetched: Fetched | None) -> Iterator[None]:
        self.provided.append(url)
        yield


@dataclass(frozen=True, slots=True)
class Scene:
    hub: Hub
    finder: FakeFinder
    feeds: FeedService


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_hub(tmp_path) as hub:
        finder = FakeFinder()
        yield Scene(hub, finder, a_service(hub, finder))


def a_service(hub: Hub, finder: FakeFinder | None) -> FeedService:
    return FeedService(
        hub.storage,
        hub.poller,
        AddressCheck(topics=Guard(), callbacks=Guard(), lookup=look_up),
        hub.clock,
        hub.tracks,
        finder=finder,
        prefetched=finder,
    )


async def test_the_feed_that_a_page_names_is_added_with_all_that_was_asked_for(
    scene: Scene,
) -> None:
    added = await scene.feeds.add(
        AddFeed(url=FOLDER, category="news", credentials=SECRET, discover=True)
    )

    assert added.feed.url == "https://example.org/folder/feed"
    assert (added.feed.category, added.feed.has_credentials) == ("news", True)
    assert scene.finder.looked == [(FOLDER, SECRET)]


async def test_credentials_for_a_page_are_not_for_a_feed_elsewhere(
    scene: Scene,
) -> None:
    wanted = AddFeed(url=BLOG, credentials=SECRET, discover=True)

    added = await scene.feeds.add(wanted)

    assert added.feed.url == "https://you.example/feed"
    assert not added.feed.has_credentials


async def test_what_credentials_open_is_handed_over_to_nobody(scene: Scene) -> None:
    for credentials in (None, SECRET):
        url = f"{FEED}?{credentials is None}"
        await scene.feeds.add(AddFeed(url=url, credentials=credentials, discover=True))

    assert scene.finder.looked == [(f"{FEED}?True", None), (f"{FEED}?False", SECRET)]
    assert scene.finder.provided == [f"{FEED}?True"]


async def test_of_several_feeds_none_is_added(scene: Scene) -> None:
    with pytest.raises(SeveralFeeds, match="names 2 feeds; add one of them"):
        await scene.feeds.add(AddFeed(url=PAGE, discover=True))

    assert await scene.hub.storage.feeds.page(after=FeedId(0), limit=9) == []


async def test_what_is_known_is_not_looked_at(scene: Scene) -> None:
    for _ in range(2):
        await scene.feeds.add(AddFeed(url=FEED, discover=True))

    assert scene.finder.looked == [(FEED, None)]
    assert scene.finder.provided == [FEED]


async def test_nothing_is_looked_at_unless_that_is_asked_for(scene: Scene) -> None:
    await scene.feeds.add(AddFeed(url=PAGE))

    assert scene.finder.looked == []


async def test_a_hub_that_cannot_look_adds_what_it_is_told(scene: Scene) -> None:
    feeds = a_service(scene.hub, None)

    added = await feeds.add(AddFeed(url=PAGE, discover=True))

    assert added.feed.url == PAGE
    assert (await feeds.discover(PAGE)).choice.feeds == ()


@pytest.mark.parametrize(
    "fragment", ["[[[", ".a::before", "%24.a[(@.length-1)]", "." + "a" * 600]
)
async def test_a_part_whose_path_cannot_be_read_is_not_added(
    scene: Scene, fragment: str
) -> None:
    with pytest.raises(InvalidValue, match=r"hub\.topic: expected a CSS path or a JS"):
        await scene.feeds.add(AddFeed(url=f"{FEED}#{fragment}"), field="hub.topic")


async def test_a_part_whose_path_may_take_forever_is_not_added(scene: Scene) -> None:
    path = quote("$[?match(@, '(a+)+b')]")
    with pytest.raises(InvalidValue, match=r"hub\.topic: expected a JSONPath without"):
        await scene.feeds.add(AddFeed(url=f"{FEED}#{path}"), field="hub.topic")
