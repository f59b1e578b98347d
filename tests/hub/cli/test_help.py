"""What ``--help`` says is whole."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from hub.cli import main
from tests.support.command_walk import groups


@pytest.mark.parametrize("words", [*groups(main)], ids=" ".join)
def test_every_command_is_listed_with_its_first_sentence(
    words: tuple[str, ...],
) -> None:
    shown = CliRunner().invoke(main, [*words, "--help"]).stdout
    listed = shown.partition("Commands:\n")[2]
    assert listed.strip()
    assert "..." not in listed
    assert "…" not in listed


def test_a_group_has_no_other_class() -> None:
    for words in groups(main):
        command: click.Command | None = main
        for word in words:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), word)
        assert type(command).__module__ == "hub.cli"
