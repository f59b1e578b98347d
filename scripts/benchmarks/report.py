"""Findings as they come: a table for people, JSON lines for `--against`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from scripts.benchmarks.measuring import Finding

_HEADINGS = ("bench", "measure", "hub", "floor", "ratio", "target", "met")
_WIDTHS = (18, 70, 9, 9, 6, 9, 3)


class Report:
    """Writes each row at once, so that a run that is cut short loses none.

    ``file``: emptied first, then gets the rows as JSON lines whatever ``out`` gets.
    """

    def __init__(
        self, out: TextIO, *, is_json: bool = False, file: Path | None = None
    ) -> None:
        self.findings: list[Finding] = []
        self._out = out
        self._is_json = is_json
        self._file = file
        if file is not None:
            file.write_text("", encoding="utf-8")
        if not is_json:
            self._print(_line(_HEADINGS))
            self._print(_line(["-" * width for width in _WIDTHS]))

    def add(self, finding: Finding) -> None:
        self.findings.append(finding)
        line = as_json(finding)
        self._print(line if self._is_json else _line(_cells(finding)))
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)


def as_json(finding: Finding) -> str:
    """A line."""
    return json.dumps(asdict(finding))


def from_json(text: str) -> list[Finding]:
    """The rows of lines that `as_json` wrote, or of an array of them, as earlier
    versions printed it.

    Raises ValueError if it is anything else.
    """
    try:
        rows = _rows(text)
        return [Finding(**row) for row in rows]
    except (TypeError, ValueError):
        raise ValueError("expected the JSON of an earlier run") from None


def _rows(text: str) -> list[dict[str, Any]]:
    if text.lstrip().startswith("["):
        return list(json.loads(text))
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not rows:
        raise ValueError("no rows")
    return rows


def _cells(finding: Finding) -> tuple[str, ...]:
    met = "" if not finding.target else "yes" if finding.met else "NO"
    if finding.error:
        return (finding.bench, f"failed: {finding.error}", "", "", "", "", "NO")
    return (
        finding.bench,
        finding.measure,
        _number(finding.hub),
        _number(finding.floor),
        "" if finding.ratio is None else f"{finding.ratio:.2f}",
        finding.target,
        met,
    )


def _line(cells: Sequence[str]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
    return f"| {' | '.join(padded)} |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
