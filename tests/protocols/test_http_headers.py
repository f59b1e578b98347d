from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.http import (
    ACCEPT,
    OCTET_STREAM,
    ContentType,
    HeaderLink,
    conditional_headers,
    format_link_header,
    header_url,
    header_value,
    parse_content_type,
    parse_link_header,
    sendable_content_type,
    user_agent,
)


@pytest.mark.parametrize(
    ("header", "media_type", "charset"),
    [
        ("text/xml", "text/xml", ""),
        ("Application/RSS+XML; Charset=UTF-8", "application/rss+xml", "utf-8"),
        ('text/xml;charset="iso-8859-1"', "text/xml", "iso-8859-1"),
        ("text/xml; charset='utf-8'; x=y", "text/xml", "utf-8"),
        ("text/html ; charset = windows-1252", "text/html", "windows-1252"),
        ("text/xml, text/html", "text/xml", ""),
        ("; charset=utf-8", "", "utf-8"),
        ("text/xml; charset=", "text/xml", ""),
        ("text", "", ""),
        ("text/", "", ""),
        ("a b/c", "", ""),
        ("", "", ""),
    ],
)
def test_a_content_type_has_a_media_type_and_a_charset(
    header: str, media_type: str, charset: str
) -> None:
    assert parse_content_type(header) == ContentType(media_type, charset)


@pytest.mark.parametrize(
    "header",
    [
        "text/xml",
        'Application/RSS+XML;Charset="UTF-8" ;x=y',
        "text/xml, text/html",
        "xml",
    ],
)
def test_a_content_type_is_sent_on_as_it_came(header: str) -> None:
    assert sendable_content_type(header, OCTET_STREAM) == header


@pytest.mark.parametrize(
    ("header", "sent"),
    [
        ("", "a/b"),
        (" ", "a/b"),
        ("té/xml; charset=utf-8", "a/b"),
        ("; title=é", "a/b"),
        ("text/xml; title=é", "text/xml"),
        ("text/xml;title=é;charset=utf-8", "text/xml; charset=utf-8"),
        ('text/xml; title="é; x=y"; charset=utf-8', "text/xml; charset=utf-8"),
        ('text/xml; title="a;b"; x=é; y=z', "text/xml; y=z"),
        ("text/xml;\tcharset=utf-8;;", "text/xml; charset=utf-8"),
    ],
)
def test_of_a_content_type_only_ascii_is_sent_on(header: str, sent: str) -> None:
    assert sendable_content_type(header, "a/b") == sent


@given(st.text())
def test_a_content_type_that_is_sent_on_is_printable_and_not_empty(header: str) -> None:
    sent = sendable_content_type(header, OCTET_STREAM)
    assert sent.strip()
    assert header_value(sent) == sent


HUB = HeaderLink(href="https://hub.example/", rel="hub")
SELF = HeaderLink(href="https://site.example/feed", rel="self")


@pytest.mark.parametrize(
    "header",
    [
        '<https://hub.example/>; rel="hub", <https://site.example/feed>; rel="self"',
        "<https://hub.example/>;rel=hub,<https://site.example/feed>;rel=self",
        '<https://hub.example/> rel="hub", </feed>; REL = "SELF"',
        '<https://hub.example/>; title="a, <b>; rel=x"; rel=hub, <feed>; rel=self',
        '<https://hub.example/>; rel=hub; rel=other, <feed>; rel="self"',
        '<https://hub.example/>; rel=hub, <>; rel=next, <feed>; rel="self"',
        '<https://hub.example/>; rel=hub, <x>; rel=up; anchor="#a", <feed>; rel=self',
        "<https://hub.example/>; rel=hub, <javascript:x>; rel=up, <feed>; rel=self",
    ],
)
def test_links_are_found_however_they_are_written(header: str) -> None:
    assert parse_link_header(header, "https://site.example/") == (HUB, SELF)


@pytest.mark.parametrize("header", ["", "nonsense", "<https://x.example/>", "<<<", "<"])
def test_a_header_without_relations_names_no_link(header: str) -> None:
    assert parse_link_header(header) == ()


def test_two_relations_are_two_links() -> None:
    assert parse_link_header('<https://x.example/>; rel="self hub"') == (
        HeaderLink(href="https://x.example/", rel="self"),
        HeaderLink(href="https://x.example/", rel="hub"),
    )


def test_links_are_written_in_one_header() -> None:
    assert format_link_header((HUB, SELF)) == (
        '<https://hub.example/>; rel="hub", <https://site.example/feed>; rel="self"'
    )


@given(st.text(max_size=40))
def test_a_link_that_was_written_is_read_again(path: str) -> None:
    link = HeaderLink(href=f"https://site.example/{header_url(path)}", rel="self")
    assert parse_link_header(format_link_header((link,))) == (link,)


@given(st.text())
def test_a_header_value_is_printable_ascii(text: str) -> None:
    value = header_value(text)
    assert value.isascii()
    assert value.isprintable()


def test_printable_text_is_no_other_as_a_header_value() -> None:
    assert header_value('W/"a" <b> 100%') == 'W/"a" <b> 100%'
    assert header_value("a\r\nb\u00e4") == "a%0D%0Ab%C3%A4"
    assert header_value("\ud800") == "?"


def test_validators_are_sent_byte_for_byte() -> None:
    assert conditional_headers('W/"x-gzip', "Sat,  1 Jan 2026 00:00:00 GMT ") == {
        "If-None-Match": 'W/"x-gzip',
        "If-Modified-Since": "Sat,  1 Jan 2026 00:00:00 GMT ",
    }


@pytest.mark.parametrize(
    ("etag", "last_modified", "names"),
    [("", "", []), ("x", "", ["If-None-Match"]), ("", "x", ["If-Modified-Since"])],
)
def test_a_validator_the_server_never_sent_is_not_made_up(
    etag: str, last_modified: str, names: list[str]
) -> None:
    assert list(conditional_headers(etag, last_modified)) == names


def test_feeds_are_preferred_and_anything_is_accepted() -> None:
    first, *_, last = ACCEPT.split(", ")
    assert (first, last) == ("application/atom+xml", "*/*;q=0.1")


@pytest.mark.parametrize(
    ("url", "contact", "subscribers", "expected"),
    [
        (
            "https://hub.example",
            "a@b.example",
            12,
            "Fanfare/1.0 (+https://hub.example; a@b.example; 12 subscribers; "
            "feed-id=7)",
        ),
        ("", "", 1, "Fanfare/1.0 (1 subscriber; feed-id=7)"),
        (
            "",
            "x)\r\n\\(",
            0,
            "Fanfare/1.0 (x%29%0D%0A%5C%28; 0 subscribers; feed-id=7)",
        ),
    ],
)
def test_the_user_agent_says_who_asks_for_how_many(
    url: str, contact: str, subscribers: int, expected: str
) -> None:
    agent = user_agent(
        "Fanfare/1.0", url=url, contact=contact, subscribers=subscribers, feed_id=7
    )
    assert agent == expected


def test_the_user_agent_leaves_out_what_there_is_not() -> None:
    hub = {"url": "https://hub.example/hub", "contact": "a@b.example"}
    expected = "Fanfare/1.0 (+https://hub.example/hub; a@b.example)"
    assert user_agent("Fanfare/1.0", **hub) == expected
    assert user_agent("Fanfare/1.0") == "Fanfare/1.0"
