"""A secret need not be on the command line."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hub.cli import main
from hub.cli.secret_options import LONGEST_SECRET, header_options, secret_option
from tests.support.command_walk import verbs
from tests.support.fake_api import FakeApi, subscription_document

Fanfare = Callable[..., Result]
SECRETS = {"basic", "publish_secret", "secret", "value"}


@click.command()
@secret_option("secret", "Signs.")
@secret_option("basic", "Logs in.", default=None)
@header_options
def show(secret: str, basic: str | None, headers: dict[str, str]) -> None:
    click.echo(f"{secret!r} {basic!r} {headers}")


def run(*arguments: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(show, arguments, input=input)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_text("of the file \r\nand more\n")
    return str(path)


def test_it_may_be_in_a_file(file: str) -> None:
    assert run("--secret-file", file).stdout == "'of the file ' None {}\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--secret", "-", "--basic", "-"],
        ["--secret-file", "-", "--basic-file", "-"],
    ],
)
def test_or_in_lines_of_standard_input(options: list[str]) -> None:
    assert run(*options, input="one\ntwo\n").stdout in (
        "'one' 'two' {}\n",
        "'two' 'one' {}\n",
    )


def test_or_on_the_command_line_or_nowhere() -> None:
    assert run("--secret", "s", "--basic", "").stdout == "'s' '' {}\n"
    assert run().stdout == "'' None {}\n"


def test_headers_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text("X-Key: k: k\n\nX-Other:o\n")
    result = run("--header-file", str(path), "--header", "X-Given: g")
    assert result.stdout == (
        "'' None {'X-Given': 'g', 'X-Key': 'k: k', 'X-Other': 'o'}\n"
    )


@pytest.mark.parametrize(
    ("options", "input", "expected"),
    [
        (["--secret", "-"], b"", "expected a line of 1 to"),
        (["--secret", "-"], b"\n", "expected a line of 1 to"),
        (["--secret", "-"], b"\xff\n", "expected UTF-8 text"),
        (["--secret", "-"], b"s" * (LONGEST_SECRET + 1), "expected a line of 1 to"),
        (["--secret", "s", "--secret-file", "-"], b"s", "either --secret or"),
        (["--header-file", "-"], b"sesame", "expected 'Name: value', not 'the line'"),
        (["--header-file", "-"], b"\xff\n", "expected UTF-8 text"),
        (["--header", ": x"], None, "expected 'Name: value', not ': x'"),
    ],
)
def test_what_is_no_secret_is_wrong_usage(
    options: list[str], input: bytes | None, expected: str
) -> None:
    result = run(*options, input=input)
    assert (result.exit_code, expected in result.stderr) == (2, True)
    assert "sesame" not in result.stderr


def test_every_secret_of_every_verb_may_be_in_a_file() -> None:
    options = {
        (*verb, each.name)
        for verb, command in verbs(main)
        if verb != ("serve",)  # whose settings are in the environment or files
        for each in command.params
        if isinstance(each, click.Option)
    }
    secrets = {each for each in options if each[-1] in SECRETS}
    assert len(secrets) == 12
    assert {(*each[:-1], f"{each[-1]}_file") for each in secrets} <= options


def test_a_command_line_gets_it_to_the_hub(
    fanfare: Fanfare, api: FakeApi, file: str
) -> None:
    api.answers["POST /api/subscriptions"] = (201, subscription_document())
    to = ("https://you.example/hook", "https://example.org/feed.xml")
    assert fanfare("subs", "add", *to, "--secret-file", file).exit_code == 0
    assert api.requests[0][1]["secret"] == "of the file "


SHOW = "from tests.hub.cli.test_secret_options import show; show()"


def test_at_a_terminal_it_is_asked_for_without_echo() -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SHOW, "--secret", "-"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: _own_terminal(theirs),
    )
    os.close(theirs)
    shown = b""
    while b"secret: " not in shown:
        assert select.select([ours], [], [], 60)[0]
        shown += os.read(ours, 1_024)
    os.write(ours, b"sesame\n")
    out, _ = process.communicate(timeout=60)
    os.set_blocking(ours, False)
    with suppress(OSError):  # nobody has the other end any more
        shown += os.read(ours, 1_024)
    os.close(ours)
    assert out == b"'sesame' None {}\n"
    assert b"sesame" not in shown


def _own_terminal(descriptor: int) -> None:
    """Standard output stays what it is."""
    out = os.dup(1)
    os.login_tty(descriptor)
    os.dup2(out, 1)
