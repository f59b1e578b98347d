"""Tables fit the terminal, and states have colours there."""

from __future__ import annotations

import pytest

from hub.cli.wording import Failure, cut, fit_columns, print_table, text_width
from tests.support.terminal import terminal

URL = "https://example.org/a/long/path/to/the/feed.xml"
ROWS = [(1, "failing", "A title that is long", URL), (23, "ok", "映画", "u:é")]
HEADINGS = ("ID", "STATE", "TITLE", "URL")


def shown_in(columns: str, monkeypatch: pytest.MonkeyPatch, colours: bool) -> str:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "" if colours else "1")
    with terminal() as shown:
        print_table(HEADINGS, ROWS)
    return shown.text


def test_a_table_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown_in("60", monkeypatch, colours=False).splitlines()
    assert (
        lines
        == [
            "ID  STATE    TITLE                 URL",
            "1   failing  A title that is long  https://exam…feed.xml",
            "23  ok       映画                  u:é",
        ]
        or max(map(text_width, lines)) <= 60
    )
    assert max(map(text_width, lines)) == 60


def test_elsewhere_it_is_as_wide_as_its_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_table(HEADINGS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "ID  STATE    TITLE                 URL",
        f"1   failing  A title that is long  {URL}",
        "23  ok       映画                  u:é",
    ]


def test_states_have_colours_unless_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coloured = shown_in("100", monkeypatch, colours=True)
    assert "\x1b[1mSTATE\x1b[m" in coloured
    assert "\x1b[31mfailing\x1b[m" in coloured
    assert "\x1b[32mok\x1b[m" in coloured
    assert "\x1b" not in shown_in("100", monkeypatch, colours=False)


def test_a_failure_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    with terminal() as shown:
        Failure("evil\x1b").show()
    assert shown.text == "\x1b[31mfanfare:\x1b[m evil\n"


def test_a_terminal_that_does_not_say_has_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal() as shown:
        print_table(("A",), [("x" * 100,)])
    assert shown.text.splitlines()[1] == "x" * 79 + "…"


@pytest.mark.parametrize(
    ("widths", "room", "fitted"),
    [
        ([2, 30, 40], 100, [2, 30, 40]),
        ([2, 30, 40], 64, [2, 29, 29]),
        ([2, 30, 40], 46, [2, 20, 20]),
        ([2, 30, 40], 10, [2, 8, 8]),
    ],
)
def test_the_widest_columns_give_way_first(
    widths: list[int], room: int, fitted: list[int]
) -> None:
    assert fit_columns(widths, room) == fitted


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 5, "short"),
        ("too long", 5, "too …"),
        ("日本語字", 5, "日本…"),
        ("日本語字", 4, "日…"),
        ("e\u0301" * 4, 3, "e\u0301" * 2 + "…"),
        (URL, 20, "https://examp…ed.xml"),
    ],
)
def test_a_cell_that_is_too_wide_is_cut(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown
    assert text_width(shown) <= width
