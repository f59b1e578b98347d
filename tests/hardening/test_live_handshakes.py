"""What comes before a live connection: odd handshakes, and pages of other sites."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.library import Library, topic_of
from tests.support.live_hub import LiveHub, live_hub

pytestmark = pytest.mark.asyncio(loop_scope="module")

UPGRADE = (
    b"Host: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
GET = b"GET /stream HTTP/1.1\r\n"
NEWS = topic_of("news")
ODD = {
    "a long line": (b"GET /stream?cursor=%b HTTP/1.1\r\n" % (b"1" * 9_000), 414),
    "a long header": (GET + b"X: %b\r\n" % (b"1" * 9_000), 431),
    "many headers": (GET + b"".join(b"X-%d: 1\r\n" % it for it in range(200)), 431),
    "a body": (GET + b"Content-Length: 3\r\n", 400),
    "a body in chunks": (GET + b"Transfer-Encoding: chunked\r\n", 400),
    # No handshake but a request, whose upgrade is ignored: others could follow it.
    "another method": (b"POST /stream HTTP/1.1\r\nConnection: close\r\n", 405),
    "another version": (GET + b"Sec-WebSocket-Version: 8\r\n", 400),
    "another key": (GET + b"Sec-WebSocket-Key: short\r\n", 400),
    "another path": (b"GET /nowhere HTTP/1.1\r\n", 404),
    "bytes in a header": (GET + b"X: a\x01b\r\n", 400),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path_factory.mktemp("handshakes")) as hub:
        await hub.add_feed(NEWS)
        yield hub


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_handshake_is_answered_and_the_connection_ends(
    hub: LiveHub, name: str
) -> None:
    """None may be held open: it is no live connection that is counted."""
    head, status = ODD[name]
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(head + UPGRADE + b"\r\n")
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.transport.abort()
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert answer.lower().count(b"\r\nconnection: close\r\n") == 1


# --- pages of other sites -------------------------------------------------------------

FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


@pytest.mark.parametrize(
    "target",
    ["/stream?topic={news}", "/?hub.mode=retrieve&hub.topic={news}&wait=stream"],
)
async def test_no_answer_lets_a_browser_add_the_credentials_it_keeps(
    hub: LiveHub, target: str
) -> None:
    """Fetch, "CORS protocol and credentials": with them ``*`` allows nobody."""
    path = target.format(news=NEWS)
    for accept in ("text/event-stream", "*/*"):
        answer = await hub.ask(path, Accept=accept, **_headers(FOREIGN))
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("accept", ["text/event-stream", "application/atom+xml"])
async def test_the_credentials_a_browser_keeps_open_no_stream_to_another_site(
    hub: LiveHub, accept: str
) -> None:
    library = await Library.open(hub.hub)
    known = {"Authorization": f"Basic {library.credential}", "Accept": accept}
    query = f"hub.mode=retrieve&hub.topic={NEWS}&wait=stream"
    for path in (f"/stream?topic={NEWS}", f"/?{query}"):
        navigating = {**FOREIGN, **known, "Sec-Fetch-Mode": "no-cors"}
        answer = await hub.ask(path, **_headers(navigating))
        assert answer.status in (403, 406), path


def _headers(named: dict[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): it for name, it in named.items()}
