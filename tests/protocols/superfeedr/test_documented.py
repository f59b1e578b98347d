"""Superfeedr's own documentation: its sample entry, and the JSON it says comes of it.

The XML is read by our parser and rendered. Superfeedr's JSON sample has other dates
and another source than its XML, and lacks the summary: so shapes are compared, and
the values that its two samples share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.model import Feed, Link, Notification, Status
from protocols.superfeedr.atom_notifications import render_atom
from protocols.superfeedr.json_notifications import render_json
from tests.support.golden import CONTEXT, attributes, find, read_xml, texts
from tests.support.superfeedr_example import EXAMPLE, STATUS

DATA = Path(__file__).parents[2] / "data" / "superfeedr"
KEYS = {
    *("geo", "standardLinks", "permalinkUrl", "verb", "content", "published"),
    *("actor", "categories", "id", "object", "title", "updated", "source", "language"),
}
"""Of the item in the documented JSON."""


def documented(context: ParseContext = CONTEXT) -> Notification:
    parsed = parse_leniently((DATA / "documented-entry.xml").read_bytes(), context)
    return Notification(
        topic="http://domain.tld/feed.xml",
        hub="http://hub.tld/",
        status=Status(code=200),
        feed=Feed(id="feed"),
        entries=parsed.entries,
    )


@pytest.fixture
def item() -> Any:
    [found] = orjson.loads(render_json(documented()))["items"]
    return found


def test_the_item_has_the_documented_keys_and_what_the_sample_forgot(item: Any) -> None:
    assert item.keys() == KEYS | {"summary", "extensions"}
    assert item["summary"] == "Entry published on hour ago..."


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("id", "domain.tld:09/05/03-1"),
        ("title", "Entry published on hour ago"),
        ("permalinkUrl", "http://domain.tld/entry/1"),
        ("verb", "publish"),
        ("language", "en"),
        ("categories", ["Things", "Picture"]),
        ("geo", {"type": "point", "coordinates": [47.597553, -122.15925]}),
        ("published", 1_366_545_640),
        ("updated", 1_366_545_640),
        (
            "actor",
            {
                "displayName": "First",
                "image": "http://domain.tld/first.png",
                "permalinkUrl": "http://domain.tld/first/profile",
                "id": "id-first",
                "objectType": "dude",
                "title": "First",
            },
        ),
    ],
)
def test_its_values_are_the_documented_ones(
    item: Any, key: str, expected: object
) -> None:
    assert item[key] == expected


def test_its_links_are_the_documented_ones_and_the_page(item: Any) -> None:
    links = item["standardLinks"]
    assert links.keys() == {"alternate", "replies", "picture"}
    assert links["picture"] == [
        {
            "type": "image/png",
            "rel": "picture",
            "href": "http://domain.tld/entry/image_.png",
            "title": "A beautiful picture that illustrates the entry",
        }
    ]
    assert [each["href"] for each in links["replies"]] == [
        "http://domain.tld/entry/1.xml"
    ]


def test_its_object_is_the_documented_one(item: Any) -> None:
    assert item["object"] == {
        "permalinkUrl": "http://domain.tld/object/2",
        "content": "hello world",
        "published": 1_366_462_840,
        "updated": 1_366_545_640,
        "actor": {
            "displayName": "Second",
            "permalinkUrl": "http://domain.tld/second",
            "id": "second",
        },
        "id": "object-id",
        "title": "Title of the Object",
        "objectType": "place",
    }


def test_its_source_says_what_the_feed_says_of_itself(item: Any) -> None:
    source = item["source"]
    assert (source["id"], source["title"]) == ("feed-id", "feed-title")
    assert source["updated"] == 1_366_545_640
    assert source["permalinkUrl"] == "http://domain.tld/entries/12345"


def test_the_entry_comes_out_as_it_went_in() -> None:
    """Its elements with their texts and attributes; real ones had the summary first."""
    [rendered] = find(read_xml(render_atom(documented())), "atom:entry")
    original = read_xml((DATA / "documented-entry.xml").read_bytes())
    assert sorted(names(rendered)) == sorted(names(original))
    assert attributes(rendered, "atom:category") == attributes(
        original, "atom:category"
    )
    for path in ("atom:link", "atom:author/atom:link"):
        titled = [
            {name: value for name, value in link.items() if value}
            for link in attributes(original, path)
        ]
        assert attributes(rendered, path.replace("author/atom", "author/as")) == titled
    for path in (
        *("atom:id", "atom:title", "atom:content", "atom:summary", "geo:point"),
        *("as:verb", "as:object/as:object-type", "as:object/atom:id"),
        *("atom:author/atom:name", "atom:author/atom:email", "atom:source/atom:id"),
        *("atom:author/as:object-type", "as:object/atom:author/atom:uri"),
    ):
        assert texts(rendered, path) == texts(original, path)


# --- the whole notification, in the order of real ones ---

STATUS_ORDER = [
    *("http", "next_fetch", "entries_count_since_last_maintenance", "velocity"),
    *("popularity", "porn_rank", "bozo_rank", "generated_ids", "title", "period"),
    *("last_fetch", "last_parse", "last_maintenance_at"),
]


def names(element: Any) -> list[str]:
    return [each.tag.partition("}")[2] for each in element]


def test_a_notification_is_in_the_order_of_superfeedrs() -> None:
    root = read_xml(render_atom(EXAMPLE))
    assert names(root)[:7] == [*("status", "link", "link", "link"), "title",
                               *("updated", "id")]  # fmt: skip
    assert names(root[0]) == STATUS_ORDER
    entry = find(root, "atom:entry")[0]
    first = list(dict.fromkeys(names(entry)))[:10]
    assert first == [
        *("id", "published", "updated", "title", "summary", "content", "point"),
        *("link", "category", "author"),
    ]
    author = find(entry, "atom:author")[0]
    assert names(author)[:5] == ["name", "uri", "email", "id", "title"]
    assert texts(author, "as:id") == ["id-ada"]  # as RFC 4287 has no id of a person


def test_a_digest_says_so_where_superfeedrs_did() -> None:
    digest = Notification(
        topic="http://domain.tld/feed.xml",
        hub="",
        status=Status(code=200),
        feed=Feed(),
        entries=(),
        is_digest=True,
    )
    root = read_xml(render_atom(digest))
    assert root.get("{http://superfeedr.com/xmpp-pubsub-ext}digest") == "true"
    assert root[0].get("digest") == "true"
    assert orjson.loads(render_json(digest))["status"]["digest"] is True


def test_a_source_carries_the_status_of_its_own_feed() -> None:
    links = (
        Link(href="http://domain.tld/feed.xml", rel="self"),
        Link(href="http://domain.tld/topic", rel="superfeedr"),
    )
    [entry] = documented().entries or ()
    source = Feed(title="Roses", links=links, status=STATUS)
    told = replace(documented(), entries=(replace(entry, source=source),))
    [item] = orjson.loads(render_json(told))["items"]
    assert item["source"]["status"]["feed"] == "http://domain.tld/topic"
    assert item["source"]["status"]["code"] == 200
    [status] = find(read_xml(render_atom(told)), "atom:entry/atom:source/sf:status")
    assert status.get("feed") == "http://domain.tld/topic"
    assert names(status) == STATUS_ORDER
