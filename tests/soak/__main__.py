"""`scripts/soak`: puts a hub under fire, and says what came of it.

`scripts/soak restart` starts a hub for which a million feeds and deliveries are
overdue, ``stall`` stops one for twice as long as its leases last, ``clock`` sets its
clock, ``commits`` kills a hundred processes while they commit, ``kills`` as many while
they deliver, on either engine; ``takeovers`` has two hubs at one server, one of which
ends in each round. ``crowd``, ``hanging``
and ``backlog`` are about receivers alone, but large.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median
from types import ModuleType

from tests.soak import (
    backlog,
    clock,
    commits,
    crowd,
    hanging,
    hub_ends,
    stall,
    standstill,
)
from tests.soak.outcome import Outcome
from tests.soak.soak import Soak

SCENES = {"crowd": crowd, "hanging": hanging, "backlog": backlog}
PROGRAMS = {
    "restart": standstill.main,
    "stall": stall.main,
    "clock": clock.main,
    "commits": commits.main,
    "kills": hub_ends.kill,
    "takeovers": hub_ends.take_over,
}
"""Programs with arguments of their own."""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] and arguments[0] in PROGRAMS:
        return PROGRAMS[arguments[0]](arguments[1:])
    asked = _parser().parse_args(arguments)
    if asked.scene in SCENES:
        return asyncio.run(_play(SCENES[asked.scene]))
    print(f"seed {asked.seed}, {asked.seconds:g} seconds", flush=True)
    with tempfile.TemporaryDirectory(prefix="fanfare-soak-") as directory:
        soak = Soak(asked.seed, asked.seconds, Path(directory))
        outcome = asyncio.run(soak.run())
    print(report(outcome))
    return 1 if outcome.complaints else 0


async def _play(scene: ModuleType) -> int:
    with tempfile.TemporaryDirectory(prefix="fanfare-soak-") as directory:
        outcome = await scene.run(Path(directory))
    print(scene.report(outcome))
    return 1 if outcome.complaints else 0


def report(outcome: Outcome) -> str:
    lines = [
        "faults",
        *(f"  {count:5}  {name}" for name, count in outcome.faults.most_common()),
        f"published  {outcome.published} entries",
        f"delivered  {outcome.delivered} notifications, {outcome.copies} of them again"
        " after a kill",
        f"live       {outcome.read_live} entries read over"
        f" {outcome.connections} connections",
        f"hostile    {sum(outcome.hostile.values())} requests to"
        f" {len(outcome.hostile)} callbacks that misbehave",
        f"ready      {_middle(outcome.recoveries):.1f} s after a start (half of all),"
        f" {max(outcome.recoveries, default=0.0):.1f} s at most",
        f"churned    {outcome.subscribers} subscribers and {outcome.readers} readers"
        " in all",
        f"refused    {outcome.refused['feeds']} fetches and"
        f" {outcome.refused['subscriptions']} changes of subscriptions with 503;"
        f" what came of {outcome.looked_up} without an answer was looked up",
        f"counted    {outcome.counted}",
        f"memory     {outcome.largest / 1e6:.0f} MB at most; {_trend(outcome)}",
        *(f"BROKEN     {complaint[:300]}" for complaint in outcome.complaints[:50]),
        "verdict    "
        + (
            f"{len(outcome.complaints)} promises broken; again: --seed {outcome.seed}"
            if outcome.complaints
            else "nothing lost, nothing out of order, nothing twice without a kill"
        ),
    ]
    return "\n".join(lines)


def _trend(outcome: Outcome) -> str:
    trend = outcome.trend
    if trend is None:
        return "not watched"
    return f"{trend.growth / 1e6:+.2f} MB in {trend.seconds:.0f} s of one life"


def _middle(values: list[float]) -> float:
    return median(values) if values else 0.0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("scene", nargs="?", choices=(*PROGRAMS, *SCENES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
