from __future__ import annotations

from datetime import UTC, datetime

from lxml import etree

from protocols.outlines import FeedOutline, read_outlines, render_opml

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
    def feed(title: str, section: str) -> FeedOutline:
        url = f"https://a.example/{title}"
        return FeedOutline(title=title, description="", xml_url=url, section=section)

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
            title="B", description="B's", xml_url="https://a.example/2", section="X/Y"
        ),
        FeedOutline(
            title="C",
            description="C's",
            xml_url="https://a.example/3",
            section="X/Y/AC\u2215DC",
        ),
    ]
    found = read_outlines(render_opml("f", feeds, None), "")
    assert [
        FeedOutline(
            title=each.title,
            description=each.description,
            xml_url=each.url,
            section=each.section,
        )
        for each in found.feeds
    ] == feeds


def test_a_slash_in_a_folders_name_is_one_again() -> None:
    listed = '<outline text="AC/DC"><outline xmlUrl="https://a.example/"/></outline>'
    document = f"<opml version='2.0'><body>{listed}</body></opml>".encode()
    (feed,) = read_outlines(document, "").feeds
    outline = FeedOutline(
        title="A", description="", xml_url=feed.url, section=feed.section
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
