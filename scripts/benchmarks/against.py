"""What became dearer since an earlier run, of which there is the JSON.

Compared is what says something on another machine too, or at another hour: a row's
ratio to its floor, and where there is no floor the CPU of an operation. Seconds,
rates and memory by themselves are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scripts.benchmarks.measuring import Finding

TOLERATED = 0.2
"""Part of what it was, by which a row may be dearer."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row of both runs; ``dearer`` is 0.5 if it takes half as much again."""

    bench: str
    measure: str
    before: float
    now: float
    dearer: float

    @property
    def is_too_dear(self) -> bool:
        return self.dearer > TOLERATED

    def __str__(self) -> str:
        return (
            f"{self.bench}, {self.measure}: {self.before:.4g} before,"
            f" {self.now:.4g} now, {self.dearer:+.0%}"
        )


def compare(now: Sequence[Finding], before: Sequence[Finding]) -> list[Change]:
    """The rows that both runs have and that can be compared, in the order of ``now``.

    A row that only one of them has is passed over.
    """
    known = {(each.bench, each.measure): each for each in before}
    changes = []
    for finding in now:
        earlier = known.get((finding.bench, finding.measure))
        if earlier and (change := _change(finding, earlier)):
            changes.append(change)
    return changes


def _change(now: Finding, before: Finding) -> Change | None:
    ours, theirs = _price(now), _price(before)
    if ours is None or theirs is None or ours <= 0 or theirs <= 0:
        return None
    if (now.ratio is None) != (before.ratio is None):  # of one with a floor, one not
        return None
    growth = theirs / ours if _is_better_when_more(now) else ours / theirs
    return Change(now.bench, now.measure, theirs, ours, growth - 1)


def _price(finding: Finding) -> float | None:
    if finding.ratio is not None:
        return finding.ratio
    return finding.hub if "CPU" in finding.measure else None


def _is_better_when_more(finding: Finding) -> bool:
    return finding.target.startswith(">=") or "per second" in finding.measure
