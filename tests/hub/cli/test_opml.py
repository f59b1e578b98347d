from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
LIST = "GET /myPublicFeeds.opml"


def test_the_public_feeds_are_printed(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[LIST] = (200, b"<opml/>\n")
    assert fanfare("opml", "export").stdout == "<opml/>\n"


def test_or_written_to_a_file(fanfare: Fanfare, api: FakeApi, tmp_path: Path) -> None:
    api.answers[LIST] = (200, b"<opml/>\n")
    target = tmp_path / "feeds.opml"
    done = fanfare("opml", "export", "--output", str(target))
    assert done.exit_code == 0
    assert target.read_bytes() == b"<opml/>\n"


def test_a_file_that_cannot_be_written_is_a_failure(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[LIST] = (200, b"<opml/>\n")
    done = fanfare("opml", "export", "--output", str(tmp_path / "no" / "feeds.opml"))
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr


def test_a_refusal_is_told(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[LIST] = (429, {"detail": "too many requests"})
    done = fanfare("opml", "export")
    assert done.exit_code == 1
    assert "too many requests" in done.stderr


def test_without_a_hub_the_exit_code_is_3(alone: Fanfare) -> None:
    done = alone("opml", "export", FANFARE_ADMIN_TOKEN="t", FANFARE_PORT="1")
    assert done.exit_code == 3
