from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.services import open_hub_requests
from hub.services.open_hub_requests import PingOutcome
from hub.services.service_errors import HubClosed, TooManyWaiting
from hub.websub import ping_queue as pings_module
from hub.websub.topic_admission import OpenHub
from protocols.websub.websub_parameters import (
    PublishRequest,
    RefusedUrl,
    UnsubscribeRequest,
)
from storage.errors import NotFound
from storage.records import FeedState
from tests.support.open_hub import (
    CALLBACK,
    TOPIC,
    OpenHubScene,
    a_subscription_request,
    open_hub_scene,
)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[OpenHubScene]:
    async with open_hub_scene(tmp_path) as scene:
        yield scene


async def outcomes(scene: OpenHubScene, *topics: str) -> list[PingOutcome]:
    pinged = await scene.service.publish(PublishRequest(topics=topics))
    return [each.outcome for each in pinged]


async def test_every_request_has_a_diagnostics_url_of_its_own(
    scene: OpenHubScene,
) -> None:
    urls = {await scene.service.request(a_subscription_request()) for _ in range(5)}
    assert len(urls) == 5
    assert all(
        url.startswith("https://hub.example/hub/subscriptions/") and len(url) > 60
        for url in urls
    )


async def test_a_closed_hub_takes_no_requests(tmp_path: Path) -> None:
    async with open_hub_scene(tmp_path, OpenHub.OFF) as scene:
        with pytest.raises(HubClosed, match="FANFARE_OPEN_HUB"):
            await scene.service.request(a_subscription_request())
        with pytest.raises(HubClosed):
            await scene.service.request(
                UnsubscribeRequest(topic=TOPIC, callback=CALLBACK)
            )


async def test_too_many_requests_are_turned_away(
    scene: OpenHubScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_hub_requests, "MOST_PENDING_OF_HOST", 1)
    await scene.service.request(a_subscription_request())
    other = a_subscription_request(callback=f"{CALLBACK}/other")
    with pytest.raises(TooManyWaiting):
        await scene.service.request(other)
    await scene.service.request(a_subscription_request())  # replaces the pending one


async def test_a_public_topic_is_fetched_under_any_spelling(
    scene: OpenHubScene,
) -> None:
    await scene.add_feed()
    assert await outcomes(scene, TOPIC, "https://FEEDS.example/%74opic") == [
        PingOutcome.FETCHED,
        PingOutcome.COALESCED,
    ]


async def test_a_ping_of_a_page_reaches_its_parts(scene: OpenHubScene) -> None:
    page = "https://pages.example/"
    parts = [
        await scene.add_feed(f"{page}#{path}", private=private)
        for path, private in ((".a", True), (".b", True), (".c", False))
    ]
    assert await outcomes(scene, f"{page}#top") == [PingOutcome.FETCHED]
    assert scene.poller.asked == [each.id for each in parts]


async def test_a_ping_of_a_page_whose_parts_are_private_tells_nothing_of_them(
    scene: OpenHubScene,
) -> None:
    part = await scene.add_feed("https://pages.example/#.a", private=True)
    assert await outcomes(scene, "https://pages.example/") == [PingOutcome.NOT_LISTED]
    assert scene.poller.asked == [part.id]


async def test_a_part_is_pinged_by_its_own_url(scene: OpenHubScene) -> None:
    page = await scene.add_feed("https://pages.example/")
    part = await scene.add_feed("https://pages.example/#.a")
    assert await outcomes(scene, "https://PAGES.example/#%2ea") == [PingOutcome.FETCHED]
    assert scene.poller.asked == [part.id]
    assert page.id not in scene.poller.asked


async def test_private_and_unknown_topics_look_alike(scene: OpenHubScene) -> None:
    feed = await scene.add_feed(private=True)
    pinged = await scene.service.publish(
        PublishRequest(topics=(TOPIC, "https://unknown.example/"))
    )
    first, second = pinged
    assert (first.outcome, first.reason) == (second.outcome, second.reason)
    assert first.outcome is PingOutcome.NOT_LISTED
    assert feed.id in scene.poller.asked


@pytest.mark.parametrize("state", [FeedState.PAUSED, FeedState.REMOVED])
async def test_a_feed_that_is_not_polled_is_not_pinged(
    scene: OpenHubScene, state: FeedState
) -> None:
    feed = await scene.add_feed()
    await scene.storage.feeds.set_state(feed.id, state, scene.clock.now())
    assert await outcomes(scene, TOPIC) == [PingOutcome.NOT_LISTED]
    assert feed.id not in scene.poller.asked


async def test_a_bad_url_is_said_to_be_one(scene: OpenHubScene) -> None:
    refused = RefusedUrl(url="nonsense", reason="hub.url: expected a URL")
    (pinged,) = await scene.service.publish(
        PublishRequest(topics=(), refused=(refused,))
    )
    assert (pinged.url, pinged.outcome) == ("nonsense", PingOutcome.INVALID)
    assert pinged.reason == refused.reason


async def test_too_many_pings_are_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pings_module, "MOST_WAITING", 1)
    async with open_hub_scene(tmp_path) as scene:
        await scene.add_feed()
        await scene.add_feed("https://feeds.example/2")
        with pytest.raises(TooManyWaiting):
            await outcomes(scene, TOPIC, "https://feeds.example/2")


async def test_before_it_is_verified_a_request_shows_nothing_but_itself(
    scene: OpenHubScene,
) -> None:
    await scene.subscribe()
    scene.callbacks.answer_with(404)
    token = await scene.request(a_subscription_request())
    for _ in range(2):
        diagnosis = await scene.service.diagnose(token)
        assert diagnosis.subscription is None
        assert diagnosis.feed is None
        assert diagnosis.attempts == ()
        await scene.settle(token)


async def test_a_verified_request_shows_the_subscription_and_its_topic(
    scene: OpenHubScene,
) -> None:
    token = await scene.request(a_subscription_request())
    await scene.settle(token)
    diagnosis = await scene.service.diagnose(token)
    assert diagnosis.subscription is not None
    assert diagnosis.feed is not None
    assert diagnosis.subscription.topic == diagnosis.feed.url == TOPIC
    assert diagnosis.retrying is None


async def test_another_token_opens_nothing(scene: OpenHubScene) -> None:
    await scene.subscribe()
    with pytest.raises(NotFound):
        await scene.service.diagnose("guessed")
