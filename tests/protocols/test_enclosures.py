"""What is said of enclosed files, in every format's words, is one value."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.enclosures import (
    MOST_FILES,
    Captions,
    EnclosedFile,
    enclosed_files,
    kind_of,
    name_of_file,
    seconds_of,
    type_by_name,
    type_of_file,
)
from protocols.model import Link
from tests.support.documents import an_entry

SONG = "https://example.org/a.mp3"
FILM = "https://example.org/a.mp4"
POSTER = "https://example.org/a.jpg"
VTT = "https://example.org/a.vtt"


def files(extensions: dict[str, Any], *hrefs: str) -> tuple[EnclosedFile, ...]:
    links = tuple(
        Link(href=href, rel="enclosure", type=type_by_name(href)) for href in hrefs
    )
    return enclosed_files(an_entry("a", links=links, extensions=extensions))


@pytest.mark.parametrize(
    ("ending", "type"),
    [
        ("ogg", "audio/ogg"),
        ("m4a", "audio/mp4"),
        ("opus", "audio/ogg"),
        ("wav", "audio/wav"),
        ("flac", "audio/flac"),
        ("webm", "video/webm"),
        ("MOV", "video/quicktime"),
        ("mp4?x=1.mp3", "video/mp4"),
        ("mp3#t=1", "audio/mpeg"),
        ("unheard", ""),
    ],
)
def test_a_files_name_tells_its_type(ending: str, type: str) -> None:
    assert type_by_name(f"https://example.org/a.{ending}") == type


@pytest.mark.parametrize(
    ("declared", "url", "type"),
    [
        ("audio/x-m4a", "https://example.org/a.mp4", "audio/x-m4a"),
        ('video/webm; codecs="vp8"', "https://example.org/a", "video/webm"),
        ("", SONG, "audio/mpeg"),
        ("application/octet-stream", SONG, "audio/mpeg"),
        ("application/octet-stream", "https://x.example/a", "application/octet-stream"),
        ("", "https://example.org/a", ""),
    ],
)
def test_a_declared_type_counts_and_then_the_name(
    declared: str, url: str, type: str
) -> None:
    assert type_of_file(declared, url) == type


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        ("3723", 3723),
        ("3723.9", 3723),
        ("62:03", 3723),
        ("1:02:03.5", 3723),
        ("90:00", 5400),
        ("PT1H2M3.5S", 3723),
        (1820.5, 1820),
        (65, 65),
        (0, 0),
        (-1, 0),
        (1e300, 0),
        (float("nan"), 0),
        (True, 0),
        ("an hour", 0),
        ("", 0),
        (None, 0),
        ({"value": "1"}, 0),
    ],
)
def test_a_duration_is_read_in_all_its_forms(stated: object, seconds: int) -> None:
    assert seconds_of(stated) == seconds


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/b/My%20film.mp4?x=1", "My film"),
        ("https://example.org/film", ""),
        ("https://example.org/", ""),
    ],
)
def test_a_file_is_called_as_its_address_ends(url: str, name: str) -> None:
    assert name_of_file(url) == name


def test_a_kind_is_audio_video_or_image() -> None:
    kinds = ["Audio/ogg", "video", "image/png", "application/pdf", ""]
    assert [kind_of(each) for each in kinds] == ["audio", "video", "image", "", ""]


def test_an_entry_without_enclosures_encloses_nothing() -> None:
    said = {"media": {"content": {"url": FILM, "duration": "5"}}}
    assert files(said) == ()


@pytest.mark.parametrize(
    "extensions",
    [
        pytest.param(
            {
                "media": {
                    "content": {
                        "url": FILM,
                        "duration": "61",
                        "width": "640",
                        "height": "360px",
                        "title": {"type": "plain", "value": "A film"},
                        "thumbnail": {"url": POSTER},
                        "subTitle": {"type": "text/vtt", "lang": "en", "href": VTT},
                    }
                }
            },
            id="Media RSS, within the file",
        ),
        pytest.param(
            {
                "media": {
                    "content": {
                        "url": "a.mp4",
                        "duration": "61",
                        "width": "640",
                        "height": "360",
                    },
                    "title": "A film",
                    "thumbnail": [{"url": POSTER}, {"url": "https://b.example/b.jpg"}],
                    "subTitle": {"type": "text/vtt", "lang": "en", "href": VTT},
                }
            },
            id="Media RSS, beside a file that is written relative",
        ),
        pytest.param(
            {
                "scp": {
                    "media": [
                        {
                            "type": "video",
                            "name": "A film",
                            "url": [{"href": FILM, "mediaType": "video/mp4"}],
                            "duration": "PT1M1S",
                            "width": 640,
                            "height": 360,
                            "icon": {"type": "Image", "url": POSTER},
                            "captions": [{"language": "en", "url": VTT}],
                        }
                    ]
                }
            },
            id="SCP",
        ),
    ],
)
def test_every_format_says_the_same_of_a_film(extensions: dict[str, Any]) -> None:
    assert files(extensions, FILM) == (
        EnclosedFile(
            href=FILM,
            kind="video",
            type="video/mp4",
            title="A film",
            seconds=61,
            width=640,
            height=360,
            poster=POSTER,
            captions=(Captions(url=VTT, language="en"),),
        ),
    )


def test_a_creators_media_say_all_but_a_title() -> None:
    medium = {
        "kind": "video",
        "url": FILM,
        "mime": "video/mp4",
        "durationSec": 61.5,
        "width": 640,
        "height": 360,
        "thumbnail": POSTER,
        "transcript": VTT,
    }
    (file,) = files({"creator": {"media": [medium]}}, FILM)
    assert (file.seconds, file.width, file.height) == (61, 640, 360)
    assert (file.poster, file.captions) == (POSTER, (Captions(url=VTT),))


def test_an_attachment_has_its_title_and_duration() -> None:
    attachment = {
        "url": SONG,
        "mime_type": "audio/mpeg",
        "title": "Part one",
        "duration_in_seconds": 65,
    }
    (file,) = files({"jsonfeed": {"attachments": attachment}}, SONG)
    assert (file.title, file.seconds) == ("Part one", 65)


def test_what_one_version_in_a_group_says_goes_for_the_others_but_for_its_size() -> (
    None
):
    webm = "https://example.org/a.webm"
    group = {
        "content": [
            {"url": FILM, "duration": "61", "width": "640", "height": "360"},
            {"url": webm},
        ],
        "thumbnail": {"url": POSTER},
    }
    first, second = files({"media": {"group": group}}, FILM, webm)
    assert [(each.seconds, each.poster) for each in (first, second)] == [
        (61, POSTER),
        (61, POSTER),
    ]
    assert (first.width, second.width) == (640, 0)


def test_files_beside_each_other_share_only_what_stands_beside_them() -> None:
    media = {
        "content": [{"url": FILM, "duration": "61"}, {"url": SONG}],
        "thumbnail": {"url": POSTER},
    }
    film, song = files({"media": media}, FILM, SONG)
    assert (film.seconds, song.seconds) == (61, 0)
    assert film.poster == song.poster == POSTER


def test_a_podcasts_other_versions_are_further_sources() -> None:
    podcast = {
        "alternateEnclosure": [
            {
                "type": "audio/opus",
                "title": "low",
                "source": [
                    {"uri": "https://example.org/low"},
                    {"uri": "https://mirror.example/low"},
                ],
            },
            {"type": "audio/opus", "source": {"uri": "ipfs://x"}},
            {"type": "audio/mpeg", "source": {"uri": SONG}},
            {"type": "audio/mpeg"},
        ],
        "transcript": [
            {"url": VTT, "type": "text/vtt", "language": "en", "rel": "captions"},
            {"url": "https://example.org/a.html", "type": "text/html"},
        ],
    }
    song, low = files({"itunes": {"duration": "1:01"}, "podcast": podcast}, SONG)
    assert (song.is_linked, song.title) == (True, "")
    assert (low.href, low.is_linked, low.title) == (
        "https://example.org/low",
        False,
        "",
    )
    for file in (song, low):
        assert file.seconds == 61
        assert file.captions == (Captions(url=VTT, language="en"),)


def test_what_is_said_of_the_entry_is_not_said_of_its_pictures() -> None:
    (picture,) = files({"itunes": {"duration": "61"}}, POSTER)
    assert (picture.kind, picture.seconds) == ("image", 0)


def test_a_medium_tells_the_kind_where_no_type_does() -> None:
    url = "https://example.org/stream"
    said = {"media": {"content": {"url": url, "medium": "video"}}}
    (file,) = files(said, url)
    assert (file.kind, file.type) == ("video", "")


@pytest.mark.parametrize(
    "extensions",
    [
        {"media": "odd", "itunes": ["odd"], "podcast": 1},
        {"media": {"group": "odd", "content": "odd", "thumbnail": 1}},
        {"media": {"content": {"url": FILM, "width": True, "height": "1e3"}}},
        {"media": {"content": {"url": FILM, "width": -1, "height": "99999999"}}},
        {"jsonfeed": {"attachments": [1, {"url": 1}]}},
        {"scp": {"media": [{"type": "video", "url": FILM, "icon": "odd"}]}},
        {"creator": {"media": [{"transcript": "https://example.org/a.html"}]}},
    ],
)
def test_odd_words_say_nothing(extensions: dict[str, Any]) -> None:
    assert files(extensions, FILM) == (
        EnclosedFile(href=FILM, kind="video", type="video/mp4"),
    )


@pytest.mark.parametrize(
    ("page", "base"),
    [("https://blog.example/2026/post", "https://blog.example"), ("", FILM[:-6])],
)
def test_addresses_that_extensions_have_as_written_are_absolute(
    page: str, base: str
) -> None:
    content = {
        "url": "/a.mp4",
        "type": "video/mp4",
        "thumbnail": {"url": "/a.jpg"},
        "subTitle": [{"href": "/a.vtt", "lang": "en_us"}, {"href": "x:a.vtt"}],
    }
    links = (
        Link(href=FILM, rel="enclosure", type="video/mp4"),
        *((Link(href=page),) if page else ()),
    )

    [film] = enclosed_files(
        an_entry("a", links=links, extensions={"media": {"content": content}})
    )

    assert film.poster == f"{base}/a.jpg"
    assert film.captions == (Captions(url=f"{base}/a.vtt", language="en-US"),)


def test_files_are_bounded() -> None:
    hrefs = [f"https://example.org/{number}.mp3" for number in range(MOST_FILES + 9)]
    assert len(files({}, *hrefs)) == MOST_FILES
