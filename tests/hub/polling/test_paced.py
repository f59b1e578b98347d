"""Requests for what is no feed yet keep the pace of their hosts."""

from __future__ import annotations

import pytest

from hub.polling.fetcher import FetchRequest
from hub.polling.paced import PacedFetcher
from tests.support.clock import ManualClock
from tests.support.polled import ExemptNetwork, ScriptedFetcher


@pytest.mark.parametrize(
    ("host", "waits"), [("a.exempt", []), ("a.example", [0.0, 1.0, 2.0])]
)
async def test_a_host_is_asked_once_a_second_unless_it_is_exempt(
    host: str, waits: list[float]
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    clock = ManualClock()
    fetcher = ScriptedFetcher(clock)
    paced = PacedFetcher(fetcher, ExemptNetwork(), clock, sleep)

    for _ in range(3):
        await paced.fetch(FetchRequest(url=f"https://{host}/", user_agent="Fanfare"))

    assert slept == waits
    assert len(fetcher.requests) == 3
