"""Whatever a server says, the hub's client makes of it what aiohttp does.

Where the two differ on purpose is written down beside what makes the difference.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from ipaddress import ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.http import HttpNetwork, Network, Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError
from tests.support.aiohttp_network import AiohttpNetwork

LIMITS = ResponseLimits(seconds=60, idle_seconds=50, body_bytes=5_000)
CUT = 1_000
SHOWN = ("Content-Type", "ETag", "Retry-After", "Location", "X-Odd")

Outcome = tuple[str, int, bytes, bool, tuple[str, ...]]


class Speaker:
    """Says the same to every request, and closes the connection."""

    def __init__(self) -> None:
        self.words = b""

    async def converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.words)
        await writer.drain()
        writer.close()


class Comparison:
    """Both clients and a server to ask, on a loop that stays."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._speaker = Speaker()
        self._runner.run(self._open())

    def ask_both(self, words: bytes, *, cuts: bool) -> tuple[Outcome, Outcome]:
        self._speaker.words = words
        ours = self._runner.run(self._ask(self._ours, cuts))
        theirs = self._runner.run(self._ask(self._theirs, cuts))
        return ours, theirs

    def close(self) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(
            self._speaker.converse, "127.0.0.1", 0
        )
        self._ours = HttpNetwork(allow_topics=[ip_network("127.0.0.0/8")])
        self._theirs = await AiohttpNetwork().__aenter__()

    async def _close(self) -> None:
        await self._theirs.__aexit__(None, None, None)
        await self._ours.__aexit__(None, None, None)
        self._server.close()

    async def _ask(self, network: Network | AiohttpNetwork, cuts: bool) -> Outcome:
        port = self._server.sockets[0].getsockname()[1]
        request = Request(
            method="GET",
            url=f"http://127.0.0.1:{port}/",
            purpose=Purpose.TOPIC,
            limits=LIMITS,
            cuts_body=cuts,
            cut=CUT,
        )
        try:
            answer = await network.send(request)
        except NetworkError as error:
            what = f"{type(error).__name__}: {error.reason}"
            return what, error.status, b"", False, ()
        shown = tuple(answer.headers.get(name, "") for name in SHOWN)
        return "", answer.status, answer.body, answer.complete, shown


@pytest.fixture(scope="module")
def comparison() -> Iterator[Comparison]:
    comparison = Comparison()
    yield comparison
    comparison.close()


BODIES = st.one_of(
    st.sampled_from([b"", b"x", b"<rss/>", b"y" * 1_001, b"z" * 6_000]),
    st.binary(max_size=40),
)
STATUSES = st.sampled_from(
    [
        *(100, 101, 103, 200, 201, 203, 204, 205, 206, 299),
        *(300, 301, 304, 400, 404, 410, 429, 500, 503, 599, 700, 999),
    ]
)
FIELDS = st.sampled_from(
    [
        b"Content-Type: text/xml",
        b"content-type:a/b;charset=\xe9",
        b"Content-Type: first\r\nCONTENT-TYPE: second",
        b'ETag:    \t W/"x" \t',
        b"ETag: \xc3\xa9\xff",
        b"Retry-After: 5",
        b"Location: /\xf0\x9f\x98\x80",
        b"X-Odd: a\r\n folded",
        b"X-Odd:",
        b"X-Odd: a\tb\x01c",
        b"X-Odd: \x00",
        b": no name",
        b"no colon",
        b"space in name: x",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: upgrade\r\nUpgrade: h2c",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: identity",
        b"Content-Encoding: gzip",
        b"Content-Encoding: zstd",
        b"Content-Encoding: br",
        b"Content-Length: 3",
        b"Content-Length: +3",
        b"Content-Length: 3, 3",
        b"Content-Length: 99999999999999999999999",
        b"Set-Cookie: a=b",
        b"X-Odd: " + b"x" * 8_000,
        b"X-Odd: " + b"x" * 9_000,
    ]
)


@st.composite
def framings(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Fields about the length of a body, and the body as it is sent."""
    body = draw(BODIES)
    if draw(st.booleans()) and body:
        body = gzip.compress(body, mtime=0)[: draw(st.sampled_from([None, -5]))]
    kind = draw(st.sampled_from(["length", "chunks", "close", "lie", "broken"]))
    if kind == "length":
        return b"Content-Length: %d\r\n" % len(body), body
    if kind == "lie":
        said = draw(st.sampled_from([0, 1, 5_001, 10_000]))
        return b"Content-Length: %d\r\n" % said, body
    if kind == "close":
        return b"", body
    size = draw(st.sampled_from([1, 7, 5_000]))
    extension = draw(st.sampled_from([b"", b";a=b", b" ", b";" + b"e" * 200]))
    chunks = b"".join(
        b"%x%s\r\n%s\r\n" % (len(body[at : at + size]), extension, body[at : at + size])
        for at in range(0, len(body), size)
    )
    end = b"0\r\n\r\n" if kind == "chunks" else b""
    trailer = draw(st.sampled_from([b"0\r\n\r\n", b"0\r\nETag: trailer\r\n\r\n"]))
    return b"Transfer-Encoding: chunked\r\n", chunks + (end and trailer)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """What a server may say, well-formed or not."""
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0", b"0.9", b"2.0"]))
    phrase = draw(st.sampled_from([b" OK", b"", b" ", b" \xe9\xff"]))
    framing, body = draw(framings())
    fields = b"".join(b"%s\r\n" % each for each in draw(st.lists(FIELDS, max_size=4)))
    after = draw(st.sampled_from([b"", b"", b"", b"\r\n"]))
    said = b"HTTP/%s %d%s\r\n" % (version, draw(STATUSES), phrase)
    words = interim + said + fields + framing + b"\r\n" + body + after
    if draw(st.integers(0, 7)) == 0:
        words = words.replace(b"\r\n", b"\n")
    if draw(st.integers(0, 7)) == 0:
        words = words[: draw(st.integers(0, len(words)))]
    return words


@given(words=answers(), cuts=st.booleans())
@settings(max_examples=100, deadline=None)
def test_both_clients_make_the_same_of_what_a_server_says(
    comparison: Comparison, words: bytes, cuts: bool
) -> None:
    ours, theirs = comparison.ask_both(words, cuts=cuts)
    assert ours == theirs or _knows_more(ours, theirs)


def _knows_more(ours: Outcome, theirs: Outcome) -> bool:
    """aiohttp forgets an answer's head if what is wrong with its body came in the same
    read. The hub's client has the status; where that is all that is wanted, or the
    answer was over before, it has the answer."""
    is_forgotten = theirs[:2] == ("BadAnswer: the answer is not valid HTTP", 0)
    reason = "BadAnswer: the answer ended early or is not valid HTTP"
    return is_forgotten and ours[1] != 0 and ours[0] in ("", reason)


@pytest.mark.parametrize(
    ("words", "ours", "theirs"),
    [
        # no status is below 100 (RFC 9110, 15)
        (b"HTTP/1.1 099 Odd\r\n\r\n", "BadAnswer", ""),
        # nothing reads the phrase, so that only the whole head is bounded
        (b"HTTP/1.1 204 %s\r\n\r\n" % (b"x" * 9_000), "", "BadAnswer"),
        # interim answers are bounded together
        (
            b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000 + b"HTTP/1.1 204 OK\r\n\r\n",
            "BadAnswer",
            "",
        ),
    ],
    ids=["status below 100", "long phrase", "flood of interim answers"],
)
def test_where_the_two_differ_it_is_on_purpose(
    comparison: Comparison, words: bytes, ours: str, theirs: str
) -> None:
    outcomes = comparison.ask_both(words, cuts=False)
    assert [each[0].partition(":")[0] for each in outcomes] == [ours, theirs]
