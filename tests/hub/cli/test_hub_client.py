from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hub.cli.hub_client import find_hub
from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
NO_FEEDS: tuple[int, dict[str, Any]] = (200, {"feeds": [], "next": None})


def test_no_hub_is_exit_code_3_and_says_how_to_start_one(fanfare: Fanfare) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    result = fanfare("feeds", "list", "--url", url)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"fanfare: no hub answers at {url}")
    assert "fanfare serve" in result.stderr


def test_a_refusal_is_one_line_and_exit_code_1(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/feeds"] = (401, {"detail": "this is not the admin token"})
    result = fanfare("feeds", "list")
    assert (result.exit_code, result.stderr) == (
        1,
        "fanfare: this is not the admin token\n",
    )


@pytest.mark.parametrize(
    "url",
    [
        *("example", "ftp://hub.example", "http://", "http://[::1", "http://a:99999"),
        *("http://a.example/?x", "http://me:secret@a.example", "http://a.example/ x"),
    ],
)
@pytest.mark.parametrize("command", [["feeds", "list"], ["tail", "https://a.example/"]])
def test_a_bad_url_of_a_hub_is_wrong_usage(
    fanfare: Fanfare, url: str, command: list[str]
) -> None:
    result = fanfare(*command, "--url", url)
    assert result.exit_code == 2
    assert "--url: expected" in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("answer", [b"<html>", b"[]"])
def test_something_else_than_a_hub_is_noticed(
    fanfare: Fanfare, api: FakeApi, answer: bytes
) -> None:
    api.answers["GET /api/feeds"] = (200, answer)
    result = fanfare("feeds", "list")
    assert result.exit_code == 1
    assert "is not a hub" in result.stderr


def test_the_token_is_read_from_the_file_beside_the_database(
    alone: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers["GET /api/feeds"] = NO_FEEDS
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin-token").write_text("from the file\n")
    assert alone("feeds", "list", "--url", api.url).exit_code == 0
    assert api.tokens == ["Bearer from the file"]


def test_without_a_token_no_hub_has_run_here(alone: Fanfare, api: FakeApi) -> None:
    result = alone("feeds", "list", "--url", api.url)
    assert result.exit_code == 3
    assert "no hub has run here yet" in result.stderr


def test_a_token_file_that_cannot_be_read_is_a_failure(
    alone: Fanfare, tmp_path: Path
) -> None:
    (tmp_path / "data" / "admin-token").mkdir(parents=True)
    assert alone("feeds", "list").exit_code == 1


def test_a_bad_setting_is_wrong_usage(alone: Fanfare) -> None:
    result = alone("feeds", "list", FANFARE_PORT="http")
    assert result.exit_code == 2
    assert "FANFARE_PORT: expected a whole number" in result.stderr


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"FANFARE_PORT": "81"}, "http://127.0.0.1:81"),
        ({"FANFARE_HOST": "0.0.0.0"}, "http://127.0.0.1:8080"),
        ({"FANFARE_HOST": "::"}, "http://[::1]:8080"),
        ({"FANFARE_PUBLIC_URL": "https://hub.example/"}, "https://hub.example"),
    ],
)
def test_the_hub_is_found_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str
) -> None:
    monkeypatch.setenv("FANFARE_ADMIN_TOKEN", "token")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_hub(None).url == url
    assert find_hub("http://other.example/").url == "http://other.example"
