from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hub.hub_address import HubAddress, write_address
from tests.support.fake_api import FakeApi, serving

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


@pytest.fixture
def running(api: FakeApi, tmp_path: Path) -> HubAddress:
    """The fake hub has written where it is, beside the database of `alone`."""
    address = HubAddress(url=api.url, public_url="https://hub.example", key="the key")
    write_address(tmp_path / "data" / "hub.db.hub", address)
    (tmp_path / "data" / "admin-token").write_text("from the file\n")
    api.key = "the key"
    api.answers["GET /api/feeds"] = NO_FEEDS
    return address


TOKEN_OF_FILE = ["", "Bearer from the file"]
"""None is sent before the proof."""
TOKEN_SET = ["", "Bearer set"]


@pytest.mark.parametrize(
    ("named", "variables", "tokens"),
    [
        ([], {}, TOKEN_OF_FILE),
        (["--url", "https://hub.example"], {}, TOKEN_OF_FILE),
        ([], {"FANFARE_PUBLIC_URL": "https://hub.example"}, TOKEN_OF_FILE),
        ([], {"FANFARE_ADMIN_TOKEN": "set"}, TOKEN_SET),
        ([], {"FANFARE_PORT": "1", "FANFARE_HOST": "192.0.2.1"}, TOKEN_OF_FILE),
    ],
)
@pytest.mark.usefixtures("running")
def test_the_hub_on_the_database_is_found_and_its_token_sent(
    alone: Fanfare,
    api: FakeApi,
    named: list[str],
    variables: dict[str, str],
    tokens: list[str],
) -> None:
    assert alone("feeds", "list", *named, **variables).exit_code == 0
    assert api.tokens == tokens


@pytest.mark.usefixtures("running")
def test_it_may_be_named_as_somebody_else_reaches_it(
    alone: Fanfare, api: FakeApi
) -> None:
    url = api.url.replace("127.0.0.1", "localhost")
    assert alone("feeds", "list", "--url", url).exit_code == 0
    assert api.tokens == TOKEN_OF_FILE


@pytest.mark.parametrize("key", ["", "of another start"])
@pytest.mark.parametrize("variables", [{}, {"FANFARE_ADMIN_TOKEN": "set"}])
@pytest.mark.usefixtures("running")
def test_what_took_the_port_of_a_killed_hub_is_sent_no_token(
    alone: Fanfare, api: FakeApi, variables: dict[str, str], key: str
) -> None:
    api.key = key
    result = alone("feeds", "list", **variables)
    assert result.exit_code == 3
    assert f"the server at {api.url} is not the hub on" in result.stderr
    assert api.tokens == [""]


@pytest.mark.usefixtures("running")
def test_a_token_that_is_set_goes_to_the_hub_that_is_named(
    alone: Fanfare, api: FakeApi
) -> None:
    api.key = "of another hub"
    variables = {"FANFARE_ADMIN_TOKEN": "set"}
    assert alone("feeds", "list", "--url", api.url, **variables).exit_code == 0
    assert api.tokens == ["Bearer set"]


def test_without_a_running_hub_it_is_said_how_to_start_one(
    alone: Fanfare, tmp_path: Path
) -> None:
    result = alone("feeds", "list")
    assert result.exit_code == 3
    database = tmp_path / "data" / "hub.db"
    assert f"no hub runs on {database}; start one with" in result.stderr


def by_port(api: FakeApi) -> dict[str, str]:
    """Of an environment that has the token of a hub, and not its database."""
    return {"FANFARE_ADMIN_TOKEN": "set", "FANFARE_PORT": api.url.rpartition(":")[2]}


@pytest.mark.parametrize("command", [["feeds", "list"], ["db", "backups"]])
def test_a_hub_on_the_port_is_sent_the_token_that_it_proves_to_have(
    alone: Fanfare, api: FakeApi, command: list[str]
) -> None:
    api.token = "set"
    api.answers["GET /api/feeds"] = NO_FEEDS
    api.answers["GET /api/db/jobs"] = (200, {"schedule": None})

    assert alone(*command, **by_port(api)).exit_code == 0
    assert api.tokens == TOKEN_SET
    assert "set" not in api.requests[0][0]


@pytest.mark.parametrize("token", ["", "of another hub"])
@pytest.mark.parametrize("command", [["feeds", "list"], ["tail", "https://a.example/"]])
def test_what_else_is_on_the_port_is_not_sent_the_token(
    alone: Fanfare, api: FakeApi, token: str, command: list[str]
) -> None:
    api.token = token
    result = alone(*command, **by_port(api))
    assert result.exit_code == 3
    assert f"the server at {api.url} did not prove that it has" in result.stderr
    assert "name it with --url" in result.stderr
    assert api.tokens == [""]


def test_who_passes_the_question_on_to_the_hub_gets_no_proof(alone: Fanfare) -> None:
    """It is for the connection on which it was asked, also if the hub has the same port
    elsewhere."""

    class Relay(FakeApi):
        def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
            with closing(HTTPConnection("127.0.0.2", port)) as connection:
                connection.request(method, target)
                answered = connection.getresponse()
                return answered.status, answered.read()

    with serving(Relay()) as relay:
        port = int(relay.url.rpartition(":")[2])
        with serving(FakeApi(token="set"), port, "127.0.0.2") as hub:
            result = alone("feeds", "list", **by_port(relay))
    assert result.exit_code == 3
    assert relay.tokens == [""]
    assert len(hub.requests) == 1


def test_without_a_hub_on_the_port_it_is_said_how_to_start_one(
    alone: Fanfare, tmp_path: Path
) -> None:
    result = alone("feeds", "list", FANFARE_ADMIN_TOKEN="set", FANFARE_PORT="9")
    assert result.exit_code == 3
    assert (
        f"no hub runs on {tmp_path / 'data' / 'hub.db'},"
        " and none answers at http://127.0.0.1:9; start one with"
    ) in result.stderr


def test_the_token_of_a_database_is_for_no_other_hub(
    alone: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin-token").write_text("from the file\n")
    result = alone("feeds", "list", "--url", api.url)
    assert result.exit_code == 3
    assert f"set FANFARE_ADMIN_TOKEN or FANFARE_ADMIN_TOKEN_FILE for {api.url}" in (
        result.stderr
    )
    assert api.tokens == [""]


def test_a_hub_that_is_named_and_does_not_answer_is_said_not_to(
    alone: Fanfare,
) -> None:
    result = alone("feeds", "list", "--url", "http://127.0.0.1:9")
    assert result.exit_code == 3
    assert "no hub answers at http://127.0.0.1:9" in result.stderr


@pytest.mark.usefixtures("running")
def test_what_is_named_elsewhere_is_not_even_asked_for_proof(alone: Fanfare) -> None:
    """It could have the hub itself answer, and pass that on."""
    with serving(FakeApi(key="the key")) as other:
        result = alone("feeds", "list", "--url", other.url)
    assert result.exit_code == 3
    assert other.requests == [("GET /healthz", None)]


@pytest.mark.usefixtures("running")
def test_a_hub_that_was_given_its_token_wants_it_from_commands(
    alone: Fanfare, tmp_path: Path
) -> None:
    (tmp_path / "data" / "admin-token").unlink()
    result = alone("feeds", "list")
    assert result.exit_code == 1
    assert "the hub was given its token; set FANFARE_ADMIN_TOKEN" in result.stderr


@pytest.mark.parametrize("name", ["admin-token", "hub.db.hub"])
@pytest.mark.usefixtures("running")
def test_a_file_that_cannot_be_read_is_a_failure(
    alone: Fanfare, tmp_path: Path, name: str
) -> None:
    (tmp_path / "data" / name).unlink()
    (tmp_path / "data" / name).mkdir()
    result = alone("feeds", "list")
    assert (result.exit_code, name in result.stderr) == (1, True)


def test_a_bad_setting_is_wrong_usage(alone: Fanfare) -> None:
    result = alone("feeds", "list", FANFARE_PORT="http")
    assert result.exit_code == 2
    assert "FANFARE_PORT: expected a whole number" in result.stderr
