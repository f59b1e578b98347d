"""A namespace is what it means, however its name is written."""

from __future__ import annotations

import pytest

from protocols.feeds import parse
from protocols.feeds.document import open_document
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.feeds.namespaces import NAMESPACES, usual_uri
from protocols.model import Entry, Feed
from tests.support.documents import CONTEXT, atom

ATOM = "http://www.w3.org/2005/Atom"
MEDIA = "http://search.yahoo.com/mrss/"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://www.w3.org/2005/Atom", ATOM),
        ("http://www.w3.org/2005/Atom/", ATOM),
        ("http://w3.org/2005/atom", ATOM),
        (" http://www.w3.org/2005/Atom ", ATOM),
        ("http://www.rssboard.org/media-rss", MEDIA),
        ("https://rssboard.org/media-rss/", MEDIA),
        ("http://video.search.yahoo.com/mrss/", MEDIA),
        ("https://video.search.yahoo.com/mrss", MEDIA),
        ("https://purl.org/dc/elements/1.1", NAMESPACES["dc"][0]),
        ("http://www.w3.org/2003/01/geo/wgs84_pos", NAMESPACES["geo"][0]),
        ("http://itunes.com/dtds/podcast-1.0.dtd", NAMESPACES["itunes"][0]),
        ("http://podcastindex.org/namespace/1.0", NAMESPACES["podcast"][0]),
        ("http://purl.org/rss/1.0/", "http://purl.org/rss/1.0/"),
        ("", ""),
        ("http://a.example/ns", "http://a.example/ns"),
        (f"https://www.w3.org/2005/Atom{'/' * 200}",) * 2,
    ],
)
def test_a_known_namespace_is_known_without_scheme_www_and_slash(
    written: str, meant: str
) -> None:
    assert usual_uri(written) == meant


HEADER = """<?xml version="1.0"?>
<rss version="2.0" xmlns:content="{content}" xmlns:dc='{dc}' xmlns:atom="{atom}"
  xmlns:media="{media}" xmlns:itunes="{itunes}" xmlns:geo="{geo}"><channel>
<title>F</title><link>https://site.example/</link>
<atom:link rel="hub" href="https://hub.example/"/>
<atom:link rel="self" href="https://site.example/feed.xml"/>
<item><guid>1</guid><title>T</title><content:encoded>&lt;p&gt;Text&lt;/p&gt;
</content:encoded><dc:creator>Jo</dc:creator><dc:date>2020-01-11T10:00:00Z</dc:date>
<media:thumbnail url="https://site.example/t.png"/><itunes:duration>1</itunes:duration>
<geo:lat>47.5</geo:lat><geo:long>-122.25</geo:long></item></channel></rss>"""
USED = ("content", "dc", "atom", "media", "itunes", "geo")
RIGHT = {name: NAMESPACES[name][0] for name in USED}


def read(uris: dict[str, str], *, by_feedparser: bool) -> tuple[Feed, Entry]:
    document = open_document(HEADER.format(**uris).encode(), CONTEXT)
    if by_feedparser:
        parsed = read_with_feedparser(document, CONTEXT)
        assert parsed is not None
    else:
        parsed = parse(HEADER.format(**uris).encode(), CONTEXT)
    [entry] = parsed.entries
    return parsed.feed, entry


@pytest.mark.parametrize("by_feedparser", [False, True])
@pytest.mark.parametrize(
    "wrong",
    [
        {name: uri.replace("http:", "https:") for name, uri in RIGHT.items()},
        {name: uri.rstrip("/#") for name, uri in RIGHT.items()},
        {name: f"{uri.rstrip('/#')}/" for name, uri in RIGHT.items()},
        {name: uri.replace("www.", "") for name, uri in RIGHT.items()},
        RIGHT | {"media": "http://www.rssboard.org/media-rss"},
        RIGHT | {"media": "http://video.search.yahoo.com/mrss/"},
    ],
    ids=["https", "no slash", "slash", "no www", "rssboard", "video"],
)
def test_a_template_with_namespaces_by_https_loses_nothing(
    wrong: dict[str, str], *, by_feedparser: bool
) -> None:
    feed, entry = read(wrong, by_feedparser=by_feedparser)

    assert (feed, entry) == read(RIGHT, by_feedparser=by_feedparser)
    assert {link.rel for link in feed.links} >= {"hub", "self"}
    assert entry.content is not None
    assert [author.name for author in entry.authors] == ["Jo"]
    assert entry.published is not None
    assert [link.href for link in entry.links] == ["https://site.example/t.png"]


def test_the_attributes_of_rdf_are_known_by_https() -> None:
    body = b"""<rdf:RDF xmlns:rdf="https://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="https://purl.org/rss/1.0"><channel rdf:about="https://site.example/">
        <title>F</title></channel><item rdf:about="https://site.example/1">
        <title>T</title></item></rdf:RDF>"""
    parsed = parse(body, CONTEXT)
    assert (parsed.feed.id, parsed.feed.title) == ("https://site.example/", "F")
    assert [entry.id for entry in parsed.entries] == ["https://site.example/1"]


def test_an_atom_document_is_one_by_https() -> None:
    entry = "<entry><id>1</id><title>T</title><content type='xhtml'>"
    entry += (
        '<div xmlns="http://www.w3.org/1999/xhtml"><p>A</p></div></content></entry>'
    )
    wrong = atom(entry).replace(b"http://www.w3.org/2005", b"https://w3.org/2005")
    assert parse(wrong, CONTEXT).entries == parse(atom(entry), CONTEXT).entries


def test_a_namespace_that_is_declared_deeper_in_is_known_as_well() -> None:
    media = 'xmlns:media="https://www.rssboard.org/media-rss/"'
    body = (
        f"<rss><channel><item><guid>1</guid><media:group {media}>"
        f'<media:thumbnail url="/t"/></media:group></item><item><guid>2</guid>'
        f"<media:credit {media}>Jo"
        "</media:credit></item></channel></rss>"
    )
    first, second = parse(body.encode(), CONTEXT).entries
    assert [link.href for link in first.links] == ["https://site.example/t"]
    assert second.extensions == {"media": {"credit": "Jo"}}


def test_a_document_in_utf16_is_told_its_namespaces_too() -> None:
    body = HEADER.format(**RIGHT | {"dc": "https://purl.org/dc/elements/1.1/"})
    wide = body.replace('version="1.0"', 'version="1.0" encoding="utf-16"')
    [entry] = parse(wide.encode("utf-16"), CONTEXT).entries
    assert [author.name for author in entry.authors] == ["Jo"]


def test_what_a_text_says_of_namespaces_stays_as_it_is() -> None:
    code = '<pre>&lt;rss xmlns:dc="https://purl.org/dc/elements/1.1"&gt;</pre>'
    body = (
        f"<rss><channel><item><guid>1</guid><description><![CDATA[{code}]]>"
        "</description></item></channel></rss>"
    )
    [entry] = parse(body.encode(), CONTEXT).entries
    assert entry.summary is not None
    assert entry.summary.value == code


def test_a_root_with_a_long_start_tag_is_read_as_any_other() -> None:
    long = " ".join(f'xmlns:n{number}="urn:{number}"' for number in range(400))
    body = HEADER.format(**RIGHT | {"dc": "https://purl.org/dc/elements/1.1/"})
    body = body.replace("<rss ", f"<rss {long} ")
    [entry] = parse(body.encode(), CONTEXT).entries
    assert [author.name for author in entry.authors] == ["Jo"]
