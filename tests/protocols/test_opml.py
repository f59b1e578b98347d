from __future__ import annotations

from datetime import UTC, datetime

from lxml import etree

from protocols.opml import FeedOutline, render_opml

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
