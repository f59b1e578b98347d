from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given

from protocols.languages import reduce_language
from protocols.model import Author, Category, Entry, Feed, Link, Text
from protocols.scp.collection import page_address, timestamp
from protocols.scp.write.page import MOST_CHAPTERS, PageContext, page_line, page_url
from tests.support.documents import an_entry
from tests.support.entries import ENTRIES, FEEDS
from tests.support.scp_schemas import faults_of_page
from tests.support.storage_scene import START

MODIFIED = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
URL = "https://example.org/a"
SONG = Link(href="https://example.org/a.mp3", rel="enclosure", type="audio/mpeg")
FILM = Link(href="https://example.org/a.mp4", rel="enclosure", type="video/mp4")
PICTURE = Link(href="https://example.org/a.png", rel="image", type="image/png")


def page(
    entry: Entry, feed: Feed | None = None, language: str = "en"
) -> dict[str, Any]:
    context = PageContext(
        feed=feed or Feed(title="A feed"),
        url=page_url(entry) or "https://hub.example/topics/1.json#1",
        modified=MODIFIED,
        language=language,
    )
    line = page_line(entry, context)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    found: dict[str, Any] = orjson.loads(line)
    assert faults_of_page(found) == []
    return found


def test_an_entry_is_a_page() -> None:
    entry = an_entry(
        "a", authors=(Author(name="Ann", email="ann@example.org"),), published=START
    )
    assert page(entry) == {
        "url": URL,
        "title": "Title of a",
        "description": "Content of a",
        "author": "Ann",
        "published": "2026-01-01T00:00:00Z",
        "modified": "2026-02-03T04:05:06Z",
        "language": "en",
        "content": [{"type": "text", "text": "Content of a"}],
    }


def test_what_is_missing_is_made_of_what_there_is() -> None:
    words = "word " * 100
    entry = an_entry("a", title="", content=Text(value=words), published=None)
    found = page(entry)
    assert found["title"] == ("word " * 16).strip()
    assert found["description"] == ("word " * 60).strip()
    assert "published" not in found
    assert "author" not in found
    empty = page(an_entry("a", title="", content=None))
    assert empty["title"] == empty["description"] == URL
    assert empty["content"] == [{"type": "text", "text": URL}]
    summarized = page(an_entry("a", content=None, summary=Text(value="<p>S</p>")))
    assert summarized["description"] == "S"
    assert summarized["content"] == [{"type": "text", "text": "S"}]
    unbroken = page(an_entry("a", title="", content=Text(value="x" * 500)))
    assert unbroken["title"] == "x" * 80


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (Text(value="a\n\nb", type="text"), ["a", "b"]),
        (Text(value="# a", type="text/markdown"), ["# a"]),
        (Text(value="<p>a</p>", type="xhtml"), ["a"]),
        (Text(value="AAAA", type="image/png"), ["Title of a"]),
    ],
)
def test_content_is_read_as_what_it_is(text: Text, shown: list[str]) -> None:
    assert [
        each["text"] for each in page(an_entry("a", content=text))["content"]
    ] == shown


@pytest.mark.parametrize("kind", ["text", "html", "application/x"])
def test_a_summary_is_the_description(kind: str) -> None:
    summary = Text(value="Said & done", type=kind)
    found = page(an_entry("a", summary=summary))["description"]
    assert found == ("Content of a" if kind == "application/x" else "Said & done")


def test_a_description_is_how_the_text_begins_below_its_headings() -> None:
    body = (
        f"<h1>Head</h1><p>One.</p><ul><li>Two</li></ul><p>{'three ' * 80}</p><p>4</p>"
    )
    found = page(an_entry("a", title="", content=Text(value=body)))
    assert found["title"] == "Head"
    assert found["description"].startswith("One. Two three three")
    assert len(found["description"]) <= 300
    headed = page(an_entry("a", content=Text(value="<h1>Head</h1>")))
    assert headed["description"] == headed["title"] == "Title of a"


@pytest.mark.parametrize("beside", ["Said at length", ""])
def test_a_description_keeps_the_paragraphs_of_a_summary_apart(beside: str) -> None:
    markup = "<script>f()</script><p>One &amp;</p><ul><li>two</li></ul>three<br>four"
    content = Text(value=beside, type="text")
    found = page(an_entry("a", summary=Text(value=markup), content=content))
    assert found["description"] == "One & two three four"
    plain = page(an_entry("a", summary=Text(value="A &amp; B"), content=content))
    assert plain["description"] == "A & B"


def test_a_summary_that_says_nothing_is_no_description() -> None:
    summary = Text(value="<p><img src='/a'></p>", type="html")
    content = Text(value="Said at length", type="text")
    found = page(an_entry("a", summary=summary, content=content))
    assert found["description"] == "Said at length"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann <ann@example.org>", "Ann"),
        ("ann@example.org (Ann)", "Ann"),
        ("ann@example.org", None),
        ("", None),
    ],
)
def test_mail_addresses_are_never_published(name: str, shown: str | None) -> None:
    found = page(an_entry("a", authors=(Author(name=name),)))
    assert found.get("author") == shown
    assert "@" not in str(found)


def test_an_entry_without_a_page_keeps_its_id_in_words() -> None:
    entry = an_entry("a", links=(Link(href="mailto:a@b.c"),))
    assert page_url(entry) == ""
    found = page(entry)
    assert found["schema"]["identifier"] == "tag:example.org,2026:a"
    assert "schema" not in page(an_entry("a", links=(), id=""))


def test_schema_org_says_what_the_page_does_not() -> None:
    entry = an_entry(
        "a",
        categories=(
            Category(term="x", label="X"),
            Category(term="y"),
            Category(term=""),
        ),
        authors=(Author(name="Ann"), Author(name="Bob")),
        language="zh-Hans-CN",
    )
    found = page(entry)
    assert found["language"] == "zh-CN"
    assert found["schema"] == {
        "@context": "https://schema.org",
        "@type": "BlogPosting",
        "headline": "Title of a",
        "inLanguage": "zh-Hans-CN",
        "keywords": ["X", "y"],
        "author": [
            {"@type": "Person", "name": "Ann"},
            {"@type": "Person", "name": "Bob"},
        ],
    }


def test_an_episode_has_all_that_is_known_of_it() -> None:
    extensions = {
        "itunes": {"duration": "1:02:03", "season": "3"},
        "psc": {
            "chapters": {
                "chapter": [
                    {"start": "0:00", "title": "Intro"},
                    {"start": "00:05:00.500", "title": "Main"},
                    {"start": "1"},
                    "odd",
                ]
            }
        },
    }
    found = page(an_entry("a", links=(SONG, PICTURE), extensions=extensions))
    song = found["content"][-1]
    assert song == {
        "type": "audio",
        "name": "Title of a",
        "url": [{"href": SONG.href, "mediaType": "audio/mpeg"}],
        "duration": "PT1H2M3S",
        "icon": {"type": "Image", "url": PICTURE.href},
        "attributedTo": "A feed",
        "partOf": "Season 3",
        "chapters": [
            {"time": 0, "title": "Intro"},
            {"time": 300, "title": "Main"},
        ],
    }
    assert found["schema"]["@type"] == "PodcastEpisode"
    assert found["schema"]["timeRequired"] == "PT1H2M3S"
    series = {"@type": "PodcastSeries", "name": "A feed"}
    assert found["schema"]["partOfSeries"] == series


def test_a_bare_episode_has_no_more() -> None:
    found = page(an_entry("a", title="", links=(SONG,)), Feed())
    assert found["content"][-1] == {
        "type": "audio",
        "name": "Content of a",
        "url": [{"href": SONG.href, "mediaType": "audio/mpeg"}],
    }
    assert page(an_entry("a", links=(SONG,)))["content"][-1]["partOf"] == "A feed"


def test_a_film_is_a_video_with_its_date_and_picture() -> None:
    film = an_entry("a", links=(FILM,), published=START)
    found = page(film, Feed(logo=PICTURE.href))
    assert found["schema"]["@type"] == "VideoObject"
    assert found["schema"]["thumbnailUrl"] == PICTURE.href
    assert found["schema"]["uploadDate"] == "2026-01-01T00:00:00Z"
    assert found["content"][-1]["type"] == "video"
    timed = {"media": {"content": [{"url": "a.mp4", "duration": "65"}]}}
    bare = page(an_entry("a", links=(FILM,), published=None, extensions=timed))
    assert bare["schema"]["uploadDate"] == "2026-02-03T04:05:06Z"
    assert bare["schema"]["duration"] == "PT1M5S"


def test_a_film_has_its_size_poster_captions_and_all_its_sources() -> None:
    webm = Link(href="https://example.org/a.webm", rel="enclosure", type="video/webm")
    media = {
        "group": {
            "content": [
                {"url": FILM.href, "duration": "61", "width": "640", "height": "360"},
                {"url": webm.href, "width": "320"},
            ],
            "thumbnail": {"url": "https://example.org/poster.jpg"},
            "subTitle": {"type": "text/vtt", "lang": "en-us", "href": f"{URL}.vtt"},
        }
    }
    found = page(an_entry("a", links=(FILM, webm), extensions={"media": media}))
    assert found["content"][1:] == [
        {
            "type": "video",
            "name": "Title of a",
            "url": [
                {"href": FILM.href, "mediaType": "video/mp4"},
                {"href": webm.href, "mediaType": "video/webm"},
            ],
            "duration": "PT1M1S",
            "width": 640,
            "height": 360,
            "captions": [{"language": "en-US", "url": f"{URL}.vtt", "label": "en-US"}],
            "icon": {"type": "Image", "url": "https://example.org/poster.jpg"},
        }
    ]


def test_recordings_with_titles_or_durations_of_their_own_are_told_apart() -> None:
    songs = [
        Link(href=f"https://example.org/{name}.mp3", rel="enclosure", type="audio/mpeg")
        for name in ("one", "two", "two-low")
    ]
    attachments = [
        {"url": songs[0].href, "title": "One", "duration_in_seconds": 65},
        {"url": songs[1].href, "title": "Two", "duration_in_seconds": 70},
        {"url": songs[2].href, "title": "Two"},
    ]
    extensions = {"jsonfeed": {"attachments": attachments}}
    blocks = page(an_entry("a", links=tuple(songs), extensions=extensions))["content"]
    assert [
        (each["name"], each["duration"], len(each["url"])) for each in blocks[1:]
    ] == [
        ("One", "PT1M5S", 1),
        ("Two", "PT1M10S", 2),
    ]


def test_only_a_size_that_tells_both_sides_is_preferred() -> None:
    half = {"url": FILM.href, "width": "320"}
    found = page(an_entry("a", links=(FILM,), extensions={"media": {"content": half}}))
    film = found["content"][-1]
    assert (film["width"], "height" in film) == (320, False)


def test_no_medium_is_named_by_its_address() -> None:
    def name(title: str, html: str) -> str:
        entry = an_entry("a", title=title, content=Text(value=html))
        return str(page(entry)["content"][-1]["name"])

    assert name("A page", f'<video src="{FILM.href}"></video>') == "A page"
    assert name("", f'<p>Words</p><video src="{FILM.href}"></video>') == "Words"
    assert name("", '<video src="https://example.org/My%20film.mp4"></video>') == (
        "My film"
    )
    assert name("", '<audio src="https://example.org/x"></audio>') == "audio"


def test_enclosed_pictures_are_shown() -> None:
    link = Link(href=PICTURE.href, rel="enclosure", type="image/png", title="A picture")
    unsafe = Link(href="javascript:x", rel="enclosure", type="image/png")
    found = page(an_entry("a", links=(link, unsafe)))["content"]
    assert found[1:] == [{"type": "image", "url": PICTURE.href, "alt": "A picture"}]


def test_chapters_are_bounded_and_may_be_one_or_none() -> None:
    def chapters(listed: object) -> list[dict[str, Any]]:
        extensions = {"psc": {"chapters": listed}}
        found = page(an_entry("a", links=(SONG,), extensions=extensions))
        return list(found["content"][-1].get("chapters", []))

    many = [{"start": str(n), "title": "t"} for n in range(MOST_CHAPTERS + 9)]
    assert len(chapters({"chapter": many})) == MOST_CHAPTERS
    one = {"start": "5", "title": "Only"}
    assert chapters({"chapter": one}) == [{"time": 5, "title": "Only"}]
    assert chapters("odd") == []


@pytest.mark.parametrize(
    ("tag", "reduced"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("en_us", "en-US"),
        ("zh-Hans-CN", "zh-CN"),
        ("zh-Hans", "zh"),
        ("sr-Latn-RS", "sr-RS"),
        ("es-419", "es"),
        ("de-CH-1996", "de-CH"),
        ("en-x-us", "en"),
        ("fil", ""),
        ("haw-US", ""),
        ("eng", "en"),
        ("ger_AT", "de-AT"),
        ("zho-Hant-TW", "zh-TW"),
        ("und", ""),
        ("mul", ""),
        ("english", "en"),
        ("x", ""),
        ("", ""),
    ],
)
def test_languages_are_reduced_to_what_all_readers_take(tag: str, reduced: str) -> None:
    assert reduce_language(tag) == reduced


def test_a_language_without_a_code_of_two_letters_is_told_in_schema_alone() -> None:
    made = page(an_entry("a", language="haw"), language="en")

    assert made["language"] == "en"
    assert made["schema"]["inLanguage"] == "haw"


def test_a_language_that_was_stored_as_it_was_written_is_published_as_a_tag() -> None:
    made = page(an_entry("a", language="zh_hant"))

    assert made["language"] == "zh"
    assert made["schema"]["inLanguage"] == "zh-Hant"
    assert "inLanguage" not in str(page(an_entry("a", language="english")))


def test_an_unknown_language_is_the_feeds_or_the_settings() -> None:
    entry = an_entry("a", language="")
    assert page(entry, Feed(language="fr-FR"))["language"] == "fr-FR"
    assert page(entry, language="de")["language"] == "de"
    assert page(an_entry("a", language="und"), language="de")["language"] == "de"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("HTTPS://Example.org/", "https://Example.org/"),
        ("https://example.org/ä b", "https://example.org/%C3%A4%20b"),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://example.org/#a#b", "https://example.org/#a%23b"),
        ("https://exämple.org/", "https://ex%C3%A4mple.org/"),
        ("https://[::1]/x", "https://[::1]/x"),
        ("https://example.org/[x]", "https://example.org/%5Bx%5D"),
        ("http://", ""),
        ("http://a b/", ""),
        ("http://a\\b/", ""),
        ("javascript:alert(1)", ""),
        ("ftp://example.org/", ""),
        ("https://example.org/" + "x" * 9_000 + " ", ""),
        ("", ""),
    ],
)
def test_addresses_are_uris_of_the_web_or_none(url: str, address: str) -> None:
    assert page_address(url) == address


def test_times_have_one_form() -> None:
    there = timezone(timedelta(hours=2))
    assert timestamp(datetime(2026, 1, 1, 2, tzinfo=there)) == "2026-01-01T00:00:00Z"
    assert timestamp(datetime(33, 1, 1, tzinfo=UTC)) == "0033-01-01T00:00:00Z"


@given(ENTRIES, FEEDS)
def test_whatever_an_entry_says_its_page_is_valid(entry: Entry, feed: Feed) -> None:
    assert page(entry, feed) == page(entry, feed)
