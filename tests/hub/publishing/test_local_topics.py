"""Subscribing to a page of this hub is subscribing to the feed behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub.publishing.local_topics import LocalTopics
from hub.services.account_subscriptions import SubscriptionRequest
from hub.services.feed_requests import AddFeed
from hub.services.open_hub_requests import PingOutcome
from hub.websub.topic_admission import TopicRefused
from protocols.live.live_messages import Subscribe as Listen
from protocols.protocol_errors import InvalidValue
from protocols.websub.websub_parameters import PublishRequest, SubscribeRequest
from storage.records import AccountId, Format
from tests.support.open_hub import HUB_URL, open_hub_scene
from tests.support.public_feeds import PublicFeeds
from tests.support.services import open_hub

CALLBACK = "https://you.example/hook"
OTHER_ACCOUNT = AccountId(7)
PAGE = "http://hub.example/topics/1.atom"
SPELLINGS = (
    PAGE,
    "HTTP://Hub.Example:80/topics/1.atom",
    "http://hub.example/%74opics/1.atom",
    "http://hub.example/topics/1.atom?before=5-1&limit=3#top",
)
NO_FEEDS = (
    "http://hub.example/topics/9.atom",
    "http://hub.example/topics/x",
    "http://hub.example/openfeeder",
    "HTTP://Hub.example:80/%6Fpenfeeder?page=2",
    "http://hub.example/scp/all-snapshot.scp.gz",
    "http://hub.example/stream?topic=a",
    "http://hub.example/myPublicFeeds.opml",
)


async def test_a_page_leads_to_its_feed_in_any_spelling(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        feed = await PublicFeeds(hub.storage).add()
        for topic in SPELLINGS:
            asked = SubscriptionRequest(callback=CALLBACK, topic=topic)
            made = await hub.services.subscriptions.add(asked)
            assert made.feed.id == feed.id
            assert made.subscription.topic == topic
            found = await hub.services.live.find(None, Listen(topic=topic))
            assert (found.key.feed_id, found.key.topic) == (feed.id, topic)
        assert hub.poller.fetched == []
        assert len(await hub.storage.feeds.page(after=feed.id, limit=9)) == 0


async def test_a_page_is_never_added_as_a_feed(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        feed = await PublicFeeds(hub.storage).add()
        added = await hub.services.feeds.add(AddFeed(url=PAGE))
        assert (added.feed.id, added.is_new) == (feed.id, False)
        for url in NO_FEEDS:
            with pytest.raises(InvalidValue, match="url"):
                await hub.services.feeds.add(AddFeed(url=url))
            assert await hub.services.feeds.find(url) is None


async def test_the_number_of_a_private_feed_opens_nothing(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        feed = await PublicFeeds(hub.storage).add(private=True)
        asked = SubscriptionRequest(
            callback=CALLBACK, topic=PAGE, account=OTHER_ACCOUNT
        )
        with pytest.raises(InvalidValue, match="topic"):
            await hub.services.subscriptions.add(asked)
        by_operator = SubscriptionRequest(callback=CALLBACK, topic=PAGE)
        made = await hub.services.subscriptions.add(by_operator)
        assert made.feed.id == feed.id
        with pytest.raises(InvalidValue, match="url"):
            await hub.services.feeds.add(AddFeed(url=PAGE))
        (pinged,) = await hub.services.websub.publish(PublishRequest(topics=(PAGE,)))
        assert pinged.outcome is PingOutcome.NOT_LISTED
        assert hub.poller.asked == []


async def test_the_open_hub_admits_pages_without_a_request(tmp_path: Path) -> None:
    async with open_hub_scene(tmp_path) as scene:
        feeds = PublicFeeds(scene.storage)
        public = await feeds.add("a")
        await feeds.add("b", private=True)
        root = HUB_URL.removesuffix("/hub")
        assert await scene.topics.admit(f"{root}/topics/1.json") == public.id
        for number in (2, 9):
            with pytest.raises(TopicRefused):
                await scene.topics.admit(f"{root}/topics/{number}.json")
        assert scene.fetches.requests == []


@pytest.mark.parametrize(
    ("topic", "asked", "format"),
    [
        (PAGE, "", Format.ATOM),
        ("http://hub.example/topics/1.json", "", Format.JSON),
        ("http://hub.example/topics/1.normalized.json", "", Format.JSON),
        (PAGE, "json", Format.JSON),
        ("http://hub.example/topics/x", "", Format.AS_IS),
        ("https://a.example/feed", "", Format.AS_IS),
    ],
)
async def test_subscribers_of_a_page_are_sent_what_the_page_is(
    tmp_path: Path, topic: str, asked: str, format: Format
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.services.websub.request(
            SubscribeRequest(
                topic=topic, callback=CALLBACK, lease_seconds=300, format=asked
            )
        )
        now = hub.clock.now()
        (made,) = await hub.storage.verifications.due(now, per_host=1, limit=1)
        assert made.format is format


@pytest.mark.parametrize("path", ["/hub", "/hubbub?a=b", "/upstream/a-token"])
async def test_the_hub_is_nobodys_callback(tmp_path: Path, path: str) -> None:
    async with open_hub(tmp_path) as hub:
        await PublicFeeds(hub.storage).add()
        asked = SubscriptionRequest(callback=f"HTTP://Hub.example{path}", topic=PAGE)
        with pytest.raises(InvalidValue, match="callback: expected a URL outside"):
            await hub.services.subscriptions.add(asked)


@pytest.mark.parametrize(
    "url",
    [
        "http://hub.example/",
        "http://hub.example/feed.xml",  # of a site with which it shares its origin
        "http://hub.example/sitemap.xml",
        "http://hub.example/scpx",
        "http://hub.example:81/openfeeder",
        "http://hub.example.org/openfeeder",
        "https://hub.example/openfeeder",
    ],
)
def test_what_may_be_anothers_is_not_owned(url: str) -> None:
    assert not LocalTopics("http://hub.example").owns(url)


def test_a_hub_without_a_name_is_known_by_all_that_this_machine_has() -> None:
    own = LocalTopics("http://localhost:8080")
    for host in ("localhost", "127.0.0.1", "[::1]"):
        for path in ("openfeeder", "sitemap.xml", "", ".well-known/openfeeder.json"):
            assert own.owns(f"http://{host}:8080/{path}")
        assert own.format(f"http://{host}:8080/topics/1.json") is Format.JSON
    assert not own.owns("http://127.0.0.1:8081/openfeeder")
    assert not own.owns("http://127.0.0.12:8080/openfeeder")


def test_a_name_that_begins_with_localhost_is_another() -> None:
    own = LocalTopics("http://localhost.example:8080")
    assert own.owns("http://localhost.example:8080/openfeeder")
    assert not own.owns("http://localhost.example:8080/feed.xml")


def test_without_a_public_url_nothing_is_owned() -> None:
    own = LocalTopics()
    assert not own.owns(PAGE)
    assert own.format(PAGE) is None
