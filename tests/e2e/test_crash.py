"""Whatever moment the hub is killed at, every promise of delivery holds.

A hundred processes are killed on SQLite and ten on PostgreSQL, half of them at
chosen points (`hub.runtime.failpoints`), half at random moments; that the server fails
as well is in `test_on_postgres`. The oracle outside decides. One campaign again, by its
seed:

    FANFARE_CRASH_SEEDS=7 ./scripts/test tests/e2e/test_crash.py
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

from tests.support.chosen_engine import CHOSEN, Engine
from tests.support.crash_campaign import FAILPOINTS, Outcome, run_campaign

SEEDS = [int(seed) for seed in os.environ.get("FANFARE_CRASH_SEEDS", "").split()] or [
    *(range(1, 6) if CHOSEN is Engine.SQLITE else [3])
]
KILLS = 20 if CHOSEN is Engine.SQLITE else 10  # in each campaign
MOST_IN_THE_MIDDLE = 0.5
"""Seconds: acknowledgements are written every 0.1 s, and the machine is busy."""
AT_ONCE = 3  # campaigns, each in a process of its own: none delays another's answers


def test_no_kill_at_any_moment_breaks_a_promise(tmp_path: Path) -> None:
    directories = [tmp_path / str(seed) for seed in SEEDS]
    for directory in directories:
        directory.mkdir()
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(AT_ONCE, spawning) as pool:
        fights = [
            pool.submit(run_campaign, seed, KILLS, directory)
            for seed, directory in zip(SEEDS, directories, strict=True)
        ]
        outcomes = [each.result() for each in fights]

    print("\n".join(map(_summary, outcomes)))
    broken = [outcome for outcome in outcomes if outcome.complaints]
    assert not broken, "\n".join(map(_report, broken))
    assert sum(len(outcome.kills) for outcome in outcomes) == KILLS * len(SEEDS)
    reached = sum((outcome.failpoints_reached for outcome in outcomes), Counter[str]())
    if len(SEEDS) > 4:  # that nobody chose
        assert set(reached) == set(FAILPOINTS), reached
    print(reached)
    ages = [age for outcome in outcomes for age in outcome.ages]
    assert median(ages) < MOST_IN_THE_MIDDLE


def _summary(outcome: Outcome) -> str:
    oldest = max(outcome.ages, default=0.0)
    reached = outcome.failpoints_reached.total()
    return (
        f"seed {outcome.seed}: {len(outcome.kills)} kills,"
        f" {reached} at failpoints; {outcome.published} entries,"
        f" {outcome.accepted} deliveries, {len(outcome.ages)} of them copies, the"
        f" oldest answered {oldest * 1000:.0f} ms before its kill"
    )


def _report(outcome: Outcome) -> str:
    return "\n  ".join(
        (
            f"seed {outcome.seed}; again: FANFARE_CRASH_SEEDS={outcome.seed}"
            " ./scripts/test tests/e2e/test_crash.py",
            *(complaint[:200] for complaint in outcome.complaints[:20]),
        )
    )
