"""What the command line imports: little, so that it is quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hub.cli import COMMANDS

_OF_SERVERS = {"aiohttp", "aiosqlite", "lxml", "starlette", "structlog", "uvicorn"}
_OF_PARSERS = {"feedparser", "cssselect", "nh3", "py3langid"}


def imported(*arguments: str) -> set[str]:
    """The modules there are after a command has been run."""
    program = (
        "import sys; from hub.cli import main\n"
        f"main({list(arguments)}, standalone_mode=False)\n"
        "print('\\n', *sorted(sys.modules), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines())


def test_a_small_command_imports_itself_only() -> None:
    modules = imported("version")

    ours = {each for each in modules if each.partition(".")[0] in ("storage", "hub")}
    assert ours == {"hub", "hub.cli", "hub.cli.version_command"}
    assert "protocols" not in modules


@pytest.mark.parametrize("arguments", [("--help",), ("serve", "--help")])
def test_help_imports_neither_a_server_nor_a_parser(arguments: tuple[str, ...]) -> None:
    modules = imported(*arguments)

    assert not modules & (_OF_SERVERS | _OF_PARSERS)
    if arguments == ("--help",):
        of_commands = {each.partition(":")[0] for each in COMMANDS.values()}
        assert {f"hub.cli.{each}" for each in of_commands} <= modules
