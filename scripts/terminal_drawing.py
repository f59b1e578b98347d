"""What a terminal showed, drawn as SVG: lines that appear when they appeared.

Of a terminal's language this reads what the command ``fanfare`` and its neighbours
write: text, line ends, returns, erased lines, bold text and the eight colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

COLUMNS: Final = 100
LONGEST_PAUSE: Final = 1.5
"""Seconds that nothing appears in a drawing, however long it took."""
_PART: Final = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|(\r|\n)|([^\x1b\r\n]+)|\x1b.?")
_COLOURS: Final = (
    *("#5c6370", "#ff8a80", "#6fd48f", "#f2c14e"),
    *("#8ab8ff", "#d7a8ff", "#7fd8d8", "#ece8e5"),
)
_WIDTH, _HEIGHT, _MARGIN, _BAR = 8.4, 19, 16, 36
_BOLD: Final = "1"


@dataclass(frozen=True, slots=True)
class StyledText:
    """``style``: the numbers of SGR that are in force, such as "1;32"."""

    text: str
    style: str = ""


@dataclass(slots=True)
class TerminalLine:
    """``at``: seconds after the beginning, when it was last written to."""

    at: float = 0.0
    parts: list[StyledText] = field(default_factory=list)


def read_terminal(written: Iterable[tuple[float, str]]) -> list[TerminalLine]:
    """The lines that remain of what was written when."""
    lines, style, returned = [TerminalLine()], "", False
    for at, text in written:
        for codes, final, end, words in _PART.findall(text):
            line = lines[-1]
            if end == "\n":
                lines.append(TerminalLine(at))
            elif final == "m":
                style = ";".join(filter(None, codes.split(";"))).removeprefix("0")
            elif final == "K" or (words and returned):
                lines[-1] = line = TerminalLine(at)
            if words:
                line.at = at
                line.parts.append(StyledText(words, style))
            returned = end == "\r" or (returned and not words and end != "\n")
    while lines and not lines[-1].parts:
        lines.pop()
    return lines


def draw_terminal(lines: Sequence[TerminalLine], title: str) -> str:
    """An SVG document. Whoever asks for reduced motion sees all lines at once."""
    lines = [row for each in lines for row in _wrapped(each)]
    columns = max((sum(len(it.text) for it in each.parts) for each in lines), default=0)
    width = round(max(columns, 60) * _WIDTH + 2 * _MARGIN)
    height = len(lines) * _HEIGHT + _BAR + _MARGIN
    rows = "\n".join(_rows(lines))
    dots = "".join(
        f'<circle cx="{20 + 18 * number}" cy="18" r="5" fill="#5c6370"/>'
        for number in range(3)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; \
fill: #ece8e5; white-space: pre; }}
.row {{ opacity: 0; animation: appear 0.01s linear forwards; }}
@keyframes appear {{ to {{ opacity: 1; }} }}
@media (prefers-reduced-motion: reduce) {{ .row {{ animation: none; opacity: 1; }} }}
</style>
<rect width="100%" height="100%" rx="10" fill="#161413"/>
{dots}
{rows}
</svg>
"""


def _wrapped(line: TerminalLine) -> list[TerminalLine]:
    """Rows of a terminal that a line takes."""
    rows, left = [TerminalLine(line.at)], COLUMNS
    for part in line.parts:
        text = part.text
        while len(text) > left:
            rows[-1].parts.append(StyledText(text[:left], part.style))
            rows.append(TerminalLine(line.at))
            text, left = text[left:], COLUMNS
        rows[-1].parts.append(StyledText(text, part.style))
        left -= len(text)
    return rows


def _rows(lines: Sequence[TerminalLine]) -> Iterator[str]:
    for number, (line, at) in enumerate(zip(lines, _moments(lines), strict=True)):
        y = _BAR + (number + 1) * _HEIGHT - 5
        parts = "".join(map(_part, line.parts))
        yield (
            f'<text class="row" x="{_MARGIN}" y="{y}" xml:space="preserve" '
            f'style="animation-delay: {at:.2f}s">{parts}</text>'
        )


def _moments(lines: Sequence[TerminalLine]) -> Iterator[float]:
    """When each line appears, with long pauses cut."""
    before = moment = 0.0
    for line in lines:
        moment += min(max(line.at - before, 0.0), LONGEST_PAUSE)
        before = max(line.at, before)
        yield moment


def _part(part: StyledText) -> str:
    codes = part.style.split(";")
    style = 'font-weight="bold" ' if _BOLD in codes else ""
    for code in codes:
        if code.isdigit() and 30 <= int(code) < 38:
            style += f'style="fill: {_COLOURS[int(code) - 30]}" '
    text = escape(part.text, quote=False)
    return f"<tspan {style.strip()}>{text}</tspan>" if style else text
