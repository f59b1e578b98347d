"""``fanfare demo`` when something does not come."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hub.demo.arrivals import Announce, Arrivals, Way
from hub.demo.hub_requests import DemoFailed
from hub.demo.samples import FeedKind, SampleFeed
from tests.hub.cli.conftest import Fanfare
from tests.support.clock import ManualClock


async def show_that_loses_one(
    seconds: float, announce: Callable[[str], None], tell: Announce
) -> Arrivals:
    arrivals = Arrivals(tell)
    entry = SampleFeed(FeedKind.RSS).add(ManualClock().now())
    arrivals.publish(entry, 1.0)
    arrivals.arrive(Way.WEBHOOK, entry.id, 1.25)
    arrivals.arrive(Way.SSE, entry.id, 1.5)
    return arrivals


async def show_that_fails(
    seconds: float, announce: Callable[[str], None], tell: Announce
) -> Arrivals:
    raise DemoFailed("the first fetches took over 30 s")


def test_a_missing_arrival_is_shown_and_fails(
    alone: Fanfare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.demo.demonstration.demonstrate", show_that_loses_one)
    shown = alone("demo")
    assert shown.exit_code == 1
    assert "  250 ms  webhook    Entry 1 of the RSS feed" in shown.stdout
    assert "1 entry published" in shown.stdout
    assert "websocket  0    0     0     1        -       -" in shown.stdout
    assert shown.stderr == "fanfare: 1 arrival missing\n"


def test_programs_get_the_summary_alone(
    alone: Fanfare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.demo.demonstration.demonstrate", show_that_loses_one)
    shown = alone("demo", "--json")
    document = json.loads(shown.stdout)
    assert (shown.exit_code, document["published"]) == (1, 1)
    assert [each["way"] for each in document["ways"]] == ["webhook", "websocket", "sse"]
    assert [each["missing"] for each in document["ways"]] == [0, 1, 0]


def test_a_demonstration_that_cannot_begin_says_why(
    alone: Fanfare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.demo.demonstration.demonstrate", show_that_fails)
    shown = alone("demo")
    assert shown.exit_code == 1
    assert shown.stderr == "fanfare: the first fetches took over 30 s\n"
