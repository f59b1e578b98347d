"""Delay distributions as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

from hub.simulation.comparison import Result

WIDTH, HEIGHT = 860, 460
LEFT, TOP, RIGHT, BOTTOM = 60, 30, 640, 400
SHORTEST, LONGEST = 10.0, 86_400.0
_COLOURS = ("#888888", "#c77700", "#7a4fb5", "#0a7d4b", "#1769c2", "#c2185b")
_MARKS = ((10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (86_400, "1 d"))
_POINTS = 120


def draw(results: Sequence[Result]) -> str:
    """The share of posts found within each delay, one curve a policy; SVG text."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18">Share of entries found within a delay</text>',
        *_grid(),
    ]
    for number, result in enumerate(results):
        colour = _COLOURS[number % len(_COLOURS)]
        lines += _curve(result, colour, TOP + 16 + 34 * number)
    return "\n".join([*lines, "</svg>", ""])


def _grid() -> list[str]:
    lines = []
    for seconds, label in _MARKS:
        x = _x(seconds)
        lines.append(f'<path d="M{x} {TOP}V{BOTTOM}" stroke="#ddd"/>')
        lines.append(f'<text x="{x}" y="{BOTTOM + 18}" text-anchor="middle">{label}')
        lines.append("</text>")
    for percent in range(0, 101, 25):
        y = _y(percent / 100)
        lines.append(f'<path d="M{LEFT} {y}H{RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{percent} %')
        lines.append("</text>")
    return lines


def _curve(result: Result, colour: str, label_y: float) -> list[str]:
    points = []
    for number in range(_POINTS + 1):
        share = number / _POINTS
        delay = result.percentile(share)
        points.append(f"{_x(delay)},{_y(share)}")
    name = escape(result.policy)
    mean = f"mean {result.mean / 60:.1f} min"
    x = RIGHT + 16
    return [
        f'<polyline fill="none" stroke="{colour}" stroke-width="2"'
        f' points="{" ".join(points)}"/>',
        f'<text x="{x}" y="{label_y}" fill="{colour}">{name}</text>',
        f'<text x="{x}" y="{label_y + 15}" fill="#555">{mean}</text>',
    ]


def _x(seconds: float) -> float:
    clamped = min(max(seconds, SHORTEST), LONGEST)
    share = log10(clamped / SHORTEST) / log10(LONGEST / SHORTEST)
    return round(LEFT + share * (RIGHT - LEFT), 1)


def _y(share: float) -> float:
    return round(BOTTOM - share * (BOTTOM - TOP), 1)
