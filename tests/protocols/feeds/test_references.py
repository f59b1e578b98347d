"""Relative references in content become absolute; all else stays byte for byte."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import parse
from protocols.feeds.context import ParseContext
from protocols.feeds.references import (
    MOST_GROWTH,
    MOST_SOURCES,
    has_relative_references,
    make_absolute,
    resolve_references,
)
from protocols.model import Entry, Text
from tests.support.golden import CONTEXT

BASE = "https://site.example/2026/post/?p=1&q=2#top"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ('<a href="/x">', '<a href="https://site.example/x">'),
        ('<a href="/">', '<a href="https://site.example/">'),
        (
            '<a href="x?a=1&amp;b=2">',
            '<a href="https://site.example/2026/post/x?a=1&amp;b=2">',
        ),
        ('<a href="../x">', '<a href="https://site.example/2026/x">'),
        ('<a href="/a/../x">', '<a href="https://site.example/x">'),
        ('<a href="//cdn.example/x">', '<a href="https://cdn.example/x">'),
        (
            '<a href="#fn1">',
            '<a href="https://site.example/2026/post/?p=1&amp;q=2#fn1">',
        ),
        ('<a href="?page=2">', '<a href="https://site.example/2026/post/?page=2">'),
        ("<a href='/x'>", "<a href='https://site.example/x'>"),
        ("<a href=/x>", "<a href=https://site.example/x>"),
        ("<a href=/x/>", "<a href=https://site.example/x/>"),
        ('<A HREF="/x">', '<A HREF="https://site.example/x">'),
        ('<a href = "/x">', '<a href = "https://site.example/x">'),
        ('<a\n\thref\n=\n"/x"\n>', '<a\n\thref\n=\n"https://site.example/x"\n>'),
        ('<img alt="a"src="/x">', '<img alt="a"src="https://site.example/x">'),
        ('<img/src="/x"/>', '<img/src="https://site.example/x"/>'),
        ('<a href="/&#120;">', '<a href="https://site.example/x">'),
        ('<a href="/x"', '<a href="https://site.example/x"'),
        (
            '<video poster="p.png">',
            '<video poster="https://site.example/2026/post/p.png">',
        ),
        ('<q cite="/x">', '<q cite="https://site.example/x">'),
        ('<form action="/x">', '<form action="https://site.example/x">'),
        ('<object data="/x">', '<object data="https://site.example/x">'),
        ('<img longdesc="/x">', '<img longdesc="https://site.example/x">'),
        ('<td background="/x">', '<td background="https://site.example/x">'),
        (
            '<script src="/x">a<b</script>',
            '<script src="https://site.example/x">a<b</script>',
        ),
        (
            '<img srcset="/a.png 1x, /b,c.png 2x,d.png">',
            '<img srcset="https://site.example/a.png 1x, https://site.example/b,c.png'
            ' 2x,https://site.example/2026/post/d.png">',
        ),
        ('<img srcset="/a.png,">', '<img srcset="https://site.example/a.png,">'),
        (
            '<p title=don\'t><a href="/x">',
            '<p title=don\'t><a href="https://site.example/x">',
        ),
        ('a < b <a href="/x">', 'a < b <a href="https://site.example/x">'),
        ('href="a <a href="/x">', 'href="a <a href="https://site.example/x">'),
        (
            '<p>src="/n" ><img class="href" src="/x" longdesc="/y"></p>',
            '<p>src="/n" ><img class="href" src="https://site.example/x"'
            ' longdesc="https://site.example/y"></p>',
        ),
        (
            '<!-- <a href="/n"> --><a href="/x">',
            '<!-- <a href="/n"> --><a href="https://site.example/x">',
        ),
        (
            '<style>a[href="/n"]{}</style><a href="/x">',
            '<style>a[href="/n"]{}</style><a href="https://site.example/x">',
        ),
        (
            '<SCRIPT>"<a href=\'/n\'>"</SCRIPT ><a href="/x">',
            '<SCRIPT>"<a href=\'/n\'>"</SCRIPT ><a href="https://site.example/x">',
        ),
    ],
)
def test_a_relative_address_becomes_absolute(markup: str, expected: str) -> None:
    assert has_relative_references(markup)
    assert resolve_references(markup, BASE) == expected


@pytest.mark.parametrize(
    "markup",
    [
        "",
        "no markup, though href=/x is said",
        '<a href="https://other.example/">',
        "<a href='http://other.example/'>",
        '<a href="mailto:jo@site.example">',
        '<a href="javascript:void(0)">',
        '<a href="&#106;avascript:void(0)">',
        '<img src="data:image/gif;base64,R0lG">',
        '<img src=" https://other.example/x ">',
        '<a href="">',
        "<a href>",
        '<a href="//[">',
        '<a title="href=/x" data-href="/x" xhref="/x">',
        '<a title=" href=&quot;/x" href2="/x">',
        '&lt;a href="/x">',
        '<!-- <a href="/x">',
        '<!--><a href="/x">-->',
        '<![CDATA[<a href="/x">]]>',
        "<script>let a = '<a href=\"/x\">'</script>",
        '<style><a href="/x">',
        '<textarea><a href="/x"></textarea>',
        "<p title=\"<a href='/x'>\">",
        '<p title="<a href=/x>',
        '<img srcset=" , ">',
        '< a href="/x">',
        '</a href="/x">',
        "<script/><style><a href=/x>",
    ],
)
def test_what_is_no_relative_address_stays_as_it_is(markup: str) -> None:
    assert resolve_references(markup, BASE) == markup


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        ("#", "https://b.example/p?q=1#"),
        ("?", "https://b.example/p?"),
        ("?#", "https://b.example/p?#"),
        ("/?", "https://b.example/?"),
    ],
)
def test_empty_fragments_and_queries_are_kept(reference: str, address: str) -> None:
    markup = resolve_references(f'<a href="{reference}">', "https://b.example/p?q=1")
    assert markup == f'<a href="{address}">'


WHOLE_PIECES = st.sampled_from(
    [
        '<a href="/x" cite="y">',
        '<a title="" href="https://other.example/" cite="">',
        '<img srcset="/a 1x, b 2x" alt="=" src="#c"/>',
        '<A HREF="/x">',
        '<a href ="/x">',
        '<a/href="/x"src="?p">',
        "</a>",
        ' href="/x" ',
        '="',
        "&lt;a ",
        "> text",
    ]
)
PIECES = st.sampled_from(
    ["<", ">", '"', "'", "=", " ", "/", "a", "#", "&", "!--", "-->", "\n", ",", "<a "]
) | st.sampled_from(
    ["href=", "src=", "<script>", "</script>", "srcset=", "<![CDATA[", "<style"]
)


@given(st.lists(WHOLE_PIECES, max_size=8).map("".join))
def test_plain_markup_is_read_as_any_other_is(markup: str) -> None:
    comment = "<!---->"
    resolved = resolve_references(markup, BASE)
    assert resolve_references(markup + comment, BASE) == resolved + comment


@given(st.text() | st.lists(PIECES, max_size=30).map("".join))
def test_any_text_keeps_all_but_its_addresses(markup: str) -> None:
    """Nothing is lost or reordered, and done once it is done."""
    resolved = resolve_references(markup, "https://b.example/")
    assert resolve_references(resolved, "https://b.example/") == resolved
    if not re.search("src|href", markup, re.IGNORECASE):
        assert resolved == markup
    left = iter(resolved)
    assert all(character in left for character in markup.replace("\n", "").strip())


@pytest.mark.parametrize(
    "unit", ['<a "', "<a href='", "<!--", "<script>", "<a x=", ",", "<a b "]
)
def test_no_markup_takes_squared_time(unit: str) -> None:
    """Many of anything: this would run for minutes otherwise."""
    markup = unit * 20_000
    for text in (markup, f'<a href="/x">{markup}', f'<img srcset="{markup}">'):
        assert len(resolve_references(text, BASE)) >= len(text)


@pytest.mark.parametrize("quote", ['"', "'"])
def test_of_a_list_of_sources_the_first_become_absolute(quote: str) -> None:
    listed = ", ".join(["a 1x"] * (MOST_SOURCES + 1))
    resolved = resolve_references(f"<img srcset={quote}{listed}{quote}>", "https://b/")
    assert resolved.count("https://b/a 1x") == MOST_SOURCES
    assert resolved.endswith(f", a 1x{quote}>")


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_text_does_not_grow_without_bounds(quote: str) -> None:
    base = f"https://b/{'c' * 8_000}/"
    tag = f"<a href={quote}d{quote}>"
    resolved = resolve_references(tag * 2_000, base)
    assert MOST_GROWTH < len(resolved) < MOST_GROWTH + 50_000
    assert resolved.endswith(tag)


@pytest.mark.parametrize(
    ("text", "base"),
    [
        (None, BASE),
        (Text(value='<a href="/x">', type="html"), ""),
        (Text(value='<a href="/x">', type="text"), BASE),
        (Text(value='<a href="/x">', type="application/xml"), BASE),
        (Text(value='<a href="https://x.example/">', type="html"), BASE),
    ],
)
def test_only_markup_with_relative_addresses_and_a_base_is_touched(
    text: Text | None, base: str
) -> None:
    assert make_absolute(text, base) is text


def first_entry(document: str, url: str = CONTEXT.url) -> Entry:
    context = ParseContext(url=url, now=CONTEXT.now)
    return parse(document.encode(), context).entries[0]


def rss(item: str, root: str = "") -> str:
    return (
        f'<rss {root} xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>'
        f"<link>https://shop.example/home/</link><item><guid>1</guid>{item}</item>"
        "</channel></rss>"
    )


def atom(entry: str, root: str = "") -> str:
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom" {root}>'
        f"<link href='https://shop.example/home/'/><entry><id>1</id>{entry}</entry></feed>"
    )


LINK = '<a href="x">'
ESCAPED = '&lt;a href="x">'


@pytest.mark.parametrize(
    ("document", "address"),
    [
        (rss(f"<description>{ESCAPED}</description>"), "https://shop.example/home/x"),
        (
            rss(
                f"<link>https://shop.example/p/1</link><description>{ESCAPED}</description>"
            ),
            "https://shop.example/p/x",
        ),
        (
            rss(
                f"<link>https://shop.example/p/1</link><description>{ESCAPED}</description>",
                'xml:base="https://base.example/"',
            ),
            "https://base.example/x",
        ),
        (
            rss(f"<description xml:base='/deep/'>{ESCAPED}</description>"),
            "https://shop.example/home/x",
        ),
        (
            rss(f"<itunes:summary>{ESCAPED}</itunes:summary>"),
            "https://shop.example/home/x",
        ),
        (
            atom(f"<summary type='html'>{ESCAPED}</summary>"),
            "https://site.example/feeds/x",
        ),
        (
            atom(f"<link href='/p/1'/><summary type='html'>{ESCAPED}</summary>"),
            "https://site.example/p/x",
        ),
        (
            atom(
                "<link href='/p/1'/>"
                f"<summary type='html' xml:base='b/'>{ESCAPED}</summary>",
                'xml:base="https://base.example/a/"',
            ),
            "https://base.example/a/b/x",
        ),
        (
            atom(
                "<summary type='xhtml' xml:base='/b/'><div xmlns='http://www.w3.org/1999/xhtml'"
                " xml:base='c/'><a href='x'>x</a></div></summary>"
            ),
            "https://site.example/b/c/x",
        ),
    ],
    ids=str,
)
def test_the_base_is_the_stated_one_or_the_entrys_page_or_the_site(
    document: str, address: str
) -> None:
    summary = first_entry(document).summary
    assert summary is not None
    assert f'<a href="{address}">' in summary.value


LINKS = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="{site}"/><entry>
<id>1</id><link href="{link}"/>{more}<summary type="html">&lt;a href="x"></summary>
</entry></feed>"""


@pytest.mark.parametrize(
    ("site", "link", "more", "address"),
    [
        ("https://me.example/", "https://me.example/p/1", "", "https://me.example/p/x"),
        (
            "https://me.example/",
            "https://www.me.example/p/1",
            "",
            "https://www.me.example/p/x",
        ),
        (
            "https://me.example/",
            "https://news.example/1",
            "",
            "https://site.example/feeds/x",
        ),
        (
            "https://me.example/",
            "https://site.example/p/1",
            "",
            "https://site.example/p/x",
        ),
        ("urn:x:none", "https://news.example/p/1", "", "https://news.example/p/x"),
        (
            "https://me.example/",
            "https://news.example/p/1",
            "<source><id>o</id></source>",
            "https://news.example/p/x",
        ),
        (
            "https://me.example/",
            "https://proxy.example/1",
            "<link rel='canonical' href='https://me.example/p/1'/>",
            "https://me.example/p/x",
        ),
        ("https://me.example/", "urn:x:1", "", "https://site.example/feeds/x"),
    ],
    ids=[
        "own",
        "www",
        "link-blog",
        "feed-host",
        "no-site",
        "copied",
        "proxy",
        "no-page",
    ],
)
def test_the_entrys_page_counts_if_it_is_of_the_feeds_site(
    site: str, link: str, more: str, address: str
) -> None:
    summary = first_entry(LINKS.format(site=site, link=link, more=more)).summary
    assert summary == Text(value=f'<a href="{address}">')


def test_a_document_of_no_address_keeps_its_relative_ones() -> None:
    document = rss(f"<description>{ESCAPED}</description>").replace("https:", "urn:")
    assert first_entry(document, url="").summary == Text(value=LINK)


def test_objects_have_absolute_references_too() -> None:
    document = atom(
        '<as:object xmlns:as="http://activitystrea.ms/spec/1.0/"><id>o</id>'
        f"<content type='html'>{ESCAPED}</content></as:object>"
    )
    content: Any = first_entry(document).objects[0].content
    assert content.value == '<a href="https://site.example/feeds/x">'


def test_references_change_no_generated_id() -> None:
    """An entry without anything to be known by is known by what it says as written."""
    item = f"<item><description>{ESCAPED}</description></item>"
    there, elsewhere = (
        parse(
            f"<rss><channel>{item}</channel></rss>".encode(),
            ParseContext(url=url, now=CONTEXT.now),
        )
        for url in ("https://a.example/feed", "https://b.example/feed")
    )
    assert there.entries[0].key == elsewhere.entries[0].key
