"""`scripts/bench ladder`, so small that its figures mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.benchmarks.ladder import Steps, climb
from scripts.benchmarks.ladder_pushes import search


async def test_a_hub_climbs_each_step_that_the_machine_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = Steps(
        sockets=(2, 5, 10**12),
        polls=(10,),
        pushes=(200,),
        seconds=0.2,
        messages=2,
        trials=1,
    )
    measured = [finding.measure async for finding in climb(tmp_path, steps)]
    assert measured == [
        "2 websockets: CPU us per message",
        "2 websockets: KiB per connection",
        "5 websockets: CPU us per message",
        "5 websockets: KiB per connection",
        "10 polls asked for: polls per second",
        "10 polls asked for: CPU us per poll",
        "200 pushes asked for: deliveries per second",
        "200 pushes asked for: CPU us per delivery",
        "200 pushes asked for: ms from commit to arrival, p50",
        "200 pushes asked for: ms from commit to arrival, p99",
        "deliveries per second, most with p99 <= 1 s",
    ]
    assert "not made: 1,000,000,000,000 websockets" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bound", "trials", "expected"),
    [
        (6_100, 8, 6_000),
        (6_100, 4, 4_000),
        (700, 3, 500),
        (700, 5, 687),
        (10, 9, 0),
        (10**9, 3, 4_000),
    ],
)
async def test_the_highest_rate_that_holds_is_found_between_two(
    bound: int, trials: int, expected: int
) -> None:
    async def holds(rate: int) -> bool:
        return rate <= bound

    assert await search(holds, 1_000, trials) == expected
