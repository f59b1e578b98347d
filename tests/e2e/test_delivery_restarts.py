"""Told to stop, the hub ends what is under way: nothing lost, nothing twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.support.oracle import Evidence, judge, missing
from tests.support.stage import open_stage
from tests.support.waiting import eventually

FORMATS = ("json", "atom", "as-is")


async def test_restarts_in_the_middle_of_deliveries_cause_no_copies(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feeds = [await stage.add_feed() for _ in range(3)]
        subscribers = [
            await stage.subscribe(
                f"{format}-{feed.number}-{index}", feed, format=format
            )
            for _feed_id, feed in feeds
            for index in range(20)
            for format in FORMATS
        ]

        for _restart in range(4):
            for feed_id, feed in feeds * 2:
                await stage.publish(feed_id, feed)
            assert await stage.hub.terminate() == 0
            await stage.hub.start()
            await stage.hub.wait_ready()

        evidence = Evidence(
            subscribers=subscribers,
            expected={feed.number: (2, feed.count) for _feed_id, feed in feeds},
        )
        await eventually(partial(_is_all_there, evidence), seconds=60)
        assert await stage.hub.terminate() == 0
        assert judge(evidence) == []


def _is_all_there(evidence: Evidence) -> bool:
    return not any(missing(each, evidence) for each in evidence.subscribers)


async def test_who_is_paused_stays_so_over_kills_and_then_gets_all_of_it(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        paused = [
            await stage.subscribe(format, feed, format=format) for format in FORMATS
        ]
        other = await stage.subscribe("other", feed)
        ids = await stage.api.subscriptions()
        paths = [f"/api/subscriptions/{ids[each.url]}" for each in paused]
        for path in paths:
            await stage.api.request("POST", f"{path}/pause")

        for _death in range(3):
            for _entry in range(5):
                await stage.publish(feed_id, feed)
            await stage.hub.kill()
            await stage.hub.start()
            await stage.hub.wait_ready()

        expected = {feed.number: (2, feed.count)}
        healthy = Evidence(subscribers=[other], expected=expected)
        await eventually(partial(_is_all_there, healthy))
        assert not any(each.receipts for each in paused)
        for path in paths:
            await stage.api.request("POST", f"{path}/resume")
        evidence = Evidence(subscribers=paused, expected=expected)
        await eventually(partial(_is_all_there, evidence))
        assert await stage.hub.terminate() == 0
        assert judge(evidence) == []
