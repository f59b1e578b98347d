from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hub.core.delivery.catch_up_outcomes import (
    CatchUpProgress,
    announced,
    finished,
    held_up,
    progressed,
    released,
)
from hub.core.delivery.delivery_outcome import CallbackResponse
from hub.core.delivery.first_delivery_outcomes import FirstDelivery
from storage.records import AttemptReason, Position, RetryingSubscription, RetryMoved
from tests.support.subscriptions import START, a_subscription

UNTIL = START + timedelta(seconds=60)
OK = CallbackResponse(status=200, milliseconds=3)
FAILURE = CallbackResponse(status=500, milliseconds=3, error="answered 500")
HERE = CatchUpProgress(
    subscription=a_subscription(),
    lease_id=5,
    position=Position(10),
    failures=2,
    last_status=500,
    last_error="answered 500",
)


def test_it_starts_where_the_row_says() -> None:
    retrying = RetryingSubscription(
        subscription=a_subscription(exhausted=True),
        position=Position(10),
        attempts=2,
        next_try=START,
        failing_since=START,
        last_status=500,
        last_error="answered 500",
        skip_after=Position(12),
        skip_to=Position(20),
        missed=(Position(3), Position(9)),
        lease_id=5,
        tried_to=Position(11),
    )
    assert CatchUpProgress.of(retrying) == replace(
        HERE,
        subscription=retrying.subscription,
        skip_after=Position(12),
        skip_to=Position(20),
        missed=(Position(3), Position(9)),
        is_exhausted=True,
        tried_to=Position(11),
        scheduled=START,
        failing_since=START,
    )


def test_a_2xx_before_is_not_taken_for_one_of_now() -> None:
    retrying = RetryingSubscription(
        subscription=a_subscription(),
        position=Position(10),
        attempts=0,
        next_try=START,
        failing_since=START,
        last_status=200,
        last_error="",
        missed=(Position(3), Position(9)),
        lease_id=5,
    )
    assert CatchUpProgress.of(retrying).moved(START).last_status == 0


def test_it_starts_before_the_record_of_a_hanging_first_delivery() -> None:
    first = FirstDelivery(
        subscription=a_subscription(),
        position=Position(12),
        chunk_id=3,
        lease_id=77,
        index=4,
    )
    assert CatchUpProgress.after(first, 5) == CatchUpProgress(
        subscription=first.subscription,
        lease_id=5,
        position=Position(11),
        tried_to=Position(12),
        is_first=True,
    )


SCHEDULED, LATER = {"scheduled": START}, START + timedelta(seconds=1)
AGAIN = SCHEDULED | {
    "failures": 0,
    "skip_after": Position(11),
    "skip_to": Position(20),
}
REASONS = [
    ({"is_first": True, "failures": 0}, AttemptReason.NEW_RECORD),
    ({"is_first": True, "failures": 0, "is_exhausted": True}, AttemptReason.PROBE),
    (SCHEDULED, AttemptReason.RETRY),
    ({"scheduled": LATER}, AttemptReason.NEWS),
    (
        {"scheduled": LATER, "is_exhausted": True},
        AttemptReason.PROBE,
    ),
    (SCHEDULED | {"failures": 0}, AttemptReason.CATCH_UP),
    (AGAIN, AttemptReason.SENT_AGAIN),
    (AGAIN | {"is_exhausted": True}, AttemptReason.SENT_AGAIN),
    (AGAIN | {"skip_to": Position(11)}, AttemptReason.SENT_AGAIN),
    (AGAIN | {"skip_after": Position(10)}, AttemptReason.CATCH_UP),
    (AGAIN | {"failures": 2}, AttemptReason.RETRY),
    (SCHEDULED | {"is_asked": True}, AttemptReason.ASKED),
    ({"scheduled": LATER, "is_asked": True}, AttemptReason.ASKED),
]


@pytest.mark.parametrize(("changes", "reason"), REASONS)
def test_a_try_says_why_it_was_made(
    changes: dict[str, Any], reason: AttemptReason
) -> None:
    here, last = replace(HERE, **changes), Position(11)
    failed = held_up(here, last, FAILURE, at=START, jitter=0.0, log_end=last)
    done = progressed(here, last, OK, at=START, until=UNTIL)
    assert failed.attempt is not None
    assert done.attempt is not None
    assert {failed.attempt.reason, done.attempt.reason} == {reason}


def test_what_is_sent_again_in_one_request_with_what_is_new_is_sent_again() -> None:
    here = replace(HERE, **AGAIN)
    again, last = Position(11), Position(25)
    done = progressed(here, last, OK, at=START, until=UNTIL, first=again)
    failed = held_up(
        here, last, FAILURE, at=START, jitter=0.0, log_end=last, first=again
    )
    for outcome in (done, failed):
        assert outcome.attempt is not None
        assert outcome.attempt.reason is AttemptReason.SENT_AGAIN
        assert outcome.attempt.position == last


@pytest.mark.parametrize(
    ("position", "skipped"), [(12, False), (13, True), (20, True), (21, False)]
)
def test_what_was_delivered_before_is_skipped(position: int, skipped: bool) -> None:
    here = replace(HERE, skip_after=Position(12), skip_to=Position(20))
    assert here.skips(Position(position)) is skipped
    assert not HERE.skips(Position(position))


def test_a_2xx_moves_it_on_and_keeps_the_lease() -> None:
    outcome = progressed(HERE, Position(14), OK, at=START, until=UNTIL)
    assert outcome.moved == RetryMoved(
        subscription_id=HERE.subscription.id,
        lease_id=5,
        position=Position(14),
        attempts=0,
        next_try=UNTIL,
        last_status=200,
    )
    assert outcome.recovered is None
    assert outcome.attempt is not None
    assert outcome.attempt.position == 14


def test_a_2xx_forgets_failures_and_what_was_missed() -> None:
    here = replace(HERE, missed=(Position(3), Position(9)), is_exhausted=True)
    there = here.delivered(Position(14))
    assert (there.position, there.failures, there.missed) == (14, 0, None)
    assert not there.is_exhausted
    outcome = progressed(here, Position(14), OK, at=START, until=UNTIL)
    assert outcome.recovered == here.subscription.id


def test_it_asks_to_be_closed_at_the_end() -> None:
    moved = finished(HERE, Position(30), until=UNTIL).moved
    assert moved is not None
    assert (moved.position, moved.finished, moved.release) == (30, True, False)


def test_a_request_under_way_leaves_the_schedule() -> None:
    scheduled = UNTIL + timedelta(minutes=9)
    here = replace(HERE, scheduled=scheduled)
    for outcome in (
        announced(here, until=UNTIL),
        finished(here, Position(30), until=UNTIL),
    ):
        assert outcome.moved is not None
        assert (outcome.moved.next_try, outcome.moved.due) == (scheduled, UNTIL)


def test_what_was_tried_stays_the_same_until_a_2xx() -> None:
    failed = hold_up(HERE)
    assert failed is not None
    assert failed.tried_to == 11
    here = replace(HERE, tried_to=Position(11))
    told, given_back = announced(here, until=UNTIL), released(here, due=START)
    assert told.moved is not None
    assert given_back.moved is not None
    assert (told.moved.tried_to, told.moved.release) == (11, False)
    assert (told.moved.position, told.moved.attempts) == (10, 2)
    assert given_back.moved.tried_to == 11
    assert here.delivered(Position(11)).tried_to is None


def test_giving_it_back_counts_no_try() -> None:
    due = START + timedelta(seconds=2)
    moved = released(HERE, due=due).moved
    assert moved is not None
    assert (moved.position, moved.attempts, moved.next_try) == (10, 2, due)
    assert moved.release
    assert (moved.last_status, moved.last_error) == (500, "answered 500")


def hold_up(
    here: CatchUpProgress, reply: CallbackResponse = FAILURE
) -> RetryMoved | None:
    return held_up(
        here, Position(11), reply, at=START, jitter=0.5, log_end=Position(99)
    ).moved


def test_a_failure_gives_it_back_with_the_next_try() -> None:
    moved = hold_up(HERE)
    assert moved is not None
    assert moved.release
    assert (moved.position, moved.attempts) == (10, 3)
    assert moved.next_try == START + timedelta(seconds=45)
    assert (moved.last_status, moved.last_error) == (500, "answered 500")


FOR_NEWS = replace(HERE, scheduled=START + timedelta(hours=2))


def test_a_try_for_the_sake_of_news_leaves_the_schedule_as_it_is() -> None:
    for failures in (1, 10):
        moved = hold_up(replace(FOR_NEWS, failures=failures))
        assert moved is not None
        assert (moved.attempts, moved.next_try) == (failures, FOR_NEWS.scheduled)
        assert moved.news_from == START + timedelta(seconds=10)
        assert (moved.due, moved.release) == (None, True)


def test_retry_after_puts_off_the_schedule_and_what_news_may_ask_for() -> None:
    for seconds in (3_600.0, 3 * 3_600.0):
        busy = CallbackResponse(
            status=503, milliseconds=3, error="busy", retry_after=seconds
        )
        moved = hold_up(FOR_NEWS, busy)
        assert moved is not None
        asked = START + timedelta(seconds=seconds)
        assert moved.news_from == asked
        assert moved.next_try == max(asked, START + timedelta(hours=2))


def test_a_try_at_its_time_counts_and_is_a_pause_for_news() -> None:
    moved = hold_up(replace(HERE, scheduled=START))
    assert moved is not None
    assert (moved.attempts, moved.due) == (3, None)
    assert moved.next_try == START + timedelta(seconds=45)
    assert moved.news_from == START + timedelta(seconds=10)


def test_a_try_for_news_that_finds_no_room_is_put_off_and_the_schedule_stays() -> None:
    due = START + timedelta(minutes=1)
    moved = released(FOR_NEWS, due=due).moved
    assert moved is not None
    assert (moved.due, moved.news_from) == (due, due)
    assert moved.next_try == FOR_NEWS.scheduled
    later = START + timedelta(hours=3)
    moved = released(FOR_NEWS, due=later).moved
    assert moved is not None
    assert (moved.due, moved.next_try) == (later, later)


def test_what_follows_a_2xx_has_a_schedule_of_its_own() -> None:
    moved = hold_up(FOR_NEWS.delivered(Position(10)))
    assert moved is not None
    assert (moved.attempts, moved.next_try) == (1, START + timedelta(seconds=5))


def test_410_ends_the_subscription() -> None:
    gone = CallbackResponse(status=410, milliseconds=1, error="answered 410")
    outcome = held_up(
        HERE, Position(11), gone, at=START, jitter=0.5, log_end=Position(99)
    )
    assert outcome.ended == (1, "the callback answered 410 Gone")
    assert outcome.moved is None


@pytest.mark.parametrize(
    ("here", "reason"),
    [
        (replace(HERE, failures=10), "answered 500 (after 11 tries)"),
        (
            replace(HERE, failures=0, is_exhausted=True),
            "answered 500 (after 11 tries, then 1 for each new record)",
        ),
    ],
)
def test_after_the_last_try_all_that_is_owed_is_given_up(
    here: CatchUpProgress, reason: str
) -> None:
    outcome = held_up(
        here, Position(11), FAILURE, at=START, jitter=0.5, log_end=Position(99)
    )
    assert outcome.moved is None
    lost = outcome.given_up
    assert lost is not None
    assert (lost.first, lost.last, lost.lease_id) == (11, 99, 5)
    assert lost.reason == reason
