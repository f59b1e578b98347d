"""Seeds of the simulation, from the command line.

.venv/bin/python -m tests.simulation 7          one seed, with what was found
.venv/bin/python -m tests.simulation 1 --count 5000 --jobs 2
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from time import monotonic

from tests.simulation.seed_outcome import SeedOutcome
from tests.simulation.seed_run import run_seed

HANDED_OUT = 20
"""Seeds that processes are given at a time."""


def main() -> int:
    arguments = _read_arguments()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    end = monotonic() + arguments.seconds
    outcomes: list[SeedOutcome] = []
    with ProcessPoolExecutor(arguments.jobs, initializer=_begin) as pool:
        for outcome in _run(pool, seeds):
            outcomes.append(outcome)
            _tell_broken(outcome)
            if monotonic() > end:
                pool.shutdown(wait=True, cancel_futures=True)
                break
    print(summary(outcomes))
    return 1 if any(outcome.complaints for outcome in outcomes) else 0


def _begin() -> None:
    """What is imported stays for ever, and need not be looked at again and again."""
    gc.freeze()
    gc.set_threshold(100_000)


def _run(pool: ProcessPoolExecutor, seeds: range) -> Iterator[SeedOutcome]:
    for start in range(seeds.start, seeds.stop, HANDED_OUT):
        some = range(start, min(start + HANDED_OUT, seeds.stop))
        yield from pool.map(run_seed, some)


def _tell_broken(outcome: SeedOutcome) -> None:
    if outcome.complaints:
        print(f"seed {outcome.seed} ({outcome.fingerprint}):")
    for complaint in outcome.complaints:
        print(f"  {complaint[:400]}", flush=True)


def summary(outcomes: list[SeedOutcome]) -> str:
    """What was done to how many hubs, and what came of it."""
    faults = Counter(chain.from_iterable(each.faults.elements() for each in outcomes))
    recoveries = sorted(chain.from_iterable(each.recoveries for each in outcomes))
    broken = sum(bool(each.complaints) for each in outcomes)
    lines = [
        f"seeds      {len(outcomes)}, {broken} broken",
        f"faults     {', '.join(f'{n} {name}' for name, n in faults.most_common())}",
        f"published  {sum(each.published for each in outcomes)} entries",
        f"delivered  {sum(each.delivered for each in outcomes)} notifications,"
        f" {sum(each.copies for each in outcomes)} of them again after a kill,"
        f" {sum(each.relived for each in outcomes)} more after a backup",
        f"listened   {sum(each.listened for each in outcomes)} entries read live",
    ]
    if recoveries:
        middle = recoveries[len(recoveries) // 2]
        late = recoveries[int(len(recoveries) * 0.99)]
        lines.append(
            f"recovered  in {middle:.0f} s (half of all), {late:.0f} s (99 of 100),"
            " of played time after the last fault"
        )
    return "\n".join(lines)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seed", type=int, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin no seed after so long"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
