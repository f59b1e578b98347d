"""Pages as entries: every member has its place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.model import Author, Category, Entry, Feed, Link, Text
from protocols.scp.read.collection_entries import entry_of_page, html_of_blocks
from protocols.scp.read.collection_reader import Warnings
from protocols.scp.write.page import PageContext, page_line
from tests.support.scp_files import collection, head, lines, page, read


def entry(**changes: Any) -> Entry:
    _, (found,) = read(collection(page(**changes)))
    return entry_of_page(found, Warnings())


def html(*blocks: Any) -> str:
    return html_of_blocks(list(blocks), 2, Warnings())[0]


def test_a_page_is_an_entry() -> None:
    found = entry(
        author=" Jane  Doe",
        published="2025-12-31T10:00:00+01:00",
        canonical="https://example.com/canonical",
        title=" A\n page ",
    )
    assert found == Entry(
        key="//example.com/a",
        id="https://example.com/a",
        title="A page",
        summary=Text(value="What it is about", type="text"),
        content=Text(value="<p>Words</p>"),
        published=datetime(2025, 12, 31, 9, tzinfo=UTC),
        updated=datetime(2026, 1, 1, 12, tzinfo=UTC),
        links=(
            Link(href="https://example.com/a"),
            Link(href="https://example.com/canonical", rel="canonical"),
        ),
        authors=(Author(name="Jane Doe"),),
        language="en",
    )


@pytest.mark.parametrize(
    ("block", "markup"),
    [
        ({"type": "text", "text": "a < b & c"}, "<p>a &lt; b &amp; c</p>"),
        ({"type": "text", "text": "a\nb\n\n\nc"}, "<p>a<br>b</p>\n<p>c</p>"),
        ({"type": "heading", "level": 3, "text": "H"}, "<h3>H</h3>"),
        ({"type": "heading", "level": 7, "text": "H"}, "<h6>H</h6>"),
        ({"type": "heading", "level": -1, "text": "H"}, "<h1>H</h1>"),
        ({"type": "heading", "level": "x", "text": "H"}, "<h2>H</h2>"),
        (
            {"type": "link", "url": 'https://a.example/?"', "text": "<b>"},
            '<p><a href="https://a.example/?&quot;">&lt;b&gt;</a></p>',
        ),
        (
            {
                "type": "link",
                "url": "https://a.example/",
                "text": "x",
                "rel": ["me", 1],
            },
            '<p><a href="https://a.example/" rel="me">x</a></p>',
        ),
        ({"type": "link", "url": "javascript:x", "text": "x"}, "<p>x</p>"),
        (
            {"type": "image", "url": "https://a.example/i.png", "alt": '"'},
            '<p><img src="https://a.example/i.png" alt="&quot;"></p>',
        ),
        (
            {"type": "image", "url": "https://a.example/i.png"},
            '<p><img src="https://a.example/i.png" alt=""></p>',
        ),
        (
            {"type": "list", "ordered": True, "items": ["a<", "b\nc", 7]},
            "<ol><li>a&lt;</li><li>b<br>c</li><li></li></ol>",
        ),
        ({"type": "list", "ordered": False, "items": ["a"]}, "<ul><li>a</li></ul>"),
        (
            {"type": "code", "language": "python", "code": "if a < b:\n  c"},
            '<pre><code class="language-python">if a &lt; b:\n  c</code></pre>',
        ),
        ({"type": "code", "code": "x"}, "<pre><code>x</code></pre>"),
        (
            {"type": "table", "rows": [["a", "b"], ["<"], "no"]},
            "<table><tr><td>a</td><td>b</td></tr><tr><td>&lt;</td></tr></table>",
        ),
        ({"type": "quote", "text": "q"}, "<blockquote><p>q</p></blockquote>"),
        (
            {"type": "quote", "text": "q", "citation": "A & B"},
            "<blockquote><p>q</p><p><cite>A &amp; B</cite></p></blockquote>",
        ),
        (
            {"type": "quote", "text": "q", "citation": "https://a.example/"},
            '<blockquote cite="https://a.example/"><p>q</p></blockquote>',
        ),
        (
            {
                "type": "video",
                "name": "V",
                "url": [
                    {"href": "https://a.example/v.mp4", "mediaType": "video/mp4"},
                    {"href": "https://tube.example/v", "mediaType": "text/html"},
                ],
            },
            '<p><a href="https://tube.example/v">V</a></p>',
        ),
    ],
)
def test_blocks_are_html(block: dict[str, Any], markup: str) -> None:
    assert html(block) == markup


@pytest.mark.parametrize(
    "block",
    [
        {"type": "novelty", "text": "x"},
        {"type": 7},
        {"text": "no type"},
        "no block",
        {"type": "text"},
        {"type": "heading", "level": 1},
        {"type": "link", "url": "https://a.example/"},
        {"type": "image", "url": "javascript:x"},
        {"type": "list", "items": "x"},
        {"type": "list", "items": []},
        {"type": "code"},
        {"type": "table"},
        {"type": "table", "rows": []},
        {"type": "quote"},
        {"type": "audio", "name": "x", "url": "ftp://a.example"},
        {"type": "audio", "name": "x", "url": [7, {"href": 7}, {"href": "x:"}]},
    ],
)
def test_a_block_that_cannot_be_read_is_passed_over_and_noted(block: Any) -> None:
    warnings = Warnings()
    blocks = [{"type": "text", "text": "a"}, block, {"type": "text", "text": "b"}]
    assert html_of_blocks(blocks, 9, warnings)[0] == "<p>a</p>\n<p>b</p>"
    (line,) = warnings.lines
    assert line.startswith("line 9: /content/1")
    assert line.endswith("ignored")


def test_media_are_enclosures_and_what_else_they_say_is_kept() -> None:
    block = {
        "type": "audio",
        "name": "Episode",
        "url": [
            {"href": "https://a.example/e.mp3", "mediaType": "audio/mpeg"},
            {"href": "https://a.example/e.mp3", "mediaType": "audio/mpeg"},
            {"href": "https://a.example/e", "mediaType": "text/html"},
        ],
        "duration": "PT1H",
        "icon": {"type": "Image", "url": "https://a.example/i.jpg"},
        "transcript": "Hello",
    }
    single = {"type": "video", "name": "v", "url": "https://a.example/v.mp4"}
    found = entry(content=[block, single])
    assert found.links == (
        Link(href="https://example.com/a"),
        Link(href="https://a.example/e.mp3", rel="enclosure", type="audio/mpeg"),
        Link(href="https://a.example/i.jpg", rel="image", type="image/jpeg"),
        Link(href="https://a.example/v.mp4", rel="enclosure", type="video/mp4"),
    )
    assert found.extensions == {"scp": {"media": [block, single]}}
    assert found.content == Text(
        value='<p><a href="https://a.example/e">Episode</a></p>'
    )


def test_schema_org_says_what_the_page_has_no_words_for() -> None:
    schema = {
        "@type": "BlogPosting",
        "headline": "Of schema",
        "keywords": "a, b ,, c",
        "articleSection": "News",
        "author": [
            {"@type": "Person", "name": "X", "url": "https://x.example/"},
            "Y",
            7,
        ],
        "datePublished": "2026-01-01",
        "inLanguage": "en-Latn-GB",
        "thumbnailUrl": "https://a.example/t.png",
        "image": [{"url": "https://a.example/i.png"}],
    }
    found = entry(title="", author="Page", schema=schema)
    assert found.title == "Of schema"
    assert found.authors == (
        Author(name="X", uri="https://x.example/"),
        Author(name="Y"),
    )
    assert found.categories == tuple(
        Category(term=each) for each in ("a", "b", "c", "News")
    )
    assert found.published == datetime(2026, 1, 1, tzinfo=UTC)
    assert found.language == "en-Latn-GB"
    assert [each.href for each in found.links[1:]] == [
        "https://a.example/t.png",
        "https://a.example/i.png",
    ]
    assert found.extensions == {"scp": {"schema": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        "no object",
        {},
        {"author": 7, "keywords": 7, "image": [], "inLanguage": 7, "name": 7},
        {"author": {"name": "", "url": 7}, "keywords": [7, ""], "inLanguage": "de"},
        {"author": {"name": 7}, "image": {"url": 7}, "inLanguage": "not a tag"},
        {"name": ""},
    ],
)
def test_whatever_else_schema_org_says_the_page_counts(schema: Any) -> None:
    found = entry(schema=schema, author="Page", title="")
    assert found.authors == (Author(name="Page"),)
    assert (found.title, found.categories, found.language) == ("", (), "en")
    assert len(found.links) == 1


def test_optional_members_of_another_kind_are_nothing() -> None:
    found = entry(
        author=7, published="soon", canonical=7, language="?", description=" "
    )
    assert (found.authors, found.published, found.language) == ((), None, "")
    assert found.summary is None
    assert entry(content=[]).content is None
    assert len(entry(canonical="https://example.com/a").links) == 1
    video = {"type": "video", "url": "https://a.example/v.mp4", "icon": "x"}
    assert len(entry(content=[video]).links) == 2


def test_an_entry_has_no_more_than_some_links_of_a_kind() -> None:
    files = [
        {"href": f"https://a.example/{n}", "mediaType": "audio/mpeg"}
        for n in range(14_000)
    ]
    block = {"type": "audio", "url": files}
    icons = [
        {"type": "video", "icon": {"url": f"https://a.example/{n}.png"}}
        for n in range(900)
    ]
    found = entry(content=[block, *icons])
    relations = [link.rel for link in found.links]
    assert relations == ["alternate", *["enclosure"] * 50, *["image"] * 50]
    assert found.links[-1].href == "https://a.example/49.png"


def test_what_this_hub_publishes_comes_back_as_it_was() -> None:
    original = Entry(
        key="//example.com/a",
        id="https://example.com/a",
        title="A page",
        content=Text(
            value="<h2>Head</h2>\n<p>One<br>two &amp; three</p>\n<ul><li>x</li></ul>\n"
            "<pre><code>a\n b</code></pre>\n<blockquote><p>q</p></blockquote>"
        ),
        published=datetime(2026, 1, 1, tzinfo=UTC),
        links=(
            Link(href="https://example.com/a"),
            Link(href="https://a.example/e.mp3", rel="enclosure", type="audio/mpeg"),
        ),
        authors=(Author(name="Jane"), Author(name="Joe")),
        categories=(Category(term="a"), Category(term="b")),
        language="zh-Hans-CN",
    )
    context = PageContext(
        feed=Feed(title="The feed"),
        url="https://example.com/a",
        modified=datetime(2026, 1, 1, 12, tzinfo=UTC),
        language="en",
    )
    line = page_line(original, context)
    _, (read_back,) = read(lines(head()) + line)
    found = entry_of_page(read_back, Warnings())
    assert found.content == original.content
    assert found.links == original.links
    assert found.authors == original.authors
    assert found.categories == original.categories
    assert found.language == original.language
    assert found.published == original.published

    assert page_line(found, context) == line


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@given(_TEXT, _TEXT, st.integers(), st.booleans())
def test_whatever_is_said_is_text(text: str, url: str, level: int, flag: bool) -> None:
    blocks = [
        {"type": "text", "text": text},
        {"type": "heading", "level": level, "text": text},
        {"type": "link", "url": f"https://a.example/{url}", "text": text},
        {"type": "image", "url": f"https://a.example/{url}", "alt": text},
        {"type": "list", "ordered": flag, "items": [text]},
        {"type": "code", "language": text, "code": text},
        {"type": "table", "rows": [[text]]},
        {"type": "quote", "text": text, "citation": text},
    ]
    markup = html(*blocks)
    for word in ("<script", "<b>", "<!--"):
        assert word not in markup.lower()
    assert markup.count("<p><img ") == 1
