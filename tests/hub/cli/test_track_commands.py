from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

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
