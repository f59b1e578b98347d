"""A whole hub is asked to send a callback again what it had, and tells of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from tests.support.http_server import ServerAnswer
from tests.support.operator_browser import OperatorBrowser, rows, text_of
from tests.support.stage import Stage, open_stage
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually


async def test_a_replay_is_told_as_what_it_is_and_leaves_who_is_well_so(
    tmp_path: Path,
) -> None:
    async with (
        open_stage(tmp_path) as stage,
        httpx2.AsyncClient(base_url=stage.hub.url, timeout=60) as client,
    ):
        browser = OperatorBrowser(client)
        feed_id, feed = await stage.add_feed()
        hook = await stage.subscribe("hook", feed)
        number = (await stage.api.subscriptions())[hook.url]
        page = f"/admin/subscriptions/{number}"
        for _entry in range(3):
            await stage.publish(feed_id, feed)
        await eventually(partial(_has_all, stage, number, hook, [2, 3, 4]))
        before = (await stage.api.subscription(number))["health"]
        assert before["state"] == "ok"

        hook.answer(ServerAnswer(), ServerAnswer(silent=True))
        await browser.log_in()
        form = {"form_token": await browser.form_token(), "record": "1"}
        asked = await browser.send(f"{page}/replay", **form)
        assert asked.status_code == 303
        await eventually(lambda: len(hook.receipts) == 3 + 2)
        await eventually(partial(_lacks, stage, number, 2))
        during = await browser.open(page)
        assert "it is sent records again, as asked; a request" in text_of(during)
        assert (await stage.api.subscription(number))["health"] == before
        await stage.hub.kill()
        hook.answer(ServerAnswer())
        await stage.hub.start()
        await stage.hub.wait_ready()
        again = [2, 3, 4, 2, 3, 4]
        await eventually(partial(_has_all, stage, number, hook, again))
        await stage.publish(feed_id, feed)
        await eventually(partial(_has_all, stage, number, hook, [*again, 5]))

        assert (await stage.api.subscription(number))["health"] == before
        shown = await browser.open(page)
        assert "nothing waits to be delivered" in text_of(shown)
        new, asked_for = ["a new record"], ["sent again, as asked"]
        assert [each[3:4] for each in rows(shown)][::-1] == [
            *3 * [new],
            *3 * [asked_for],
            new,
        ]


async def _has_all(
    stage: Stage, number: int, subscriber: Subscriber, entries: list[int]
) -> bool:
    """Whether it has accepted these, and the hub knows."""
    return subscriber.numbers == entries and await _lacks(stage, number, 0)


async def _lacks(stage: Stage, number: int, records: int) -> bool:
    found: dict[str, Any] = await stage.api.subscription(number)
    return bool(found["lag"]["records"] == records)
