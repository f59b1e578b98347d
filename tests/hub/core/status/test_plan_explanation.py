from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.schedule.poll_period import (
    PlanningContext,
    PollingRules,
    plan,
    rules_of,
)
from hub.core.schedule.posting_profile import with_posts
from hub.core.status.plan_explanation import PlanExplanation, explain_plan
from protocols.model import Hints
from storage.records import FeedState, Polling, Posting, Validators
from tests.support.fetch_targets import a_feed

NOW = datetime(2026, 3, 3, 8, 7, tzinfo=UTC)  # a Tuesday
KNOWN = Polling(
    code=304,
    last_fetch=NOW,
    last_success=NOW,
    validators=Validators(url="https://a.example/", etag="e"),
    answers_304=True,
)


def explained(
    state: FeedState = FeedState.ACTIVE,
    price: float = 75.0,
    is_whole: bool = True,
    **changes: object,
) -> PlanExplanation:
    polling = replace(KNOWN, **changes)  # type: ignore[arg-type]
    feed = a_feed(1, polling=polling, state=state, next_fetch=NOW + timedelta(hours=1))
    planning_context = PlanningContext(price=price)
    return explain_plan(
        feed,
        plan(polling, 1, PollingRules(), NOW, planning_context=planning_context),
        is_whole=is_whole,
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"price": 500.0},
            "it is polled at least every 1 h because its server can answer 304",
        ),
        (
            {"price": 0.9},
            "0.16 entries a day are expected now, for which the poll budget allows a",
        ),
        (
            {"price": 0.1},
            "it is polled at most every 15 min (can answer 304, and is not",
        ),
        (
            {"fresh_until": NOW + timedelta(hours=20)},
            "its server declared the answer fresh for 20 h (max-age or Expires)",
        ),
        (
            {"code": 500, "failures": 3},
            "it is failing, and is tried again after ",
        ),
        (
            {"code": 500, "failures": 1, "retry_after": NOW + timedelta(hours=8)},
            "its server asks for no request within 8 h (Retry-After)",
        ),
        (
            {"hints": Hints(ttl_minutes=30), "price": 2.0},
            "it asks to be polled at most every 30 min (ttl)",
        ),
        (
            {"settling_since": NOW},
            "it is new: polled 1, 5 and 15 minutes after its first fetch",
        ),
        (
            {"settling_since": NOW, "hints": Hints(ttl_minutes=30)},
            "it asks to be polled at most every 30 min (ttl)",
        ),
        (
            {"settling_since": NOW, "fresh_until": NOW + timedelta(hours=5)},
            "its server declared the answer fresh for 5 h (max-age or Expires)",
        ),
        (
            {"hints": Hints(skip_days=(1,)), "fresh_until": NOW + timedelta(hours=5)},
            "it asks not to be polled for another 10 h 53 min (skipHours and skipDays)",
        ),
    ],
)
def test_what_decided_is_said_in_a_sentence(
    changes: dict[str, object], why: str
) -> None:
    sentence = explained(**changes).sentence  # type: ignore[arg-type]

    assert sentence.startswith("next fetch at 2026-03-03 09:07:00Z because ")
    assert why in sentence


def test_a_fetch_that_its_hub_brings_about_is_not_said_to_be_a_rare_one() -> None:
    """Nor is one that its hub tells of, but that is no earlier for it."""
    planned = plan(KNOWN, 1, PollingRules(), NOW, is_pushed=True)
    soon = a_feed(1, polling=KNOWN, next_fetch=NOW + timedelta(minutes=1))
    late = replace(soon, next_fetch=planned.next_fetch)

    said = explain_plan(soon, planned, is_hinted=True).sentence
    assert said == (
        "next fetch at 2026-03-03 08:08:00Z because its hub announced news without"
        " content that can be verified"
    )
    for feed, is_hinted in ((late, True), (soon, False)):
        sentence = explain_plan(feed, planned, is_hinted=is_hinted).sentence
        assert "because its hub pushes new entries" in sentence


@pytest.mark.parametrize("state", set(FeedState) - {FeedState.ACTIVE})
def test_of_a_feed_that_is_not_polled_it_is_said_why(state: FeedState) -> None:
    assert explained(state).sentence.startswith("no next fetch because it ")


def test_of_a_feed_that_was_never_fetched_it_is_said() -> None:
    assert explained(last_fetch=None).reason == "it was not fetched yet"


def test_hints_that_are_ignored_are_not_in_force() -> None:
    busy = with_posts(
        Posting(since=NOW - timedelta(days=2)),
        [NOW.timestamp() - 60 * minute for minute in range(2_000, 0, -1)],
        NOW,
    )
    hints = Hints(ttl_minutes=60, update_period="daily")

    assert explained(hints=hints, price=9e3).in_force == ("ttl", "sy:updatePeriod")
    assert explained(hints=hints, posting=busy).in_force == ()


def test_the_profile_is_of_a_week_from_monday_on() -> None:
    posting = with_posts(
        Posting(since=NOW - timedelta(days=70)),
        [(NOW - timedelta(days=7 * week)).timestamp() for week in range(9, 0, -1)],
        NOW,
    )

    found = explained(posting=posting)

    assert len(found.hours) == 168
    assert found.hours.index(max(found.hours)) == 24 + 8
    assert found.minutes.index(max(found.minutes)) == 1
    assert found.rate > found.rate_now / max(found.hours)


def test_hours_and_minutes_may_be_left_out() -> None:
    whole, part = explained(), explained(is_whole=False)
    assert (part.hours, part.minutes) == ((), ())
    assert (part.sentence, part.terms) == (whole.sentence, whole.terms)


def test_it_is_told_how_far_habits_are_believed() -> None:
    posting = with_posts(
        Posting(since=NOW - timedelta(days=70)),
        [(NOW - timedelta(days=7 * week)).timestamp() for week in range(9, 0, -1)],
        NOW,
    )

    terms = explained(posting=posting).terms

    assert [term.name for term in terms[1:5]] == [
        "habit",
        "trust, hours",
        "trust, weekdays",
        "trust, minutes",
    ]
    assert all(0.9 < term.value < 1 for term in terms[2:5])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "its period is set to 5 min"),
        (
            {"code": 500, "failures": 3},
            "it is failing, and is tried again after ",
        ),
        (
            {"fresh_until": NOW + timedelta(hours=20)},
            "its server declared the answer fresh for 20 h",
        ),
    ],
)
def test_a_period_that_was_set_is_the_reason_unless_there_is_a_stronger_one(
    changes: dict[str, object], why: str
) -> None:
    polling = replace(KNOWN, **changes)  # type: ignore[arg-type]
    feed = replace(a_feed(1, polling=polling), own_period=300.0)
    rules = rules_of(PollingRules(), 300.0, is_failing=polling.failures > 0)
    explanation = explain_plan(feed, plan(polling, 1, rules, NOW))
    assert why in explanation.sentence
