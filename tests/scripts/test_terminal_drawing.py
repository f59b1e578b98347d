"""What a terminal showed, as lines and as a picture."""

from __future__ import annotations

import pytest
from lxml import etree

from scripts.terminal_drawing import COLUMNS, draw_terminal, read_terminal

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("10 %\r\x1b[K20 %\r\x1b[Kdone\n", ["done"]),
        ("10 %\rdone\n", ["done"]),
        ("a\n\nb", ["a", "", "b"]),
        ("\x1b[1;32m$\x1b[m fanfare\n", ["$ fanfare"]),
        ("", []),
    ],
)
def test_what_remains_on_a_terminal(written: str, lines: list[str]) -> None:
    read = read_terminal([(0.0, written)])
    assert ["".join(it.text for it in each.parts) for each in read] == lines


def test_a_picture_has_text_colours_and_moments() -> None:
    written = [(0.0, "$ fanfare\n"), (9.0, "\x1b[32mok <&>\x1b[m\n")]
    picture = etree.fromstring(draw_terminal(read_terminal(written), "A & B"))
    first, second = picture.iter(f"{SVG}text")
    assert first.text == "$ fanfare"
    assert second[0].text == "ok <&>"
    assert second[0].get("style") == "fill: #6fd48f"
    assert second.get("style") == "animation-delay: 1.50s"
    assert picture.get("aria-label") == "A & B"


def test_a_long_line_takes_several_rows() -> None:
    picture = draw_terminal(read_terminal([(0.0, "x" * (COLUMNS + 1))]), "-")
    rows = etree.fromstring(picture).iter(f"{SVG}text")
    assert [each.text for each in rows] == ["x" * COLUMNS, "x"]
