"""A hub whose database is replicated goes on at the standby that takes over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hub_process import LOOPBACK
from tests.support.oracle import Evidence, missing
from tests.support.postgres_server import durable_server
from tests.support.stage import open_stage
from tests.support.waiting import eventually

pytestmark = pytest.mark.once("it is on PostgreSQL anyway")

FORMATS = ("json", "atom")
ENTRIES = 20
"""Published before the server fails, and after."""


async def test_a_synchronous_standby_that_takes_over_has_all_that_is_owed(
    tmp_path: Path,
) -> None:
    with (
        durable_server() as primary,
        durable_server(standby_of=str(primary.directory)) as standby,
    ):
        primary.await_standbys()
        both = f"{primary.location(primary.create())},{standby.directory}"
        state = {"FANFARE_STATE_DIR": str(tmp_path / "state")}
        settings = {**LOOPBACK, **state, "FANFARE_DATABASE": both}
        async with open_stage(tmp_path, settings) as stage:
            feed_id, feed = await stage.add_feed()
            feed.most = 1  # what is lost is not listed again
            subscribers = [await stage.subscribe(f, feed, format=f) for f in FORMATS]
            for _ in range(ENTRIES):
                await stage.publish(feed_id, feed)

            primary.fail()
            standby.promote()
            await stage.hub.wait_exit()
            await stage.hub.start()
            await stage.hub.wait_ready()
            for _ in range(ENTRIES):
                await stage.publish(feed_id, feed)

            expected = {feed.number: (2, feed.count)}
            evidence = Evidence(subscribers=subscribers, expected=expected)
            await eventually(
                lambda: not any(missing(each, evidence) for each in subscribers)
            )
            assert "another server took over" in "\n".join(stage.hub.log)
