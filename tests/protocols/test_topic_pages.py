from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from protocols.model import Author, Entry, Feed, Link
from protocols.topic_pages import (
    PagePlace,
    TopicFormat,
    TopicPage,
    notified_links,
    render_topic_page,
)
from tests.support.documents import an_entry
from tests.support.entries import ENTRIES, FEEDS
from tests.support.storage_scene import START

ATOM = "{http://www.w3.org/2005/Atom}"
URL = "https://hub.example/topics/7.atom"
SEEN = START + timedelta(days=3)
"""When entries without a date were first seen."""


def a_page(*entries: Entry, feed: Feed | None = None, **more: Any) -> TopicPage:
    return TopicPage(
        url=URL,
        hub="https://hub.example/hub",
        source="https://a.example/feed",
        feed=feed or Feed(title="A"),
        entries=entries,
        dates=(SEEN,) * len(entries),
        undated=START,
        **more,
    )


def atom(page: TopicPage) -> etree._Element:
    return etree.fromstring(render_topic_page(page, TopicFormat.ATOM))


def links(root: etree._Element) -> dict[str, str]:
    return {each.get("rel"): each.get("href") for each in root.findall(f"{ATOM}link")}


def test_who_subscribed_to_a_page_is_told_of_the_page_and_its_hub_by_name() -> None:
    source = (
        Link(href="https://a.example/", rel="alternate"),
        Link(href="https://a.example/feed", rel="self", title="A"),
        Link(href="https://a.example/old", rel="self"),
        Link(href="https://appspot.example/", rel="hub"),
        Link(href="https://a.example/feed?page=2", rel="next"),
    )
    assert notified_links(source, URL, "https://hub.example/hub") == (
        Link(href=URL, rel="self", type=""),
        Link(href="https://hub.example/hub", rel="hub", type=""),
        Link(href="https://a.example/feed", rel="via", type="", title="A"),
        Link(href="https://a.example/", rel="alternate"),
    )
    assert [each.rel for each in notified_links((), URL, "h")] == ["self", "hub"]


def test_a_page_says_where_it_is_and_where_its_hub_and_its_source_are() -> None:
    found = links(atom(a_page()))
    assert found == {
        "self": URL,
        "hub": "https://hub.example/hub",
        "first": URL,
        "via": "https://a.example/feed",
    }


def test_a_page_leads_to_the_next() -> None:
    page = a_page(before="5-1", next="3-2", limit=10, is_default_limit=False)
    found = links(atom(page))
    assert found["self"] == f"{URL}?before=5-1&limit=10"
    assert found["first"] == f"{URL}?limit=10"
    assert found["next"] == f"{URL}?before=3-2&limit=10"
    for format in TopicFormat.NORMALIZED, TopicFormat.JSON_FEED:
        document = orjson.loads(render_topic_page(page, format))
        assert document["feed_url"] == found["self"]
        assert document["next_url"] == found["next"]
        assert document["hubs"] == [{"type": "WebSub", "url": page.hub}]


def test_the_sources_own_hub_and_pages_are_not_taken_for_ours() -> None:
    theirs = tuple(
        Link(href="https://a.example/x", rel=rel)
        for rel in ("self", "hub", "next", "last", "alternate")
    )
    found = links(atom(a_page(feed=Feed(title="A", links=theirs))))
    assert found["self"] == URL
    assert found["alternate"] == "https://a.example/x"
    assert "next" not in found
    assert "last" not in found


def test_the_order_of_entries_is_kept_in_both_formats() -> None:
    page = a_page(an_entry("b"), an_entry("a"))
    titles = [each.findtext(f"{ATOM}title") for each in atom(page).iter(f"{ATOM}entry")]
    assert titles == ["Title of b", "Title of a"]
    document = orjson.loads(render_topic_page(page, TopicFormat.NORMALIZED))
    assert [each["title"] for each in document["items"]] == titles
    assert "next_url" not in document


def test_the_date_of_the_whole_is_that_of_the_latest_entry_or_what_is_known() -> None:
    later = datetime(2026, 5, 1, tzinfo=UTC)
    page = a_page(an_entry("a"), an_entry("b", updated=later))
    assert atom(page).findtext(f"{ATOM}updated") == "2026-05-01T00:00:00.000Z"
    assert atom(a_page()).findtext(f"{ATOM}updated") == "2026-01-01T00:00:00.000Z"


def test_an_entry_without_a_date_keeps_that_of_when_it_was_first_seen() -> None:
    undated, later = an_entry("a", published=None), datetime(2026, 5, 1, tzinfo=UTC)
    for entries in ((undated,), (an_entry("b", updated=later), undated)):
        *_, last = atom(a_page(*entries)).iter(f"{ATOM}entry")
        assert last.findtext(f"{ATOM}updated") == "2026-01-04T00:00:00.000Z"
        document = orjson.loads(
            render_topic_page(a_page(*entries), TopicFormat.NORMALIZED)
        )
        assert "updated" not in document["items"][-1]


def test_a_feed_without_authors_gets_its_title_for_one() -> None:
    assert atom(a_page()).findtext(f"{ATOM}author/{ATOM}name") == "A"
    written = Feed(authors=(Author(name="B"),))
    assert atom(a_page(feed=written)).findtext(f"{ATOM}author/{ATOM}name") == "B"
    nameless = atom(a_page(feed=Feed(id="urn:x")))
    assert nameless.findtext(f"{ATOM}author/{ATOM}name") == URL
    assert nameless.findtext(f"{ATOM}id") == "urn:x"


@given(FEEDS, st.lists(ENTRIES, max_size=2))
def test_whatever_feeds_say_makes_a_document(feed: Feed, entries: list[Entry]) -> None:
    page = a_page(*entries, feed=feed)
    assert len(list(atom(page).findall(f"{ATOM}entry"))) == len(entries)
    document = orjson.loads(render_topic_page(page, TopicFormat.NORMALIZED))
    assert len(document["items"]) == len(entries)


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 10**18 - 1))
def test_a_place_survives_its_way_through_an_address(at: datetime, entry: int) -> None:
    at = at.replace(microsecond=at.microsecond // 1_000 * 1_000)
    place = PagePlace(dated=at, entry=entry)
    assert PagePlace.parse(str(place)) == place


@pytest.mark.parametrize("text", ["", "x", "1", "1-", "-", "1-2-3", "9" * 15 + "-1"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        PagePlace.parse(text)
