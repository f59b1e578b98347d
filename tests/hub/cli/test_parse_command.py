from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
FEED = b"""<rss version="2.0"><channel><title>Notes</title>
<item><title>First</title><guid>1</guid></item></channel></rss>"""


@pytest.mark.parametrize("format_", ["json", "atom"])
def test_a_file_is_printed_in_either_format(
    alone: Fanfare, tmp_path: Path, format_: str
) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(FEED)
    result = alone("parse", str(path), "--format", format_)
    assert result.exit_code == 0
    assert "First" in result.stdout
    assert "1 entry" in result.stderr


def test_what_had_to_be_repaired_is_noted(alone: Fanfare, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(FEED.replace(b"First", b"First &nbsp; & more"))
    result = alone("parse", str(path))
    assert result.exit_code == 0
    assert "read by: strict" not in result.stderr


def test_a_url_is_fetched(alone: Fanfare, api: FakeApi) -> None:
    api.answers["GET /feed"] = (200, FEED)
    result = alone("parse", f"{api.url}/feed", FANFARE_ALLOW_NETWORKS="127.0.0.0/8")
    assert json.loads(result.stdout)["title"] == "Notes"


def test_a_url_that_the_guard_refuses_is_a_failure(
    alone: Fanfare, api: FakeApi
) -> None:
    result = alone("parse", f"{api.url}/feed")
    assert result.exit_code == 1
    assert "does not connect to this address" in result.stderr
    assert api.requests == []


@pytest.mark.parametrize("content", [b"", b"<html><body>Hello</body></html>"])
def test_what_is_no_feed_is_a_failure(
    alone: Fanfare, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "document"
    path.write_bytes(content)
    assert alone("parse", str(path)).exit_code == 1


def test_a_missing_file_is_a_failure(alone: Fanfare, tmp_path: Path) -> None:
    result = alone("parse", str(tmp_path / "none"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"fanfare: cannot read {tmp_path / 'none'}: No such"
    )


def test_a_file_without_end_is_not_read_to_its_end(alone: Fanfare) -> None:
    result = alone("parse", "/dev/zero")
    assert result.exit_code == 1
    assert "/dev/zero: the document is larger than 10485760 bytes" in result.stderr


def test_an_explanation_names_path_encoding_rules_and_what_was_dropped(
    alone: Fanfare, tmp_path: Path
) -> None:
    path = tmp_path / "feed.xml"
    twins = b"<item><guid>2</guid></item><item><guid>2</guid></item>"
    body = FEED.replace(b"First", b"First &nbsp;")
    path.write_bytes(body.replace(b"</channel>", twins + b"</channel>"))

    result = alone("parse", str(path), "--explain")

    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert "format rss read by entities encoding utf-8, by its bytes" in words
    assert "left out 1 entry" in words
    assert "NOTES line 2: entities unknown to XML were replaced" in words
    assert "a second entry with the id 2 was left out" in words
    assert "its id 1 First" in words


def test_what_was_dropped_is_named(alone: Fanfare, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(FEED.replace(b"</item>", b"<pubDate>soon</pubDate></item>"))
    text = alone("parse", str(path), "--explain").stdout
    assert "DROPPED\n  line 2: an invalid date: soon" in text
    assert "NOTES" not in text


def test_an_empty_feed_has_no_rules_to_show(alone: Fanfare, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(b"<rss version='2.0'><channel><title>A</title></channel></rss>")
    result = alone("parse", str(path), "--explain")
    assert result.exit_code == 0
    assert "KNOWN BY" not in result.stdout


def test_an_explanation_may_be_json(alone: Fanfare, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(FEED)
    found = json.loads(alone("parse", str(path), "--explain", "--json").stdout)
    assert (found["format"], found["path"], found["left_out"]) == ("rss", "strict", 0)
    assert found["encoding"]["name"] == "utf-8"
    assert [each["rule"] for each in found["entries"]] == ["its id"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_is_no_feed_is_explained_as_far_as_it_can_be(
    alone: Fanfare, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"\xef\xbb\xbf<html><body>Hello</body></html>")
    result = alone("parse", str(path), "--explain", *options)
    assert result.exit_code == 1
    assert "byte order mark" in result.stdout
    assert "an HTML page" in result.stderr


def test_json_is_no_atom(alone: Fanfare, tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(FEED)
    assert json.loads(alone("parse", str(path), "--json").stdout)["items"]
    result = alone("parse", str(path), "--json", "--format", "atom")
    assert result.exit_code == 2
    assert "cannot be combined with --format atom" in result.stderr


def test_standard_input_is_parsed(alone: Fanfare) -> None:
    result = alone("parse", "-", input=FEED)
    assert json.loads(result.stdout)["items"]
