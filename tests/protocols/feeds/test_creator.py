"""A creator's feed.json: what makes one, what is wrong with one, what is read of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import ParseContext, parse
from protocols.feeds.creator import older_url
from protocols.feeds.known_entries import KnownSlice, pack_known
from protocols.feeds.limits import MAX_ENTRIES
from protocols.identity import content_hash, fingerprint
from protocols.model import FeedFormat, ParsedFeed
from protocols.protocol_errors import (
    FeedError,
    InvalidDocument,
    NotAFeed,
    UnsupportedVersion,
)
from tests.support.creator import NOW, URL, a_creator_feed, an_item, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAMES = st.sampled_from(
    (
        *("slug", "title", "summary", "url", "publishedAt", "updatedAt", "tags"),
        *("kinds", "discoverable", "thumbnail", "media", "language", "wordCount"),
        "external",
    )
)


def changed(item: dict[str, Any], **changes: Any) -> ParsedFeed:
    return read(a_creator_feed({**item, **changes}))


def test_it_is_told_from_a_json_feed_by_content_alone() -> None:
    other = {"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": []}

    assert read(a_creator_feed()).format is FeedFormat.CREATOR
    assert read(other).format is FeedFormat.JSON_FEED
    assert read({**a_creator_feed(), **other}).format is FeedFormat.JSON_FEED


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"version": 1, "creator": {}},
        {"version": 1, "items": [], "packages": {}},
        {"version": 2, "generatedAt": "2026-05-01", "packages": {}},
        {"items": []},
        {"version": True, "items": []},
    ],
)
def test_other_json_is_no_feed(document: Any) -> None:
    with pytest.raises(NotAFeed):
        read(document)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "1"}, "/version: expected an integer"),
        ({"version": True}, "/version: expected an integer"),
        ({"version": ...}, "/version: expected an integer"),
        ({"creator": []}, "/creator: expected an object"),
        ({"creator": ...}, "/creator: expected an object"),
        ({"creator": {}}, "/creator/handle: expected a non-empty text"),
        (
            {"creator": {"handle": " "}},
            "/creator/handle: expected a non-empty text",
        ),
        (
            {"creator": {"handle": 5}},
            "/creator/handle: expected a non-empty text",
        ),
        ({"items": {}}, "/items: expected an array"),
        ({"items": None}, "/items: expected an array"),
        ({"items": ...}, "/items: expected an array"),
    ],
)
def test_a_document_that_is_wrong_as_a_whole_is_refused_with_place_and_rule(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDocument) as refused:
        read(a_creator_feed(**changes))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"items": ..., "entries": []},
        {"items": ..., "creator": {}},
        {"creator": ..., "author": {"handle": "mira"}, "generatedAt": "2026-05-01"},
        {
            **{"creator": ..., "items": ..., "author": {}, "entries": []},
            **{"generator": "g", "generatedAt": "2026-05-01"},
        },
    ],
)
def test_a_later_version_is_refused_with_its_number_whatever_it_renames(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(UnsupportedVersion, match=r"version 2 of feed\.json"):
        read(a_creator_feed(version=2, **changes))


@pytest.mark.parametrize(
    ("url", "older"),
    [
        ("https://a.example/feed.json", "https://a.example/feed.v1.json"),
        ("https://a.example/b/feed.json?x=1", "https://a.example/b/feed.v1.json"),
        ("https://a.example/feed.v1.json", "https://a.example/feed.v1.json"),
    ],
)
def test_version_1_is_looked_for_beside_a_later_one(url: str, older: str) -> None:
    assert older_url(url) == older


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"title": ...}, "/items/1/title: expected a non-empty text"),
        ({"title": " "}, "/items/1/title: expected a non-empty text"),
        ({"title": 5}, "/items/1/title: expected a non-empty text"),
        ({"summary": ...}, "/items/1/summary: expected a text"),
        ({"summary": []}, "/items/1/summary: expected a text"),
        ({"url": "/a"}, "/items/1/url: expected an absolute http or https URL"),
        ({"url": None}, "/items/1/url: expected an absolute http or https URL"),
        (
            {"url": "javascript:a()"},
            "/items/1/url: expected an absolute http or https URL",
        ),
        ({"publishedAt": ...}, "/items/1/publishedAt: expected an ISO 8601 time"),
        ({"updatedAt": "20 Apr 2026"}, "/items/1/updatedAt: expected an ISO 8601 time"),
        (
            {"updatedAt": "2026-13-01T00:00:00Z"},
            "/items/1/updatedAt: expected an ISO 8601 time",
        ),
        (
            {"updatedAt": "9999-12-31T23:59:59-12:00"},
            "/items/1/updatedAt: expected an ISO 8601 time",
        ),
        (
            {"publishedAt": "0001-01-01T00:00:00+14:00"},
            "/items/1/publishedAt: expected an ISO 8601 time",
        ),
        ({"updatedAt": 1776679200}, "/items/1/updatedAt: expected an ISO 8601 time"),
        ({"kinds": []}, "/items/1/kinds: expected a non-empty array"),
        ({"kinds": "text"}, "/items/1/kinds: expected a non-empty array"),
        ({"kinds": [3]}, "/items/1/kinds/0: expected a text"),
    ],
)
def test_an_item_that_is_wrong_is_left_out_alone_and_spared(
    changes: dict[str, Any], problem: str
) -> None:
    parsed = read(a_creator_feed("first", an_item("wrong", **changes), "last"))

    assert [entry.title for entry in parsed.entries] == ["On first", "On last"]
    assert parsed.problems == (problem,)
    assert parsed.dropped == 1
    assert parsed.spared == ("creator:mara/wrong",)
    assert parsed.is_complete


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (an_item(""), "/items/0/slug: expected a non-empty text"),
        ({}, "/items/0/slug: expected a non-empty text"),
        ("text", "/items/0: expected an object"),
    ],
)
def test_a_list_with_an_item_that_may_be_any_is_not_complete(
    item: Any, problem: str
) -> None:
    parsed = read({**a_creator_feed(), "items": [item]})

    assert parsed.problems == (problem,)
    assert not parsed.is_complete


def test_of_two_items_with_one_slug_the_first_counts() -> None:
    parsed = read(a_creator_feed("a", an_item("a", title="Second")))

    assert [entry.title for entry in parsed.entries] == ["On a"]
    assert parsed.problems == ("/items/1/slug: a is the slug of another item",)
    assert (parsed.dropped, parsed.is_complete) == (1, True)


def test_a_list_that_is_cut_off_is_not_complete() -> None:
    parsed = read(a_creator_feed(*(f"s{n}" for n in range(MAX_ENTRIES + 1))))

    assert len(parsed.entries) == MAX_ENTRIES
    assert not parsed.is_complete
    assert parsed.problems == (
        f"/items: {MAX_ENTRIES + 1} items: only the newest {MAX_ENTRIES} are kept",
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tags": "a"}, "tags: expected an array; left out"),
        ({"tags": [5]}, "tags/0: expected a text; left out"),
        ({"thumbnail": "a.png"}, "thumbnail: expected an object; left out"),
        (
            {"thumbnail": {"url": "a.png"}},
            "thumbnail/url: expected an absolute URL; left out",
        ),
        (
            {"thumbnail": {"url": "https://a.example/a.png", "width": -1}},
            "thumbnail/width: expected a number from 0 on; left out",
        ),
        ({"media": {}}, "media: expected an array; left out"),
        ({"media": ["a"]}, "media/0: expected an object; left out"),
        ({"media": [{}]}, "media/0/url: expected an absolute URL; left out"),
        (
            {"media": [{"url": "https://a.example/a"}]},
            "media/0/kind: expected video, audio or image",
        ),
        ({"language": 3}, "language: expected a text; left out"),
        ({"wordCount": True}, "wordCount: expected a number from 0 on; left out"),
        ({"wordCount": "9"}, "wordCount: expected a number from 0 on; left out"),
        ({"external": "paper"}, "external: expected an absolute URL; left out"),
        ({"discoverable": "no"}, "discoverable: expected true or false; left out"),
        ({"kinds": ["smell"]}, "kinds/0: 'smell' is not a known kind"),
        (
            {"updatedAt": "2026-04-20"},
            "updatedAt: without a time zone: taken as UTC",
        ),
    ],
)
def test_a_wrong_value_that_is_optional_is_left_out_alone(
    changes: dict[str, Any], problem: str
) -> None:
    parsed = changed(an_item("a"), **changes)

    assert [entry.key for entry in parsed.entries] == ["creator:mara/a"]
    assert parsed.problems == (f"/items/0/{problem}",)
    assert parsed.dropped == 0


def test_an_item_is_known_by_its_creator_and_slug_wherever_it_moves() -> None:
    (here,) = changed(an_item("a")).entries
    (moved,) = changed(an_item("a"), url="https://elsewhere.example/a").entries

    assert here.key == moved.key == "creator:mara/a"


@pytest.mark.parametrize(
    ("changes", "is_other"),
    [
        ({"updatedAt": "2026-04-21T10:00:00Z"}, False),
        ({"mood": 3}, False),
        ({"title": "Other"}, True),
        ({"wordCount": 3}, True),
        ({"discoverable": False}, True),
        ({"kinds": ["text", "image"]}, True),
        ({"media": [{"kind": "image", "url": "https://a.example/a.png"}]}, True),
        ({"thumbnail": {"url": "https://a.example/a.png"}}, True),
    ],
)
def test_all_that_an_item_says_is_its_content_but_not_when_it_says_so(
    changes: dict[str, Any], is_other: bool
) -> None:
    (entry,) = changed(an_item("a")).entries
    (other,) = changed(an_item("a"), **changes).entries

    assert (content_hash(entry) != content_hash(other)) is is_other


def test_a_creator_who_is_not_to_be_found_is_so_as_a_whole() -> None:
    parsed = read(a_creator_feed("a", creator={"handle": "m", "discoverable": False}))

    assert parsed.feed.unlisted
    assert not parsed.entries[0].unlisted
    assert parsed.feed.title == "m"


def test_known_items_are_passed_over_and_new_ones_read() -> None:
    first = read(a_creator_feed("a", "b"), known=b"")
    assert first.outline is not None
    known = pack_known(
        first.outline.setting,
        [
            KnownSlice(slice, fingerprint(entry.key), False)
            for slice, entry in zip(first.outline.slices, first.entries, strict=True)
        ],
    )

    later = read(a_creator_feed("new", "b", "a", generatedAt="x"), known=known)

    assert [entry.title for entry in later.entries] == ["On new"]
    assert later.outline is not None
    assert later.outline.keys == (
        0,
        fingerprint("creator:mara/b"),
        fingerprint("creator:mara/a"),
    )
    assert later.is_partial
    assert later.dropped == 0


def test_items_are_read_anew_in_another_language() -> None:
    first = read(a_creator_feed("a"), known=b"")
    assert first.outline is not None
    known = pack_known(
        first.outline.setting,
        [KnownSlice(first.outline.slices[0], fingerprint(first.entries[0].key), False)],
    )

    other = {"handle": "mara", "language": "sv"}
    assert len(read(a_creator_feed("a", creator=other), known=known).entries) == 1


def test_what_there_is_to_note_of_an_item_is_noted_again() -> None:
    parsed = read(a_creator_feed(an_item("a", tags=[5])), known=b"")

    assert parsed.outline is not None
    assert parsed.outline.slices == (0,)


def test_an_item_that_is_nested_too_deep_to_be_known_again_is_read_each_time() -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]

    parsed = read(a_creator_feed(an_item("a", deep=deep)), known=b"")

    assert parsed.outline is not None
    assert parsed.outline.slices == (0,)
    assert len(parsed.entries) == 1


@given(JSON, NAMES)
def test_no_value_of_a_member_raises_anything(value: Any, name: str) -> None:
    document = a_creator_feed({**an_item("a"), name: value})
    try:
        body = orjson.dumps(document)
    except TypeError:  # an integer or a text that is none in JSON
        body = json.dumps(document).encode("utf-8", "surrogatepass")
    with suppress(FeedError):
        parse(body, ParseContext(url=URL, now=NOW, known=b""))


@given(JSON)
def test_no_creator_raises_anything_but_a_feed_error(value: Any) -> None:
    body = json.dumps({"version": 1, "creator": value, "items": [value]}).encode()
    with suppress(FeedError):
        parse(body, ParseContext(url=URL, now=NOW))


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_a_feed_error(noise: bytes) -> None:
    body = b'{"version":1,"creator":{"handle":"m"},"items":[' + noise
    for each in (body, body + b"]}"):
        with suppress(FeedError):
            parse(each, ParseContext(url=URL, now=NOW))
