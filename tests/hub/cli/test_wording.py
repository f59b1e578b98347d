from __future__ import annotations

import sys
import unicodedata
from datetime import UTC, datetime

import click
import pytest

from hub.cli import visible
from hub.cli.wording import (
    SINCE,
    moment,
    plural,
    print_facts,
    print_table,
    printable,
)

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "never"),
        ("2026-01-01T12:05:00Z", "2026-01-01 12:05:00Z (in 5 min)"),
        ("2026-01-01T11:00:00Z", "2026-01-01 11:00:00Z (1 h ago)"),
    ],
)
def test_a_moment_says_how_far_away_it_is(value: str | None, text: str) -> None:
    assert moment(value, NOW) == text


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("90s", "2026-01-01T11:58:30+00:00"),
        ("15 min", "2026-01-01T11:45:00+00:00"),
        ("2h", "2026-01-01T10:00:00+00:00"),
        ("3D", "2025-12-29T12:00:00+00:00"),
        ("2025-12-31", "2025-12-31T00:00:00+00:00"),
        ("2025-12-31T10:00:00+01:00", "2025-12-31T09:00:00+00:00"),
    ],
)
def test_since_is_a_span_of_time_or_a_time(value: str, at: str) -> None:
    assert SINCE.convert(value, None, None, now=NOW) == at


@pytest.mark.parametrize("value", ["yesterday", "2", "2 parsecs", "999999999w"])
def test_since_is_nothing_else(value: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 2h or 3d"):
        SINCE.convert(value, None, None)


def test_text_of_others_cannot_steer_the_terminal() -> None:
    assert printable("\x1b[2J evil\r\nline\t") == "[2J evil  line"


def steers(character: str) -> bool:
    """By what Unicode says of it: controls, and those that turn text around."""
    turns = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    is_mark = character in "\u061c\u200e\u200f"
    is_turning = unicodedata.bidirectional(character) in turns
    is_control = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return is_turning or is_mark or (is_control and character not in "\n\t")


def test_whatever_could_steer_a_terminal_is_written_out_and_nothing_else() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if steers(character):
            written = visible(f"a{character}b")
            assert written.isascii()
            assert written.isprintable()
            assert f"{ord(character):02x}b" in written
        else:
            assert visible(character) == character


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 feeds"), (1, "1 feed"), (2, "2 feeds")]
)
def test_a_count_has_its_plural(count: int, text: str) -> None:
    assert plural(count, "feed") == text


def test_columns_are_as_wide_as_their_widest_cell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("ID", "URL"), [(1, "a"), (100, "b\x07")])
    assert capsys.readouterr().out == "ID   URL\n1    a\n100  b\n"


def test_facts_without_a_value_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts([("name", "x"), ("section", ""), ("id", 3)])
    assert capsys.readouterr().out == "name  x\nid    3\n"
