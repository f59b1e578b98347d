"""A page says what the feed of its own host says, whatever others say of it."""

from __future__ import annotations

import httpx2
import pytest
from msgspec.structs import replace

from protocols.model import Entry, Feed, Link
from storage.records import FeedState, FetchCommit, Polling, StoredFeed
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.scp_crawler import ScpCrawler
from tests.support.services import Hub

URL = "https://www.blog.example/post"
HOUR = 3_600


class Scene:
    def __init__(self, hub: Hub, client: httpx2.AsyncClient) -> None:
        self.hub = hub
        self.client = client
        self.feeds = PublicFeeds(hub.storage)

    async def tell(self, name: str, title: str, **more: object) -> StoredFeed:
        """A feed at ``https://{name}.example/`` has the page, newer than others."""
        self.hub.clock.advance(HOUR)
        feed = await self.feeds.add(name, **more)  # type: ignore[arg-type]
        await self.publish(feed, title)
        return feed

    async def publish(self, feed: StoredFeed, title: str) -> None:
        now = self.hub.clock.now()
        await self.feeds.publish(feed, a_post(title, published=now), when=now)

    async def titles(self, section: str = "all") -> list[str]:
        """What crawlers and OpenFeeder's readers are given."""
        self.hub.clock.advance(HOUR)
        await self.hub.services.collections.build(snapshots=True)
        crawler = ScpCrawler(self.client, section)
        await crawler.crawl()
        found = [page["title"] for page in crawler.pages.values()]
        if section == "all":
            answer = await self.client.get("/openfeeder", params={"url": URL})
            assert answer.json()["title"] == found[0]
        return found


def a_post(title: str, **more: object) -> Entry:
    return an_entry("post", title=title, links=(Link(href=URL),), **more)


@pytest.fixture
def scene(hub: Hub, anybody: httpx2.AsyncClient) -> Scene:
    return Scene(hub, anybody)


@pytest.mark.parametrize("owner", ["blog", "feeds.blog"])
async def test_others_replace_no_page_that_a_feed_of_its_host_or_domain_has(
    scene: Scene, owner: str
) -> None:
    await scene.tell(owner, "The article", category="blogs")
    await scene.tell("links", "Comments", category="links")
    claim = Feed(links=(Link(href="https://www.blog.example/"),))
    await scene.tell("hostile", "HIJACKED", head=claim)
    assert await scene.titles() == ["The article"]
    assert await scene.titles("blogs") == ["The article"]
    assert await scene.titles("links") == []


async def test_the_host_itself_goes_before_the_rest_of_its_domain(
    scene: Scene,
) -> None:
    await scene.tell("blog", "The article")
    await scene.tell("comments.blog", "Comments")
    assert await scene.titles() == ["The article"]


async def test_what_a_feed_only_says_of_its_site_counts_before_any_other(
    scene: Scene,
) -> None:
    claim = Feed(links=(Link(href="https://blog.example/"),))
    await scene.tell("proxy", "The article", head=claim)
    await scene.tell("links", "Comments")
    await scene.tell("hostile", "HIJACKED", head=claim)
    assert await scene.titles() == ["The article"]


async def test_without_a_feed_of_its_own_a_page_is_what_was_said_last(
    scene: Scene,
) -> None:
    first = await scene.tell("links", "First")
    await scene.tell("others", "Second")
    assert await scene.titles() == ["Second"]
    await scene.publish(first, "Third")
    assert await scene.titles() == ["Third"]


async def test_the_owner_takes_its_page_over_and_leaves_it_to_others_when_it_goes(
    scene: Scene,
) -> None:
    await scene.tell("links", "Comments")
    assert await scene.titles() == ["Comments"]
    reader = ScpCrawler(scene.client)
    await reader.crawl()
    owner = await scene.tell("blog", "The article")
    assert await scene.titles() == ["The article"]
    await reader.crawl()
    assert reader.pages[URL]["title"] == "The article"
    now = scene.hub.clock.now()
    await scene.hub.storage.feeds.set_state(owner.id, FeedState.REMOVED, now)
    assert await scene.titles() == ["Comments"]
    await reader.crawl()
    assert reader.pages[URL]["title"] == "Comments"


async def test_a_section_says_nothing_of_a_page_whose_owner_is_in_another(
    scene: Scene,
) -> None:
    """What was built of it before is taken back, and built anew when the owner goes."""
    await scene.tell("links", "Comments", category="links")
    assert await scene.titles("links") == ["Comments"]
    known = [each.url for each in await ScpCrawler(scene.client, "links").advertised()]
    owner = await scene.tell("blog", "The article", category="blogs")
    await scene.hub.services.collections.build(snapshots=False)
    assert {(await scene.client.get(url)).status_code for url in known} == {410}
    assert await scene.titles("links") == []
    assert await scene.titles("blogs") == await scene.titles() == ["The article"]
    now = scene.hub.clock.now()
    await scene.hub.storage.feeds.set_state(owner.id, FeedState.REMOVED, now)
    assert await scene.titles("links") == await scene.titles() == ["Comments"]


async def test_who_only_claims_a_site_takes_pages_from_no_section_but_of_strangers(
    scene: Scene,
) -> None:
    claim = Feed(links=(Link(href="https://blog.example/"),))
    await scene.tell("hostile", "HIJACKED", head=claim, category="hostile")
    await scene.tell("proxy", "The article", head=claim, category="blogs")
    await scene.tell("links", "Comments", category="links")
    assert await scene.titles("blogs") == ["The article"]
    assert await scene.titles("links") == []
    await scene.tell("blog", "The very article", category="owners")
    assert await scene.titles("owners") == await scene.titles() == ["The very article"]
    assert await scene.titles("hostile") == await scene.titles("blogs") == []


async def test_a_feed_that_is_moved_to_the_host_or_says_it_is_of_it_is_judged_anew(
    scene: Scene,
) -> None:
    moved = await scene.tell("proxy", "Moved")
    claiming = await scene.tell("other", "Claimed")
    await scene.tell("links", "Comments")
    assert await scene.titles() == ["Comments"]
    now = scene.hub.clock.now()
    commit = FetchCommit(
        feed_id=claiming.id,
        at=now,
        next_fetch=now,
        polling=Polling(code=200),
        head=Feed(links=(Link(href="https://blog.example/"),)),
    )
    await scene.hub.storage.log.commit(commit)
    assert await scene.titles() == ["Claimed"]
    at_host = Polling(code=200, fetch_url="https://blog.example/feed")
    commit = replace(commit, feed_id=moved.id, polling=at_host, head=None)
    await scene.hub.storage.log.commit(commit)
    assert await scene.titles() == ["Moved"]


async def test_one_url_has_one_history_though_sections_show_different_texts(
    scene: Scene,
) -> None:
    """A reader of two sections never sees two texts of one date, nor an older date."""
    one = await scene.tell("comments", "One", category="comments")
    other = await scene.tell("links", "Other", category="links")
    crawlers = [ScpCrawler(scene.client, name) for name in ("all", "comments", "links")]
    for number in range(4):
        await scene.publish(other, f"Other {number}")
        await scene.publish(one, f"One {number}")
        await scene.hub.services.collections.build(snapshots=False)
        for crawler in crawlers:
            await crawler.crawl()
    states = {each for crawler in crawlers for each in crawler.history[URL]}
    assert len(states) == len(dict(states)) == 8
    for crawler in crawlers:
        dates = [at for at, _ in crawler.history[URL]]
        assert dates == sorted(dates)
