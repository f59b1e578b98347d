"""What there is to say of a feed, and what may be done about it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.push.hub_subscription import PushFacts, PushState
from hub.core.schedule.posting_profile import with_posts
from hub.core.status.findings import (
    FAILING_AFTER,
    WASTEFUL,
    WATCHED_LEAST,
    FeedFinding,
    FindingKind,
    findings,
    polls_per_entry,
)
from storage.records import FeedState, Polling, Posting, PushWay
from tests.support.fetch_targets import START, a_feed

NOW = START + timedelta(days=60)
HOUR, DAY = 3_600.0, 86_400.0


def posting(*days_ago: float, since: datetime = START) -> Posting:
    times = sorted(NOW.timestamp() - DAY * each for each in days_ago)
    return with_posts(Posting(since=since), times, NOW)


def found(state: FeedState = FeedState.ACTIVE, **polling: object) -> list[str]:
    return [each.kind for each in all_of(state, **polling)]


def all_of(
    state: FeedState = FeedState.ACTIVE, **polling: object
) -> tuple[FeedFinding, ...]:
    usual = {"period": 6 * HOUR, "code": 304, "posting": posting(*range(1, 30))}
    known = Polling(**{**usual, **polling})  # type: ignore[arg-type]
    return findings(a_feed(polling=known, state=state), NOW)


def test_of_a_feed_in_order_there_is_nothing_to_say() -> None:
    assert found() == []


def test_of_a_new_feed_there_is_nothing_to_say() -> None:
    assert findings(a_feed(), NOW) == ()


@pytest.mark.parametrize("state", [FeedState.PAUSED, FeedState.REMOVED])
def test_nor_of_one_that_somebody_stopped(state: FeedState) -> None:
    assert found(state, code=429) == []


@pytest.mark.parametrize(
    ("state", "answer"), [(FeedState.GONE, "410"), (FeedState.DEAD, "404")]
)
def test_a_feed_that_was_given_up_is_dead(state: FeedState, answer: str) -> None:
    (finding,) = all_of(state, fetch_url="https://moved.example/")

    assert finding.kind == "dead"
    assert answer in finding.what
    assert "remove it" in finding.suggestion


def test_an_error_is_told_once_it_lasts() -> None:
    lasting, short = NOW - FAILING_AFTER, NOW - FAILING_AFTER / 2

    (finding,) = all_of(failing_since=lasting, error="cannot connect", code=0)

    assert (finding.kind, finding.what) == (
        "failing",
        "failing for 2 d: cannot connect",
    )
    assert found(failing_since=short, error="cannot connect", code=0) == []


def test_a_feed_that_has_moved_is_named_with_its_new_address() -> None:
    (finding,) = all_of(fetch_url="https://moved.example/")

    assert finding.kind == "moved"
    assert "https://moved.example/" in finding.what
    assert found(fetch_url="https://feed.example/feed") == []


def test_a_server_that_asks_for_patience_throttles() -> None:
    (finding,) = all_of(code=503, retry_after=NOW + timedelta(hours=2))

    assert (finding.kind, finding.what) == (
        "throttled",
        "its server answered 503 and asks for no request for 2 h",
    )
    assert found(code=200, retry_after=NOW - timedelta(hours=2)) == []


def test_too_many_requests_is_throttling_and_not_failing() -> None:
    assert found(code=429, failing_since=START) == ["throttled"]


def test_thousands_of_polls_for_an_entry_are_a_waste() -> None:
    (finding,) = all_of(period=240.0, posting=posting(7, 14, 21, 28), subscribers=1)

    assert finding.kind == "wasteful"
    assert finding.what.startswith("polled every 4 min, ")
    assert finding.what.endswith(" polls for an entry")


def test_so_are_polls_of_what_never_posts() -> None:
    (finding,) = all_of(posting=Posting(since=START))

    assert finding.what == "polled every 6 h, without a new entry"


def test_what_is_watched_for_a_few_days_is_not_judged() -> None:
    recently = NOW - WATCHED_LEAST / 2

    assert found(posting=Posting(since=recently)) == []
    assert found(posting=Posting(since=None)) == []


@pytest.mark.parametrize(
    ("facts", "suggestion"),
    [
        ({}, "pause"),
        ({"subscribers": 3}, "ETag"),
        ({"subscribers": 3, "answers_304": True}, "FANFARE_POLL_BUDGET"),
    ],
)
def test_what_may_be_done_about_waste_depends_on_its_cause(
    facts: dict[str, object], suggestion: str
) -> None:
    (finding,) = all_of(posting=Posting(since=START), **facts)

    assert suggestion in finding.suggestion


def test_a_hub_that_it_names_is_told() -> None:
    (finding,) = all_of(hubs=("https://hub.example/", "https://other.example/"))
    assert finding.what.startswith("it names the hub https://hub.example/")


def test_polls_for_an_entry_follow_from_period_and_rate() -> None:
    daily = Polling(period=6 * HOUR, posting=posting(*range(1, 60)))

    polls = polls_per_entry(a_feed(polling=daily), NOW)

    assert polls == pytest.approx(4.5, abs=0.5)
    assert polls < WASTEFUL
    paused = a_feed(polling=daily, state=FeedState.PAUSED)
    assert polls_per_entry(paused, NOW) is None


PUSH = PushFacts(
    way=PushWay.WEBSUB,
    hub="https://hub.example/",
    topic="https://feed.example/feed",
    state=PushState.SUBSCRIBED,
    is_trusted=True,
    until=NOW,
    asked_at=NOW,
    retry_at=None,
    error="",
    pushed_at=NOW,
    brought=2,
    late=1,
    missed=3,
    foreign=0,
)


@pytest.mark.parametrize(
    ("changes", "kind", "what"),
    [
        (
            {},
            FindingKind.PUSHED,
            "its hub https://hub.example/ pushes it: 2 times so far, 1 late, and"
            " missed 3",
        ),
        (
            {"is_trusted": False, "brought": 1},
            FindingKind.HUB,
            "its hub https://hub.example/ is not trusted to push it yet: once so"
            " far, 1 late, and missed 3",
        ),
        (
            {"is_trusted": False, "error": "answered 500"},
            FindingKind.HUB,
            "its hub https://hub.example/ does not push it: answered 500",
        ),
        (
            {"is_trusted": False, "state": PushState.WAITING},
            FindingKind.HUB,
            "its hub https://hub.example/ has not been asked to push it yet",
        ),
        (
            {"is_trusted": False, "state": PushState.ASKED},
            FindingKind.HUB,
            "its hub https://hub.example/ has not confirmed the subscription yet",
        ),
        (
            {"is_trusted": False, "state": PushState.UNWANTED},
            FindingKind.HUB,
            "its hub https://hub.example/ is not asked to push it",
        ),
    ],
)
def test_a_feed_is_pushed_or_is_not(
    changes: dict[str, object], kind: FindingKind, what: str
) -> None:
    feed = a_feed(polling=Polling(hubs=("https://hub.example/",)))
    (finding,) = findings(feed, NOW, replace(PUSH, **changes))  # type: ignore[arg-type]
    assert (finding.kind, finding.what) == (kind, what)
