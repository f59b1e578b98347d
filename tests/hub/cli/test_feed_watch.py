from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from hub.cli.feed_watch import DUE_LOOK_SECONDS, LOOK_SECONDS, FeedWatch
from hub.cli.hub_client import Hub
from tests.support.clock import ManualClock
from tests.support.fake_api import FakeApi, feed_document

FEED = "GET /api/feeds/7"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Change = Callable[..., None]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def change(api: FakeApi) -> Change:
    """What the hub says of the feed from now on."""

    def change(**changes: object) -> None:
        api.answers[FEED] = (200, feed_document(**changes))
        api.answers[f"{FEED}/history"] = (200, {"polls": []})

    change(next_fetch="2026-01-01T12:01:00Z")
    return change


@pytest.fixture
def watch(api: FakeApi, clock: ManualClock, change: Change) -> FeedWatch:
    hub = Hub(url=api.url, token="token")
    return FeedWatch(hub, feed_document(next_fetch="2026-01-01T12:01:00Z"), clock)


def test_it_counts_down_to_the_next_poll(watch: FeedWatch, clock: ManualClock) -> None:
    assert watch.countdown() == "next poll in 61 s"
    clock.advance(59.5)
    assert watch.countdown() == "next poll in 1 s"
    clock.advance(1)
    assert watch.countdown() == "polling"


def test_a_poll_far_away_is_told_in_minutes(api: FakeApi, clock: ManualClock) -> None:
    hub = Hub(url=api.url, token="token")

    assert FeedWatch(hub, feed_document(), clock).countdown() == "next poll in 15 min"


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        ("unchanged", "polled: unchanged; next poll 2026-01-01 12:15:00Z ("),
        ("new", "polled: 2 new entries; next poll 2026-01-01 12:15:00Z ("),
        ("changed", "polled: changed, no new entry; next poll 2026-01-01 12:15:00Z ("),
    ],
)
def test_it_tells_what_each_poll_found(
    watch: FeedWatch,
    clock: ManualClock,
    api: FakeApi,
    change: Change,
    outcome: str,
    line: str,
) -> None:
    clock.advance(61)
    assert watch.look() == ""

    change(last_fetch="2026-01-01T12:01:01Z")
    poll = {"outcome": outcome, "entries": 2}
    api.answers[f"{FEED}/history"] = (200, {"polls": [poll]})
    clock.advance(DUE_LOOK_SECONDS)

    assert watch.look().startswith(line)
    assert watch.look() == ""


def test_it_tells_why_a_poll_failed(
    watch: FeedWatch, clock: ManualClock, change: Change
) -> None:
    change(last_fetch="2026-01-01T12:01:01Z", error="timed out")
    clock.advance(62)

    assert watch.look().startswith("poll failed: timed out; next poll 2026-01-01")


def test_the_reason_is_told_when_it_is_another_one(
    watch: FeedWatch, clock: ManualClock, change: Change
) -> None:
    told = []
    for minute, reason in enumerate(["it is new", "it is polled hourly"], 1):
        clock.advance(900)
        change(
            last_fetch=f"2026-01-01T12:0{minute}:00Z",
            next_fetch=f"2026-01-01T12:1{minute}:00Z",
            next_fetch_reason=reason,
        )
        told.append(watch.look().endswith(f"): {reason}"))

    assert told == [False, True]


def test_the_hub_is_asked_rarely_until_the_feed_is_due(
    watch: FeedWatch, clock: ManualClock, api: FakeApi
) -> None:
    asked_by = {}
    for second in range(1, 66):
        clock.advance(1)
        watch.look()
        asked_by[second] = len(api.requests)

    assert asked_by[59] == int(59 / LOOK_SECONDS)
    assert asked_by[60] == asked_by[59] + 1
    assert asked_by[65] == asked_by[60] + 5 / DUE_LOOK_SECONDS


def test_a_feed_that_is_paused_meanwhile_is_told_of(
    watch: FeedWatch, clock: ManualClock, change: Change
) -> None:
    change(state="paused")
    clock.advance(LOOK_SECONDS)

    assert watch.look() == "paused: not polled until `fanfare feeds resume 7`"
    assert watch.countdown() == "paused: not polled until `fanfare feeds resume 7`"


def test_a_hub_that_is_away_is_told_of_once(
    clock: ManualClock, api: FakeApi, change: Change
) -> None:
    nowhere = Hub(url="http://127.0.0.1:1", token="token")
    watch = FeedWatch(nowhere, feed_document(), clock)
    clock.advance(LOOK_SECONDS)

    assert watch.look() == "the hub does not answer; waiting for it"
    assert watch.countdown() == ""
    clock.advance(LOOK_SECONDS)
    assert watch.look() == ""


def test_who_may_not_see_feeds_is_told_nothing(
    api: FakeApi, clock: ManualClock
) -> None:
    watch = FeedWatch(Hub(url=api.url, token="token"), feed_document(), clock)
    clock.advance(LOOK_SECONDS)

    assert (watch.look(), watch.countdown()) == ("", "")
    clock.advance(LOOK_SECONDS)
    assert watch.look() == ""
    assert len(api.requests) == 1
