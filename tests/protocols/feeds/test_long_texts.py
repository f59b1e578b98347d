"""Long texts in CDATA sections are read without the XML parser, and say the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from protocols.feeds import ParseContext, parse
from protocols.feeds.lenient import parse_leniently
from protocols.feeds.limits import MAX_TEXT_BYTES
from protocols.feeds.long_texts import LONG, LongTexts, StandInFound, shorten
from protocols.feeds.xml import parse_tree, read_shortened, read_whole_tree
from protocols.model import ParsedFeed

CONTEXT = ParseContext(
    url="https://site.example/feed", now=datetime(2026, 5, 1, tzinfo=UTC)
)
ARTICLE = "<p>Wörter &amp; <a href='/x'>Namen</a> [1]</p>\n" * (LONG // 40)
SECTION = f"<![CDATA[{ARTICLE}]]>"


def rss(item: str, head: str = "") -> bytes:
    return (
        '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"'
        ' xmlns:media="http://search.yahoo.com/mrss/">'
        f"<channel><title>T</title>{head}<item><guid>1</guid>{item}</item>"
        "<item><guid>2</guid><title>Last</title></item></channel></rss>"
    ).encode()


def atom(entry: str) -> bytes:
    return (
        '<feed xmlns="http://www.w3.org/2005/Atom"'
        ' xmlns:as="http://activitystrea.ms/spec/1.0/">'
        f"<title>T</title><entry><id>1</id>{entry}</entry></feed>"
    ).encode()


def as_it_is(body: bytes) -> ParsedFeed:
    return read_whole_tree(parse_tree(body), body, CONTEXT)


def without_long_texts(body: bytes) -> ParsedFeed | None:
    return read_shortened(
        body, lambda root, body, texts: read_whole_tree(root, body, CONTEXT, texts)
    )


@pytest.mark.parametrize(
    "body",
    [
        rss(f"<description>{SECTION}</description>"),
        rss(f"<content:encoded>\n {SECTION} \n</content:encoded>"),
        rss(
            f"<description>{SECTION}</description>"
            f"<content:encoded>{SECTION}</content:encoded>"
        ),
        rss(f"<title><![CDATA[Short]]></title><description>{SECTION}</description>"),
        rss(f"<description><![CDATA[{' ' * LONG}]]></description>"),
        rss(f"<description>{SECTION}</description>", f"<ttl>{SECTION}</ttl>"),
        rss(f"<description><![CDATA[\uffe6{ARTICLE}]]></description>"),
        atom(f'<content type="html">{SECTION}</content>'),
        atom(f'<summary>{SECTION}</summary><content type="html">{SECTION}</content>'),
        atom(f'<content type="html" xml:base="/articles/">{SECTION}</content>'),
        atom(f'<content type="html" xml:lang="de">{SECTION}</content>'),
    ],
)
def test_a_long_text_is_what_the_parser_would_have_read(body: bytes) -> None:
    shortened = shorten(body)

    assert shortened is not None
    assert len(shortened[0]) < len(body) - LONG
    assert without_long_texts(body) == as_it_is(body) == parse(body, CONTEXT)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(rss(f"<!--<description>{SECTION}</description>-->"), id="comment"),
        pytest.param(
            rss(f"<?x <description>{SECTION}</description>?>"), id="instruction"
        ),
        pytest.param(
            rss(
                f"<description>{SECTION}</description>"
                f"<description>{SECTION[:-9]}]]></description>"
            ),
            id="a second one of what there can be one of only",
        ),
        pytest.param(
            rss(f"<media:group><description>{SECTION}</description></media:group>"),
            id="of something else",
        ),
        pytest.param(
            atom(f'<content src="/x">{SECTION}</content>'), id="content elsewhere"
        ),
        pytest.param(
            atom(
                f"<as:object><id>3</id><rights>R</rights><content>{SECTION}</content>"
                "</as:object>"
            ),
            id="an object that is kept as a whole",
        ),
        pytest.param(
            atom(
                '<content type="multipart/alternative">'
                f"<content>{SECTION}</content>"
                f'<content type="text/html">{SECTION}</content></content>'
            ),
            id="an alternative that is not read",
        ),
        pytest.param(
            rss(
                f"<description>{SECTION}</description>"
                "<content:encoded>\x810\x81</content:encoded>"
            ),
            id="a text that looks like a stand-in",
        ),
        pytest.param(
            rss(
                f"<description>{SECTION}</description>"
                "<content:encoded>\x81 begins with it</content:encoded>"
            ),
            id="a text that begins like one",
        ),
    ],
)
def test_in_doubt_the_document_is_read_as_it_is(body: bytes) -> None:
    assert shorten(body) is not None
    assert without_long_texts(body) is None
    assert parse(body, CONTEXT) == as_it_is(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(rss("<title>None</title>"), id="none"),
        pytest.param(rss("<title>[1]</title>"), id="brackets"),
        pytest.param(rss("<description><![CDATA[Short]]></description>"), id="short"),
        pytest.param(
            rss("", f"<description>{SECTION}</description>"), id="of the head"
        ),
        pytest.param(rss(f"<title>{SECTION}</title>"), id="no text of an entry"),
        pytest.param(rss(f"<i>{'x' * 300}{SECTION}</i>"), id="behind long text"),
        pytest.param(rss(f"<description>A{SECTION}</description>"), id="behind text"),
        pytest.param(
            rss(f"<description>{SECTION}B</description>"), id="followed by text"
        ),
        pytest.param(
            rss(f"<description>{SECTION}<![CDATA[>]]></description>"),
            id="a section in two",
        ),
        pytest.param(
            rss(f"<description><![CDATA[a\r\n{ARTICLE}]]></description>"),
            id="line ends to be changed",
        ),
        pytest.param(
            rss(
                f"<description><![CDATA[{'x' * (MAX_TEXT_BYTES // 2)}]]></description>"
            ),
            id="larger than half the limit",
        ),
        pytest.param(rss(f"<description>{SECTION[:-4]}"), id="without an end"),
        pytest.param(b"<rss>[</rss>", id="no entries"),
    ],
)
def test_other_sections_are_left_to_the_parser(body: bytes) -> None:
    assert shorten(body) is None
    assert without_long_texts(body) is None


@pytest.mark.parametrize(
    "bad",
    [b"\x01", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbf\xbe", b"\xef\xbf\xbf"],
)
def test_what_xml_does_not_allow_in_a_long_text_is_mended_as_ever(bad: bytes) -> None:
    sound = rss(f"<description>{SECTION}</description>")
    body = sound.replace(b"[1]", b"[1]" + bad, 1)

    assert without_long_texts(body) is None
    assert parse(body, CONTEXT).path != "strict"


def test_a_fault_has_the_line_that_it_has_in_the_whole_document() -> None:
    body = rss(f"<description>{SECTION}</description>\n<title><x></title>")
    line = body[: body.index(b"<x>")].count(b"\n") + 1

    assert without_long_texts(body) is None
    assert f"line {line}" in parse_leniently(body, CONTEXT).problems[0]


def test_entries_with_long_texts_are_known_the_next_time() -> None:
    body = rss(f"<description>{SECTION}</description>")
    read = parse(body, replace(CONTEXT, known=b""))

    assert read.outline is not None
    assert structs.replace(read, outline=None) == parse(body, CONTEXT)


def test_a_text_is_handed_out_once() -> None:
    texts = LongTexts()
    stand_in = texts.keep("Text")

    assert texts.are_left
    assert texts.hand_out(stand_in) == "Text"
    assert not texts.are_left
    with pytest.raises(StandInFound):
        texts.hand_out(stand_in)


PIECES = st.sampled_from(
    [
        SECTION,
        SECTION[:-4],
        "<description>",
        "</description>",
        "<content:encoded>",
        "</content:encoded>",
        f"<description>{SECTION}</description>",
        f"<content:encoded>\n{SECTION}</content:encoded>",
        "<![CDATA[<description>",
        "]]>",
        "<!--",
        "-->",
        "<title>T</title>",
        "<item>",
        "</item>",
        "<p>",
        "</p>",
        " ",
        "&amp;",
        "\x810\x81",
        "text",
        "<?x ",
        "?>",
    ]
)


@given(pieces=st.lists(PIECES, max_size=12))
def test_whatever_is_read_without_long_texts_is_the_same(pieces: list[str]) -> None:
    body = rss("".join(pieces))
    found = without_long_texts(body)

    if found is not None:
        assert found == as_it_is(body)
