"""No request the hub makes reaches an address it must not, however it is spelled.

The proof is a canary: a server on loopback that must not see a single connection.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from hub.errors import Blocked, NetworkError, Unreachable
from hub.net import HttpNetwork, Limits, Purpose, Request
from tests.support.origin import Origin

LIMITS = Limits(seconds=3, idle_seconds=1)
SPELLINGS_OF_LOOPBACK = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "127.000.000.001",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "\u0661\u0662\u0667.0.0.1",  # Arabic-Indic digits
    "\uff11\uff12\uff17.0.0.1",  # full-width digits
    "\u2460\u2461\u2466.0.0.1",  # circled digits
    "127\u30020\u30020\u30021",  # ideographic full stops
    "127%2e0%2e0%2e1",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]",
    "user:password@127.0.0.1",
    "127.0.0.1:80@127.0.0.1",
]
PRIVATE_ELSEWHERE = [
    "10.0.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[100::1]",
    "[2001::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a00:1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
]


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
@pytest.mark.parametrize("host", SPELLINGS_OF_LOOPBACK)
async def test_no_spelling_of_loopback_reaches_it(
    canary: Origin, host: str, purpose: Purpose
) -> None:
    async with HttpNetwork() as network:
        error = await refuse(network, f"http://{host}:{canary.port}/", purpose)
    # some spellings are refused sooner: no URL, or a name that nobody knows
    assert isinstance(error, Blocked | Unreachable)
    assert "127" not in error.reason


@pytest.mark.parametrize(
    "host", [host for host in SPELLINGS_OF_LOOPBACK if host.isascii()]
)
async def test_a_resolver_that_understands_every_spelling_changes_nothing(
    canary: Origin, host: str
) -> None:
    async def obliging(name: str) -> list[str]:
        return ["127.0.0.1"]

    async with HttpNetwork(lookup=obliging) as network:
        url = f"http://{host}:{canary.port}/"
        error = await refuse(network, url, Purpose.TOPIC)
    assert isinstance(error, Blocked) or "URL" in error.reason


@pytest.mark.parametrize("host", PRIVATE_ELSEWHERE)
async def test_no_private_address_is_dialled(host: str) -> None:
    async with HttpNetwork() as network:
        error = await refuse(network, f"http://{host}/", Purpose.TOPIC)
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
