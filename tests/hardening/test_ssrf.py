"""No request the hub makes reaches an address it must not, however it is spelled.

The proof is a canary: a server on loopback that must not see a single connection.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from msgspec.structs import replace

from hub.core.host_set import HostSet
from hub.http import HttpNetwork, Purpose, Request, ResponseLimits
from hub.http.network_errors import Blocked, NetworkError, Unreachable
from hub.ingest.fetcher import Fetcher, FetchRequest
from hub.limits.host_limiter import HostLimiter
from hub.publishing.openfeeder_analytics import create_sink
from hub.push.push_subscriber import HubRequests
from hub.settings import Settings
from hub.websub.publisher_validation import PublisherValidation
from protocols.openfeeder.write.bot_requests import AnalyticsEvent, Endpoint
from storage.records import FeedId, NewFeed, NewPushCallback, Polling, PushWay
from tests.hardening.forbidden_addresses import (
    LOOPBACK_HOSTS,
    ODD_URLS,
    PRIVATE_HOSTS,
    forbidden_urls,
    long_urls,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.http_server import Origin, ServerAnswer, redirect

LIMITS = ResponseLimits(seconds=3, idle_seconds=1)


@pytest.fixture
async def canary() -> AsyncIterator[Origin]:
    async with Origin() as canary:
        yield canary
        assert canary.connections == 0


async def refuse(network: HttpNetwork, url: str, purpose: Purpose) -> NetworkError:
    request = Request(method="GET", url=url, purpose=purpose, limits=LIMITS)
    with pytest.raises(NetworkError) as caught:
        await network.send(request)
    return caught.value


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("host", LOOPBACK_HOSTS)
async def test_no_spelling_of_loopback_reaches_it(
    canary: Origin, host: str, purpose: Purpose
) -> None:
    async with HttpNetwork() as network:
        error = await refuse(network, f"http://{host}:{canary.port}/", purpose)
    # some spellings are refused sooner: no URL, or a name that nobody knows
    assert isinstance(error, Blocked | Unreachable)
    assert "127" not in error.reason


@pytest.mark.parametrize("host", [host for host in LOOPBACK_HOSTS if host.isascii()])
async def test_a_resolver_that_understands_every_spelling_changes_nothing(
    canary: Origin, host: str
) -> None:
    async def obliging(name: str) -> list[str]:
        return ["127.0.0.1"]

    async with HttpNetwork(lookup=obliging) as network:
        url = f"http://{host}:{canary.port}/"
        error = await refuse(network, url, Purpose.TOPIC)
    assert isinstance(error, Blocked) or "URL" in error.reason


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("url", ODD_URLS)
async def test_no_odd_url_reaches_loopback(
    canary: Origin, url: str, purpose: Purpose
) -> None:
    async with HttpNetwork() as network:
        given = url.replace("{port}", str(canary.port))
        error = await refuse(network, given, purpose)
    assert isinstance(error, Blocked | Unreachable)


@pytest.mark.parametrize("purpose", Purpose)
async def test_no_long_url_reaches_loopback(canary: Origin, purpose: Purpose) -> None:
    async with HttpNetwork() as network:
        for url in long_urls(canary.port):
            error = await refuse(network, url, purpose)
            assert isinstance(error, Blocked | Unreachable)


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("host", PRIVATE_HOSTS)
async def test_no_private_address_is_dialled(host: str, purpose: Purpose) -> None:
    async with HttpNetwork() as network:
        error = await refuse(network, f"http://{host}/", purpose)
    assert isinstance(error, Blocked)


@pytest.mark.parametrize("port", [22, 25, 6379, 11211, 5432, 9200])
async def test_ports_of_internal_services_are_blocked_on_public_addresses(
    port: int,
) -> None:
    async with HttpNetwork() as network:
        error = await refuse(network, f"http://8.8.8.8:{port}/", Purpose.CALLBACK)
    assert isinstance(error, Blocked)


async def test_a_name_that_leads_inside_is_blocked(canary: Origin) -> None:
    async def inside(host: str) -> list[str]:
        return ["127.0.0.1", "10.0.0.1", "::1", "fd00:ec2::254"]

    async with HttpNetwork(lookup=inside) as network:
        url = f"http://metadata.google.internal:{canary.port}/"
        assert isinstance(await refuse(network, url, Purpose.TOPIC), Blocked)


async def test_a_name_with_a_thousand_private_addresses_is_blocked(
    canary: Origin,
) -> None:
    async def many(host: str) -> list[str]:
        return [f"127.0.{number // 250}.{number % 250}" for number in range(1000)]

    async with HttpNetwork(lookup=many) as network:
        url = f"http://many.example:{canary.port}/"
        assert isinstance(await refuse(network, url, Purpose.TOPIC), Blocked)


async def test_of_a_public_and_a_private_address_only_the_public_one_is_dialled(
    canary: Origin,
) -> None:
    async def mixed(host: str) -> list[str]:
        return ["127.0.0.1", "127.0.0.2"]

    public = ip_network("127.0.0.2/32")  # stands in for a public address
    async with (
        Origin("127.0.0.2", canary.port) as origin,
        HttpNetwork(allow_topics=[public], lookup=mixed) as network,
    ):
        url = f"http://mixed.example:{canary.port}/"
        request = Request(method="GET", url=url, purpose=Purpose.TOPIC, limits=LIMITS)
        assert (await network.send(request)).status == 404
        assert origin.connections == 1


async def test_a_name_that_is_rebound_to_a_private_address_is_blocked(
    canary: Origin,
) -> None:
    answers = [["127.0.0.2"], ["127.0.0.1"]]

    async def rebinding(host: str) -> list[str]:
        return answers.pop(0)

    public = ip_network("127.0.0.2/32")
    url = f"http://rebound.example:{canary.port}/"
    request = Request(method="GET", url=url, purpose=Purpose.TOPIC, limits=LIMITS)
    async with Origin("127.0.0.2", canary.port):
        async with HttpNetwork(allow_topics=[public], lookup=rebinding) as network:
            assert (await network.send(request)).status == 404
        async with HttpNetwork(allow_topics=[public], lookup=rebinding) as network:
            assert isinstance(await refuse(network, url, Purpose.TOPIC), Blocked)


async def test_what_topics_may_reach_callbacks_may_not(canary: Origin) -> None:
    loopback = [ip_network("127.0.0.0/8")]
    async with HttpNetwork(allow_topics=loopback) as network:
        url = f"http://127.0.0.1:{canary.port}/"
        assert isinstance(await refuse(network, url, Purpose.CALLBACK), Blocked)


@pytest.mark.parametrize("named", ["hub", "cloud", "validator"])
async def test_what_publishers_name_is_not_asked_where_only_callbacks_may_be(
    named: str, tmp_path: Path
) -> None:
    """Whoever writes a feed would else have the hub post into that network."""
    loopback = [ip_network("127.0.0.0/8")]
    others = {"allow_callbacks": loopback, "allow_topics": loopback}
    async with Origin() as inside:
        async with HttpNetwork(**others) as network:
            await _post(network, named, inside.url("/"), tmp_path)
        assert inside.connections == 0
        async with HttpNetwork(allow_hubs=loopback) as network:
            await _post(network, named, inside.url("/"), tmp_path)
        assert inside.connections == 1


async def test_whom_the_operator_has_asked_may_be_where_callbacks_are(
    tmp_path: Path,
) -> None:
    async with Origin() as inside:
        loopback = [ip_network("127.0.0.0/8")]
        async with HttpNetwork(allow_callbacks=loopback) as network:
            await _post(network, "set by the operator", inside.url("/"), tmp_path)
        assert inside.connections == 1


async def _post(network: HttpNetwork, named: str, url: str, directory: Path) -> None:
    """What a feed has the hub do that names it, or of which the operator says so."""
    clock = ManualClock()
    if named in ("validator", "set by the operator"):
        storage = await open_chosen(directory / "hub.db")
        new = NewFeed(url="https://a.example/")
        added, _ = await storage.feeds.add(new, clock.now())
        set_for_it = "" if named == "validator" else url
        await storage.feeds.set_subscription_callback(added.id, set_for_it)
        limiter = HostLimiter(clock)
        feed = replace(added, polling=Polling(validator=url))
        await PublisherValidation(storage, network, "Fanfare", limiter).refusal(
            feed, {}
        )
        await storage.close()
        return
    way = PushWay.CLOUD if named == "cloud" else PushWay.WEBSUB
    requests = HubRequests(
        network,
        clock,
        "https://us.example",
        "Fanfare",
        HostSet(),
        HostLimiter(clock),
    )
    await requests.subscribe(
        NewPushCallback(
            feed_id=FeedId(1),
            way=way,
            hub=url,
            topic="https://feeds.example/",
            token="token",
            secret="secret",
            asked_at=clock.now(),
            until=clock.now(),
        )
    )


async def test_a_connection_opened_for_a_topic_is_not_reused_for_a_callback() -> None:
    loopback = [ip_network("127.0.0.0/8")]
    async with Origin() as origin, HttpNetwork(allow_topics=loopback) as network:
        request = Request(method="GET", url=origin.url("/"), purpose=Purpose.TOPIC)
        assert (await network.send(request)).status == 404
        error = await refuse(network, origin.url("/"), Purpose.CALLBACK)
        assert isinstance(error, Blocked)
        assert len(origin.requests) == 1


async def test_an_ipv6_canary_sees_nothing_either() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    async with Origin("::1") as canary, HttpNetwork() as network:
        assert isinstance(
            await refuse(network, canary.url("/"), Purpose.TOPIC), Blocked
        )
        assert canary.connections == 0


OUTSIDE = ip_network("127.0.0.2/32")  # stands in for a public address


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_leads_to_loopback(canary: Origin, status: int) -> None:
    async with (
        Origin("127.0.0.2") as outside,
        HttpNetwork(allow_topics=[OUTSIDE]) as network,
    ):
        fetcher = Fetcher(network, ManualClock(), LIMITS)
        targets = [
            each
            for each in forbidden_urls(canary.port)
            if "\t" not in each and each.isascii()  # what no header can have
        ]
        for target in targets:
            outside.serve("/", redirect(target, status))
            request = FetchRequest(url=outside.url("/"), user_agent="Fanfare")
            fetched = await fetcher.fetch(request)
            assert fetched.error, target
            assert not fetched.body
        assert len(outside.requests) >= len(targets)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_leads_to_a_private_address(status: int) -> None:
    async with (
        Origin("127.0.0.2") as outside,
        HttpNetwork(allow_topics=[OUTSIDE]) as network,
    ):
        fetcher = Fetcher(network, ManualClock(), LIMITS)
        for host in PRIVATE_HOSTS:
            outside.serve("/", redirect(f"http://{host}/", status))
            request = FetchRequest(url=outside.url("/"), user_agent="Fanfare")
            fetched = await fetcher.fetch(request)
            assert (fetched.error, fetched.status) == (Blocked().reason, 0), host
        assert len(outside.requests) == len(PRIVATE_HOSTS)


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost:{port}/\r\nX-More: 1",
        "http://8.8.8.8/\r\n\r\nGET http://127.0.0.1:{port}/ HTTP/1.1",
        "http://\u0661\u0662\u0667.0.0.1:{port}/",
        "http://127.0.0\t.1:{port}/",
        "\x00http://127.0.0.1:{port}/",
    ],
)
async def test_no_redirect_with_odd_bytes_leads_to_loopback(
    canary: Origin, target: str
) -> None:
    line = target.replace("{port}", str(canary.port)).encode()
    answer = b"HTTP/1.1 302 X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % line
    async with (
        Origin("127.0.0.2") as outside,
        HttpNetwork(allow_topics=[OUTSIDE]) as network,
    ):
        outside.serve("/", ServerAnswer(raw=answer, closes=True))
        fetcher = Fetcher(network, ManualClock(), LIMITS)
        request = FetchRequest(url=outside.url("/"), user_agent="Fanfare")
        assert (await fetcher.fetch(request)).error


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::1"],
        ["127.0.0.1", "::1", "169.254.169.254"],
        ["fe80::1%lo"],
        ["not an address", "127.0.0.1"],
        ["localhost"],
    ],
    ids=" ".join,
)
async def test_wherever_a_name_is_led_to_nothing_private_is_dialled(
    canary: Origin, addresses: list[str], purpose: Purpose
) -> None:
    """A name that is an alias (CNAME) of one inside comes to the same."""

    async def led(host: str) -> list[str]:
        return addresses

    async with HttpNetwork(lookup=led) as network:
        url = f"http://public.example:{canary.port}/"
        assert isinstance(await refuse(network, url, purpose), Blocked)


@pytest.mark.parametrize("kind", ["umami", "ga4"])
async def test_what_counts_readers_is_asked_by_the_guard_too(
    canary: Origin, kind: str
) -> None:
    """The operator names it; a network has to be allowed for that as well."""
    settings = Settings(
        openfeeder_analytics=kind,
        openfeeder_analytics_url=canary.url().rstrip("/"),
        openfeeder_analytics_site="site",
        openfeeder_analytics_secret="secret",
    )
    async with HttpNetwork() as network:
        sink = create_sink(settings, network, "hub.example")
        assert sink is not None
        with pytest.raises(Blocked):
            await sink.tell(
                AnalyticsEvent(bot_name="B", bot_family="f", endpoint=Endpoint.INDEX)
            )


async def test_environment_variables_name_no_proxy(
    canary: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        for spelled in (name, name.upper()):
            monkeypatch.setenv(spelled, canary.url())
    async with (
        Origin("127.0.0.2") as outside,
        HttpNetwork(allow_topics=[OUTSIDE]) as network,
    ):
        request = Request(
            method="GET", url=outside.url("/"), purpose=Purpose.TOPIC, limits=LIMITS
        )
        assert (await network.send(request)).status == 404


async def test_a_name_is_judged_anew_when_it_is_looked_up_anew(canary: Origin) -> None:
    """A kept connection serves the server it was opened to, and no other."""
    answers = [["127.0.0.2"], ["127.0.0.1"]]

    async def rebinding(host: str) -> list[str]:
        return answers[0] if host == "first.example" else answers[1]

    async with (
        Origin("127.0.0.2", canary.port),
        HttpNetwork(allow_topics=[OUTSIDE], lookup=rebinding) as network,
    ):
        first = f"http://first.example:{canary.port}/"
        request = Request(method="GET", url=first, purpose=Purpose.TOPIC, limits=LIMITS)
        assert (await network.send(request)).status == 404
        second = f"http://second.example:{canary.port}/"
        assert isinstance(await refuse(network, second, Purpose.TOPIC), Blocked)
