"""Track queries as topics at ``/`` and ``/hubbub``."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
import pytest

from hub.http.guard import Guard
from hub.publishing.local_topics import LocalTopics
from hub.services import SubscriptionService, TrackTopics
from hub.services.account_subscriptions import SubscriptionRequest
from hub.services.topic_addresses import AddressCheck
from storage.records import AccountId, FeedId, FeedStatistics, StoredFeed
from tests.hub.web.superfeedr.conftest import Ask, make_token
from tests.support.library import START, Library, id_of, topic_of
from tests.support.services import Hub

QUERY = "laurel -hardy"
TOPIC = "http://track.superfeedr.com/?query=laurel+-hardy"
CALLBACK = "https://you.example/hook"
STATISTICS = FeedStatistics(maintained_at=START, popularity=1.1, porn_rank=0.1)


def wanted(mode: str, **more: str) -> dict[str, str]:
    return {
        "hub_mode": mode,
        "hub_topic": TOPIC,
        "hub_callback": CALLBACK,
        "format": "json",
        **more,
    }


async def query_of(hub: Hub, topic: str = TOPIC) -> FeedId:
    feed = await hub.services.feeds.find(topic)
    assert feed is not None
    return feed.id


@pytest.fixture
async def library(hub: Hub, ask: Ask) -> Library:
    """The query is subscribed to, and has found ``a`` and ``c`` in a public feed."""
    assert (await ask(**wanted("subscribe"))).status_code == 204
    library = await Library.open(hub, account="other")
    await library.add_feed("news")
    query = await query_of(hub)
    await library.publish("news", "a", matching=[query])
    await library.publish("news", "b", minutes=1)
    await library.publish("news", "c", minutes=2, matching=[query])
    return library


def titles(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["title"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("library")
async def test_a_query_is_listed_as_a_track_feed_until_it_is_unsubscribed(
    ask: Ask, hub: Hub
) -> None:
    listed = await ask(hub_mode="list", detailed="true")
    [only] = listed.json()["subscriptions"]
    status = only["subscription"]["feed"]["status"]
    assert (status["http"], status["feed"]) == ("Track feed", TOPIC)
    assert (status["code"], status["period"]) == (200, 900)
    assert hub.poller.fetched == []

    assert (await ask(**wanted("unsubscribe"))).status_code == 204
    assert (await ask(hub_mode="list")).json() == []


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "topic", [TOPIC, "http://hub.example/track?query=-HARDY%20Laurel"]
)
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, ["c", "a"]),
        ({"count": "1"}, ["c"]),
        ({"before": id_of("c")}, ["a"]),
        ({"after": id_of("a")}, ["c"]),
        ({"after": id_of("c")}, []),
    ],
)
async def test_what_a_query_has_found_is_retrieved_in_every_spelling(
    ask: Ask, topic: str, bounds: dict[str, str], expected: list[str]
) -> None:
    answer = await ask(**wanted("retrieve", hub_topic=topic, **bounds))

    assert titles(answer) == expected
    assert answer.json()["status"]["http"] == "Track feed"
    assert answer.json()["status"]["feed"] == topic
    assert answer.json()["title"] == ""


async def test_each_entry_found_has_its_feed_and_that_its_status(
    ask: Ask, library: Library
) -> None:
    await library.maintain("news", STATISTICS)

    answer = await ask(**wanted("retrieve"))

    source = answer.json()["items"][0]["source"]
    assert source["title"] == "About news"
    assert source["status"]["feed"] == topic_of("news")
    assert source["status"]["popularity"] == 1.1


async def test_a_query_stands_beside_the_feeds_of_its_callback(
    ask: Ask, library: Library
) -> None:
    await library.add_feed("more")
    await library.publish("more", "d", minutes=3)
    await ask(**wanted("subscribe", hub_topic=topic_of("more")))

    assert titles(await ask(**wanted("retrieve", hub_topic=""))) == ["d", "c", "a"]


@pytest.mark.usefixtures("library")
async def test_subscribing_can_be_answered_with_what_the_query_has_found(
    ask: Ask,
) -> None:
    answer = await ask(**wanted("subscribe", retrieve="true", count="1"))

    assert titles(answer) == ["c"]
    assert answer.json()["status"]["http"] == "Track feed"


@pytest.mark.usefixtures("library")
async def test_a_poll_is_answered_with_what_the_query_has_found(ask: Ask) -> None:
    assert titles(await ask(**wanted("retrieve", wait="poll"))) == ["c", "a"]


@pytest.mark.usefixtures("library")
async def test_what_a_query_has_found_is_replayed(ask: Ask, hub: Hub) -> None:
    assert (await ask(**wanted("replay"))).status_code == 204

    [sent] = hub.network.requests
    assert b'"Track feed"' in (sent.body or b"")


async def test_a_new_query_has_found_nothing_yet(ask: Ask) -> None:
    answer = await ask(**wanted("retrieve"))

    assert titles(answer) == []
    assert answer.json()["status"]["http"] == "Track feed"


async def test_nothing_is_shown_of_a_feed_that_has_become_private(
    ask: Ask, library: Library, hub: Hub
) -> None:
    await library.make_private("news")

    assert titles(await ask(**wanted("retrieve"))) == []


@pytest.mark.parametrize("mode", ["subscribe", "retrieve"])
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("-hardy", "expected a word that must match, in every alternative,"),
        ("paris+(texas", "expected a closing parenthesis at character 13"),
    ],
)
async def test_a_query_that_cannot_be_read_is_422_with_place_and_expectation(
    ask: Ask, mode: str, query: str, reason: str
) -> None:
    topic = f"http://track.superfeedr.com/?query={query}"
    answer = await ask(**wanted(mode, hub_topic=topic))

    assert answer.status_code == 422
    assert reason in answer.text


class RefusingPublishers:
    async def refusal(
        self,
        feed: StoredFeed,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> str:
        return "nobody may"


async def look_up(host: str) -> list[str]:
    return ["93.184.215.15"]


async def test_no_publisher_is_asked_about_a_query(hub: Hub) -> None:
    await make_token(hub)
    tracks = TrackTopics(hub.storage.tracking, hub.clock, "http://hub.example")
    service = SubscriptionService(
        hub.storage,
        hub.services.feeds,
        AddressCheck(topics=Guard(), callbacks=Guard(), lookup=look_up),
        hub.clock,
        tracks,
        LocalTopics("http://hub.example"),
        RefusingPublishers(),
    )
    request = SubscriptionRequest(callback=CALLBACK, topic=TOPIC, account=AccountId(3))

    assert (await service.add(request)).is_new
