"""Lists of feeds in OPML, as they are found."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.outlines import (
    LONGEST_SECTION,
    MOST_FEEDS,
    MOST_INCLUSIONS,
    FeedList,
    Inclusion,
    ListedFeed,
    read_outlines,
)
from protocols.protocol_errors import (
    FeedError,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)

URL = "https://site.example/lists/mine.opml"


def read(outlines: str, url: str = URL) -> FeedList:
    head = "<head><title> My\n list </title></head>"
    return read_outlines(
        f'<opml version="2.0">{head}<body>{outlines}</body></opml>'.encode(), url
    )


def test_a_feed_has_its_address_name_and_description() -> None:
    found = read(
        '<outline type="rss" text="News" title="N" description="All  of it"'
        ' xmlUrl="https://a.example/f" htmlUrl="https://a.example/"/>'
    )

    assert found.title == "My list"
    assert found.feeds == (
        ListedFeed(url="https://a.example/f", title="News", description="All of it"),
    )


@pytest.mark.parametrize(
    ("attributes", "feed"),
    [
        ('XMLURL="https://a.example/f"', ("https://a.example/f", "")),
        ('xmlurl="https://a.example/f" Title="T"', ("https://a.example/f", "T")),
        ('type="atom" xmlUrl="https://a.example/f"', ("https://a.example/f", "")),
        ('xmlUrl="../f"', ("https://site.example/f", "")),
        ('xmlUrl=" feed://a.example/f"', ("http://a.example/f", "")),
        ('xmlUrl="feed:https://a.example/f"', ("https://a.example/f", "")),
        ('xmlUrl="https://a.example/f" text=" "', ("https://a.example/f", "")),
    ],
)
def test_attributes_are_read_as_files_have_them(
    attributes: str, feed: tuple[str, str]
) -> None:
    (found,) = read(f"<outline {attributes}/>").feeds

    url, title = feed
    assert (found.url, found.title) == (url, title or url)


def test_of_very_many_attributes_the_first_count() -> None:
    many = " ".join(f'a{number}=""' for number in range(60_000))

    (found,) = read(
        f'<outline xmlUrl="https://a.example/f" {many} title="T"/>'
        f'<outline {many} xmlUrl="https://b.example/f"/>'
    ).feeds

    assert (found.url, found.title) == ("https://a.example/f", "https://a.example/f")


@pytest.mark.parametrize(
    "outline",
    [
        '<outline text="nothing"/>',
        '<outline xmlUrl=""/>',
        '<outline isComment="true" xmlUrl="https://a.example/f"/>',
        '<outline iscomment="True"><outline xmlUrl="https://a.example/f"/></outline>',
        '<outline type="link" url="https://a.example/page.html"/>',
        '<outline type="link" url="https://["/>',
        '<other xmlUrl="https://a.example/f"/>',
        '<outline type="include" url="mailto:a@b.example"/>',
    ],
)
def test_what_is_no_feed_is_passed_over(outline: str) -> None:
    assert read(outline) == FeedList(title="My list")


@pytest.mark.parametrize(
    "address", ["mailto:a@b.example", "javascript:a()", "ftp://a/"]
)
def test_an_address_that_is_none_is_noted(address: str) -> None:
    found = read(f'<outline xmlUrl="{address}"/>')

    assert (found.feeds, found.notes) == ((), (f"{address} is no web address",))


def test_in_a_file_a_relative_address_leads_nowhere() -> None:
    assert read('<outline xmlUrl="f"/>', "").notes == ("f is no web address",)


def test_folders_are_sections() -> None:
    def feed(name: str) -> str:
        return f'<outline text="{name}" xmlUrl="https://a.example/{name}"/>'

    found = read(
        feed("a")
        + f'<outline text="News">{feed("b")}<outline title="Far/off">{feed("c")}'
        + f"</outline>{feed('d')}</outline>"
        + f"<outline>{feed('e')}</outline>"
        + f'<outline text="{"x" * 300}">{feed("f")}</outline>'
        + f'<outline text="A&#x202e;B">{feed("g")}</outline>'
    )

    assert [(each.title, each.section) for each in found.feeds] == [
        ("a", ""),
        ("b", "News"),
        ("c", "News/Far\u2215off"),
        ("d", "News"),
        ("e", ""),
        ("f", "x" * LONGEST_SECTION),
        ("g", "AB"),
    ]


def test_lists_are_included_in_three_ways() -> None:
    found = read(
        '<outline text="F"><outline type="link" xmlUrl="a"/></outline>'
        '<outline type="include" url="https://b.example/list"/>'
        '<outline type="link" url="https://c.example/x.OPML?y"/>'
    )

    assert found.feeds == ()
    assert found.inclusions == (
        Inclusion(url="https://site.example/lists/a", section="F"),
        Inclusion(url="https://b.example/list"),
        Inclusion(url="https://c.example/x.OPML?y"),
    )


def test_not_more_than_so_many_feeds_are_read() -> None:
    feeds = (
        f'<outline xmlUrl="https://a.example/{n}"/>' for n in range(MOST_FEEDS + 2)
    )

    found = read("".join(feeds))

    assert len(found.feeds) == MOST_FEEDS
    assert found.notes == (f"only the first {MOST_FEEDS} feeds were read",)


def test_not_more_than_so_many_lists_are_included() -> None:
    lists = '<outline type="include" url="/a.opml"/>' * (MOST_INCLUSIONS + 1)
    found = read(lists + '<outline xmlUrl="https://a.example/"/>')
    assert len(found.inclusions) == MOST_INCLUSIONS
    assert len(found.feeds) == 1


def test_a_list_that_lacks_what_it_should_have_is_read() -> None:
    body = b"<OPML xmlns='urn:x'><head/><body><outline xmlUrl='https://a.example/'/></body></OPML>"

    assert [each.url for each in read_outlines(body, URL).feeds] == [
        "https://a.example/"
    ]


def test_ampersands_that_are_not_escaped_are_mended() -> None:
    found = read('<outline xmlUrl="https://a.example/?a=1&b=2&nbsp;"/>')

    assert found.feeds[0].url.startswith("https://a.example/?a=1&b=2")


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b"<!doctype html><p>", NotAFeed, "an HTML page"),
        (b"{}", NotAFeed, "a JSON document"),
        (b"<rss/>", NotAFeed, "an XML document whose root is <rss>"),
        (b"<opml><body>", MalformedDocument, "line 1"),
        (b"<opml>" + b"<a>" * 300, LimitExceeded, "depth"),
        (
            b'<!DOCTYPE opml [<!ENTITY a "b">]><opml/>',
            MalformedDocument,
            "entit",
        ),
    ],
)
def test_what_is_no_list_is_refused_with_its_reason(
    body: bytes, error: type[FeedError], words: str
) -> None:
    with pytest.raises(error, match=words):
        read_outlines(body, URL)


@given(st.binary(max_size=80), st.sampled_from(["", '<outline xmlUrl="', "<outline "]))
def test_no_bytes_raise_anything_but_a_feed_error(noise: bytes, start: str) -> None:
    for body in (noise, b"<opml><body>" + start.encode() + noise + b"</body></opml>"):
        with suppress(FeedError):
            read_outlines(body, URL)


@given(st.text(max_size=40))
def test_no_address_raises_anything(address: str) -> None:
    attribute = "".join(f"&#{ord(c)};" for c in address if c.isprintable())
    read(f'<outline type="link" url="{attribute}" xmlUrl="{attribute}"/>')
