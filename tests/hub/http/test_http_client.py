from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path

import pytest

from hub.http import Answer, HttpNetwork, Purpose, Request, ResponseLimits
from hub.http.network_errors import (
    BadAnswer,
    Blocked,
    NetworkError,
    TimedOut,
    TooLarge,
    Unreachable,
)
from tests.support.certificates import server_context, trusting_context
from tests.support.http_server import Origin, ServerAnswer, redirect

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
QUICK = ResponseLimits(seconds=1.0, idle_seconds=0.3, body_bytes=100_000)


@pytest.fixture
async def network() -> AsyncIterator[HttpNetwork]:
    async with HttpNetwork(allow_topics=LOOPBACK, allow_callbacks=LOOPBACK) as network:
        yield network


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with Origin() as origin:
        yield origin


async def get(network: HttpNetwork, url: str, limits: ResponseLimits = QUICK) -> Answer:
    return await network.send(
        Request(method="GET", url=url, purpose=Purpose.TOPIC, limits=limits)
    )


async def post(network: HttpNetwork, url: str, body: bytes = b"news") -> Answer:
    return await network.send(
        Request(
            method="POST",
            url=url,
            purpose=Purpose.CALLBACK,
            headers={"Content-Type": "application/json"},
            body=body,
            limits=QUICK,
            cuts_body=True,
        )
    )


# --- what goes out ---------------------------------------------------------------


async def test_a_request_carries_the_given_headers_and_nothing_of_its_own(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/feed", ServerAnswer(body=b"<rss/>"))
    headers = {"User-Agent": "Fanfare/1", "If-None-Match": 'W/"odd "value"'}
    url = origin.url("/feed?a=%7e&b=+&c='(x)")
    await network.send(
        Request(method="GET", url=url, purpose=Purpose.TOPIC, headers=headers)
    )
    assert origin.requests[0].head.decode() == (
        "GET /feed?a=%7e&b=+&c='(x) HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{origin.port}\r\n"
        "User-Agent: Fanfare/1\r\n"
        'If-None-Match: W/"odd "value"\r\n\r\n'
    )


@pytest.mark.parametrize(
    ("method", "body"), [("GET", None), ("POST", None), ("POST", b"news")]
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"User-Agent": "Fanfare/1", "Accept": "text/xml", "Accept-Encoding": "gzip"},
        {"Content-Type": "text/plain", "Accept": "text/xml"},
        {"user-agent": "Fanfare/1", "accept": "text/xml", "content-type": "a/b"},
    ],
)
async def test_no_header_is_added_whatever_is_given(
    network: HttpNetwork,
    origin: Origin,
    headers: dict[str, str],
    method: str,
    body: bytes | None,
) -> None:
    await network.send(
        Request(
            method=method,
            url=origin.url("/"),
            purpose=Purpose.TOPIC,
            headers=headers,
            body=body,
        )
    )

    expected = {name.lower(): value for name, value in headers.items()}
    expected["host"] = f"127.0.0.1:{origin.port}"
    if method == "POST":
        expected["content-length"] = str(len(body or b""))
    assert origin.requests[0].headers == expected


async def test_a_url_outside_ascii_is_encoded(
    network: HttpNetwork, origin: Origin
) -> None:
    await get(network, origin.url("/f\u00fc?q=\u00e9"))
    assert origin.requests[0].target == "/f%C3%BC?q=%C3%A9"


async def test_user_information_and_fragment_of_a_url_stay_off_the_wire(
    network: HttpNetwork, origin: Origin
) -> None:
    await get(network, origin.url("/feed#part", host="user:secret@127.0.0.1"))
    [request] = origin.requests
    assert request.target == "/feed"
    assert b"uthorization" not in request.head
    assert b"secret" not in request.head


async def test_cookies_are_never_sent_back(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/feed", ServerAnswer(headers={"Set-Cookie": "a=b; Path=/"}))
    await get(network, origin.url("/feed"))
    await get(network, origin.url("/feed"))
    assert "cookie" not in origin.requests[1].headers


async def test_proxies_named_by_the_environment_are_ignored(
    network: HttpNetwork, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Origin() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        await get(network, origin.url("/feed"))
        assert proxy.connections == 0


@pytest.mark.parametrize("size", [0, 5, 3 << 20])
async def test_a_body_is_posted_whole(
    network: HttpNetwork, origin: Origin, size: int
) -> None:
    origin.serve("/callback", ServerAnswer(status=204))
    body = b"n" * size
    answer = await post(network, origin.url("/callback"), body)
    assert answer.status == 204
    assert origin.requests[0].body == body
    assert origin.requests[0].headers["content-length"] == str(size)


async def test_connections_are_kept_alive_but_not_shared_between_purposes(
    network: HttpNetwork, origin: Origin
) -> None:
    for _ in range(3):
        await get(network, origin.url("/"))
        await post(network, origin.url("/"))
    assert origin.connections == 2


@pytest.mark.parametrize(
    "url",
    [
        "",
        "feed",
        "/feed",
        "ftp://host.example/",
        "file:///etc/passwd",
        "gopher://host.example/",
        "data:,x",
        "http://",
        "http:///path",
        "http:@",
        "http://host.example:0/",
        "http://host.example:99999/",
        "http://[::1/",
        "http://host.example/a b",
        "http://host.example/a\tb",
        "http://host.example/a\nb",
        "http://host.example/\r\nX-Injected: 1",
        "http://host.example/\u00a0",
        "http://host.example/\ud800",
        "http://ex\u00adample .example/",
        "http://host.example/" + "a" * 64_000,
    ],
)
async def test_what_is_no_plain_http_url_is_not_requested(
    network: HttpNetwork, url: str
) -> None:
    with pytest.raises(Unreachable, match="URL"):
        await get(network, url)


async def test_a_header_with_a_line_break_is_not_sent(
    network: HttpNetwork, origin: Origin
) -> None:
    request = Request(
        method="GET",
        url=origin.url("/"),
        purpose=Purpose.TOPIC,
        headers={"X": "a\r\nY: b"},
    )
    with pytest.raises(NetworkError):
        await network.send(request)
    assert origin.requests == []


# --- what comes back -------------------------------------------------------------


async def test_an_answer_is_given_as_it_came(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/feed", ServerAnswer(headers={"ETag": '"x"'}, body=b"<rss/>"))
    answer = await get(network, origin.url("/feed"))
    assert (answer.status, answer.body, answer.complete) == (200, b"<rss/>", True)
    assert answer.headers.get("etag", "") == '"x"'
    assert answer.headers.get("Last-Modified", "") == ""
    assert answer.url == origin.url("/feed")
    assert 0 <= answer.milliseconds < 1000


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_never_followed(
    network: HttpNetwork, origin: Origin, status: int
) -> None:
    origin.serve("/", redirect("/elsewhere", status))
    assert (await get(network, origin.url("/"))).status == status
    assert len(origin.requests) == 1


@pytest.mark.parametrize(
    "how", [{"chunked": True}, {"until_close": True}, {"drip": 0.01}]
)
async def test_a_body_may_come_in_any_way(
    network: HttpNetwork, origin: Origin, how: dict[str, bool]
) -> None:
    body = b"0123456789" * 10
    answer = ServerAnswer(body=body, piece=33)
    origin.serve(
        "/",
        ServerAnswer(
            body=answer.body,
            piece=answer.piece,
            chunked=how.get("chunked", False),
            until_close=how.get("until_close", False),
            drip=how.get("drip", 0.0),
        ),
    )
    assert (await get(network, origin.url("/"))).body == body


async def test_a_compressed_body_is_inflated(
    network: HttpNetwork, origin: Origin
) -> None:
    compressed = gzip.compress(b"<rss/>")
    origin.serve(
        "/", ServerAnswer(headers={"Content-Encoding": "gzip"}, body=compressed)
    )
    assert (await get(network, origin.url("/"))).body == b"<rss/>"


async def test_a_damaged_compressed_body_names_the_status_it_came_with(
    network: HttpNetwork, origin: Origin
) -> None:
    compressed = gzip.compress(b"<rss/>")[:-4]
    origin.serve(
        "/", ServerAnswer(headers={"Content-Encoding": "gzip"}, body=compressed)
    )
    with pytest.raises(BadAnswer) as caught:
        await get(network, origin.url("/"))
    assert caught.value.status == 200


# --- size ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        ServerAnswer(body=bytes(200_000)),
        ServerAnswer(body=bytes(200_000), chunked=True),
        ServerAnswer(body=bytes(10_000), chunked=True, endless=True),
        ServerAnswer(body=bytes(10_000), endless=True),
        ServerAnswer(headers={"Content-Length": "200000000"}, body=b"x"),
    ],
    ids=["length", "chunked", "endless chunks", "endless", "announced"],
)
async def test_a_body_over_the_limit_is_given_up_and_its_connection_closed(
    network: HttpNetwork, origin: Origin, answer: ServerAnswer
) -> None:
    origin.serve("/", answer)
    with pytest.raises(TooLarge) as caught:
        await get(network, origin.url("/"))
    assert caught.value.status == 200
    await asyncio.wait_for(origin.disconnected.wait(), 60)


async def test_a_bomb_is_too_large(network: HttpNetwork, origin: Origin) -> None:
    bomb = gzip.compress(bytes(2_000_000))
    origin.serve("/", ServerAnswer(headers={"Content-Encoding": "gzip"}, body=bomb))
    with pytest.raises(TooLarge):
        await get(network, origin.url("/"))


async def test_of_an_answer_that_is_no_success_only_the_beginning_is_read(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(status=404, body=bytes(70_000), endless=True))
    answer = await get(network, origin.url("/"))
    assert (answer.status, len(answer.body), answer.complete) == (404, 65_536, False)


async def test_of_an_answer_to_a_delivery_at_most_64_kib_are_read(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(body=bytes(1 << 30 >> 8), endless=True))
    answer = await post(network, origin.url("/"))
    assert (answer.status, len(answer.body), answer.complete) == (200, 65_536, False)
    await asyncio.wait_for(origin.disconnected.wait(), 60)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nX: %s\r\n\r\n" % (b"x" * (1 << 20)),
        b"HTTP/1.1 200 OK\r\n%s\r\n" % (b"X: x\r\n" * 10_000),
        b"HTTP/1.1 200 %s\r\n\r\n" % (b"x" * (1 << 20)),
    ],
    ids=["one long line", "many lines", "a long status line"],
)
async def test_a_header_bomb_is_a_bad_answer(
    network: HttpNetwork, origin: Origin, raw: bytes
) -> None:
    origin.serve("/", ServerAnswer(raw=raw))
    with pytest.raises(BadAnswer):
        await get(network, origin.url("/"))


# --- time ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        ServerAnswer(silent=True),
        ServerAnswer(delay=5),
        ServerAnswer(headers={"Content-Length": "100"}, body=b"x", raw=None, piece=1),
        ServerAnswer(body=bytes(1000), piece=1, drip=0.1),
        ServerAnswer(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        ServerAnswer(raw=b"HTTP/1.1 200 OK\r\nX: "),
    ],
    ids=["silence", "late", "short body", "drip", "continue flood", "half a header"],
)
async def test_an_answer_that_does_not_end_in_time_is_given_up(
    network: HttpNetwork, origin: Origin, answer: ServerAnswer
) -> None:
    origin.serve("/", answer)
    started = asyncio.get_running_loop().time()
    with pytest.raises(TimedOut):
        await get(network, origin.url("/"))
    assert asyncio.get_running_loop().time() - started < 3


async def test_a_server_that_lets_nobody_in_is_given_up_long_before_the_rest(
    network: HttpNetwork,
) -> None:
    """Its queue of connections is full, so that it does not answer another."""
    limits = ResponseLimits(seconds=600, idle_seconds=0.3)
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        ExitStack() as stack,
    ):
        address = listener.getsockname()
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)
        async with asyncio.timeout(60):
            with pytest.raises(TimedOut, match="cannot connect"):
                await get(network, f"http://127.0.0.1:{address[1]}/", limits)


async def test_a_delivery_counts_by_its_status_though_the_body_drips(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(body=bytes(1000), piece=1, drip=0.1))
    answer = await post(network, origin.url("/"))
    assert (answer.status, answer.complete) == (200, False)
    assert len(answer.body) < 100


async def test_a_delivery_counts_by_its_status_though_the_connection_is_reset(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(headers={"Content-Length": "9"}, resets=True))
    answer = await post(network, origin.url("/"))
    assert (answer.status, answer.complete) == (200, False)


# --- failures --------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage\r\n\r\n",
        b"<html>",  # HTTP/0.9
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    ],
)
async def test_what_is_not_http_is_a_bad_answer(
    network: HttpNetwork, origin: Origin, raw: bytes
) -> None:
    origin.serve("/", ServerAnswer(raw=raw, closes=True))
    with pytest.raises(BadAnswer):
        await get(network, origin.url("/"))


@pytest.mark.parametrize("body", [b"", b"half"])
async def test_a_body_shorter_than_announced_is_a_bad_answer(
    network: HttpNetwork, origin: Origin, body: bytes
) -> None:
    origin.serve(
        "/", ServerAnswer(headers={"Content-Length": "9"}, body=body, closes=True)
    )
    with pytest.raises(BadAnswer, match="ended early") as caught:
        await get(network, origin.url("/"))
    assert caught.value.status == 200


async def test_a_connection_closed_without_an_answer_is_a_bad_answer(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(raw=b"", closes=True))
    with pytest.raises(BadAnswer, match="without an answer"):
        await get(network, origin.url("/"))


async def test_a_reset_connection_is_unreachable(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(raw=b"", resets=True))
    with pytest.raises(Unreachable, match="reset"):
        await get(network, origin.url("/"))


async def test_a_port_where_nobody_listens_is_unreachable(
    network: HttpNetwork,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match="cannot connect: connection refused"):
        await get(network, f"http://127.0.0.1:{port}/")


async def test_a_server_without_tls_is_unreachable_by_https() -> None:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, HttpNetwork(allow_topics=LOOPBACK) as network:
        with pytest.raises(Unreachable, match=r"TLS|reset"):
            await get(network, f"https://127.0.0.1:{port}/")


async def test_a_certificate_that_nobody_trusts_is_refused(
    network: HttpNetwork, tmp_path: Path
) -> None:
    async with Origin(tls=server_context(tmp_path)) as origin:
        with pytest.raises(Unreachable, match="certificate is not valid: self"):
            await get(network, origin.url("/"))
        assert origin.requests == []


async def test_a_trusted_server_is_spoken_to_by_https(tmp_path: Path) -> None:
    async with Origin(tls=server_context(tmp_path)) as origin:
        origin.serve("/", ServerAnswer(body=b"<rss/>"))
        tls = trusting_context(tmp_path)
        async with HttpNetwork(allow_topics=LOOPBACK, tls=tls) as network:
            assert (await get(network, origin.url("/"))).body == b"<rss/>"


@pytest.mark.parametrize("found", [OSError, UnicodeError, None])
async def test_a_name_without_address_is_unreachable(
    found: type[Exception] | None,
) -> None:
    async def find_nothing(host: str) -> list[str]:
        if found is not None:
            raise found
        return []

    async with HttpNetwork(lookup=find_nothing) as network:
        with pytest.raises(Unreachable, match="cannot be resolved"):
            await get(network, "http://nowhere.example/")


async def test_a_cancelled_request_closes_its_connection(
    network: HttpNetwork, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(body=b"x", piece=1, endless=True, drip=0.01))
    limits = ResponseLimits(seconds=30)
    task = asyncio.create_task(get(network, origin.url("/"), limits))
    await origin.wait_for_requests()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(origin.disconnected.wait(), 60)


# --- names and exemption ---------------------------------------------------------


async def test_the_second_address_is_tried_when_the_first_does_not_answer(
    origin: Origin,
) -> None:
    async def dual_stack(host: str) -> list[str]:
        return ["::1", "127.0.0.1"]

    async with HttpNetwork(allow_topics=LOOPBACK, lookup=dual_stack) as network:
        answer = await get(network, origin.url("/", host="dual.example"))
    assert answer.status == 404
    assert len(origin.requests) == 1
    assert origin.requests[0].headers["host"] == f"dual.example:{origin.port}"


async def test_the_system_resolves_names_for_us(
    network: HttpNetwork, origin: Origin
) -> None:
    answer = await get(network, origin.url("/", host="localhost"))
    assert answer.status == 404
    assert network.is_exempt("localhost", Purpose.TOPIC)


async def test_a_host_in_an_allowed_network_is_exempt_for_that_purpose_only() -> None:
    network = HttpNetwork(allow_topics=LOOPBACK)
    assert network.is_exempt("127.0.0.1", Purpose.TOPIC)
    assert not network.is_exempt("127.0.0.1", Purpose.CALLBACK)
    assert not network.is_exempt("8.8.8.8", Purpose.TOPIC)


async def test_a_name_is_exempt_when_all_its_last_addresses_are(
    origin: Origin,
) -> None:
    addresses = ["127.0.0.1"]

    async def look_up(host: str) -> list[str]:
        return addresses

    async with HttpNetwork(allow_topics=LOOPBACK, lookup=look_up) as network:
        assert not network.is_exempt("some.example", Purpose.TOPIC)
        await get(network, origin.url("/", host="some.example"))
        assert network.is_exempt("some.example", Purpose.TOPIC)
        addresses.append("10.0.0.1")
        await get(network, origin.url("/", host="other.example"))
        assert not network.is_exempt("other.example", Purpose.TOPIC)


async def test_blocked_says_neither_address_nor_reason() -> None:
    async with HttpNetwork() as network:
        with pytest.raises(Blocked) as caught:
            await get(network, "http://127.0.0.1:8080/")
    assert str(caught.value) == "blocked: the hub does not connect to this address"
    assert caught.value.status == 0
