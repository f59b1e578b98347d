"""The README holds: its commands exist and its example runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from hub.cli import main
from protocols.websub.signatures import sign

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def shell_lines() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def test_the_first_screen_has_the_two_commands() -> None:
    commands = [line.split()[0] for line in README.splitlines()[:30] if line]
    assert "./scripts/run" in commands
    assert "./scripts/test" in commands


@pytest.mark.parametrize(
    "line", [line for line in shell_lines() if line.startswith("fanfare")]
)
def test_every_command_and_option_shown_exists(line: str) -> None:
    command: click.Command = main
    words = shlex.split(line, comments=True)[1:]
    while isinstance(command, click.Group):
        name = words.pop(0).split("|")[0]
        assert name in command.commands, line
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("script", sorted(set(re.findall(r"\./(scripts/\w+)", README))))
def test_every_script_shown_exists_and_can_be_run(script: str) -> None:
    assert (ROOT / script).stat().st_mode & 0o111


def test_the_signature_example_believes_the_hub_and_nobody_else() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102 - the README's own example
    is_genuine = names["is_genuine"]
    assert callable(is_genuine)
    body = b'{"items": []}'
    assert is_genuine(body, sign("sha256", "S3CRET", body), "S3CRET")
    assert not is_genuine(body, sign("sha256", "another", body), "S3CRET")
