"""Which of a page's feeds is meant."""

from __future__ import annotations

import pytest

from protocols.feeds.feed_links import choose, discover_in_header
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
