"""Feeds as JSON Feed 1.1: what the format requires, and what was said of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.model import Author, Category, Entry, Feed, Link, Text
from protocols.topic_pages import item_object, render_json_feed
from tests.support.documents import an_entry
from tests.support.entries import ENTRIES, FEEDS

URL = "https://hub.example/topics/7.json"
HUB = "https://hub.example/hub"
AT = datetime(2026, 5, 1, 12, 30, 15, 250_000, tzinfo=UTC)


def rendered(
    *entries: Entry, head: Feed | None = None, next_url: str | None = None
) -> dict[str, Any]:
    document = render_json_feed(
        head or Feed(title="A feed"),
        entries,
        url=URL,
        hub=HUB,
        title="https://a.example/feed",
        next_url=next_url,
    )
    found: dict[str, Any] = orjson.loads(document)
    return found


def item(**more: Any) -> dict[str, Any]:
    found: dict[str, Any] = rendered(an_entry("a", **more))["items"][0]
    return found


def test_the_head_has_what_the_format_requires_and_nothing_empty() -> None:
    assert rendered() == {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "A feed",
        "feed_url": URL,
        "hubs": [{"type": "WebSub", "url": HUB}],
        "items": [],
    }
    assert rendered(head=Feed())["title"] == "https://a.example/feed"


def test_the_head_says_what_the_feed_says_of_itself() -> None:
    head = Feed(
        title="A feed",
        subtitle="All &amp; <b>more</b>",
        links=(Link(href="https://a.example/"), Link(href="x:y", rel="self")),
        icon="https://a.example/small.png",
        logo="https://a.example/large.png",
        language="en_GB",
        authors=(
            Author(email="mail@a.example"),
            Author(name="Ada", uri="https://ada/"),
        ),
    )
    found = rendered(head=head, next_url=f"{URL}?before=1-1")
    assert found["home_page_url"] == "https://a.example/"
    assert found["feed_url"] == URL
    assert found["next_url"] == f"{URL}?before=1-1"
    assert found["description"] == "All & more"
    assert (found["favicon"], found["icon"]) == (head.icon, head.logo)
    assert found["language"] == "en-GB"
    assert found["authors"] == [{"name": "Ada", "url": "https://ada/"}]


@pytest.mark.parametrize(
    ("content", "summary", "expected"),
    [
        (Text(value="<p>1</p>"), None, {"content_html": "<p>1</p>"}),
        (
            Text(value="<p>1</p>", type="xhtml"),
            Text(value="<i>in</i> short"),
            {"content_html": "<p>1</p>", "summary": "in short"},
        ),
        (
            Text(value="1 < 2", type="text"),
            Text(value="a < b", type="text"),
            {"content_text": "1 < 2", "summary": "a < b"},
        ),
        (None, Text(value="<i>in</i> short"), {"content_html": "<i>in</i> short"}),
        (None, None, {"content_text": "T"}),
        (Text(value=""), None, {"content_text": "T"}),
    ],
)
def test_an_item_has_content_of_one_kind(
    content: Text | None, summary: Text | None, expected: dict[str, str]
) -> None:
    found = item(title="T", content=content, summary=summary)
    names = ("content_html", "content_text", "summary")
    assert {name: found[name] for name in names if name in found} == expected


def test_an_item_without_anything_has_empty_content() -> None:
    found = item(title="", content=None, summary=None)
    assert found["content_text"] == ""
    assert "title" not in found


def test_an_item_says_what_the_entry_says() -> None:
    found = item(
        id="urn:1",
        published=AT,
        updated=AT,
        language="de",
        categories=(Category(term="t"), Category(term="u", label="U")),
        authors=(
            Author(name="Ada", links=(Link(href="https://ada/p.png", rel="picture"),)),
        ),
        links=(
            Link(href="https://a.example/1"),
            Link(href="https://b.example/1", rel="related"),
            Link(href="https://a.example/1.png", rel="image"),
            Link(href="https://a.example/b.png", rel="banner"),
            Link(
                href="https://a.example/1.ogg",
                rel="enclosure",
                type="audio/ogg",
                title="The talk",
                length=0,
            ),
            Link(href="https://a.example/2", rel="enclosure", type=""),
        ),
    )
    assert found["id"] == "urn:1"
    assert found["url"] == "https://a.example/1"
    assert found["external_url"] == "https://b.example/1"
    assert found["image"] == "https://a.example/1.png"
    assert found["banner_image"] == "https://a.example/b.png"
    assert found["date_published"] == "2026-05-01T12:30:15Z"
    assert found["date_modified"] == "2026-05-01T12:30:15Z"
    assert found["tags"] == ["t", "U"]
    assert found["language"] == "de"
    assert found["authors"] == [{"name": "Ada", "avatar": "https://ada/p.png"}]
    assert found["attachments"] == [
        {
            "url": "https://a.example/1.ogg",
            "mime_type": "audio/ogg",
            "title": "The talk",
            "size_in_bytes": 0,
        },
        {"url": "https://a.example/2", "mime_type": "application/octet-stream"},
    ]


def test_an_attachment_says_how_long_it_is() -> None:
    song = Link(href="https://a.example/1.mp3", rel="enclosure", type="audio/mpeg")
    low = {"type": "audio/opus", "source": {"uri": "https://a.example/low.opus"}}
    extensions = {
        "itunes": {"duration": "1:05"},
        "podcast": {"alternateEnclosure": low},
    }
    entry = Entry(key="1", id="urn:1", links=(song,), extensions=extensions)
    assert item_object(entry)["attachments"] == [
        {"url": song.href, "mime_type": "audio/mpeg", "duration_in_seconds": 65}
    ]


@given(FEEDS, st.lists(ENTRIES, max_size=2))
def test_whatever_feeds_say_is_read_back_as_a_json_feed(
    head: Feed, entries: list[Entry]
) -> None:
    document = render_json_feed(head, entries, url=URL, hub=HUB, title="T")
    found = orjson.loads(document)
    assert found["version"] == "https://jsonfeed.org/version/1.1"
    assert isinstance(found["title"], str)
    for each in found["items"]:
        assert isinstance(each["id"], str)
        assert ("content_html" in each) != ("content_text" in each)
        for attachment in each.get("attachments", ()):
            assert {"url", "mime_type"} <= set(attachment)
    read = parse_leniently(document, ParseContext(url=URL, now=AT))
    assert read.format == "jsonfeed"
