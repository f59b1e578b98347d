"""What a path selects of a document that is no feed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import ParseContext, parse
from protocols.feeds.document_parts import MOST_MATCHES, path_error
from protocols.model import FeedFormat, ParsedFeed, Text
from protocols.protocol_errors import (
    EmptyDocument,
    FeedError,
    InvalidDocument,
    LimitExceeded,
    MalformedDocument,
)
from tests.support.creator import NOW

URL = "https://a.example/page"
STORE = {"price": 3, "book": [{"name": "A", "n": 1}, {"name": "B", "n": 2}]}


def select(body: Any, selector: str) -> ParsedFeed:
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse(written, ParseContext(url=URL, now=NOW, selector=selector))


@pytest.mark.parametrize(
    "selector",
    [
        *("$", "$.price", "$.book[?(@.n>1)].name", "$..name", "$.book[-1]"),
        *(".h-entry", "ul > li:nth-child(2n+1)", "[rel=next]", "*", "a:has(> img)"),
    ],
)
def test_a_path_that_can_be_read_has_no_error(selector: str) -> None:
    assert path_error(selector) == ""


@pytest.mark.parametrize(
    "selector",
    [
        *("$.book[(@.length-1)]", "$..[", "$.a[?", "$.a.b c", "$[?@.x == 1e999999]"),
        *("[rel=", "p:nth-child(x)", ".a::before", ".a >", "p:unknown", ".a,,b"),
    ],
)
def test_a_path_that_cannot_be_read_has_one(selector: str) -> None:
    assert path_error(selector)
    assert "\n" not in path_error(selector)


@pytest.mark.parametrize(
    ("selector", "value", "title"),
    [
        ("$.price", "3", "3"),
        ("$.book[*].name", '["A","B"]', "$.book[*].name"),
        ("$.book[0]", '{"n":1,"name":"A"}', "$.book[0]"),
        ("$..name", '["A","B"]', "$..name"),
        ("$.book[?(@.n>1)].name", '"B"', "B"),
    ],
)
def test_a_json_path_selects_values(selector: str, value: str, title: str) -> None:
    parsed = select(STORE, selector)

    (entry,) = parsed.entries
    assert parsed.format is FeedFormat.PART
    assert entry.content == Text(value=value, type="application/json")
    assert (entry.title, entry.links[0].href) == (title, URL)


def test_a_css_path_selects_markup_with_absolute_addresses() -> None:
    page = (
        b"<!doctype html><title> The  page</title><div class=n><a href=/q>x</a></div>"
        b"between<p class=n>two"
    )

    (entry,) = select(page, ".n").entries

    assert entry.title == "The page"
    assert entry.content == Text(
        value='<div class="n"><a href="https://a.example/q">x</a></div>\n'
        '<p class="n">two</p>'
    )
    assert select(b"<p class=n>x", ".n").feed.title == ".n"


@pytest.mark.parametrize(
    ("body", "selector", "message"),
    [
        (STORE, "$.none", "#$.none: nothing in the document matches it"),
        (STORE, "$.a[", "#$.a[: not a JSONPath: unexpected end of query"),
        (b"<p>", ".n", "#.n: nothing in the page matches it"),
        (b"<!-- -->", ".n", "#.n: nothing in the page matches it"),
        (b"<p>", ".n >", "#.n >: not a CSS path: Expected selector, got <EOF at 4>"),
        (
            b"<p>",
            ".n::before",
            "#.n::before: not a CSS path: Pseudo-elements are not supported.",
        ),
    ],
)
def test_a_path_that_leads_nowhere_is_told_with_its_reason(
    body: Any, selector: str, message: str
) -> None:
    with pytest.raises(InvalidDocument) as refused:
        select(body, selector)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("body", "selector", "error"),
    [
        (b" ", "$.a", EmptyDocument),
        (b"", ".n", EmptyDocument),
        (b"{", "$.a", MalformedDocument),
        ([1] * (MOST_MATCHES + 1), "$[*]", LimitExceeded),
        (b"[" * 40 + b"]" * 40, "$" + "[*,*]" * 39, LimitExceeded),  # 2 to the 39th
        (b"<p class=n>" * (MOST_MATCHES + 1), ".n", LimitExceeded),
        (b"[" * 500 + b"]" * 500, "$", LimitExceeded),
        (b"<p>" * 1_000_001, "p", LimitExceeded),
        (b"<div>" * 200 + b"x" * 50_000, "div", LimitExceeded),  # each has the text
    ],
)
def test_documents_out_of_bounds_are_refused(
    body: Any, selector: str, error: type[FeedError]
) -> None:
    with pytest.raises(error):
        select(body, selector)


@given(st.binary(max_size=60), st.sampled_from(["$..*", "*", "$[?@.a]", "p > a"]))
def test_no_bytes_raise_anything_but_a_feed_error(body: bytes, selector: str) -> None:
    with suppress(FeedError):
        select(body, selector)


@given(st.text(max_size=30), st.sampled_from(["$", "."]))
def test_no_path_raises_anything_but_a_feed_error(path: str, start: str) -> None:
    for body in (b'{"a": [1]}', b"<p class=a>x"):
        with suppress(FeedError):
            select(body, start + path)
