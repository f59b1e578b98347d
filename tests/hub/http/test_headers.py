"""Fields of an answer that come in several lines."""

from __future__ import annotations

import gzip

import pytest

from hub.http.network_errors import BadAnswer
from hub.http.response_parser import AnswerHeaders, ResponseParser
from protocols.http import HeaderLink, parse_link_header


def body_of(*codings: bytes, body: bytes) -> bytes:
    reception = ResponseParser()
    reception.expect(cut=100, limit=1_000)
    lines = b"".join(b"Content-Encoding: %b\r\n" % each for each in codings)
    reception.feed(
        b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (lines, len(body), body)
    )
    return reception.body


def test_links_in_several_lines_are_all_read_and_in_their_order() -> None:
    headers = AnswerHeaders(
        [
            (b"link", b'<https://a.example/feed>; rel="self"'),
            (b"etag", b'"1"'),
            (b"link", b'<https://hub.example/>; rel="hub"'),
            (b"link", b'<https://a.example/may>; rel="validate"'),
        ]
    )
    assert parse_link_header(headers["Link"]) == (
        HeaderLink("https://a.example/feed", "self"),
        HeaderLink("https://hub.example/", "hub"),
        HeaderLink("https://a.example/may", "validate"),
    )
    assert list(headers) == ["link", "etag"]


def test_directives_in_several_lines_are_one_list() -> None:
    headers = AnswerHeaders(
        [(b"cache-control", b"public"), (b"cache-control", b"max-age=60")]
    )
    assert headers["Cache-Control"] == "public, max-age=60"


@pytest.mark.parametrize(
    "name",
    [
        *("Age", "Content-Type", "Date", "ETag", "Expires", "Last-Modified"),
        *("Location", "Retry-After", "X-RateLimit-Reset"),
    ],
)
def test_of_a_field_that_is_no_list_the_first_line_counts(name: str) -> None:
    field = name.lower().encode()
    headers = AnswerHeaders([(field, b"first"), (field, b"second")])
    assert headers[name] == "first"


def test_a_coding_that_is_named_in_two_lines_is_undone_once() -> None:
    packed = gzip.compress(b"news", mtime=0)
    assert body_of(b"gzip", b"gzip", body=packed) == b"news"


def test_two_codings_in_two_lines_are_not_taken_for_the_first_alone() -> None:
    packed = gzip.compress(gzip.compress(b"news", mtime=0), mtime=0)
    with pytest.raises(BadAnswer, match="gzip, br"):
        body_of(b"gzip", b"br", body=packed)
