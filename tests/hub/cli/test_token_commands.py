"""``fanfare tokens``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from hub.cli import main
from hub.cli.token_commands import SCOPES
from storage.records import TokenScope
from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi


def token_document(**changes: object) -> dict[str, Any]:
    token: dict[str, Any] = {
        "id": 3,
        "account": "alice",
        "scopes": ["list", "subscribe"],
        "label": "laptop",
        "created_at": "2026-01-01T12:00:00Z",
        "used_at": None,
        "revoked_at": None,
    }
    return {**token, **changes}


def test_the_scopes_are_those_there_are() -> None:
    assert set(SCOPES) == set(TokenScope)


def test_a_new_token_is_all_that_goes_to_stdout(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["POST /api/tokens"] = (201, token_document(token="ab" * 16))
    result = fanfare(
        "tokens", "create", "--account", "alice", "--scope", "list",
        "--scope", "subscribe", "--label", "laptop",
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout == "ab" * 16 + "\n"
    assert "token 3 of alice: list, subscribe" in result.stderr
    body = {
        "account": "alice",
        "scopes": ["list", "subscribe"],
        "label": "laptop",
        "value": "",
    }
    assert api.requests == [("POST /api/tokens", body)]


def test_a_token_that_is_there_already_is_taken_over(
    api: FakeApi, fanfare: Fanfare
) -> None:
    api.answers["POST /api/tokens"] = (201, token_document(token="cd" * 16))
    given = ("tokens", "create", "--scope", "list", "--value")
    fanfare(*given, "CD" * 16)
    known = {"FANFARE_PUBLIC_URL": api.url, "FANFARE_ADMIN_TOKEN": "token"}
    CliRunner().invoke(main, [*given, "-"], input=f"{'cd' * 16}\n", env=known)
    assert [body["value"] for _, body in api.requests] == ["CD" * 16, "cd" * 16]


def test_a_new_token_as_json(api: FakeApi, fanfare: Fanfare) -> None:
    made = token_document(token="ab" * 16)
    api.answers["POST /api/tokens"] = (201, made)
    result = fanfare("tokens", "create", "--scope", "list", "--json")
    assert json.loads(result.stdout) == made


@pytest.mark.parametrize("arguments", [(), ("--scope", "fly")])
def test_a_token_needs_scopes_there_are(
    fanfare: Fanfare, arguments: tuple[str, ...]
) -> None:
    assert fanfare("tokens", "create", *arguments).exit_code == 2


def test_the_list_shows_whose_they_are_and_whether_they_are_good(
    api: FakeApi, fanfare: Fanfare
) -> None:
    tokens = [
        token_document(),
        token_document(id=4, revoked_at="2026-01-02T12:00:00Z", label="\x1b[31m"),
    ]
    api.answers["GET /api/tokens"] = (200, {"tokens": tokens, "next": None})
    result = fanfare("tokens", "list")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ID", "3", "4"]
    assert "list subscribe  never      good     laptop" in result.stdout
    assert "revoked" in result.stdout
    assert "not listed: the admin token of the settings" in result.stderr
    assert "\x1b" not in result.stdout
    assert json.loads(fanfare("tokens", "list", "--json").stdout) == tokens


def test_an_empty_list_says_what_to_do(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["GET /api/tokens"] = (200, {"tokens": [], "next": None})
    assert "fanfare tokens create" in fanfare("tokens", "list").stdout


def test_revoking_says_which(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["DELETE /api/tokens/3"] = (200, token_document())
    result = fanfare("tokens", "revoke", "3")
    assert result.stdout == "revoked  token 3 of alice\n"
