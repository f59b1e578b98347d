"""What the scenes of `scripts/soak` take for a broken promise, by made-up figures."""

from __future__ import annotations

import pytest

from tests.soak import backlog, hanging
from tests.soak.latencies import Lateness


def late(median: float, p99: float) -> Lateness:
    return Lateness(count=1_000, median=median, p99=p99)


@pytest.mark.parametrize(
    ("median", "p99", "missing", "is_broken"),
    [
        (199.0, 2_000.0, 0, False),
        (200.0, 400.0, 0, True),
        (100.0, 2_001.0, 0, True),
        (100.0, 400.0, 1, True),
    ],
)
def test_those_who_are_well_hear_soon_beside_those_who_hang(
    median: float, p99: float, missing: int, is_broken: bool
) -> None:
    measured = hanging.Measured(
        hanging=50,
        are_given_up=False,
        early=late(5_000.0, 9_000.0),
        late=late(median, p99),
        missing=missing,
    )
    outcome = hanging.Outcome(callbacks=1_000, measured=[measured])
    assert bool(outcome.complaints) == is_broken


@pytest.mark.parametrize(
    ("alone", "beside", "is_broken"),
    [
        (500.0, 600.0, False),
        (500.0, 601.0, True),
        (10.0, 60.0, False),  # a few milliseconds more are noise
        (10.0, 61.0, True),
        (1_900.0, 2_001.0, True),
        (300.0, 100.0, False),
    ],
)
def test_a_backlog_makes_others_no_later_than_by_a_fifth(
    alone: float, beside: float, is_broken: bool
) -> None:
    outcome = backlog.Outcome(
        records=100,
        others=200,
        reached=100,
        disorders=0,
        seconds=1.0,
        alone=late(5.0, alone),
        beside=late(5.0, beside),
        missing=0,
    )
    assert bool(outcome.complaints) == is_broken
