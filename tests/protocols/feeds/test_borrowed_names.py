"""Elements that stand where no specification has them, and are meant all the same."""

from __future__ import annotations

import pytest

from protocols.dates import parse_date
from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.feeds.namespaces import ATOM, ATOM_03
from protocols.model import Author, Entry, Feed, ParsedFeed, Text
from tests.support.documents import CONTEXT, atom, rss


@pytest.mark.parametrize("namespace", [ATOM[1:-1], ATOM_03[1:-1]])
@pytest.mark.parametrize(
    ("published", "updated", "rights", "subtitle"),
    [
        ("published", "updated", "rights", "subtitle"),
        ("issued", "modified", "copyright", "tagline"),
        ("created", "modified", "copyright", "tagline"),
    ],
)
def test_either_version_of_atom_has_the_elements_of_the_other(
    namespace: str, published: str, updated: str, rights: str, subtitle: str
) -> None:
    body = f"""<feed xmlns="{namespace}"><{subtitle}>S</{subtitle}><entry>
        <{published}>2020-01-11</{published}><{updated}>2020-01-12</{updated}>
        <{rights}>R</{rights}></entry></feed>"""
    parsed = parse(body.encode(), CONTEXT)
    [entry] = parsed.entries
    assert parsed.feed.subtitle == "S"
    assert (entry.published, entry.updated, entry.rights) == (
        parse_date("2020-01-11"),
        parse_date("2020-01-12"),
        "R",
    )


@pytest.mark.parametrize(
    ("written", "author"),
    [
        ("Jo", Author(name="Jo")),
        ("jo@a.example (Jo)", Author(name="Jo", email="jo@a.example")),
        ("Jo (Reuters)", Author(name="Jo (Reuters)")),
    ],
)
def test_a_creator_may_be_written_as_an_author_of_rss(
    written: str, author: Author
) -> None:
    creator = f"<dc:creator>{written}</dc:creator><dc:creator> </dc:creator>"
    parsed = parse(rss(f"<item>{creator}</item>"), CONTEXT)
    assert parsed.entries[0].authors == (author,)


@pytest.mark.parametrize(
    ("written", "published", "updated"),
    [
        ("<created>2020-01-11</created><updated>2020-01-12</updated>", 11, 12),
        ("<published>2020-01-11</published><modified>2020-01-12</modified>", 11, 12),
        ("<date>2020-01-11</date>", 11, None),
        ("<issued>2020-01-11</issued>", 11, None),
        ("<pubDate>2020-01-11</pubDate><created>2020-01-09</created>", 11, None),
    ],
)
def test_an_item_may_have_dates_that_rss_does_not_know(
    written: str, published: int, updated: int | None
) -> None:
    [entry] = parse(rss(f"<item><guid>1</guid>{written}</item>"), CONTEXT).entries
    assert entry.published is not None
    assert entry.published.day == published
    assert (entry.updated and entry.updated.day) == updated


@pytest.mark.parametrize(
    ("written", "id"),
    [("<id>a</id><link>/1</link>", "a"), ("<id>a</id><guid>b</guid>", "b")],
)
def test_an_id_that_rss_does_not_know_stands_in_for_a_missing_one(
    written: str, id: str
) -> None:
    [entry] = parse(rss(f"<item>{written}</item>"), CONTEXT).entries
    assert entry.id == id


@pytest.mark.parametrize(
    "written", ["/?a=1&amp;b=2", "/?a=1&amp;amp;b=2", "<![CDATA[/?a=1&amp;b=2]]>"]
)
def test_a_link_that_was_escaped_twice_is_the_link_that_was_meant(written: str) -> None:
    [entry] = parse(rss(f"<item><link>{written}</link></item>"), CONTEXT).entries
    assert [link.href for link in entry.links] == ["https://site.example/?a=1&b=2"]


def test_an_attribute_in_small_letters_says_that_an_id_is_no_address() -> None:
    guid = '<guid ispermalink="false">https://site.example/1</guid>'
    [entry] = parse(rss(f"<item>{guid}</item>"), CONTEXT).entries
    assert entry.links == ()


def test_a_person_of_whom_nothing_is_said_is_no_author_of_an_item() -> None:
    parsed = parse(rss("<item><author><name/></author></item>"), CONTEXT)
    assert parsed.entries[0].authors == ()


def test_addresses_and_times_of_cdf_are_attributes() -> None:
    body = b"""<CHANNEL HREF="https://s.example/" LASTMOD="2020-01-12"><TITLE>T</TITLE>
        <ITEM HREF="/1" LASTMOD="2020-01-11T10:00"><TITLE>A</TITLE>
        <ABSTRACT>S</ABSTRACT></ITEM><ITEM><TITLE>B</TITLE></ITEM></CHANNEL>"""
    parsed = parse(body, CONTEXT)
    first, second = parsed.entries
    assert [link.href for link in parsed.feed.links] == ["https://s.example/"]
    assert parsed.feed.updated == parse_date("2020-01-12")
    assert (first.title, first.summary) == ("A", Text(value="S"))
    assert [link.href for link in first.links] == ["https://site.example/1"]
    assert first.updated == parse_date("2020-01-11T10:00")
    assert (second.links, second.updated) == ((), None)


# --- as others write it, whoever reads it ---

NAMESPACES = (
    ' xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    ' xmlns:xhtml="http://www.w3.org/1999/xhtml"'
    ' xmlns:media="http://search.yahoo.com/mrss/"'
)
READERS = pytest.mark.parametrize("is_broken", [False, True], ids=["ours", "theirs"])


def read(body: bytes, *, is_broken: bool) -> ParsedFeed:
    """By our readers, or as feedparser's reading would be were it broken."""
    body = body.replace(b"<rss ", f"<rss{NAMESPACES} ".encode())
    if not is_broken:
        return parse(body, CONTEXT)
    parsed = read_with_feedparser(
        OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
    )
    assert parsed is not None
    return parsed


def item_of(inner: str, *, is_broken: bool = False) -> Entry:
    [entry] = read(
        rss(f"<item><guid>1</guid>{inner}</item>"), is_broken=is_broken
    ).entries
    return entry


def entry_of(inner: str, *, is_broken: bool = False, uri: str = ATOM[1:-1]) -> Entry:
    body = atom(f"<entry><title>T</title>{inner}</entry>")
    body = body.replace(ATOM[1:-1].encode(), uri.encode())
    [entry] = read(body, is_broken=is_broken).entries
    return entry


def links_of(entry: Entry | Feed) -> list[tuple[str, str]]:
    return [(link.rel, link.href) for link in entry.links]


@READERS
@pytest.mark.parametrize(
    ("inner", "name"),
    [
        ("<author>jo@a.com</author><itunes:author>Jo</itunes:author>", "Jo"),
        ("<itunes:author>Jo</itunes:author><author>jo@a.com</author>", "Jo"),
        ("<dc:creator>jo@a.com</dc:creator><itunes:author>Jo</itunes:author>", "Jo"),
        ("<author>jo@a.com (Jo)</author><itunes:author>Co</itunes:author>", "Jo"),
    ],
)
def test_a_name_for_podcasts_is_that_of_an_author_with_an_address_alone(
    inner: str, name: str, *, is_broken: bool
) -> None:
    first = item_of(inner, is_broken=is_broken).authors[0]
    assert (first.name, first.email) == (name, "jo@a.com")


@READERS
@pytest.mark.parametrize(
    "inner",
    [
        "<category>R&amp;amp;D</category>",
        "<category><![CDATA[R&amp;D]]></category>",
        "<category><![CDATA[R&#38;D]]></category>",
        "<dc:subject>R&amp;amp;D</dc:subject>",
        '<itunes:category text="R&amp;amp;D"/>',
        "<itunes:keywords>R&amp;amp;D</itunes:keywords>",
        "<media:category>R&amp;amp;D</media:category>",
    ],
)
def test_entities_in_categories_are_what_they_stand_for(
    inner: str, *, is_broken: bool
) -> None:
    entry = item_of(inner, is_broken=is_broken)
    assert {category.term for category in entry.categories} == {"R&D"}


@READERS
def test_entities_in_categories_of_atom_are_too(*, is_broken: bool) -> None:
    category = '<category term="R&amp;amp;D" label="R &amp;amp; D"/>'
    [read] = entry_of(f"<id>1</id>{category}", is_broken=is_broken).categories
    assert (read.term, read.label) == ("R&D", "R & D")


@READERS
@pytest.mark.parametrize(
    ("inner", "links"),
    [
        ("<id>https://a.example/1</id>", ["https://a.example/1"]),
        (
            '<id>https://a.example/1</id><link href="https://a.example/2"/>',
            ["https://a.example/2"],
        ),
        ("<id>tag:a.example,2026:1</id>", []),
        ("<id>urn:uuid:1</id>", []),
    ],
)
def test_an_id_of_atom_that_is_an_address_is_the_permalink_where_there_is_none(
    inner: str, links: list[str], *, is_broken: bool
) -> None:
    entry = entry_of(inner, is_broken=is_broken)
    assert [link.href for link in entry.links if link.rel == "alternate"] == links


def test_an_id_of_json_feed_is_as_well() -> None:
    body = b"""{"version": "https://jsonfeed.org/version/1.1", "title": "F", "items":
        [{"id": "https://a.example/1", "content_text": "A"}, {"id": "2"}]}"""
    first, second = parse(body, CONTEXT).entries
    assert links_of(first) == [("alternate", "https://a.example/1")]
    assert second.links == ()


@READERS
@pytest.mark.parametrize("uri", [ATOM[1:-1], ATOM_03[1:-1]])
def test_an_enclosure_of_rss_is_one_in_atom(uri: str, *, is_broken: bool) -> None:
    enclosure = '<enclosure url="/a.mp3" type="audio/mpeg" length="5"/>'
    [link] = entry_of(f"<id>1</id>{enclosure}", is_broken=is_broken, uri=uri).links
    assert (link.rel, link.href) == ("enclosure", "https://site.example/a.mp3")
    assert (link.type, link.length) == ("audio/mpeg", 5)


@READERS
def test_a_wrapper_around_categories_holds_categories(*, is_broken: bool) -> None:
    inner = "<category>a</category><category domain='d'>b</category>"
    wrapped = item_of(f"<categories>{inner}</categories>", is_broken=is_broken)
    assert [(each.term, each.scheme) for each in wrapped.categories] == (
        [("a", ""), ("b", "d")]
    )
    inner = '<categories><category term="a"/><category term="b"/></categories>'
    atoms = entry_of(f"<id>1</id>{inner}", is_broken=is_broken)
    assert [each.term for each in atoms.categories] == ["a", "b"]


def test_what_else_is_in_a_wrapper_or_instead_of_one_is_kept() -> None:
    for inner in ("<categories>a</categories>", "<categories><x>a</x></categories>"):
        entry = item_of(inner)
        assert (entry.categories, list(entry.extensions)) == ((), ["rss"])
        assert list(entry_of(f"<id>1</id>{inner}").extensions) == ["atom"]


def test_a_channel_may_wrap_its_categories() -> None:
    head = "<title>F</title><categories><category>a</category></categories>"
    parsed = parse(rss(head=head), CONTEXT)
    assert [each.term for each in parsed.feed.categories] == ["a"]


@READERS
@pytest.mark.parametrize(
    ("written", "links"),
    [
        (
            "<link>https://a.example/2</link>",
            [("alternate", "https://a.example/2")],
        ),
        ("<link> /2 </link>", [("alternate", "https://site.example/2")]),
        ("<link/>", []),
    ],
)
def test_a_link_of_atom_may_be_written_as_one_of_rss(
    written: str, links: list[tuple[str, str]], *, is_broken: bool
) -> None:
    assert links_of(entry_of(f"<id>1</id>{written}", is_broken=is_broken)) == links


@pytest.mark.parametrize(
    "written",
    [
        "<xhtml:div><p>A</p></xhtml:div>",
        '<div xmlns="http://www.w3.org/1999/xhtml"><p>A</p></div>',
        "<xhtml:body><p>A</p></xhtml:body>",
    ],
)
def test_a_div_of_xhtml_is_the_content_of_an_item(written: str) -> None:
    entry = item_of(f"<description>D</description>{written}")
    assert entry.content == Text(value="<p>A</p>", type="xhtml")
    second = item_of(f"<xhtml:body>B</xhtml:body>{written}")
    assert second.content == Text(value="B", type="xhtml")
    assert "<p>A</p>" in str(second.extensions)


@READERS
@pytest.mark.parametrize(
    "written",
    [
        "<author>Jo</author>",
        "<dc:author>Jo</dc:author>",
        "<dc:creator>Jo</dc:creator>",
        "<itunes:author>Jo</itunes:author>",
        "<managingEditor>Jo</managingEditor>",
    ],
)
def test_a_channel_has_an_author_by_many_names(
    written: str, *, is_broken: bool
) -> None:
    head = f"<title>F</title>{written}"
    feed = read(rss("<item><guid>1</guid></item>", head=head), is_broken=is_broken).feed
    assert [author.name for author in feed.authors] == ["Jo"]


def test_a_link_of_atom_without_an_address_is_kept_as_it_is() -> None:
    entry = entry_of('<id>1</id><link rel="x"> </link>')
    assert (entry.links, entry.extensions) == ((), {"atom": {"link": {"rel": "x"}}})


def test_an_item_may_have_an_author_of_dublin_core() -> None:
    assert item_of("<dc:author>Jo</dc:author>").authors == (Author(name="Jo"),)


@READERS
@pytest.mark.parametrize(
    ("written", "links"),
    [
        (
            '<content src="/p" type="text/html"/>',
            [("alternate", "https://site.example/p")],
        ),
        (
            '<content src="/p" type="application/xhtml+xml"/>',
            [("alternate", "https://site.example/p")],
        ),
        (
            '<link href="/1"/><content src="/p" type="text/html"/>',
            [("alternate", "https://site.example/1")],
        ),
        (
            '<content src="/v.mp4" type="video/mp4"/>',
            [("enclosure", "https://site.example/v.mp4")],
        ),
        ('<content src="javascript:x" type="video/mp4"/>', []),
    ],
)
def test_content_of_atom_that_is_elsewhere_is_a_page_or_a_file(
    written: str, links: list[tuple[str, str]], *, is_broken: bool
) -> None:
    entry = entry_of(f"<id>1</id>{written}", is_broken=is_broken)
    assert links_of(entry) == links
    assert entry.content is None


@READERS
def test_a_self_link_that_is_a_page_is_the_permalink_where_there_is_none(
    *, is_broken: bool
) -> None:
    page = '<link rel="self" type="text/html; charset=utf-8" href="/p"/>'
    address = ("alternate", "https://site.example/p")

    assert address in links_of(entry_of(f"<id>1</id>{page}", is_broken=is_broken))
    other = entry_of(f'<id>1</id>{page}<link href="/1"/>', is_broken=is_broken)
    assert address not in links_of(other)
    untyped = entry_of('<id>1</id><link rel="self" href="/p"/>', is_broken=is_broken)
    assert address not in links_of(untyped)
    feed = read(atom(f"<title>F</title>{page}"), is_broken=is_broken).feed
    assert address in links_of(feed)
