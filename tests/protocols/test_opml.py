"""Lists of feeds in OPML: as they are found, written, and including each other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from protocols.opml import (
    DEEPEST,
    LONGEST_CATEGORY,
    MOST_FEEDS,
    MOST_INCLUSIONS,
    MOST_LISTS,
    FeedList,
    FeedOutline,
    Inclusion,
    ListedFeed,
    OutlineWalk,
    WalkedList,
    read_outlines,
    render_opml,
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

    assert (found.feeds, found.notes) == ((), (f"{address} is not a web address",))


def test_in_a_file_a_relative_address_leads_nowhere() -> None:
    assert read('<outline xmlUrl="f"/>', "").notes == ("f is not a web address",)


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

    assert [(each.title, each.category) for each in found.feeds] == [
        ("a", ""),
        ("b", "News"),
        ("c", "News/Far\u2215off"),
        ("d", "News"),
        ("e", ""),
        ("f", "x" * LONGEST_CATEGORY),
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
        Inclusion(url="https://site.example/lists/a", category="F"),
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


ADDED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = "</title><script>\"'&<x>\x00\r\n]]>"


def outlines(document: bytes) -> list[dict[str, str]]:
    root = etree.fromstring(document)
    assert (root.tag, root.get("version")) == ("opml", "2.0")
    return [dict(each.attrib) for each in root.findall("body/outline")]


def test_a_feed_is_a_top_level_outline_with_all_that_readers_look_for() -> None:
    feed = FeedOutline(
        title="News",
        description="All of it",
        xml_url="https://a.example/feed?a=1&b=2",
        html_url="https://a.example/",
    )
    assert outlines(render_opml("Feeds", [feed], ADDED)) == [
        {
            "type": "rss",
            "text": "News",
            "title": "News",
            "description": "All of it",
            "xmlUrl": "https://a.example/feed?a=1&b=2",
            "htmlUrl": "https://a.example/",
        }
    ]


def test_sections_are_folders_and_feeds_without_one_come_first() -> None:
    def feed(title: str, category: str) -> FeedOutline:
        url = f"https://a.example/{title}"
        return FeedOutline(title=title, description="", xml_url=url, category=category)

    feeds = [
        feed("1", "World"),
        feed("2", "News/Far off"),
        feed("3", ""),
        feed("4", "News"),
        feed("5", " / World / "),
        feed("6", "News/Far off/<&>"),
    ]

    def shape(element: etree._Element) -> list[object]:
        return [
            each.get("text") if each.get("xmlUrl") else (each.get("text"), shape(each))
            for each in element
        ]

    body = etree.fromstring(render_opml("f", feeds, None)).find("body")
    assert body is not None
    assert shape(body) == [
        "3",
        ("News", ["4", ("Far off", ["2", ("<&>", ["6"])])]),
        ("World", ["1", "5"]),
    ]


def test_what_is_written_is_read_as_it_was() -> None:
    feeds = [
        FeedOutline(title="A", description="All", xml_url="https://a.example/1"),
        FeedOutline(
            title="B", description="B's", xml_url="https://a.example/2", category="X/Y"
        ),
        FeedOutline(
            title="C",
            description="C's",
            xml_url="https://a.example/3",
            category="X/Y/AC\u2215DC",
        ),
    ]
    found = read_outlines(render_opml("f", feeds, None), "")
    assert [
        FeedOutline(
            title=each.title,
            description=each.description,
            xml_url=each.url,
            category=each.category,
        )
        for each in found.feeds
    ] == feeds


def test_a_slash_in_a_folders_name_is_one_again() -> None:
    listed = '<outline text="AC/DC"><outline xmlUrl="https://a.example/"/></outline>'
    document = f"<opml version='2.0'><body>{listed}</body></opml>".encode()
    (feed,) = read_outlines(document, "").feeds
    outline = FeedOutline(
        title="A", description="", xml_url=feed.url, category=feed.category
    )
    (folder,) = outlines(render_opml("f", [outline], None))
    assert folder["text"] == "AC/DC"


def test_the_head_has_the_title_and_the_date_as_mail_has_dates() -> None:
    root = etree.fromstring(render_opml("Feeds at a.example", [], ADDED))
    assert root.findtext("head/title") == "Feeds at a.example"
    assert root.findtext("head/dateModified") == "Fri, 02 Jan 2026 03:04:05 GMT"


def test_an_empty_list_is_one_and_has_no_date() -> None:
    root = etree.fromstring(render_opml("Feeds", [], None))
    assert root.find("head/dateModified") is None
    assert root.find("body") is not None


def test_texts_are_never_empty() -> None:
    url = "https://a.example/feed"
    (found,) = outlines(
        render_opml("f", [FeedOutline(title=" ", description="", xml_url=url)], None)
    )
    assert found["text"] == found["title"] == found["description"] == url
    assert "htmlUrl" not in found


def test_whatever_feeds_say_stays_inside_its_attribute() -> None:
    feed = FeedOutline(title=HOSTILE, description=HOSTILE, xml_url="https://a.example/")
    (found,) = outlines(render_opml(HOSTILE, [feed], None))
    assert found["text"] == HOSTILE.replace("\x00", "")


def test_addresses_that_could_run_something_are_left_out() -> None:
    bad = "javascript:alert(1)"
    feeds = [
        FeedOutline(title="a", description="a", xml_url=bad),
        FeedOutline(
            title="b", description="b", xml_url="https://b.example/", html_url=bad
        ),
    ]
    (found,) = outlines(render_opml("f", feeds, None))
    assert found["text"] == "b"
    assert "htmlUrl" not in found


Lists = dict[str, tuple[Sequence[str], Sequence[str]]]


def url_of(name: str) -> str:
    return f"https://{name}.example/"


def a_list(feeds: Sequence[str] = (), included: Sequence[str] = ()) -> FeedList:
    return FeedList(
        feeds=tuple(ListedFeed(url=url_of(name)) for name in feeds),
        inclusions=tuple(Inclusion(url=url_of(name)) for name in included),
    )


def walk(
    lists: Lists, first: str = "a", moved: dict[str, str] | None = None
) -> OutlineWalk:
    """All that one list leads to; ``moved`` are redirects."""
    walk = OutlineWalk()
    walk.begin([url_of(first)])
    while (url := walk.next_url()) is not None:
        name = url.removeprefix("https://").partition(".")[0]
        name = (moved or {}).get(name, name)
        if name in lists:
            walk.take(url_of(name), a_list(*lists[name]))
        else:
            walk.give_up("answered 404")
    return walk


def feeds_of(walk: OutlineWalk) -> list[str]:
    return [each.url.removeprefix("https://").partition(".")[0] for each in walk.feeds]


def test_lists_inside_of_lists_are_read_in_their_order() -> None:
    found = walk(
        {
            "a": (["x"], ["b", "c"]),
            "b": (["y"], ["d"]),
            "c": (["z"], []),
            "d": (["w"], []),
        }
    )

    assert feeds_of(found) == ["x", "y", "z", "w"]
    assert [each.feeds for each in found.lists] == [1, 1, 1, 1]


def test_rings_and_diamonds_are_read_once() -> None:
    found = walk(
        {
            "a": (["x"], ["b", "c"]),
            "b": (["y"], ["d", "a"]),
            "c": (["z"], ["d", "c"]),
            "d": (["w"], ["a"]),
        }
    )

    assert feeds_of(found) == ["x", "y", "z", "w"]
    assert len(found.lists) == 4


def test_a_list_that_another_leads_to_by_a_redirect_is_the_same() -> None:
    found = walk({"a": (["x"], ["b", "c"]), "b": (["y"], [])}, moved={"c": "b"})

    assert feeds_of(found) == ["x", "y"]
    assert [each.url for each in found.lists] == [url_of("a"), url_of("b")]


def test_a_list_that_cannot_be_read_is_told_and_the_others_are_read() -> None:
    found = walk({"a": (["x"], ["gone", "b"]), "b": (["y"], [])})

    assert feeds_of(found) == ["x", "y"]
    assert found.lists[1] == WalkedList(url=url_of("gone"), error="answered 404")
    assert not found.is_whole
    assert walk({"a": (["x"], ["b"]), "b": ([], [])}).is_whole


def test_the_first_mention_of_a_feed_counts_in_any_spelling() -> None:
    found = OutlineWalk()
    found.begin_with(
        FeedList(
            feeds=(
                ListedFeed(url="https://a.example/%7Ef", title="first"),
                ListedFeed(url="HTTPS://A.example:443/~f#top", title="second"),
            )
        )
    )

    assert [each.title for each in found.feeds] == ["first"]


def test_lists_are_read_so_deep_and_no_deeper() -> None:
    names = "abcdefghij"
    found = walk({name: ([name * 2], [after]) for name, after in pairwise(names)})

    assert len(found.lists) == DEEPEST + 1
    assert found.notes == [f"lists more than {DEEPEST} levels deep were not read"]
    assert not found.is_whole


def test_not_more_than_so_many_lists_are_asked_for() -> None:
    found = walk({"a": ([], [f"b{n}" for n in range(MOST_LISTS + 5)])})

    assert len(found.lists) == MOST_LISTS
    assert found.notes == [f"only the first {MOST_LISTS} lists were read"]
    assert not found.is_whole


def test_not_more_than_so_many_feeds_are_taken() -> None:
    most = [f"f{n}" for n in range(MOST_FEEDS - 1)]
    found = walk({"a": (most, ["b", "c"]), "b": (["x", "y"], []), "c": (["z"], [])})

    assert len(found.feeds) == MOST_FEEDS
    assert found.notes == [f"only the first {MOST_FEEDS} feeds were read"]
    assert len(found.lists) == 2


def test_an_included_list_is_in_the_section_that_includes_it() -> None:
    found = OutlineWalk()
    found.begin_with(
        FeedList(inclusions=(Inclusion(url=url_of("b"), category="News"),))
    )
    found.next_url()
    found.take(
        url_of("b"),
        FeedList(
            feeds=(
                ListedFeed(url=url_of("x")),
                ListedFeed(url=url_of("y"), category="Own"),
            ),
            inclusions=(Inclusion(url=url_of("c")),),
        ),
    )
    found.next_url()
    found.take(url_of("c"), a_list(["z"]))

    assert [each.category for each in found.feeds] == ["News", "Own", "News"]


def test_an_answer_to_nothing_is_a_mistake_of_ours() -> None:
    with pytest.raises(RuntimeError):
        OutlineWalk().give_up("trouble")
