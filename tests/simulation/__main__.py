"""Seeds of the simulation, from the command line.

.venv/bin/python -m tests.simulation 7          one seed, with what was found
.venv/bin/python -m tests.simulation 1 --count 5000 --jobs 2
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import chain

from tests.simulation.story import Verdict, run_seed


def main() -> int:
    arguments = _read_arguments()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        verdicts = list(pool.map(run_seed, seeds, chunksize=1))
    broken = [verdict for verdict in verdicts if verdict.complaints]
    for verdict in broken:
        print(f"seed {verdict.seed} ({verdict.fingerprint}):")
        for complaint in verdict.complaints:
            print(f"  {complaint[:400]}")
    print(summary(verdicts))
    return 1 if broken else 0


def summary(verdicts: list[Verdict]) -> str:
    """What was done to how many hubs, and what came of it."""
    faults = Counter(chain.from_iterable(each.faults.elements() for each in verdicts))
    recoveries = sorted(chain.from_iterable(each.recoveries for each in verdicts))
    broken = sum(bool(each.complaints) for each in verdicts)
    lines = [
        f"seeds      {len(verdicts)}, {broken} broken",
        f"faults     {', '.join(f'{n} {name}' for name, n in faults.most_common())}",
        f"published  {sum(each.published for each in verdicts)} entries",
        f"delivered  {sum(each.delivered for each in verdicts)} notifications,"
        f" {sum(each.copies for each in verdicts)} of them again after a kill",
        f"listened   {sum(each.listened for each in verdicts)} entries read live",
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
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
