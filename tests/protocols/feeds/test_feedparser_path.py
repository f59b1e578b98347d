"""An entry is the same entry on the day its feed breaks: feedparser's path and ours."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.identity import content_hash
from protocols.model import Entry, Geo
from tests.support.documents import CONTEXT, atom, rss

MODULES = (
    ' xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    ' xmlns:media="http://search.yahoo.com/mrss/"'
    ' xmlns:podcast="https://podcastindex.org/namespace/1.0"'
    ' xmlns:slash="http://purl.org/rss/1.0/modules/slash/"'
    ' xmlns:wfw="http://wellformedweb.org/CommentAPI/"'
    ' xmlns:georss="http://www.georss.org/georss"'
    ' xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)


def both(body: bytes) -> tuple[list[Entry], list[Entry]]:
    """What our reader makes of it, and what would be made of it were it broken."""
    body = body.replace(b"<rss ", f"<rss{MODULES} ".encode())
    other = read_with_feedparser(
        OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
    )
    assert other is not None
    return [*parse(body, CONTEXT).entries], [*other.entries]


def item(inner: str) -> tuple[Entry, Entry]:
    [ours], [theirs] = both(rss(f"<item><guid>1</guid>{inner}</item>"))
    return ours, theirs


@pytest.mark.parametrize(
    "inner",
    [
        "<itunes:duration>31:05</itunes:duration><itunes:episode>1</itunes:episode>",
        "<slash:comments>3</slash:comments>",
        '<podcast:transcript url="https://a.example/1.vtt" type="text/vtt"/>',
        '<media:thumbnail url="https://a.example/t.png" width="1"/>',
        '<media:content url="https://a.example/v.mp4" type="video/mp4" medium="v"/>',
        '<media:thumbnail url="https://a.example/1"/><media:thumbnail url="/2" a="b"/>',
    ],
)
def test_extensions_are_kept(inner: str) -> None:
    ours, theirs = item(inner)
    assert theirs.extensions == ours.extensions


@pytest.mark.parametrize(
    "inner",
    [
        "<comments>https://a.example/1#comments</comments>",
        "<comments>/1#comments</comments>",
        '<itunes:image href="https://a.example/1.jpg"/>',
        '<media:thumbnail url="https://a.example/t.png"/>',
        '<media:content url="/v.mp4" type="video/mp4" fileSize="3"/>',
        '<media:content url="/v" medium="image"/><media:content/><media:thumbnail/>',
    ],
)
def test_links_are_the_same(inner: str) -> None:
    ours, theirs = item(inner)
    assert theirs.links == ours.links


@pytest.mark.parametrize(
    "inner",
    [
        "<georss:point>47.5 -122.25</georss:point>",
        "<geo:lat>47.5</geo:lat><geo:long>-122.25</geo:long>",
    ],
)
def test_places_are_the_same(inner: str) -> None:
    ours, theirs = item(inner)
    assert ours.geo == theirs.geo == Geo(latitude=47.5, longitude=-122.25)
    assert theirs.extensions == {}


@pytest.mark.parametrize(
    "inner",
    [
        '<source url="https://a.example/feed">A &amp; B</source>',
        "<source>A</source>",
        "<itunes:title>T</itunes:title>",
        "<dc:date>2020-01-11T10:00:00Z</dc:date>",
        "<dc:contributor>Jo</dc:contributor>",
        "<dc:creator>Jo</dc:creator>",
    ],
)
def test_what_modules_say_is_said(inner: str) -> None:
    ours, theirs = item(inner)
    for name in ("source", "title", "published", "updated", "contributors", "authors"):
        assert getattr(theirs, name) == getattr(ours, name), name


@pytest.mark.parametrize("is_permalink", ["true", "false"])
def test_an_id_that_is_the_address_is_the_link(is_permalink: str) -> None:
    guid = f'<guid isPermaLink="{is_permalink}">https://a.example/1</guid>'
    [ours], [theirs] = both(rss(f"<item>{guid}</item>"))
    assert theirs.links == ours.links


def test_a_feed_is_as_well() -> None:
    head = (
        '<title>T</title><itunes:image href="/i.png"/>'
        "<itunes:explicit>x</itunes:explicit><podcast:guid>g</podcast:guid>"
    )
    body = rss(head=head).replace(b"<rss ", f"<rss{MODULES} ".encode())
    other = read_with_feedparser(
        OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
    )
    assert other is not None
    assert other.feed.logo == "https://site.example/i.png"
    assert other.feed.extensions["podcast"] == {"guid": "g"}


def test_relative_links_have_the_site_for_base() -> None:
    body = rss("<item><link>1</link></item>", head="<link>https://a.example/b/</link>")
    [ours], [theirs] = both(body)
    assert ours.links == theirs.links
    assert theirs.id == "https://a.example/b/1"


def test_contributors_of_atom_are_told() -> None:
    people = "<contributor><name>Jo</name></contributor><contributor/>"
    [ours], [theirs] = both(atom(f"<entry><id>urn:1</id>{people}</entry>"))
    assert theirs.contributors == ours.contributors


# --- whatever an item has ---

WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
WORDS = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
IDS = st.one_of(
    st.builds("https://a.example/?p={}".format, st.integers(1, 99)),
    st.builds("tag:a.example,2020:{}".format, WORD),
    st.builds("urn:uuid:{}".format, st.uuids()),
)
PAGES = st.builds("https://a.example/{}?a=1&b=2#c".format, WORD)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "guid": IDS,
        "link": PAGES,
        "title": WORDS,
        "description": WORDS.map("<p>{}</p>".format),
        "pubDate": st.sampled_from(
            ["Sat, 11 Jan 2020 10:00:00 GMT", "Sat, 11 Jan 2020 10:00:00 +0100"]
        ),
        "category": st.one_of(WORD, st.builds("{}&amp;{}".format, WORD, WORD)),
        "dc:creator": WORDS,
        "comments": PAGES,
    },
).filter(lambda fields: {"guid", "link", "title"} & {*fields})


def written(fields: dict[str, str]) -> str:
    parts = (f"<{name}>{escape(text)}</{name}>" for name, text in fields.items())
    return f"<item>{''.join(parts)}</item>"


@settings(max_examples=60)
@given(st.lists(FIELDS, min_size=1, max_size=4))
def test_entries_have_the_same_keys_and_say_the_same(
    items: list[dict[str, str]],
) -> None:
    ours, theirs = both(rss("".join(map(written, items))))
    assert [each.key for each in theirs] == [each.key for each in ours]
    assert list(map(content_hash, theirs)) == list(map(content_hash, ours))


@pytest.mark.parametrize(
    "title", ["<title>T</title>", "<description>D</description>", ""]
)
@pytest.mark.parametrize(
    "guid", ["a/1", "/1", "1234", "<![CDATA[ a ]]>", "a?b&amp;c", "urn:1", ""]
)
@pytest.mark.parametrize("base", ["https://b.example/q/", "https://b.example/q/r.xml"])
def test_a_guid_is_what_it_says_whatever_the_base(
    base: str, guid: str, title: str
) -> None:
    body = rss(f"<item>{title}<guid>{guid}</guid></item>", head="<title>F</title>")
    based = body.replace(b"<rss ", f'<rss xml:base="{base}" '.encode())
    [ours], [theirs] = both(based)
    assert (theirs.id, theirs.id_source, theirs.key, theirs.links) == (
        (ours.id, ours.id_source, ours.key, ours.links)
    )


@pytest.mark.parametrize("base", ["", ' xml:base="https://b.example/q/"'])
@pytest.mark.parametrize("about", ["a/1", "https://a.example/1"])
def test_what_an_item_of_rdf_is_about_has_a_base(about: str, base: str) -> None:
    body = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://purl.org/rss/1.0/"{base}><channel><title>F</title></channel>
        <item rdf:about="{about}"><title>T</title></item></rdf:RDF>"""
    [ours], [theirs] = both(body.encode())
    assert (theirs.id, theirs.key, theirs.links) == (ours.id, ours.key, ours.links)


def test_of_two_guids_the_first_is_the_id() -> None:
    body = rss(
        "<item><guid isPermaLink='false'>a&amp;b</guid><guid>2</guid></item>"
        "<item><guid>3</guid></item>"
        "<item><guid>https://a.example/4</guid><guid>5</guid></item>"
    )
    ours, theirs = both(body)
    assert [entry.id for entry in ours] == ["a&b", "3", "https://a.example/4"]
    assert [entry.id for entry in theirs] == [entry.id for entry in ours]


def test_two_guids_are_left_as_they_are_where_items_cannot_be_told_apart() -> None:
    _, [theirs] = both(
        rss(
            "<item><guid>1</guid><guid>2</guid>"
            "<description><![CDATA[<item>]]></description></item>"
        )
    )
    assert theirs.id == "2"


@pytest.mark.parametrize(
    ("about", "id"),
    [
        (' rdf:about="https://a.example/?a&amp;b "', "https://a.example/?a&b"),
        ("", ""),
    ],
)
def test_what_the_channel_of_rdf_is_about_is_the_id_of_the_feed(
    about: str, id: str
) -> None:
    body = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        f' xmlns="http://purl.org/rss/1.0/"><channel{about}><title>T</title></channel>'
        '<item rdf:about="https://a.example/1"><title>1</title></item></rdf:RDF>'
    ).encode()
    theirs = read_with_feedparser(
        OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
    )
    assert theirs is not None
    assert theirs.feed.id == parse(body, CONTEXT).feed.id == id
