from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from protocols.model import (
    ActivityObject,
    Author,
    Deletion,
    Entry,
    Feed,
    Geo,
    IdSource,
    Link,
    Notification,
    Status,
    Text,
)
from protocols.superfeedr.json_notifications import render_json

MAY = datetime(2025, 5, 2, 6, 19, 31, 999_000, tzinfo=UTC)
SCHEMA = "http://activitystrea.ms/schema/1.0"


def told(**changes: Any) -> Any:
    notification = Notification(
        topic="https://site.example/feed",
        hub="https://hub.example/hub",
        status=Status(code=200),
        feed=Feed(id="feed"),
    )
    return orjson.loads(render_json(replace(notification, **changes)))


def the_item(**facts: Any) -> Any:
    [item] = told(entries=(Entry(key="1", id="1", **facts),))["items"]
    return item


def test_a_status_alone_has_no_items() -> None:
    assert told() == {
        "status": {"code": 200, "http": "", "feed": "https://site.example/feed"},
        "title": "",
        "updated": None,
        "id": "feed",
    }


def test_no_entries_are_not_the_same_as_none() -> None:
    assert told(entries=())["items"] == []


def test_deletions_are_items_with_a_verb() -> None:
    gone = (Deletion(key="1", id="tag:1", at=MAY), Deletion(key="2", id="tag:2"))
    assert told(deletions=gone)["items"] == [
        {"id": "tag:1", "verb": "delete", "updated": 1_746_166_771},
        {"id": "tag:2", "verb": "delete"},
    ]


def test_an_entry_of_nothing_is_an_id_and_a_title() -> None:
    assert the_item() == {"id": "1", "title": ""}


def test_times_are_whole_seconds_utc() -> None:
    item = the_item(published=MAY, updated=datetime(1969, 12, 31, tzinfo=UTC))
    assert (item["published"], item["updated"]) == (1_746_166_771, -86_400)
    far = datetime(6326, 1, 1, microsecond=999_985, tzinfo=UTC)  # no float has it
    assert the_item(published=far)["published"] == 137_462_054_400


def test_an_entry_that_never_changed_was_changed_when_it_was_published() -> None:
    assert the_item(published=MAY)["updated"] == 1_746_166_771


@pytest.mark.parametrize(
    ("source", "expected"), [(IdSource.FEED, None), (IdSource.CONTENT, True)]
)
def test_made_ids_are_admitted(source: IdSource, expected: bool | None) -> None:
    entry = Entry(key="1", id="1", id_source=source)
    assert told(entries=(entry,))["status"].get("generatedIds") is expected


def test_an_entry_newer_than_its_record_says_so() -> None:
    entries = (Entry(key="1", id="1"), Entry(key="2", id="2", extensions={"a": "b"}))
    first, second = told(entries=entries, updated_keys=frozenset({"2"}))["items"]
    assert "extensions" not in first
    assert second["extensions"] == {"a": "b", "fanfare": {"updated": True}}


def test_enclosures_say_what_links_have_no_place_for() -> None:
    film = Link(
        href="https://e.example/a.mp4", rel="enclosure", type="video/mp4", title="A"
    )
    bare = Link(href="https://e.example/b.mp3", rel="enclosure", type="audio/mpeg")
    content = {
        "url": film.href,
        "duration": "61",
        "width": "640",
        "height": "360",
        "thumbnail": {"url": "https://e.example/a.jpg"},
        "subTitle": {"type": "text/vtt", "lang": "en", "href": "https://e.example/v"},
    }
    track = {"url": "https://e.example/w.vtt", "label": "English"}
    extensions = {
        "media": {"content": content},
        "scp": {"media": [{"url": film.href, "captions": [track]}]},
    }
    whole = the_item(links=(film, bare), extensions={"media": {"content": content}})
    facts = {
        "href": film.href,
        "type": "video/mp4",
        "duration": 61,
        "width": 640,
        "height": 360,
        "poster": "https://e.example/a.jpg",
        "captions": [{"href": "https://e.example/v", "language": "en"}],
    }
    assert whole["extensions"]["enclosures"] == [facts]
    labelled = the_item(links=(film,), extensions=extensions)
    assert labelled["extensions"]["enclosures"] == [
        {
            "href": film.href,
            "type": "video/mp4",
            "captions": [{"href": "https://e.example/w.vtt", "label": "English"}],
        }
    ]
    plain = the_item(links=(bare,), extensions={"rss": {"x": "y"}})
    assert plain["extensions"] == {"rss": {"x": "y"}}


def test_links_are_grouped_by_relation_and_the_first_alternate_is_the_permalink() -> (
    None
):
    item = the_item(
        links=(
            Link(href="http://a/", rel="enclosure", type="audio/mpeg", length=0),
            Link(href="http://b/", title="B"),
            Link(href="http://c/"),
        )
    )
    assert item["permalinkUrl"] == "http://b/"
    assert item["standardLinks"] == {
        "enclosure": [
            {
                "title": "",
                "rel": "enclosure",
                "href": "http://a/",
                "type": "audio/mpeg",
                "length": 0,
            }
        ],
        "alternate": [
            {
                "title": "B",
                "rel": "alternate",
                "href": "http://b/",
                "type": "text/html",
            },
            {"title": "", "rel": "alternate", "href": "http://c/", "type": "text/html"},
        ],
    }


def test_without_an_alternate_there_is_no_permalink() -> None:
    assert "permalinkUrl" not in the_item(links=(Link(href="http://a/", rel="via"),))


@pytest.mark.parametrize(
    ("author", "actor"),
    [
        (Author(), {}),
        (Author(name="Ben Werdm\u00fcller"),
         {"displayName": "Ben Werdm\u00fcller", "id": "ben-werdm-ller"}),
        (Author(id="7", email="a@b.example"), {"id": "7"}),
        (Author(uri="http://a/"), {"permalinkUrl": "http://a/"}),
        (Author(uri="http://a/", links=(Link(href="http://b/"),)),
         {"permalinkUrl": "http://b/"}),
        (Author(links=(Link(href="http://b/", rel="thumbnail"),)),
         {"image": "http://b/"}),
        (Author(object_types=("x", f"{SCHEMA}/person/")), {"objectType": "person"}),
    ],
)  # fmt: skip
def test_the_first_author_is_the_actor(author: Author, actor: dict[str, str]) -> None:
    assert the_item(authors=(author,))["actor"] == actor


def test_places_name_the_latitude_first() -> None:
    item = the_item(geo=Geo(latitude=47.5, longitude=-122.25))
    assert item["geo"] == {"type": "point", "coordinates": [47.5, -122.25]}


def test_of_verbs_the_last_and_of_objects_the_first_is_shown() -> None:
    item = the_item(
        verbs=(f"{SCHEMA}/post", f"{SCHEMA}/share"),
        objects=(ActivityObject(id="1"), ActivityObject(id="2")),
    )
    assert (item["verb"], item["object"]) == ("share", {"id": "1"})
    assert item["extensions"] == {"verbs": [f"{SCHEMA}/post"], "objects": [{"id": "2"}]}


@pytest.mark.parametrize(
    ("kind", "extensions"), [("html", None), ("text", {"contentType": "text"})]
)
def test_content_is_html_unless_it_is_said_otherwise(
    kind: str, extensions: dict[str, str] | None
) -> None:
    item = the_item(content=Text(value="a & b", type=kind))
    assert item["content"] == "a & b"
    assert item.get("extensions") == extensions
