"""Whatever there is to render, the Atom is valid; and it can be read back."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.model import (
    Author,
    Category,
    Entry,
    Feed,
    Geo,
    IdSource,
    Link,
    Notification,
    ParsedFeed,
    Status,
    Text,
)
from protocols.superfeedr.atom_notifications import render_atom
from tests.protocols.superfeedr.valid_atom import faults
from tests.support.entries import ANY, ENTRIES, LONG, NOTIFICATIONS, several
from tests.support.golden import attributes, find, read_xml, texts
from tests.support.superfeedr_example import EXAMPLE, SOURCE, TROUBLE

NOW = datetime(2026, 5, 1, tzinfo=UTC)
CONTEXT = ParseContext(url="https://a.example/feed", now=NOW)

WILD_LINKS = st.builds(
    Link, href=ANY, rel=ANY, type=ANY, title=ANY, length=st.none() | st.integers(0)
)
WILD_AUTHORS = st.builds(
    Author, name=ANY, uri=ANY, email=ANY, links=several(WILD_LINKS)
)
WILD_TEXTS = st.builds(
    Text,
    value=LONG | st.sampled_from(["YWJj", "<a/>", "<a xmlns='u:b'/>", "<p>a<br></p>"]),
    type=st.sampled_from(
        [
            *("text", "html", "xhtml", "text/plain", "text/html; charset=utf-8"),
            *("image/png", "application/xml", "image/svg+xml", "application/json"),
            *("multipart/mixed", "message/rfc822", "a", "/", "a/b\n", ""),
        ]
    ),
)
WILD_ENTRIES = st.builds(
    Entry,
    key=ANY,
    id=ANY,
    title=ANY,
    summary=st.none() | WILD_TEXTS,
    content=st.none() | WILD_TEXTS,
    links=several(WILD_LINKS),
    authors=several(WILD_AUTHORS, 1),
    categories=several(st.builds(Category, term=ANY, scheme=ANY, label=ANY), 1),
    language=ANY,
)
WILD_FEEDS = st.builds(
    Feed, id=ANY, title=ANY, links=several(WILD_LINKS), language=ANY, icon=ANY, logo=ANY
)


def notification_of(*entries: Entry, feed: Feed | None = None) -> Notification:
    return Notification(
        topic="https://a.example/feed",
        hub="https://hub.example/hub",
        status=Status(),
        feed=feed or Feed(),
        entries=entries,
    )


def a_linked_entry(**fields: Any) -> Entry:
    facts: dict[str, Any] = {"links": (Link(href="https://a.example/1"),), **fields}
    return Entry(key="1", id="tag:a.example,2025:1", **facts)


def element_of(entry: Entry) -> Any:
    [element] = find(read_xml(render_atom(notification_of(entry))), "atom:entry")
    return element


@settings(max_examples=40)
@given(NOTIFICATIONS)
def test_every_notification_is_valid(notification: Notification) -> None:
    assert faults(render_atom(notification)) == set()


@settings(max_examples=40)
@given(several(WILD_ENTRIES), WILD_FEEDS)
def test_whatever_has_no_form_in_atom_is_put_into_one(
    entries: tuple[Entry, ...], feed: Feed
) -> None:
    assert faults(render_atom(notification_of(*entries, feed=feed))) == set()


@pytest.mark.parametrize("notification", [EXAMPLE, TROUBLE])
def test_the_examples_are_valid(notification: Notification) -> None:
    assert faults(render_atom(notification)) == set()


@pytest.mark.parametrize("feed", [Feed(), Feed(title="Roses")])
def test_an_entry_without_an_author_has_the_feed_for_one(feed: Feed) -> None:
    root = read_xml(render_atom(notification_of(a_linked_entry(), feed=feed)))
    assert texts(root, "atom:author/atom:name") == [
        feed.title or "https://a.example/feed"
    ]


@pytest.mark.parametrize(
    "entry",
    [
        a_linked_entry(authors=(Author(name="Ada"),)),
        a_linked_entry(source=Feed(authors=(Author(name="Ada"),))),
    ],
)
def test_who_has_an_author_needs_no_other(entry: Entry) -> None:
    assert find(read_xml(render_atom(notification_of(entry))), "atom:author") == []


@pytest.mark.parametrize(
    "links", [(), (Link(href="https://a.example/1.mp3", rel="enclosure"),)]
)
def test_an_entry_with_neither_link_nor_content_has_an_empty_one(
    links: tuple[Link, ...],
) -> None:
    document = render_atom(notification_of(a_linked_entry(links=links)))
    [content] = find(read_xml(document), "atom:entry/atom:content")
    assert (content.attrib, content.text) == ({}, None)
    assert faults(document) == set()


def test_an_entry_with_a_link_needs_no_content() -> None:
    assert find(element_of(a_linked_entry()), "atom:content") == []


def test_of_alternates_of_one_type_the_first_is_one() -> None:
    links = (
        Link(href="https://a.example/1"),
        Link(href="https://a.example/1.pdf", type="application/pdf"),
        Link(href="https://a.example/2", type="text/html"),
        Link(href="https://a.example/3", rel="via"),
    )
    found = attributes(element_of(a_linked_entry(links=links)), "atom:link")
    assert [each["rel"] for each in found] == [
        *("alternate", "alternate", "related", "via")
    ]


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("https://a.example/\u00fc?b=%20", "https://a.example/\u00fc?b=%20"),
        ("https://a.example/a b|c", "https://a.example/a%20b%7Cc"),
        ("https://a.example/100%", "https://a.example/100%25"),
        ('"><script>', "%22%3E%3Cscript%3E"),
    ],
)
def test_addresses_have_no_characters_that_none_may_have(
    href: str, expected: str
) -> None:
    entry = element_of(a_linked_entry(links=(Link(href=href),)))
    assert attributes(entry, "atom:link")[0]["href"] == expected


@pytest.mark.parametrize(
    ("rel", "expected"),
    [
        ("", "alternate"),
        ("http://a.example/rel", "http://a.example/rel"),
        ("nofollow noopener", "nofollow%20noopener"),
        ("a/b", "a%2Fb"),
    ],
)
def test_a_relation_is_a_name_or_an_iri(rel: str, expected: str) -> None:
    entry = element_of(
        a_linked_entry(links=(Link(href="https://a.example/1", rel=rel),))
    )
    assert attributes(entry, "atom:link")[0]["rel"] == expected


def test_places_have_no_exponents() -> None:
    entry = element_of(a_linked_entry(geo=Geo(latitude=1e-7, longitude=-122.5)))
    assert texts(entry, "geo:point") == ["0.000000100000 -122.5"]


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "en"),
        (" en_GB", "en-GB"),
        ("English (US)", "en"),
        ("Simlish", None),
        ("", None),
    ],
)
def test_a_language_that_is_none_is_not_said(
    language: str, expected: str | None
) -> None:
    entry = element_of(a_linked_entry(language=language))
    assert entry.get("{http://www.w3.org/XML/1998/namespace}lang") == expected


@pytest.mark.parametrize(
    ("text", "kind", "children", "summaries"),
    [
        (Text(value="YWJj", type="image/png"), "image/png", 0, 1),
        (Text(value="no Base64!", type="image/png"), "text", 0, 0),
        (Text(value="", type="image/png"), "text", 0, 0),
        (Text(value="YWJj", type="message/rfc822"), "text", 0, 0),
        (Text(value="<a xmlns='u:b'/>", type="a/b+xml"), "a/b+xml", 1, 0),
        (Text(value="<a/>", type="application/xml"), "application/xml", 0, 0),
        (Text(value="<a xmlns='u:b'/>text", type="text/xml"), "text/xml", 0, 0),
        (Text(value="<a xmlns='u:b'/>c", type="b/xml"), "b/xml", 0, 0),
        (Text(value="<a>", type="b/xml"), "b/xml", 0, 0),
    ],
)
def test_content_of_other_types_is_xml_or_base64(
    text: Text, kind: str, children: int, summaries: int
) -> None:
    entry = element_of(a_linked_entry(content=text))
    [content] = find(entry, "atom:content")
    assert content.get("type") == kind
    assert len(content) == children
    assert len(find(entry, "atom:summary")) == summaries


def test_xhtml_that_is_too_deep_to_be_read_is_html() -> None:
    for depth, kind in ((150, "xhtml"), (300, "html")):
        text = Text(value="<b>" * depth + "</b>" * depth, type="xhtml")
        [content] = find(element_of(a_linked_entry(content=text)), "atom:content")
        assert content.get("type") == kind


@pytest.mark.parametrize(
    ("namespace", "kind"),
    [
        ("http://www.w3.org/2000/svg", "xhtml"),
        ("https://a.example:8080/x%20y?z#f", "xhtml"),
        ("urn:a:b", "xhtml"),
        ("DAV:", "xhtml"),
        ("", "xhtml"),
        ("http://www.wp://www.w3.org/1999/xhtml", "html"),
        ("http://www.w3.org/1999/xhtm\xe2l", "html"),
        ("http://a.example/{b", "html"),
        ("http://a.example/?b&amp;c", "xhtml"),
        ("http://a.example/&lt;b", "html"),
        ("not a uri", "html"),
    ],
)
@pytest.mark.parametrize("quote", ['"', "'"])
def test_xhtml_in_a_namespace_that_is_no_uri_is_html(
    namespace: str, kind: str, quote: str
) -> None:
    """Readers that heed namespaces would refuse the whole document."""
    text = Text(value=f"<b xmlns={quote}{namespace}{quote}>c</b>", type="xhtml")
    [content] = find(element_of(a_linked_entry(content=text)), "atom:content")
    assert content.get("type") == kind


def test_a_huge_text_keeps_every_character_it_may_have() -> None:
    markup = "<p>a &amp; b]]>\x00\x1f\ud800\ufffec\n\t</p>" * 2_000
    [content] = find(
        element_of(a_linked_entry(content=Text(value=markup))), "atom:content"
    )
    assert content.text == "<p>a &amp; b]]>c\n\t</p>" * 2_000


# --- reading it back ---


def said_again(entry: Entry) -> Entry:
    """What our own parser makes of what was rendered."""
    document = render_atom(notification_of(entry))
    [read] = parse_leniently(document, CONTEXT).entries
    return read


def plain(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=40)
@given(ENTRIES)
def test_what_is_read_back_says_the_same(entry: Entry) -> None:
    entry = replace(
        entry, id="tag:a.example,2025:1", title="T", source=None, extensions={}
    )
    read = said_again(entry)
    assert (read.id, read.title, read.language) == (entry.id, "T", entry.language)
    assert read.published == _to_milliseconds(entry.published)
    if entry.updated:
        assert read.updated == _to_milliseconds(entry.updated)
    assert read.geo == entry.geo
    assert [each.href for each in read.links] == [
        *dict.fromkeys(each.href for each in entry.links)
    ] or len(read.links) <= len(entry.links)
    assert read.verbs == entry.verbs
    assert len(read.objects) == len(entry.objects)


def _to_milliseconds(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)


def test_the_example_comes_back_whole() -> None:
    [entry, _] = EXAMPLE.entries or ()
    made = {"key": entry.key, "id_source": IdSource.FEED}
    read = said_again(entry)
    authors = tuple(replace(each, id=each.id or "bj-rn-k-") for each in entry.authors)
    assert replace(read, **made, extensions={}) == replace(
        entry,
        **made,
        authors=authors,
        contributors=(Author(name="Cy", id="cy"),),
        source=replace(SOURCE, language="en"),  # what is around it says so
        objects=tuple(
            replace(
                each,
                authors=tuple(replace(one, id="bj-rn-k-") for one in each.authors),
            )
            for each in entry.objects
        ),
        extensions={},
    )


def test_feedparser_reads_the_same() -> None:
    read = feedparser.parse(BytesIO(render_atom(EXAMPLE)), sanitize_html=False)
    [entry, _] = EXAMPLE.entries or ()
    found = read.entries[0]
    assert not read.bozo
    assert (found.id, found.title) == (entry.id, entry.title)
    assert found.content[0].value == entry.content.value  # type: ignore[union-attr]
    assert found.published == "2025-05-02T06:19:31.000Z"
    terms = [each.term for each in found.tags]
    assert terms == ["Flowers", "roses", "beds"]  # what is inside, it takes for its own
    assert [each.name for each in found.authors][:2] == ["Ada", "Bj\u00f6rn K."]
    hrefs = [each.href for each in entry.links]
    assert [each.href for each in found.links][: len(hrefs)] == hrefs


def test_a_document_read_from_a_lone_head_has_no_entries() -> None:
    read: ParsedFeed = parse_leniently(render_atom(TROUBLE), CONTEXT)
    assert read.entries == ()
