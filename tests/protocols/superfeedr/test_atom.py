from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from protocols.model import (
    Author,
    Deletion,
    Entry,
    Feed,
    IdSource,
    Link,
    Notification,
    Status,
    Text,
)
from protocols.superfeedr.atom_notifications import render_atom
from tests.support.golden import attributes, find, read_xml, texts
from tests.support.superfeedr_example import EXAMPLE, TROUBLE

MAY = datetime(2025, 5, 2, 6, 19, 31, tzinfo=UTC)


def told(*entries: Entry, **changes: Any) -> Any:
    notification = Notification(
        topic="https://site.example/feed",
        hub="https://hub.example/hub",
        status=Status(code=200),
        feed=Feed(id="feed"),
        entries=entries,
    )
    return read_xml(render_atom(replace(notification, **changes)))


def the_entry(**facts: Any) -> Any:
    [element] = find(told(Entry(key="1", id="1", **facts)), "atom:entry")
    return element


def test_the_status_comes_first() -> None:
    first = read_xml(render_atom(EXAMPLE))[0]
    assert first.tag == "{http://superfeedr.com/xmpp-pubsub-ext}status"
    assert first.get("feed") == EXAMPLE.topic


def test_a_notification_of_trouble_has_no_entries() -> None:
    root = read_xml(render_atom(TROUBLE))
    assert find(root, "sf:status/sf:http")[0].get("code") == "0"
    assert find(root, "atom:entry") == []


def test_a_code_nobody_knows_is_left_out() -> None:
    [http] = find(told(status=Status()), "sf:status/sf:http")
    assert dict(http.attrib) == {}


@pytest.mark.parametrize(
    ("source", "expected"), [(IdSource.FEED, []), (IdSource.LINK, ["true"])]
)
def test_made_ids_are_admitted(source: IdSource, expected: list[str]) -> None:
    root = told(Entry(key="1", id="1", id_source=source))
    assert texts(root, "sf:status/sf:generated_ids") == expected


def test_times_are_utc_with_milliseconds() -> None:
    east = timezone(timedelta(hours=2))
    entry = the_entry(updated=datetime(2025, 5, 2, 8, 19, 31, 5_999, tzinfo=east))
    assert texts(entry, "atom:updated") == ["2025-05-02T06:19:31.005Z"]


@pytest.mark.parametrize(
    ("feed", "status", "expected"),
    [
        (Feed(updated=MAY), Status(), "2025-05-02T06:19:31.000Z"),
        (Feed(), Status(last_parse=MAY), "2025-05-02T06:19:31.000Z"),
        (Feed(), Status(last_fetch=MAY), "2025-05-02T06:19:31.000Z"),
        (Feed(), Status(), "1970-01-01T00:00:00.000Z"),
    ],
)
def test_a_date_that_atom_requires_is_the_documents(
    feed: Feed, status: Status, expected: str
) -> None:
    entry = Entry(key="1", id="1")
    root = told(entry, feed=feed, status=status, deletions=(Deletion(key="2", id="2"),))
    assert texts(root, "atom:updated") == [expected]
    assert texts(root, "atom:entry/atom:updated") == [expected]
    assert find(root, "at:deleted-entry")[0].get("when") == expected


def test_a_feed_without_a_date_is_as_old_as_its_newest_entry() -> None:
    root = told(Entry(key="1", id="1", published=MAY), Entry(key="2", id="2"))
    assert texts(root, "atom:updated") == ["2025-05-02T06:19:31.000Z"]


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        (Feed(id="tag:x", title="T"), "tag:x"),
        (Feed(title="A Feed!", updated=MAY), "https://site.example/feed"),
        (Feed(), "https://site.example/feed"),
    ],
)
def test_every_feed_has_an_id_and_keeps_it(feed: Feed, expected: str) -> None:
    assert texts(told(feed=feed), "atom:id") == [expected]
    later = replace(feed, updated=MAY + timedelta(hours=1))
    assert texts(told(feed=later), "atom:id") == [expected]


def test_a_source_says_of_itself_what_is_known_and_no_more() -> None:
    source = the_entry(source=Feed(title="Roses"))
    assert [each.tag for each in find(source, "atom:source/*")] == [
        "{http://www.w3.org/2005/Atom}title"
    ]


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ((Link(href="http://a/"), Link(href="http://a/f", rel="self")), ["http://a/f"]),
        ((Link(href="http://a/"),), ["http://a/"]),
        ((), []),
    ],
)
def test_a_source_without_an_id_is_known_by_where_it_is(
    links: tuple[Link, ...], expected: list[str]
) -> None:
    entry = the_entry(source=Feed(title="Roses", links=links))
    assert texts(entry, "atom:source/atom:id") == expected


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (Text(value="<p>a &amp; b</p>"), "html", "<p>a &amp; b</p>"),
        (Text(value="a & b"), "html", "a & b"),
        (Text(value="<p>a[1]]>\r\n</p>"), "html", "<p>a[1]]>\r\n</p>"),
        (Text(value="<p>]\x01]>\ufffe</p>"), "html", "<p>]]></p>"),
        (Text(value="<b>\r</b>"), "html", "<b>\r</b>"),
        (Text(value="a < b", type="text"), "text", "a < b"),
        (Text(value="a<br>b", type="xhtml"), "html", "a<br>b"),
        (Text(value="&nbsp;", type="xhtml"), "html", "&nbsp;"),
        (Text(value="</div><div>", type="xhtml"), "html", "</div><div>"),
        (Text(value="<!DOCTYPE a>", type="xhtml"), "html", "<!DOCTYPE a>"),
        (Text(value="# a", type="text/markdown"), "text/markdown", "# a"),
        (Text(value="a", type="unheard-of"), "text", "a"),
        (Text(value=""), "html", ""),
    ],
)
def test_content_says_what_it_is(text: Text, kind: str, expected: str) -> None:
    [content] = find(the_entry(content=text), "atom:content")
    assert content.get("type") == kind
    assert (content.text or "") == expected
    assert len(content) == 0


def test_well_formed_xhtml_is_markup_in_a_div() -> None:
    text = Text(value="<p>a<br/>\x01b</p>", type="xhtml")
    entry = the_entry(content=text, summary=text)
    for place in ("atom:summary", "atom:content"):
        [content] = find(entry, place)
        assert content.get("type") == "xhtml"
        [paragraph] = find(content, "xhtml:div/xhtml:p")
        assert "".join(paragraph.itertext()) == "ab"


def test_a_summary_cannot_be_of_any_media_type() -> None:
    entry = the_entry(summary=Text(value="# a", type="text/markdown"))
    assert attributes(entry, "atom:summary") == [{"type": "text"}]


@pytest.mark.parametrize("email", ["", "@", "ada at garden", "ada@"])
def test_what_is_no_address_is_no_email(email: str) -> None:
    entry = the_entry(authors=(Author(name="Ada", email=email),))
    assert find(entry, "atom:author/atom:email") == []


def test_an_author_without_a_name_still_has_the_element() -> None:
    entry = the_entry(authors=(Author(uri="https://ada.example"),))
    assert texts(entry, "atom:author/atom:name") == [""]
    assert find(entry, "atom:author/atom:id") == []


def test_a_link_without_a_type_is_given_none() -> None:
    entry = the_entry(links=(Link(href="https://a.example", type=""),))
    assert attributes(entry, "atom:link") == [
        {"rel": "alternate", "href": "https://a.example"}
    ]


def test_nothing_to_extend_is_no_element() -> None:
    assert b"fanfare" not in render_atom(TROUBLE)
