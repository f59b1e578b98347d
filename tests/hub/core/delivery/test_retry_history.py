"""From the first failure to the last: whatever happens between, the schedule holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hub.core.delivery.catch_up_outcomes import CatchUpProgress, held_up, released
from hub.core.delivery.delivery_outcome import CallbackResponse
from hub.core.delivery.first_delivery_outcomes import (
    FirstDelivery,
    demoted,
    not_started,
    refused,
)
from hub.core.delivery.retry_schedule import (
    LONGEST_RETRY_AFTER,
    SCHEDULE,
    SPREAD,
    retry_delay,
)
from storage.records import (
    NewDeadLetter,
    Position,
    RetryingSubscription,
    RetryMoved,
    RetryOpened,
)
from tests.support.subscriptions import START, a_subscription

SUBSCRIPTION = a_subscription()
RECORD = Position(12)


@dataclass(frozen=True, slots=True)
class Failure:
    """A try that failed; ``retry_after`` is what a 429 or 503 asked for."""

    status: int
    jitter: float
    retry_after: float | None = None

    @property
    def reply(self) -> CallbackResponse:
        return CallbackResponse(
            status=self.status,
            milliseconds=5,
            error="no",
            retry_after=self.retry_after,
        )


JITTER = st.floats(0.0, 1.0)
FAILURES = st.builds(Failure, st.sampled_from([0, 301, 404, 500]), JITTER) | st.builds(
    Failure,
    st.sampled_from([429, 503]),
    JITTER,
    st.none() | st.floats(0.0, 2.0**31),
)
HELD_BACK = st.floats(0.0, 60.0)
"""Seconds for which the hub's own limits put it off."""

HISTORIES = st.lists(
    st.tuples(st.lists(HELD_BACK, max_size=3), FAILURES), min_size=12, max_size=12
)


def opened_by(failure: Failure, at: datetime, before: list[float]) -> RetryOpened:
    """By the first delivery, or by a catch-up that hung or was held back first."""
    first = FirstDelivery(
        subscription=SUBSCRIPTION, position=RECORD, chunk_id=3, lease_id=7, index=0
    )
    if not before:
        opened = refused(first, failure.reply, at=at, jitter=failure.jitter).opened
    elif len(before) == 1:
        until = at + timedelta(seconds=60)
        opened = demoted(first, at=at, lease_id=8, until=until).opened
    else:
        opened = not_started(first, at=at, due=at).opened
    assert opened is not None
    return opened


def progress(row: RetryOpened | RetryMoved) -> CatchUpProgress:
    return CatchUpProgress.of(
        RetryingSubscription(
            subscription=SUBSCRIPTION,
            position=row.position,
            attempts=row.attempts,
            next_try=row.next_try,
            failing_since=START,
            last_status=row.last_status,
            last_error=row.last_error,
            lease_id=9,
            tried_to=row.tried_to,
        )
    )


@settings(max_examples=50)
@given(HISTORIES)
def test_eleven_tries_are_made_at_their_times_whatever_the_hub_holds_back(
    history: list[tuple[list[float], Failure]],
) -> None:
    at, tries, waits = START, 0, []
    before, failure = history[0]
    row: RetryOpened | RetryMoved = opened_by(failure, at, before)
    given_up: NewDeadLetter | None = None
    steps = iter(history)
    if row.attempts:
        next(steps)
        tries, waits = 1, [(row.next_try - at, failure)]
    for held_back, failure in steps:
        for seconds in held_back:
            at = row.next_try
            due = at + timedelta(seconds=seconds)
            moved = released(progress(row), due=due).moved
            assert moved is not None
            assert moved.attempts == row.attempts  # that was no try
            row = moved
        at, tries = row.next_try, tries + 1
        outcome = held_up(
            progress(row),
            RECORD,
            failure.reply,
            at=at,
            jitter=failure.jitter,
            log_end=Position(20),
        )
        if outcome.moved is None:
            given_up = outcome.given_up
            break
        row = outcome.moved
        waits.append((row.next_try - at, failure))
    assert tries == len(SCHEDULE) + 1
    assert given_up is not None
    assert (given_up.first, given_up.last) == (RECORD, Position(20))
    assert "11 tries" in given_up.reason
    for step, (wait, failed) in zip(SCHEDULE, waits, strict=True):
        asked = min(failed.retry_after or 0.0, LONGEST_RETRY_AFTER)
        least, most = step * (1 - SPREAD), step * (1 + SPREAD)
        assert least - 1e-3 <= wait.total_seconds() <= max(most, asked) + 1e-3
        assert wait.total_seconds() >= asked - 1e-3


@settings(max_examples=50)
@given(st.lists(JITTER, min_size=9, max_size=9))
def test_without_retry_after_no_wait_but_the_last_is_shorter_than_the_one_before(
    jitters: list[float],
) -> None:
    """The last two are of ten hours each: of those jitter alone decides."""
    waits = [
        retry_delay(failures, jitter=jitter)
        for failures, jitter in enumerate(jitters, 1)
    ]
    assert sorted(waits, key=lambda wait: wait or 0.0) == waits


def test_the_schedule_takes_as_long_as_is_documented() -> None:
    assert timedelta(seconds=sum(SCHEDULE)) == timedelta(
        hours=27, minutes=38, seconds=5
    )
