"""A whole hub in played time: whatever a seed does to it, it keeps its promises.

Clock, network, disk and chance are played, and all else is the hub that serves. One
seed again, and thousands of them:

    .venv/bin/python -m tests.simulation 7
    .venv/bin/python -m tests.simulation 1 --count 5000 --jobs 2
"""

from __future__ import annotations

import asyncio
import re
from itertools import count

import pytest

from tests.simulation.__main__ import summary
from tests.simulation.loop import MOST_TURNS, Stuck, VirtualLoop
from tests.simulation.seed_run import run_seed

SEEDS = range(1, 26)


def test_no_seed_breaks_a_promise() -> None:
    outcomes = [run_seed(seed) for seed in SEEDS]
    print(summary(outcomes))
    broken = [
        f"{outcome.seed}; again: python -m tests.simulation {outcome.seed}\n"
        + "\n".join(outcome.complaints)[:1_000]
        for outcome in outcomes
        if outcome.complaints
    ]
    assert not broken, "\n".join(broken)
    assert sum(outcome.kills for outcome in outcomes) > len(SEEDS) // 2
    assert sum(outcome.delivered for outcome in outcomes) > len(SEEDS)
    assert sum(outcome.listened for outcome in outcomes) > len(SEEDS)


def test_a_seed_is_the_same_run_every_time() -> None:
    first, second = run_seed(3), run_seed(3)
    assert first.fingerprint == second.fingerprint
    assert first == second
    assert run_seed(4).fingerprint != first.fingerprint


def test_a_disk_that_forgets_is_found_out() -> None:
    """The oracle sees what it has to see: entries that are lost, cursors that go back,
    and what is sent again without a reason."""
    outcomes = (run_seed(seed, disk_forgets=True) for seed in range(6, 16))
    assert any(outcome.complaints for outcome in outcomes)


@pytest.mark.parametrize(
    ("mutant", "said", "first"),
    [
        ("drops", "never received", 5),
        ("doubles", "twice without a kill", 5),
        ("misdirects", "not its own|of another feed", 5),
        ("disorders", "after|never received", 6),
        ("repeats", "was told .* as .* and as", 11),
        ("forgets pushes", "took what was pushed, and did not tell it", 63),
        ("confirms all", "confirmed what nobody had asked for", 8),
        ("believes all", "nobody published", 12),
        ("keeps its epoch", "was not told that what it knew is gone", 5),
        ("ignores pauses", "was sent something .* paused", 8),
    ],
)
def test_a_hub_that_does_what_it_must_not_is_found_out(
    mutant: str, said: str, first: int
) -> None:
    """By one of a few seeds, and for what it did: ``first`` is one that does so now."""
    outcomes = (run_seed(seed, mutant=mutant) for seed in range(first, first + 10))
    found = (each for outcome in outcomes for each in outcome.complaints)
    assert any(re.search(said, each) for each in found)


def test_time_passes_only_while_everybody_waits() -> None:
    async def wait() -> list[float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            for seconds in (3_600.0, 60.0):
                group.create_task(asyncio.sleep(seconds))
        await asyncio.to_thread(lambda: None)
        return [began, loop.time()]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        began, ended = runner.run(wait())
    assert ended - began == pytest.approx(3_600.0)


def test_what_waits_for_ever_is_an_error_and_no_hang() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(Stuck):
        runner.run(wait())


def test_what_spins_is_an_error_and_no_hang() -> None:
    async def spin() -> None:
        for _ in count():
            await asyncio.sleep(0)

    assert MOST_TURNS < 10**6
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(Stuck):
        runner.run(spin())
