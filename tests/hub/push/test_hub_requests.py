"""Where a hub of others may send on what it is asked."""

from __future__ import annotations

import pytest

from hub.core.host_set import HostSet
from hub.limits.host_limiter import HostLimiter
from hub.push.push_subscriber import DOWN_TO_HTTP, HubReply, HubRequests
from storage.records import FeedId, NewPushCallback, PushWay
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork, answered

HUB = "https://hub.others.example/"


def redirecting(*targets: str) -> FakeNetwork:
    """It sends every request on as it is told, and then takes it."""
    moved = (answered(307, headers={"Location": target}) for target in targets)
    return FakeNetwork(*moved, 202)


async def subscribe(network: FakeNetwork, hub: str = HUB) -> HubReply:
    clock = ManualClock()
    requests = HubRequests(
        network,
        clock,
        "https://us.example",
        "Fanfare",
        HostSet(),
        HostLimiter(clock),
    )
    return await requests.subscribe(
        NewPushCallback(
            feed_id=FeedId(1),
            way=PushWay.WEBSUB,
            hub=hub,
            topic="https://feeds.example/",
            token="token",
            secret="secret",
            asked_at=clock.now(),
            until=clock.now(),
        )
    )


@pytest.mark.parametrize(
    "target", ["/other", "https://another.example/hub", "HTTPS://another.example/"]
)
async def test_a_redirect_to_https_is_followed(target: str) -> None:
    network = redirecting(target)
    assert (await subscribe(network)).error == ""
    assert len(network.urls) == 2


@pytest.mark.parametrize(
    "target",
    [
        "http://hub.others.example/",
        "HTTP://hub.others.example/",
        "http://another.example/",
    ],
)
async def test_the_secret_is_not_taken_from_https_down_to_http(target: str) -> None:
    for network in (redirecting(target), redirecting("/other", target)):
        assert (await subscribe(network)).error == DOWN_TO_HTTP
        assert all(each.startswith(HUB) for each in network.urls)


async def test_from_http_any_redirect_is_followed() -> None:
    network = redirecting("http://another.example/", HUB)
    assert (await subscribe(network, "http://hub.others.example/")).error == ""
    assert len(network.urls) == 3


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://hub.example/",
        "https://",
        "http://a:b@c/",
        "javascript:1",
    ],
)
async def test_a_redirect_to_nowhere_is_an_error(target: str) -> None:
    network = redirecting(target)
    assert "to an invalid URL" in (await subscribe(network)).error
    assert network.urls == [HUB]
