"""The demonstration in this process."""

from __future__ import annotations

import pytest

from hub.demo import demonstration as demonstration
from hub.demo.arrivals import Arrival, Way
from hub.demo.demonstration import demonstrate
from hub.demo.hub_requests import DemoFailed
from hub.demo.samples import FeedKind


async def test_one_round_brings_every_entry_by_every_way() -> None:
    told: list[Arrival] = []
    said: list[str] = []
    arrivals = await demonstrate(0.0, said.append, told.append)
    assert arrivals.is_complete
    assert {(each.way, each.entry.kind) for each in told} == {
        (way, kind) for way in Way for kind in FeedKind
    }
    assert said[0].startswith("a hub runs at http://127.0.0.1:")
    assert "/admin/login?link=" in said[1]


async def test_what_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "READY_SECONDS", 0.0)
    with pytest.raises(DemoFailed, match="the first fetches took over 0 s"):
        await demonstrate(0.0, lambda line: None, lambda arrival: None)
