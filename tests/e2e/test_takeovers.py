"""Whoever of two hubs at one database ends, the other goes on with all that is owed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgres_server import shared_server
from tests.support.takeover_campaign import ENDS, TakeoverCampaign

pytestmark = pytest.mark.once("it is on PostgreSQL anyway")


async def test_a_hub_that_is_killed_and_one_that_hangs_are_taken_over(
    tmp_path: Path,
) -> None:
    with shared_server().database() as location:
        campaign = TakeoverCampaign(1, len(ENDS), tmp_path, location)
        outcome = await campaign.run()

    assert outcome.complaints == []
    assert outcome.takeovers == len(ENDS)
