"""The feeds that a page names, and which of them is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds.feed_links import (
    MOST_ATTRIBUTES,
    Discovered,
    choose,
    discover,
    discover_in_header,
)
from protocols.protocol_errors import FeedLink

RSS, ATOM, JSON = "application/rss+xml", "application/atom+xml", "application/feed+json"


def link(path: str, title: str = "", type: str = RSS) -> FeedLink:
    return FeedLink(href=f"https://a.example{path}", title=title, type=type)


@pytest.mark.parametrize(
    ("feeds", "best", "reason"),
    [
        ([], None, "no feed was found"),
        ([link("/a")], "/a", "the only one"),
        ([link("/a"), link("/a", "again")], "/a", "the only one"),
        ([link("/a"), link("/comments/feed")], "/a", "the only one of its kind"),
        (
            [link("/a"), link("/b", "T » Comments Feed")],
            "/a",
            "the only one of its kind",
        ),
        ([link("/a"), link("/b", "Kommentare zu T")], "/a", "the only one of its kind"),
        ([link("/comments/feed")], "/comments/feed", "the only one"),
        (
            [link("/api", type="application/json"), link("/a")],
            "/a",
            "the only one of its kind",
        ),
        (
            [link("/a", "News RSS 2.0"), link("/b", "News (Atom)", ATOM)],
            "/b",
            "one feed in several formats",
        ),
        (
            [link("/j", "JSON Feed", JSON), link("/a", "RSS")],
            "/a",
            "one feed in several formats",
        ),
        ([link("/a"), link("/b")], "/a", "one feed in several formats"),
        (
            [link("/x", "T", "text/x"), link("/y", "T", "text/y")],
            "/x",
            "one feed in several formats",
        ),
        ([link("/a", "News"), link("/b", "Sport")], None, "several feeds"),
    ],
)
def test_the_rules_find_the_one_that_is_clearly_meant(
    feeds: list[FeedLink], best: str | None, reason: str
) -> None:
    choice = choose(feeds)

    found = choice.best.href.removeprefix("https://a.example") if choice.best else None
    assert (found, choice.reason) == (best, reason)
    assert {feed.href for feed in choice.feeds} == {feed.href for feed in feeds}


def test_a_header_names_feeds_by_relation_and_type() -> None:
    header = (
        '</f>; rel="alternate"; type="application/rss+xml; charset=utf-8";'
        ' title="A  b",'
        ' </x>; rel=feed, </hub>; rel=hub, </en>; rel=alternate; type="text/html",'
        ' <>; rel=feed, </other>; rel=feed; anchor="/x"'
    )

    assert discover_in_header(header, "https://a.example/p") == (
        FeedLink(href="https://a.example/f", title="A b", type=RSS),
        FeedLink(href="https://a.example/x", title="", type=""),
    )


PAGE = "https://site.example/blog/"


LINK = b'<link rel=alternate type="application/rss+xml" href=/f>'


@pytest.mark.parametrize(
    ("attribute", "is_read"),
    [
        (b" a%d", False),
        (b"/a%d", False),
        (b' a%d=">"', False),
        (b" a%d = '<p>'", False),
        (b"><p a%d", True),
    ],
)
def test_a_page_with_an_element_of_very_many_attributes_names_nothing(
    attribute: bytes, is_read: bool
) -> None:
    """Each of them would be compared with all before it."""
    many = b"".join(attribute % number for number in range(2 * MOST_ATTRIBUTES))
    assert bool(discover(LINK + b"<p" + many + b">", PAGE).feeds) is is_read


@pytest.mark.parametrize(
    ("before", "after", "is_read"),
    [
        (b"<!--<a b='-->", b"'", False),  # the quote hides nothing but a comment's end
        (b"<a b='>", b"'>", True),
        (b"<a b='>'>", b"", True),
        (b"<a b='><a c=\">" * 200 + b"<a ='", b"", True),
    ],
)
def test_a_quote_in_a_tag_hides_no_element_of_very_many_attributes(
    before: bytes, after: bytes, is_read: bool
) -> None:
    many = b"".join(b" a%d" % number for number in range(2 * MOST_ATTRIBUTES))
    hidden = before + (b"" if is_read else b"<p" + many) + after + b">"
    assert bool(discover(LINK + hidden, PAGE).feeds) is is_read


def test_a_page_that_would_have_to_be_looked_at_time_and_again_names_nothing() -> None:
    """Of each tag the quote might be none, and all that follows be attributes."""
    assert not discover(LINK + b"<a b='>'" * 100, PAGE).feeds
    assert discover(LINK + b"<a b='", PAGE).feeds


def test_a_pages_feeds_are_named_in_order_absolute_and_once() -> None:
    page = """<html><head>
      <link rel="alternate" type="application/rss+xml" title=" All
        posts " href="/feed">
      <link rel="Alternate home" type="application/atom+xml; charset=utf-8" href="atom">
      <link rel=alternate type=application/feed+json href=https://a.example/feed.json>
      <link rel="alternate" type="application/rss+xml" title="Again" href="/feed">
      <link rel="feed" href="/hfeed">
      <link rel="stylesheet" type="text/css" href="/style">
      <link rel="alternate" type="text/html" hreflang="de" href="/de">
      <link rel="alternate" type="application/json" href="/wp-json/wp/v2/pages/1">
      <link rel="alternate" type="application/json+oembed" href="/oembed">
      <link rel="alternate" type="application/rss+xml">
      <link rel="hub" href="https://hub.example/"><link rel="hub" href="https://hub.example/">
      <link><body><p>"""
    assert discover(page.encode(), PAGE) == Discovered(
        feeds=(
            FeedLink(
                href="https://site.example/feed",
                title="All posts",
                type="application/rss+xml",
            ),
            FeedLink(
                href="https://site.example/blog/atom", type="application/atom+xml"
            ),
            FeedLink(href="https://a.example/feed.json", type="application/feed+json"),
            FeedLink(href="https://site.example/hfeed"),
        ),
        hubs=("https://hub.example/",),
    )


@pytest.mark.parametrize(
    ("base", "href"),
    [
        ("https://b.example/x/", "https://b.example/x/f"),
        ("/y/", "https://site.example/y/f"),
        ("", "https://site.example/blog/f"),
    ],
)
def test_a_base_element_counts(base: str, href: str) -> None:
    page = f'<base href="{base}"><link rel="alternate" type="text/xml" href="f">'
    assert discover(page.encode(), PAGE).feeds == (
        FeedLink(href=href, type="text/xml"),
    )


@pytest.mark.parametrize(
    "href",
    [
        "ws://a.example/feed",
        "http://[a.example]/feed",
        "http://[::1/feed",
        "http://a.example:%0d%0a/feed",
        "http://a.example:99999/feed",
        "mailto:a@a.example",
    ],
)
def test_what_cannot_be_asked_for_is_no_feed(href: str) -> None:
    page = f'<link rel="alternate" type="text/xml" href="{href}">'
    assert discover(page.encode(), PAGE).feeds == ()
    header = f'<{href}>; rel="alternate"; type="text/xml"'
    assert discover_in_header(header, PAGE) == ()


@pytest.mark.parametrize("page", [b"", b" ", b"\x00", b"<!-- -->", b"text"])
def test_a_page_of_nothing_names_nothing(page: bytes) -> None:
    assert discover(page, PAGE) == Discovered()


@given(st.binary(max_size=200))
def test_no_page_fails(page: bytes) -> None:
    assert isinstance(discover(page, PAGE), Discovered)
