"""The scenes of `scripts/soak`, small; their figures mean nothing here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import backlog, crowd, hanging


@pytest.mark.once("its crowd is written into the file")
async def test_a_crowd_is_told_everything_once_in_flat_memory(tmp_path: Path) -> None:
    outcome = await crowd.run(tmp_path, subscribers=600, records=2)
    assert outcome.complaints == []
    assert "nobody missing, nobody twice" in crowd.report(outcome)


async def test_those_who_hang_in_every_way_keep_news_from_nobody(
    tmp_path: Path,
) -> None:
    outcome = await hanging.run(
        tmp_path,
        callbacks=40,
        troubles=(hanging.Trouble(0.2, are_given_up=True),),
        warming=2.0,
        measured=2.0,
        pause=0.5,
    )
    [measured] = outcome.measured
    assert measured.hanging == 8
    assert measured.missing == 0
    assert "8 hang, given up before; 0 missing" in hanging.report(outcome)


async def test_a_long_backlog_is_caught_up_in_order_beside_others(
    tmp_path: Path,
) -> None:
    plan = backlog.Plan(records=150, others=10, measured=1.0, pause=0.3)
    outcome = await backlog.run(tmp_path, plan)
    assert (outcome.reached, outcome.disorders, outcome.missing) == (150, 0, 0)
    assert "150 of 150 records" in backlog.report(outcome)
