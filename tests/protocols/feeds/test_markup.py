"""Markup that was not escaped, written out again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from protocols.feeds import ParseContext, parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.model import Entry
from tests.support.documents import atom, rss

CONTEXT = ParseContext(
    url="https://site.example/feed", now=datetime(2026, 1, 1, tzinfo=UTC)
)


@pytest.mark.parametrize(
    "namespace",
    [
        "",
        "http://backend.userland.com/rss2",
        "http://purl.org/rss/1.0/",
        "http://www.w3.org/1999/xhtml",
        "urn:of-nobody",
    ],
)
def test_html_in_the_namespace_of_the_feed_is_html(namespace: str) -> None:
    document = (
        f'<rss version="2.0" xmlns="{namespace}"><channel><item><guid>1</guid>'
        "<description>a <b>c</b><i/><br/> &lt; d</description></item></channel></rss>"
    )
    [entry] = parse(document.encode(), CONTEXT).entries
    assert entry.summary is not None
    assert entry.summary.value == "a <b>c</b><i></i><br/> &lt; d"


def test_what_is_of_another_namespace_declares_it() -> None:
    document = (
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="urn:math" xmlns:x="urn:x">'
        '<entry><id>urn:1</id><content type="xhtml">'
        '<div xmlns="http://www.w3.org/1999/xhtml"><p xml:lang="de">a</p><m:v/></div>'
        "</content></entry></feed>"
    )
    [entry] = parse(document.encode(), CONTEXT).entries
    assert entry.content is not None
    assert entry.content.value == ('<p xml:lang="de">a</p><m:v xmlns:m="urn:math"/>')


MIXED = [
    ('&lt;p&gt;A&lt;/p&gt;<img src="//b.example/"/>', '<p>A</p><img src="{b}"/>'),
    ('<img src="//b.example/"/><![CDATA[<p>A</p>]]>', '<img src="{b}"/><p>A</p>'),
    (
        '<img src="//b.example/"/><p>say &lt;/p&gt;</p><![CDATA[<i>B &lt; C</i>]]>',
        '<img src="{b}"/><p>say &lt;/p&gt;</p><i>B &lt; C</i>',
    ),
    (
        '<p xmlns="http://www.w3.org/1999/xhtml">A</p>&lt;br&gt;<x:y xmlns:x="urn:x"/>',
        '<p>A</p><br><x:y xmlns:x="urn:x"/>',
    ),
]


@pytest.mark.parametrize(("written", "meant"), MIXED)
@pytest.mark.parametrize("is_atom", [False, True])
def test_markup_that_is_half_escaped_shows_no_tags(
    written: str, meant: str, *, is_atom: bool
) -> None:
    entry = entry_of(written, is_atom=is_atom)
    text = entry.content if is_atom else entry.summary
    assert text is not None
    assert text.value == meant.replace("{b}", "https://b.example/")


@pytest.mark.parametrize(
    "written",
    [
        "the &lt;p&gt; tag is <b>new</b>",
        "<p>a</p> 1 &lt; 2 &amp;&amp; 3 &gt; 2",
        "<pre>&lt;p&gt;&lt;/p&gt;</pre> is <i>code</i>",
    ],
)
def test_text_beside_elements_stays_text_where_it_is_no_markup(written: str) -> None:
    entry = entry_of(written, is_atom=False)
    assert entry.summary is not None
    assert entry.summary.value == written


@pytest.mark.parametrize(("written", "meant"), MIXED[:3])
def test_half_escaped_markup_is_the_same_where_feedparser_reads_it(
    written: str, meant: str
) -> None:
    body = f"<rss><channel><item><description>{written}</description></item></channel>"
    document = OpenedDocument(kind=DocumentKind.XML, body=f"{body}</rss>".encode())
    parsed = read_with_feedparser(document, CONTEXT)
    assert parsed is not None
    [entry] = parsed.entries
    assert entry.summary is not None
    theirs = entry.summary.value.replace("></img>", "/>")
    assert theirs == meant.replace("{b}", "https://b.example/")


def entry_of(description: str, *, is_atom: bool) -> Entry:
    item = f"<item><guid>1</guid><description>{description}</description></item>"
    entry = f'<entry><id>1</id><content type="html">{description}</content></entry>'
    [read] = parse(atom(entry) if is_atom else rss(item), CONTEXT).entries
    return read
