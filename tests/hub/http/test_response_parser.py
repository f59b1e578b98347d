from __future__ import annotations

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.http.network_errors import BadAnswer, NetworkError, TimedOut, TooLarge
from hub.http.response_parser import MOST_FRAMING, MOST_HEADERS, ResponseParser

PACKED = gzip.compress(b"news " * 100, mtime=0)
WORDS = [
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: x\r\n\r\nwords",
    b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nETag: trailer\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
    % (len(PACKED), PACKED),
    b"HTTP/1.0 404 No\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nother words",
    b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    b"HTTP/1.1 204 No Content\r\n\r\ngarbage",
    b"garbage",
]


def receive(*pieces: bytes, cut: int = 100, limit: int | None = None) -> ResponseParser:
    """What is made of these pieces, before the server closes the connection."""
    reception = ResponseParser()
    reception.expect(cut=cut, limit=limit)
    for piece in pieces:
        if reception.feed(piece):
            return reception
    reception.end()
    return reception


def outcome(*pieces: bytes, limit: int | None) -> tuple[object, ...]:
    try:
        got = receive(*pieces, limit=limit)
    except NetworkError as error:
        return type(error), error.reason, error.status
    return got.status, dict(got.headers), got.body, got.is_whole


@given(
    words=st.sampled_from(WORDS),
    places=st.lists(st.integers(1, 200), max_size=5),
    limit=st.sampled_from([None, 1_000]),
)
def test_it_does_not_matter_how_the_bytes_of_an_answer_come(
    words: bytes, places: list[int], limit: int | None
) -> None:
    cuts = sorted({0, len(words), *(place for place in places if place < len(words))})
    pieces = [words[a:b] for a, b in pairwise(cuts)]
    assert outcome(*pieces, limit=limit) == outcome(words, limit=limit)


def test_an_interim_answer_leaves_nothing_behind() -> None:
    got = receive(WORDS[2])
    assert (got.status, dict(got.headers)) == (200, {"content-length": "0"})


def test_a_trailer_is_no_header() -> None:
    got = receive(WORDS[3], limit=100)
    assert (got.body, dict(got.headers)) == (b"abcde", {"transfer-encoding": "chunked"})


def test_of_a_header_that_is_repeated_all_lines_count() -> None:
    got = receive(b"HTTP/1.1 204 OK\r\nA: 1\r\na: 2\r\nB: \xff\r\n\r\n")
    assert got.headers["A"] == "1, 2"
    assert got.headers.get("b") == "\udcff"
    assert len(got.headers) == 2


@pytest.mark.parametrize(
    ("words", "is_clean"),
    [
        (b"HTTP/1.1 204 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", True),
        (b"HTTP/1.1 204 OK\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 204 OK\r\n\r\n", False),
        (b"HTTP/1.0 204 OK\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\n\r\nx", False),
        (WORDS[9], False),
        (WORDS[10], False),
        (WORDS[11], False),
        (b"HTTP/1.1 404 No\r\nContent-Length: 101\r\n\r\n" + b"x" * 101, False),
    ],
)
def test_a_connection_is_kept_only_after_an_answer_that_ended_where_it_said(
    words: bytes, is_clean: bool
) -> None:
    assert receive(words).is_clean is is_clean


def test_an_answer_leaves_nothing_behind_for_the_next() -> None:
    reception = receive(WORDS[1], limit=100)
    reception.expect(cut=100, limit=None)
    assert not reception.has_begun
    assert not reception.is_clean
    assert reception.feed(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno")
    assert (reception.status, reception.body) == (404, b"no")
    assert dict(reception.headers) == {"content-length": "2"}
    assert reception.is_clean


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MOST_HEADERS + 1) + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 8_190 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA" + b"x" * MOST_FRAMING,
        b"HTTP/1.1 200 " + b"x" * MOST_FRAMING,
        b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MOST_FRAMING // 25 + 1),
    ],
)
def test_a_head_has_bounds(words: bytes) -> None:
    with pytest.raises(BadAnswer, match="not valid HTTP") as caught:
        receive(words)
    assert caught.value.status == 0


@pytest.mark.parametrize(
    "beginning", [b"0\r\nA: ", b"1;a=", b"1\r\nx\r\n0\r\nA: b\r\nB: "]
)
def test_what_goes_round_a_body_has_bounds(beginning: bytes) -> None:
    """Trailers and chunk extensions are no body; they might go on for ever."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [head + beginning, *[b"x" * 65_536] * 5]
    with pytest.raises(BadAnswer) as caught:
        receive(*pieces, limit=1_000)
    assert caught.value.status == 200
    assert not receive(*pieces).is_whole


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1_000),
        (b"HTTP/1.1 404 No\r\n\r\n", b"x" * 1_000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"A" * 1_000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 ", b"x" * 1_000),
    ],
    ids=["a body", "an error", "chunks", "trailers", "a name", "hints", "a reason"],
)
def test_where_only_the_status_matters_no_more_than_128_kib_are_looked_at(
    beginning: bytes, more: bytes
) -> None:
    """64 of body, and as much around it."""
    reception = ResponseParser()
    reception.expect(cut=65_536, limit=None)
    reception.feed(beginning)
    taken = len(beginning)
    is_over = False
    while not is_over and taken < 1 << 20:
        taken += len(more)
        try:
            is_over = reception.feed(more)
        except BadAnswer:
            is_over = True
    assert taken <= 131_072 + len(beginning) + len(more)
    assert len(reception.body) <= 65_536
    assert not reception.is_clean


def test_blanks_before_a_colon_are_no_part_of_the_name() -> None:
    words = b"HTTP/1.1 200 OK\r\nContent-Length  : 10\r\n\r\nfour"
    kind, _, status = outcome(words, limit=100)
    assert (kind, status) == (BadAnswer, 200)


def test_small_chunks_are_no_attack() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    words = head + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"
    assert receive(words, limit=100_000).body == b"x" * 100_000


def test_a_body_that_is_announced_too_large_is_not_waited_for() -> None:
    reception = ResponseParser()
    reception.expect(cut=0, limit=1_000)
    with pytest.raises(TooLarge) as caught:
        reception.feed(WORDS[7])
    assert caught.value.status == 200


def test_what_stops_in_the_middle_keeps_its_status() -> None:
    reception = ResponseParser()
    reception.expect(cut=100, limit=100)
    reception.feed(WORDS[6])
    with pytest.raises(TimedOut) as caught:
        reception.stop(TimedOut("no whole answer in time"))
    assert caught.value.status == 200


def test_a_damaged_body_that_ends_with_the_connection_keeps_its_status() -> None:
    words = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + PACKED[:-4]
    with pytest.raises(BadAnswer, match="compressed answer ends early") as caught:
        receive(words, limit=1_000)
    assert caught.value.status == 200


class Kept:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self.pieces.append(piece)


def test_a_body_goes_into_a_sink_as_it_came() -> None:
    kept, reception = Kept(), ResponseParser()
    reception.expect(cut=100, limit=1_000, sink=kept)
    answer = WORDS[4]
    assert not reception.feed(answer[:-10])
    assert reception.feed(answer[-10:])
    assert b"".join(kept.pieces) == PACKED
    assert (reception.body, reception.is_whole) == (b"", True)


def test_what_is_larger_than_the_limit_does_not_go_into_the_sink() -> None:
    kept, reception = Kept(), ResponseParser()
    reception.expect(cut=100, limit=10, sink=kept)
    with pytest.raises(TooLarge):
        reception.feed(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 11)
    assert kept.pieces == []


def test_only_the_body_of_a_2xx_goes_into_a_sink() -> None:
    kept, reception = Kept(), ResponseParser()
    reception.expect(cut=100, limit=1_000, sink=kept)
    assert reception.feed(b"HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nwords")
    assert (reception.body, kept.pieces) == (b"words", [])
