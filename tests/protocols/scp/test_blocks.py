"""What becomes of HTML: blocks of the ten types and no others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.scp.write.blocks import (
    DEEPEST,
    MOST_BLOCKS,
    blocks_of_html,
    blocks_of_text,
    limit_blocks,
    text_of_block,
)
from tests.support.scp_schemas import faults_of_page

PAGE = {
    "url": "https://example.org/",
    "title": "t",
    "description": "d",
    "modified": "2026-01-01T00:00:00Z",
    "language": "en",
}
LINK = "https://example.org/x"


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    ("markup", "blocks"),
    [
        ("plain &amp; simple", [text("plain & simple")]),
        ("no markup at all", [text("no markup at all")]),
        ("<p>one</p>\n<p>two <b>bold</b> and\n more</p>", [
            text("one"),
            text("two bold and more"),
        ]),
        ("<div>a<p>b</p>c</div>", [text("a"), text("b"), text("c")]),
        ("line<br>break<br/>", [text("line\nbreak")]),
        ("<p> \n </p><p>&nbsp;</p>", []),
        ("<h1>T</h1><h6>S</h6>", [
            {"type": "heading", "level": 1, "text": "T"},
            {"type": "heading", "level": 6, "text": "S"},
        ]),
        ("<h2></h2>", []),
        ("<ul><li>a</li><li><p>b</p><p>c</p></li><li> </li></ul>", [
            {"type": "list", "ordered": False, "items": ["a", "b\nc"]},
        ]),
        ("<ol><li>a<ul><li>b</li></ul></li><!-- x --><script>y</script></ol>", [
            {"type": "list", "ordered": True, "items": ["a", "b"]},
        ]),
        ("<ul></ul>", []),
        ("<pre>a\n  b</pre>", [{"type": "code", "code": "a\n  b"}]),
        ('<pre><code class="x language-python">a</code></pre>', [
            {"type": "code", "language": "python", "code": "a"},
        ]),
        ("<pre> \n</pre>", []),
        (f'<blockquote cite="{LINK}"><p>a</p><p>b</p></blockquote>', [
            {"type": "quote", "text": "a\n\nb", "citation": LINK},
        ]),
        ("<blockquote>a</blockquote>", [{"type": "quote", "text": "a"}]),
        ("<blockquote> </blockquote>", []),
        ("<table><tr><th>a<th>b</tr>"
         "<tr><td>1<td><ul><li>x<li>y</ul></tr><tr></tr></table>", [
            {"type": "table", "rows": [["a", "b"], ["1", "x\ny"]]},
        ]),
        ("<table><tr><td>only one</td></tr></table>", [text("only one")]),
        ("<table><tr><td><table><tr><td>in<td>side</table><td>out</table>", [
            {"type": "table", "rows": [["in", "side"]]},
            text("out"),
        ]),
        (f'<p>See <a href="{LINK}" rel="nofollow ugc">this</a> now.</p>', [
            text("See this now."),
            {"type": "link", "url": LINK, "text": "this", "rel": ["nofollow", "ugc"]},
        ]),
        (f'<a href="{LINK}">a</a> <a href="{LINK}">b</a>', [
            text("a b"),
            {"type": "link", "url": LINK, "text": "a"},
        ]),
        (f'<img src="{LINK}" width="640" style="max-width:1px;height:100px">', [
            {"type": "image", "url": LINK, "alt": ""},
        ]),
        (f'<img src="{LINK}" alt=" An\n image ">', [
            {"type": "image", "url": LINK, "alt": "An image"},
        ]),
        (f'<a href="{LINK}"><img src="{LINK}"></a>', [
            {"type": "image", "url": LINK, "alt": ""},
        ]),
        (f'<h2><a href="{LINK}">T</a></h2>', [
            {"type": "heading", "level": 2, "text": "T"},
            {"type": "link", "url": LINK, "text": "T"},
        ]),
        (f'<ul><li>a <img src="{LINK}"></li></ul>', [
            {"type": "list", "ordered": False, "items": ["a"]},
            {"type": "image", "url": LINK, "alt": ""},
        ]),
        (f'<table><tr><td>a<td><img src="{LINK}"></table>', [
            {"type": "table", "rows": [["a", ""]]},
            {"type": "image", "url": LINK, "alt": ""},
        ]),
        (f'<audio src="{LINK}" title="A song"></audio>', [
            {"type": "audio", "name": "A song", "url": [
                {"href": LINK, "mediaType": "audio/mpeg"},
            ]},
        ]),
        (f'<video><source src="{LINK}" type="video/webm"></video>', [
            {"type": "video", "name": "", "url": [
                {"href": LINK, "mediaType": "video/webm"},
            ]},
        ]),
        ("<video></video>", []),
        ('<video src="https://v.example/a.webm" width="640" height="50%"'
         ' poster="https://v.example/a.jpg" aria-label="Seen">'
         '<source src="https://v.example/a.webm" type="video/webm">'
         '<source src="https://v.example/a.mp4" type=\'video/mp4; codecs="x"\'>'
         '<track src="https://v.example/en.vtt" srclang="en" label="English">'
         '<track kind="captions" src="https://v.example/x.vtt">'
         '<track kind="chapters" src="https://v.example/c.vtt">'
         "</video>", [
            {
                "type": "video",
                "name": "Seen",
                "url": [
                    {"href": "https://v.example/a.webm", "mediaType": "video/webm"},
                    {"href": "https://v.example/a.mp4", "mediaType": "video/mp4"},
                ],
                "width": 640,
                "icon": {"type": "Image", "url": "https://v.example/a.jpg"},
                "captions": [
                    {
                        "language": "en",
                        "url": "https://v.example/en.vtt",
                        "label": "English",
                    },
                    {
                        "language": "und",
                        "url": "https://v.example/x.vtt",
                        "label": "und",
                    },
                ],
            },
        ]),
        ('<audio src="https://v.example/a.ogg" width="5"></audio>', [
            {"type": "audio", "name": "", "url": [
                {"href": "https://v.example/a.ogg", "mediaType": "audio/ogg"},
            ]},
        ]),
        ("<math>x</math> <unknown>y</unknown>", [text("x"), text("y")]),
    ],
)  # fmt: skip
def test_html_becomes_blocks(markup: str, blocks: list[dict[str, Any]]) -> None:
    assert blocks_of_html(markup) == blocks
    if blocks:
        assert faults_of_page({**PAGE, "content": blocks}) == []


@pytest.mark.parametrize(
    ("markup", "said", "citation"),
    [
        ("<p>Said</p><cite>Ann</cite>", "Said", "Ann"),
        ("Said <cite>Ann</cite>", "Said", "Ann"),
        ("Said \u2014 <cite>Ann</cite>", "Said", "Ann"),
        ("<p>Said</p><p>\u2014 <cite>Ann</cite></p>", "Said", "Ann"),
        ("<p>Said<br>- <cite>Ann</cite>\n</p> ", "Said", "Ann"),
        ("Said<cite>Ann</cite><p></p><br>", "Said", "Ann"),
        (
            "<p>Said</p><footer>\u2014 Ann, <cite>A book</cite>, 1999</footer>",
            "Said",
            "Ann, A book, 1999",
        ),
        ("<p>Said</p><footer>Ann</footer>", "Said\n\nAnn", LINK),
        ("<p>In <cite>Hamlet</cite> one says</p>", "In Hamlet one says", LINK),
        ("<p>Said</p><cite> </cite>", "Said", LINK),
        (
            "<p>Said</p><blockquote>Inner <cite>Bob</cite></blockquote>",
            "Said\n\nInner",
            LINK,
        ),
    ],
)
def test_whose_a_quotation_is_is_its_citation(
    markup: str, said: str, citation: str
) -> None:
    quote = f'<blockquote cite="{LINK}">{markup}</blockquote>'
    block = {"type": "quote", "text": said, "citation": citation}
    assert blocks_of_html(quote) == [block]


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>no</p>",
        "<P HIDDEN=''><b>no</b></P>",
        '<div style="color:red; Display : NONE !important">no<p>no</p></div>',
        '<span style="visibility:hidden">no</span>',
        "<ul><li hidden>no</li></ul>",
    ],
)
def test_what_is_hidden_is_left_out_and_what_follows_it_stays(hidden: str) -> None:
    assert blocks_of_html(f"before {hidden} after") in (
        [text("before after")],
        [text("before"), text("after")],
    )


@pytest.mark.parametrize(
    "shown",
    [
        '<span hidden="until-found">seen</span>',
        '<span aria-hidden="true">seen</span>',
        '<span style="display:inline">seen</span>',
        '<span style="overflow:hidden">seen</span>',
    ],
)
def test_what_only_looks_hidden_is_content(shown: str) -> None:
    assert blocks_of_html(shown) == [text("seen")]


@pytest.mark.parametrize(
    "markup",
    [
        "<script>alert(1)</script>",
        "<style>p{}</style>",
        "<form><input value=x><button>b</button></form>",
        "<iframe src='https://ads.example/'></iframe>",
        '<img src="https://t.example/p.gif" width="1" height="1">',
        '<img src="https://t.example/p.gif" style="" height="0px">',
        '<img src="https://t.example/p.gif" style="border:0; WIDTH: 1px">',
        '<img src="https://t.example/p.gif" style="display : none !important">',
        '<img src="javascript:alert(1)">',
        '<img src="data:image/png;base64,AAAA">',
        "<noscript>turn it on</noscript>",
        "<!-- a comment --><?php no ?>",
        "",
        "<",
    ],
)
def test_what_is_no_content_is_left_out(markup: str) -> None:
    assert [each for each in blocks_of_html(markup) if each != text("<")] == []


def test_unsafe_links_keep_their_text_only() -> None:
    markup = '<a href="javascript:alert(1)">a</a> <a href="/relative">b</a> <a>c</a>'
    assert blocks_of_html(markup) == [text("a b c")]


def test_what_is_marked_and_empty_says_nothing() -> None:
    assert blocks_of_html("<p>a<b></b>c</p>") == [text("ac")]


def test_plain_text_is_a_block_for_each_paragraph() -> None:
    assert blocks_of_text("a\nb\n \n\nc\n") == [text("a b"), text("c")]


def test_more_blocks_than_a_page_may_have_become_one_text() -> None:
    blocks = [text(str(n)) for n in range(MOST_BLOCKS + 5)]
    limited = limit_blocks(blocks)
    assert len(limited) == MOST_BLOCKS
    assert limited[-1]["text"].split("\n\n") == ["999", *map(str, range(1000, 1005))]
    assert limit_blocks(blocks[:MOST_BLOCKS]) == blocks[:MOST_BLOCKS]
    pictures = [{"type": "image", "url": LINK, "alt": ""}] * (MOST_BLOCKS + 1)
    assert len(limit_blocks(pictures)) == MOST_BLOCKS - 1


def test_a_block_says_its_text() -> None:
    assert (
        text_of_block({"type": "table", "rows": [["a", "b"], ["c", "d"]]}) == "a b\nc d"
    )
    assert text_of_block({"type": "list", "ordered": False, "items": ["a"]}) == "a"
    assert text_of_block({"type": "code", "code": "x"}) == "x"


@pytest.mark.parametrize("tag", ["div", "ul><li", "blockquote", "span"])
def test_what_is_too_deep_is_left_out(tag: str) -> None:
    opening, closing = f"<{tag}>", ""
    blocks = blocks_of_html("top" + opening * (DEEPEST * 3) + "deep" + closing)
    assert "deep" not in str(blocks)
    assert "top" in str(blocks)


MARKUP = st.lists(
    st.sampled_from(
        [
            *("<p>", "</p>", "<ul>", "<li>", "</ul>", "<table>", "<tr>", "<td>", "<a>"),
            *("</table>", f'<a href="{LINK}">', "</a>", f'<img src="{LINK}">', "<pre>"),
            *(
                "</pre>",
                "<blockquote>",
                "</blockquote>",
                "<h3>",
                "</h3>",
                "text ",
                "<br>",
            ),
            *(
                "&amp;",
                "<",
                "\x00",
                "\u2028",
                "<video src='https://v.example/é'>",
                "\ud800",
            ),
        ]
    ),
    max_size=20,
).map("".join)


@given(MARKUP | st.text(max_size=40))
def test_whatever_markup_makes_valid_blocks(markup: str) -> None:
    if blocks := blocks_of_html(markup):
        assert faults_of_page({**PAGE, "content": blocks}) == []


@given(
    st.lists(
        st.sampled_from(
            [" ", "  ", "\t", "\n", "\xa0", "\u3000", "a", "\u00df", "\u00ad"]
        ),
        max_size=12,
    )
)
def test_white_space_of_any_kind_is_one_space(parts: list[str]) -> None:
    words = " ".join("".join(parts).split())
    expected = [{"type": "text", "text": words}] if words else []
    assert blocks_of_html(f"<p>{''.join(parts)}</p>") == expected
