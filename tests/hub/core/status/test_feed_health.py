from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hub.core.status.feed_health import SLOW_AFTER, condition_after, health_of
from hub.ingest.visit_slots import PATIENCE
from storage.records import (
    FeedHealth,
    FeedState,
    Polling,
    Push,
    PushOffer,
    PushRecord,
    PushWay,
)
from tests.support.fetch_targets import START, a_feed, an_answer

OK, SLOW, PUSHED, FAILING = (
    FeedHealth.OK,
    FeedHealth.SLOW,
    FeedHealth.PUSHED,
    FeedHealth.FAILING,
)
TRUSTED = Push(
    offer=PushOffer(way=PushWay.WEBSUB, hub="https://hub.example/", topic="t"),
    record=PushRecord(proofs=2, needed=2),
    until=START + timedelta(days=1),
)
MOMENT = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("failures", "took", "push", "expected"),
    [
        (0, MOMENT, None, OK),
        (0, SLOW_AFTER - MOMENT, None, OK),
        (0, SLOW_AFTER, None, SLOW),
        (0, MOMENT, TRUSTED, PUSHED),
        (0, SLOW_AFTER, TRUSTED, PUSHED),
        (0, MOMENT, replace(TRUSTED, until=START), OK),
        (1, MOMENT, None, FAILING),
        (1, SLOW_AFTER, TRUSTED, FAILING),
    ],
)
def test_a_feed_is_as_its_last_poll_went(
    failures: int, took: timedelta, push: Push | None, expected: FeedHealth
) -> None:
    fetched = replace(an_answer(), started=START - took)
    polling = Polling(failures=failures)
    for before in (OK, SLOW, PUSHED, FAILING):
        assert condition_after(before, polling, fetched, push) is expected


@pytest.mark.parametrize(
    ("before", "expected"), [(OK, OK), (SLOW, SLOW), (FAILING, OK), (PUSHED, OK)]
)
def test_what_a_publisher_brings_says_nothing_of_its_server(
    before: FeedHealth, expected: FeedHealth
) -> None:
    brought = replace(an_answer(), is_partial=True, started=START - SLOW_AFTER)
    assert condition_after(before, Polling(), brought, None) is expected


def test_slow_is_who_loses_the_slot_of_a_visit() -> None:
    assert SLOW_AFTER.total_seconds() == PATIENCE


@pytest.mark.parametrize(
    ("state", "condition", "reason"),
    [
        (FeedState.ACTIVE, OK, ""),
        (FeedState.ACTIVE, PUSHED, ""),
        (FeedState.ACTIVE, FAILING, "answered 500"),
        (FeedState.ACTIVE, SLOW, "its server took 3 s or longer"),
        (FeedState.PAUSED, FAILING, ""),
        (FeedState.GONE, FAILING, "it answered 410 Gone twice in a row"),
        (FeedState.DEAD, FAILING, "it answered nothing but 404 for days"),
    ],
)
def test_health_says_why(state: FeedState, condition: FeedHealth, reason: str) -> None:
    polling = Polling(error="answered 500")
    feed = replace(a_feed(state=state, polling=polling), condition=condition)
    report = health_of(feed)
    assert report.reason == reason
    assert (report.state, report.since) == (feed.health, START)
