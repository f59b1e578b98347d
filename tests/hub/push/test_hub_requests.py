"""Where a hub of others may send on what it is asked."""

from __future__ import annotations

import pytest

from hub.http import Answer, Purpose, Request
from hub.ingest.fetcher import BlockedHosts
from hub.limits.host_limiter import HostLimiter
from hub.push.push_subscriber import DOWN_TO_HTTP, HubReply, HubRequests
from storage.records import FeedId, NewPushCallback, PushWay
from tests.support.clock import ManualClock

HUB = "https://hub.others.example/"


class Redirecting:
    """Redirects every request as it is told, and then takes it."""

    def __init__(self, *targets: str) -> None:
        self.targets = list(targets)
        self.asked: list[str] = []

    async def send(self, request: Request) -> Answer:
        self.asked.append(request.url)
        target = self.targets.pop(0) if self.targets else ""
        return Answer(
            url=request.url,
            status=307 if target else 202,
            headers={"Location": target},
            body=b"",
            complete=True,
            milliseconds=1,
        )

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return False


async def subscribe(network: Redirecting, hub: str = HUB) -> HubReply:
    clock = ManualClock()
    requests = HubRequests(
        network,
        clock,
        "https://us.example",
        "Fanfare",
        BlockedHosts(),
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
    network = Redirecting(target)
    assert (await subscribe(network)).error == ""
    assert len(network.asked) == 2


@pytest.mark.parametrize(
    "target",
    [
        "http://hub.others.example/",
        "HTTP://hub.others.example/",
        "http://another.example/",
    ],
)
async def test_the_secret_is_not_taken_from_https_down_to_http(target: str) -> None:
    for network in (Redirecting(target), Redirecting("/other", target)):
        assert (await subscribe(network)).error == DOWN_TO_HTTP
        assert all(each.startswith(HUB) for each in network.asked)


async def test_from_http_any_redirect_is_followed() -> None:
    network = Redirecting("http://another.example/", HUB)
    assert (await subscribe(network, "http://hub.others.example/")).error == ""
    assert len(network.asked) == 3


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
async def test_a_redirect_to_nowhere_is_trouble(target: str) -> None:
    network = Redirecting(target)
    assert "nowhere" in (await subscribe(network)).error
    assert network.asked == [HUB]
