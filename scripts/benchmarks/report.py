"""Findings as a table for people, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from scripts.benchmarks.measuring import Finding

_HEADINGS = ("bench", "measure", "hub", "floor", "ratio", "target", "met")


def as_table(findings: Sequence[Finding]) -> str:
    """A Markdown table, as docs/performance.md shows it."""
    rows = [_HEADINGS, *(_cells(finding) for finding in findings)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, _line(["-" * width for width in widths], widths))
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    return json.dumps([asdict(finding) for finding in findings], indent=2)


def from_json(text: str) -> list[Finding]:
    """What `as_json` wrote.

    Raises ValueError if it is anything else.
    """
    try:
        return [Finding(**row) for row in json.loads(text)]
    except (TypeError, ValueError):
        raise ValueError("expected the JSON of an earlier run") from None


def _cells(finding: Finding) -> tuple[str, ...]:
    met = "" if not finding.target else "yes" if finding.met else "NO"
    return (
        finding.bench,
        finding.measure,
        _number(finding.hub),
        _number(finding.floor),
        "" if finding.ratio is None else f"{finding.ratio:.2f}",
        finding.target,
        met,
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
