"""Nobody has all live connections: what one address, or one account, may hold."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from ipaddress import ip_network
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from hub.services.token_authentication import CreateToken
from storage.records import TokenScope
from tests.support.admin import ADMIN_LOGIN
from tests.support.event_stream import EventClient
from tests.support.live_hub import LiveHub, live_hub
from tests.support.waiting import eventually

NEWS = "https://news.example/feed"
LISTEN = f"/stream?topic={NEWS}"
PROXIES = (ip_network("127.0.0.1"),)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    """Of 8 connections an address may hold 2, and an account 4."""
    shared = live_hub(
        tmp_path, stream_connections=8, stream_share=25, trusted_proxies=PROXIES
    )
    async with shared as hub:
        await hub.add_feed(NEWS)
        yield hub


async def a_login(hub: LiveHub, account: str) -> str:
    request = CreateToken(account=account, scopes=frozenset({TokenScope.RETRIEVE}))
    made = await hub.hub.services.tokens.create(request)
    return base64.b64encode(f"{account}:{made.secret}".encode()).decode()


async def hold(
    hub: LiveHub, target: str, count: int, address: str, **headers: str
) -> EventClient:
    """The last of so many event streams; all of them are there."""
    for _ in range(count):
        client = await hub.ask(target, X_Forwarded_For=address, **headers)
        assert client.status == 200
        await client.chunk()  # it is subscribed, and so it is counted
    return client


async def test_an_address_that_has_its_share_is_told_so_and_leaves_room_for_others(
    hub: LiveHub,
) -> None:
    last = await hold(hub, LISTEN, 2, "192.0.2.1")
    refused = await hub.ask(LISTEN, X_Forwarded_For="192.0.2.1")
    assert refused.status == 429
    assert "retry-after" in refused.headers
    assert b"at most 2 live connections of one address" in await refused.body()
    assert hub.hub.metrics.limited["live_of_address"] == 1
    await hold(hub, LISTEN, 2, "192.0.2.2")
    last.abort()
    await eventually(lambda: hub.hub.metrics.connections["sse"] == 3)
    await hold(hub, LISTEN, 1, "192.0.2.1")


async def test_a_network_of_ipv6_is_one_asker(hub: LiveHub) -> None:
    await hold(hub, LISTEN, 1, "2001:db8::1")
    await hold(hub, LISTEN, 1, "2001:db8::ffff:2")
    refused = await hub.ask(LISTEN, X_Forwarded_For="2001:db8::3")
    assert refused.status == 429
    await hold(hub, LISTEN, 1, "2001:db8:0:1::3")


async def test_websockets_count_among_them(hub: LiveHub) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(2):
            client = await stack.enter_async_context(connect(hub.url(NEWS)))
            await client.recv()
        with pytest.raises(InvalidStatus) as refused:
            await hub.connect(NEWS)
        assert refused.value.response.status_code == 429
        assert (await hub.ask(LISTEN)).status == 429


async def test_an_account_has_a_share_wherever_it_is_and_with_whatever_token(
    hub: LiveHub,
) -> None:
    first, second = [await a_login(hub, "ada") for _ in range(2)]
    await hold(hub, LISTEN, 2, "192.0.2.1")  # which are nobody's but the address's
    await hold(hub, f"{LISTEN}&authorization={first}", 4, "192.0.2.1")
    refused = await hub.ask(
        f"{LISTEN}&authorization={second}", X_Forwarded_For="192.0.2.2"
    )
    assert refused.status == 429
    assert b"of one account" in await refused.body()
    assert hub.hub.metrics.limited["live_of_account"] == 1
    other = await a_login(hub, "bob")
    await hold(hub, f"{LISTEN}&authorization={other}", 1, "192.0.2.1")


async def test_long_polls_and_streams_of_documents_count_among_them(
    hub: LiveHub,
) -> None:
    login = await a_login(hub, "ada")
    retrieve = f"/?hub.mode=retrieve&hub.topic={NEWS}&authorization={login}"
    await hold(hub, f"{LISTEN}&authorization={login}", 4, "192.0.2.1")
    for wait in ("poll", "stream"):
        assert (await hub.ask(f"{retrieve}&wait={wait}")).status == 429


@pytest.mark.parametrize("account", ["admin", "operator"])
async def test_the_operator_may_have_all_of_them(hub: LiveHub, account: str) -> None:
    if account == "admin":
        login = ADMIN_LOGIN
    else:
        login = await a_login(hub, account)
    header = {"Authorization": f"Basic {login}"}
    await hold(hub, LISTEN, 8, "192.0.2.1", **header)
    assert (await hub.ask(LISTEN, **header)).status == 503


async def test_a_stream_of_many_topics_counts_as_many_requests(tmp_path: Path) -> None:
    async with live_hub(tmp_path, rate_limit_address=24) as hub:
        topics = "".join(f"&topic=https://{number}.example/" for number in range(21))
        assert (await hub.ask(f"/stream?{topics}")).status == 404  # as three
        refused = await hub.ask(f"/stream?{topics}")
        assert (refused.status, refused.headers["retry-after"]) == (429, "5")
        assert (await hub.ask(LISTEN)).status == 404  # as one
        assert (await hub.ask(LISTEN)).status == 429
