from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
FEED = b"""<rss version="2.0"><channel><title>Notes</title>
<item><title>Apple pie</title><guid>1</guid></item>
<item><title>Pear tart</title><guid>2</guid></item></channel></rss>"""


def test_a_query_is_shown_as_it_is_understood(alone: Fanfare) -> None:
    result = alone("track", "test", "Paris (texas|france) -SITE:https://a.example/x")
    assert result.exit_code == 0
    assert result.stdout == "understood as: paris (texas | france) -site:a.example\n"


@pytest.mark.parametrize(
    ("url", "understood"),
    [
        (
            "http://superfeedr.com/track?include=apple,pie&exclude=quince",
            "apple pie -quince",
        ),
        ("http://track.superfeedr.com/?query=apple+%7C+quince", "apple | quince"),
        (
            "https://hub.example/fanfare/track?query=apple+-pie&format=json",
            "apple -pie",
        ),
    ],
)
def test_a_url_is_read_as_a_subscription_reads_it(
    alone: Fanfare, url: str, understood: str
) -> None:
    result = alone("track", "test", url)
    assert (result.exit_code, result.stdout) == (0, f"understood as: {understood}\n")


def test_a_url_without_a_query_is_refused(alone: Fanfare) -> None:
    result = alone("track", "test", "http://superfeedr.com/track?lat=1&lon=2")
    assert result.exit_code == 1
    assert "expected a track query without lat, lon, within" in result.stderr


def test_a_query_that_cannot_be_read_is_refused_with_the_place(alone: Fanfare) -> None:
    result = alone("track", "test", "apple (pie")
    assert result.exit_code == 1
    assert "expected a closing parenthesis at character 11" in result.stderr


def test_the_entries_of_a_feed_that_match_are_listed(
    alone: Fanfare, tmp_path: Path
) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(FEED)
    result = alone("track", "test", "apple | quince", "--in", str(path))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == ["Apple pie"]
    assert "1 of 2 entries matched" in result.stderr


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("page.html", b"<!DOCTYPE html><html><body>x</body></html>", "not a feed"),
        ("missing.xml", None, "cannot read"),
    ],
)
def test_what_is_no_feed_is_a_failure(
    alone: Fanfare, tmp_path: Path, name: str, body: bytes | None, reason: str
) -> None:
    path = tmp_path / name
    if body is not None:
        path.write_bytes(body)
    result = alone("track", "test", "apple", "--in", str(path))
    assert result.exit_code == 1
    assert reason in result.stderr


def test_a_feed_that_cannot_be_had_is_a_failure(alone: Fanfare) -> None:
    result = alone("track", "test", "apple", "--in", "http://127.0.0.1:9/feed")
    assert result.exit_code == 1


# --- search ---

SINCE = "2026-06-02T12:00:00Z"
FOUND = {
    "id": 7,
    "guid": "a",
    "title": "News",
    "url": "https://a.example/7",
    "feed": 3,
    "feed_title": "About A",
    "feed_url": "https://a.example/feed",
    "published": SINCE,
    "updated": None,
}
UNDATED = {**FOUND, "id": 8, "title": "", "feed_title": "", "published": None}


def page(*entries: dict[str, object], next: int | None = None) -> tuple[int, object]:
    said = {"said": "so", "looked_at": 9, "reached": SINCE}
    return 200, {"entries": list(entries), "next": next, **said}


def lines(output: str) -> list[str]:
    return [" ".join(each.split()) for each in output.splitlines()]


def test_a_search_lists_what_it_finds(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/search"] = page(FOUND, UNDATED)
    result = fanfare("track", "search", "news")
    assert lines(result.stdout) == [
        "ID PUBLISHED FEED TITLE URL",
        "7 2026-06-02 12:00:00Z About A News https://a.example/7",
        "8 no date https://a.example/feed (untitled) https://a.example/7",
    ]
    assert result.stderr == "so\n"
    assert [it for it, _ in api.requests] == ["GET /api/search?query=news&limit=50"]


def test_a_search_of_more_says_how_far_it_looked_and_goes_on(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/search"] = page(FOUND, next=40)
    result = fanfare("track", "search", "news", "--limit", "2", "--cursor", "90")
    assert result.stderr == (
        "2 entries in 2 pages, of which the last: so; older ones: --cursor 40\n"
    )
    assert [it.rpartition("&")[2] for it, _ in api.requests] == [
        "cursor=90",
        "cursor=40",
    ]


def test_what_several_pages_of_a_search_have_looked_at_is_told_together(
    fanfare: Fanfare, api: FakeApi
) -> None:
    last = {"entries": [UNDATED], "next": None, "said": "1 more entry found"}
    pages = iter([page(FOUND, next=40)[1], {**last, "looked_at": 0, "reached": None}])
    api.answers["GET /api/search"] = 200, lambda _: next(pages)
    result = fanfare("track", "search", "news", "--json")
    assert json.loads(result.stdout) == {
        "entries": [FOUND, UNDATED],
        "next": None,
        "said": "2 entries in 2 pages, of which the last: 1 more entry found",
        "looked_at": 9,
        "reached": SINCE,
    }


def test_a_search_that_found_nothing_in_time_does_not_say_that_there_is_nothing(
    fanfare: Fanfare, api: FakeApi
) -> None:
    said = "0 entries found; older ones may match; stopped after 5 s"
    late = {"entries": [], "next": 90, "said": said, "looked_at": 0, "reached": None}
    api.answers["GET /api/search"] = 200, late
    result = fanfare("track", "search", "news", "--cursor", "90")
    assert result.stderr == f"{said}; older ones: --cursor 90\n"
    result = fanfare("track", "search", "news", "--cursor", "90", "--json")
    assert json.loads(result.stdout)["reached"] is None


def test_a_search_that_gets_no_further_ends(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/search"] = page(next=90)
    result = fanfare("track", "search", "news", "--cursor", "90", "--json")
    assert json.loads(result.stdout)["next"] == 90
    assert len(api.requests) == 1
