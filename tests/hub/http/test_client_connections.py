"""Connections: how many, how long they are kept, when a request is sent again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from ipaddress import ip_network
from pathlib import Path

import pytest

from hub.http import Answer, HttpNetwork, Purpose, Request, ResponseLimits
from hub.http.client_connections import ClientConnection, ConnectionPool
from hub.http.exchange import ServerAddress, target_of
from hub.http.network_errors import BadAnswer, NetworkError, TimedOut, Unreachable
from tests.support.certificates import server_context, trusting_context
from tests.support.http_server import Origin, ServerAnswer
from tests.support.waiting import eventually

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
PATIENT = ResponseLimits(seconds=60, idle_seconds=60)
DEAF = ServerAnswer(raw=b"", closes=True)
"""The request is read, and the connection closed."""


@pytest.fixture
async def network() -> AsyncIterator[HttpNetwork]:
    async with HttpNetwork(allow_callbacks=LOOPBACK) as network:
        yield network


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with Origin() as origin:
        yield origin


async def post(
    network: HttpNetwork,
    url: str,
    limits: ResponseLimits = PATIENT,
    body: bytes = b"news",
) -> Answer:
    return await network.send(
        Request(
            method="POST",
            url=url,
            purpose=Purpose.CALLBACK,
            body=body,
            limits=limits,
            cuts_body=True,
        )
    )


# --- sent again ------------------------------------------------------------------


@pytest.mark.parametrize("how", [DEAF, ServerAnswer(raw=b"", resets=True)])
async def test_a_request_on_a_kept_connection_that_was_closed_is_sent_again(
    network: HttpNetwork, origin: Origin, how: ServerAnswer
) -> None:
    origin.serve("/", ServerAnswer(), how, ServerAnswer(status=204))
    await post(network, origin.url())
    assert (await post(network, origin.url())).status == 204
    assert [each.connection for each in origin.requests] == [1, 1, 2]
    assert {each.body for each in origin.requests} == {b"news"}


async def test_it_is_sent_again_only_once(network: HttpNetwork, origin: Origin) -> None:
    origin.serve("/", ServerAnswer(), DEAF)
    await post(network, origin.url())
    with pytest.raises(BadAnswer, match="without an answer"):
        await post(network, origin.url())
    assert [each.connection for each in origin.requests] == [1, 1, 2]


async def test_a_request_on_a_new_connection_is_sent_once(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", DEAF)
    with pytest.raises(BadAnswer, match="without an answer"):
        await post(network, origin.url())
    assert len(origin.requests) == 1


async def test_a_request_whose_answer_had_begun_is_sent_once(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(), ServerAnswer(raw=b"HTTP/1.1 2", closes=True))
    await post(network, origin.url())
    with pytest.raises(BadAnswer, match="without an answer"):
        await post(network, origin.url())
    assert len(origin.requests) == 2


async def test_a_request_that_was_worked_on_for_a_second_is_sent_once(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(), ServerAnswer(raw=b"", closes=True, delay=1.2))
    await post(network, origin.url())
    with pytest.raises(BadAnswer, match="without an answer"):
        await post(network, origin.url())
    assert len(origin.requests) == 2


# --- kept ------------------------------------------------------------------------


async def test_a_connection_that_the_server_closes_is_not_used_again(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(closes=True))
    await post(network, origin.url())
    await asyncio.wait_for(origin.disconnected.wait(), 60)
    await post(network, origin.url())
    assert origin.connections == 2
    assert len(origin.requests) == 2


async def test_an_answer_that_nobody_asked_for_ends_its_connection(
    network: HttpNetwork, origin: Origin
) -> None:
    """It would be taken for the answer to the next request."""
    twice = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    origin.serve("/", ServerAnswer(raw=twice + b"HTTP/1.1 500 No\r\n"))
    await post(network, origin.url())
    await asyncio.wait_for(origin.disconnected.wait(), 60)
    assert (await post(network, origin.url())).status == 200
    assert origin.connections == 2


async def test_a_late_answer_that_nobody_asked_for_ends_its_connection() -> None:
    heard = asyncio.Event()
    closed = asyncio.Event()

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No\r\n\r\n")
        await heard.wait()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await reader.read()
        closed.set()
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, HttpNetwork(allow_callbacks=LOOPBACK) as network:
        await post(network, url, body=b"")
        heard.set()
        await asyncio.wait_for(closed.wait(), 60)


async def test_connections_are_closed_with_the_network(origin: Origin) -> None:
    async with HttpNetwork(allow_callbacks=LOOPBACK) as network:
        await post(network, origin.url())
    await asyncio.wait_for(origin.disconnected.wait(), 60)


async def test_a_server_that_answers_before_it_has_read_all_gets_no_more() -> None:
    """What is left of the first request would be read as the second."""
    writers: list[asyncio.StreamWriter] = []

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writers.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Much\r\nContent-Length: 0\r\n\r\n")

    server = await asyncio.start_server(converse, "127.0.0.1", 0, limit=1_000)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, HttpNetwork(allow_callbacks=LOOPBACK) as network:
        for _ in range(2):
            assert (await post(network, url, body=bytes(64 << 20))).status == 413
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)
    assert len(writers) == 2


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True


def connect() -> tuple[ClientConnection, FakeTransport]:
    connection = ClientConnection(asyncio.get_running_loop())
    transport = FakeTransport()
    connection.connection_made(transport)
    return connection, transport


ONE, OTHER = ServerAddress(False, "127.0.0.1", 80), ServerAddress(True, "127.0.0.1", 80)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_pool_gives_back_what_was_used_last_for_that_server() -> None:
    pool = ConnectionPool()
    (first, _), (second, _), (other, _) = connect(), connect(), connect()
    for server, each in ((ONE, first), (ONE, second), (OTHER, other)):
        pool.keep(server, each, now())
    assert len(pool) == 3
    assert [pool.take(ONE, now()) for _ in range(3)] == [second, first, None]
    assert pool.take(OTHER, now()) is other
    pool.close()


async def test_a_pool_passes_over_what_was_closed() -> None:
    pool = ConnectionPool()
    (first, _), (second, transport) = connect(), connect()
    pool.keep(ONE, first, now())
    pool.keep(ONE, second, now())
    transport.abort()
    assert pool.take(ONE, now()) is first
    assert pool.take(ONE, now()) is None
    pool.close()


async def test_a_pool_closes_what_was_idle_for_long() -> None:
    pool = ConnectionPool(seconds=0.01)
    _, transport = first = connect()
    pool.keep(ONE, first[0], now())
    await eventually(lambda: transport.is_closed)
    assert pool.take(ONE, now()) is None
    _, transport = second = connect()
    pool.keep(ONE, second[0], now())
    await eventually(lambda: transport.is_closed)
    assert len(pool) == 0


async def test_a_pool_gives_up_the_one_that_was_idle_longest() -> None:
    pool = ConnectionPool()
    (first, transport), (second, _) = connect(), connect()
    pool.drop_oldest()
    pool.keep(ONE, first, now())
    pool.keep(OTHER, second, now())
    pool.drop_oldest()
    assert transport.is_closed
    assert pool.take(OTHER, now()) is second
    pool.close()


# --- bounded ---------------------------------------------------------------------


async def test_no_more_connections_are_open_than_agreed_and_everybody_gets_a_turn(
    origin: Origin,
) -> None:
    origin.serve("/", ServerAnswer(delay=0.01))
    async with HttpNetwork(allow_callbacks=LOOPBACK, connections=2) as network:
        answers = await asyncio.gather(
            *(post(network, origin.url()) for _ in range(10))
        )
    assert [each.status for each in answers] == [200] * 10
    assert origin.connections == 2


async def test_an_idle_connection_makes_room_for_another_server() -> None:
    async with AsyncExitStack() as stack:
        origins = [await stack.enter_async_context(Origin()) for _ in range(3)]
        network = await stack.enter_async_context(
            HttpNetwork(allow_callbacks=LOOPBACK, connections=2)
        )
        for origin in origins:
            await post(network, origin.url())
        await asyncio.wait_for(origins[0].disconnected.wait(), 60)
        await post(network, origins[2].url())
        assert origins[2].connections == 1


async def test_waiting_for_a_turn_counts_towards_the_deadline(origin: Origin) -> None:
    origin.serve("/", ServerAnswer(silent=True))
    async with HttpNetwork(allow_callbacks=LOOPBACK, connections=1) as network:
        first = asyncio.create_task(post(network, origin.url()))
        await origin.wait_for_requests()
        with pytest.raises(TimedOut, match="no answer in time"):
            await post(network, origin.url(), ResponseLimits(seconds=0.05))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        origin.serve("/", ServerAnswer())
        assert (await post(network, origin.url())).status == 200
    assert len(origin.requests) == 2


async def test_who_takes_no_body_is_given_up_and_let_go() -> None:
    """The server never reads, so that the body cannot be sent to its end."""
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(
        lambda _, writer: accepted.append(writer), "127.0.0.1", 0, limit=1
    )
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, HttpNetwork(allow_callbacks=LOOPBACK) as network:
        with pytest.raises(TimedOut):
            await post(network, url, ResponseLimits(seconds=0.3), bytes(64 << 20))
        [writer] = accepted
        writer.transport.abort()


# --- addresses -------------------------------------------------------------------


def leading_to(*addresses: str, tls: ssl.SSLContext | None = None) -> HttpNetwork:
    async def look_up(host: str) -> Sequence[str]:
        return addresses

    return HttpNetwork(allow_callbacks=LOOPBACK, lookup=look_up, tls=tls)


async def test_an_address_that_refuses_is_passed_over(origin: Origin) -> None:
    async with leading_to("127.0.0.3", "::1", "127.0.0.2", "127.0.0.1") as network:
        answer = await post(network, origin.url(host="many.example"))
    assert answer.status == 404
    assert origin.connections == 1


async def test_when_no_address_answers_the_last_trouble_is_told(
    origin: Origin,
) -> None:
    async with leading_to("127.0.0.2", "127.0.0.3") as network:
        with pytest.raises(Unreachable, match="cannot connect: connection refused"):
            await post(network, origin.url(host="many.example"))


async def test_two_addresses_that_answer_make_one_request() -> None:
    async with Origin("127.0.0.1") as one, Origin("127.0.0.2", one.port) as other:
        async with leading_to("127.0.0.1", "127.0.0.2") as network:
            await post(network, one.url(host="many.example"))
        assert len(one.requests) + len(other.requests) == 1


# --- TLS -------------------------------------------------------------------------


async def test_a_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    """It is trusted, and good for 127.0.0.1 only."""
    async with Origin(tls=server_context(tmp_path)) as origin:
        async with leading_to("127.0.0.1", tls=trusting_context(tmp_path)) as network:
            with pytest.raises(Unreachable, match="certificate is not valid"):
                await post(network, origin.url(host="other.example"))
        assert origin.requests == []


async def test_a_connection_with_tls_is_kept(tmp_path: Path) -> None:
    async with (
        Origin(tls=server_context(tmp_path)) as origin,
        leading_to(tls=trusting_context(tmp_path)) as network,
    ):
        for _ in range(3):
            await post(network, origin.url(), body=bytes(200_000))
        assert origin.connections == 1
        assert {len(each.body) for each in origin.requests} == {200_000}


# --- heads -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\nb"},
        {"X": "a\rb"},
        {"X": "a\0b"},
        {"X\r\nY": "a"},
        {"X:": "a"},
        {"X ": "a"},
        {"": "a"},
        {"\u00e9": "a"},
        {"X": "\ud800"},
        {"Host": "other.example"},
        {"content-length": "3"},
        {"Transfer-Encoding": "chunked"},
    ],
)
async def test_headers_that_would_say_something_else_are_not_sent(
    network: HttpNetwork, origin: Origin, headers: dict[str, str]
) -> None:
    request = Request(
        method="POST", url=origin.url(), purpose=Purpose.CALLBACK, headers=headers
    )
    with pytest.raises(NetworkError, match="the request cannot be made"):
        await network.send(request)
    assert origin.connections == 0


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:{port}/", "127.0.0.1:{port}"),
        ("http://user:word@LocalHost:{port}#x", "LocalHost:{port}"),
        ("http://b\u00fccher.example:{port}/", "xn--bcher-kva.example:{port}"),
        ("http://dotted.example.:{port}/", "dotted.example:{port}"),
    ],
)
async def test_a_server_is_told_its_own_name_and_port(
    origin: Origin, url: str, host: str
) -> None:
    async with leading_to("127.0.0.1") as network:
        await post(network, url.format(port=origin.port))
    assert origin.requests[0].headers["host"] == host.format(port=origin.port)


def test_the_port_of_the_scheme_is_not_told() -> None:
    assert target_of("http://[::1]:80/a?b").authority == "[::1]"
    assert target_of("https://host.example:443/").authority == "host.example"
    assert target_of("https://host.example:80?x").authority == "host.example:80"
    assert target_of("https://host.example:80?x").path == "/?x"
