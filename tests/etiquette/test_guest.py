"""A month as a guest of seventy feeds: nobody finds a fault with a single request.

Each line of docs/explanation/etiquette.md that shows in requests is a column of the
score; the sites are in `tests.etiquette.guest_sites`.
"""

from __future__ import annotations

import asyncio

import pytest

from hub.core.schedule.budget import Budget
from tests.etiquette.guest_month import Month
from tests.etiquette.guest_sites import SITES, Site
from tests.support.quiet_loop import QuietLoop

pytestmark = pytest.mark.once("its played time waits for nothing but its process")

A_DAY = 2.0
"""Polls of a feed, on average: fewer than by default, for the sake of time."""
HOSTS = sorted({site.host for site in SITES})


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Month:
    month = Month(
        tmp_path_factory.mktemp("month") / "hub.db", Budget(polls_per_feed_day=A_DAY)
    )
    with asyncio.Runner(loop_factory=QuietLoop) as runner:
        runner.run(month.pass_by())
    return month


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.kind)
def test_no_request_for_a_feed_is_at_fault(month: Month, site: Site) -> None:
    score = month.score(site)
    assert score.faults == {}
    assert score.requests > 0


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_is_crowded_or_asked_before_it_wants_to_be(
    month: Month, host: str
) -> None:
    assert month.score_host(host).faults == {}
