from __future__ import annotations

from datetime import timedelta

import pytest

from hub.core.delivery.delivery_outcome import CallbackResponse, DeliveryOutcome
from hub.core.delivery.first_delivery_outcomes import (
    FirstDelivery,
    delivered,
    demoted,
    not_started,
    nothing_to_send,
    refused,
)
from storage.records import Attempt, ChunkOutcome, ClaimedChunk, NewDeadLetter, Position
from tests.support.subscriptions import START, a_record, a_subscription


def a_first(*, exhausted: bool = False) -> FirstDelivery:
    return FirstDelivery(
        subscription=a_subscription(exhausted=exhausted),
        position=Position(12),
        chunk_id=3,
        lease_id=77,
        index=4,
    )


def outcome(status: int = 0, milliseconds: int = 0, at: int = 0) -> ChunkOutcome:
    return ChunkOutcome(
        chunk_id=3,
        lease_id=77,
        index=4,
        status=status,
        milliseconds=milliseconds,
        at=at,
    )


def test_a_2xx_costs_its_bits_in_the_chunk_and_nothing_else() -> None:
    reply = CallbackResponse(status=204, milliseconds=9, at=1_795_829_473_000)
    result = delivered(a_first(), reply)
    assert result == DeliveryOutcome(outcome=outcome(204, 9, 1_795_829_473_000))


def a_chunk(position: int) -> ClaimedChunk:
    return ClaimedChunk(id=3, lease_id=77, record=a_record(position), pending=())


@pytest.mark.parametrize("brought", [0, 11, 12])
def test_it_brings_its_subscriber_up_to_its_record(brought: int) -> None:
    subscription = a_subscription()
    first = FirstDelivery.of(a_chunk(12), 4, subscription, Position(brought))
    assert first == a_first()


def test_a_2xx_for_a_later_document_brings_its_subscriber_up_to_that() -> None:
    first = FirstDelivery.of(a_chunk(10), 4, a_subscription(), Position(12))
    result = delivered(first, CallbackResponse(status=200, milliseconds=9))
    assert result == DeliveryOutcome(outcome=outcome(200, 9), advanced=(1, 12))


def test_a_2xx_brings_an_exhausted_subscription_back() -> None:
    reply = CallbackResponse(status=200, milliseconds=9)
    result = delivered(a_first(exhausted=True), reply)
    assert result.recovered == 1


def test_nothing_to_send_is_no_attempt() -> None:
    result = nothing_to_send(a_first())
    assert result.outcome == outcome()
    assert result.attempt is None


def test_a_failure_opens_a_retry_that_begins_with_the_record() -> None:
    reply = CallbackResponse(status=500, milliseconds=9, error="answered 500")
    result = refused(a_first(), reply, at=START, jitter=0.5)
    opened = result.opened
    assert opened is not None
    assert result.outcome == outcome(500, 9)
    assert (opened.position, opened.attempts, opened.lease_id) == (11, 1, 0)
    assert opened.next_try == START + timedelta(seconds=5)
    assert opened.failing_since == START
    assert (opened.last_status, opened.last_error) == (500, "answered 500")
    assert result.attempt == Attempt(
        subscription_id=a_subscription().id,
        position=Position(12),
        at=START,
        status=500,
        milliseconds=9,
        error="answered 500",
    )


def test_retry_after_puts_the_next_try_off() -> None:
    reply = CallbackResponse(
        status=503, milliseconds=1, error="answered 503", retry_after=90.0
    )
    opened = refused(a_first(), reply, at=START, jitter=0.5).opened
    assert opened is not None
    assert opened.next_try == START + timedelta(seconds=90)


def test_410_ends_the_subscription_without_a_retry() -> None:
    reply = CallbackResponse(status=410, milliseconds=1, error="answered 410")
    result = refused(a_first(), reply, at=START, jitter=0.5)
    assert result.ended == (1, "the callback answered 410 Gone")
    assert result.opened is None
    assert result.outcome == outcome(410, 1)


@pytest.mark.parametrize("status", [0, 500, 503])
def test_a_failed_probe_goes_straight_to_the_dead(status: int) -> None:
    reply = CallbackResponse(status=status, milliseconds=1, error="no answer")
    result = refused(a_first(exhausted=True), reply, at=START, jitter=0.5)
    assert result.opened is None
    assert result.given_up == NewDeadLetter(
        subscription_id=a_subscription().id,
        lease_id=0,
        chunk=a_first().chunk,
        first=Position(12),
        last=Position(12),
        reason="no answer (after 11 tries, then 1 for each new record)",
        at=START,
    )


def test_being_held_back_is_no_try() -> None:
    due = START + timedelta(seconds=2)
    result = not_started(a_first(), at=START, due=due)
    assert result.attempt is None
    assert result.outcome == outcome()
    assert result.opened is not None
    assert (result.opened.attempts, result.opened.next_try) == (0, due)


def test_a_hanging_request_is_a_leased_retry_while_it_runs() -> None:
    until = START + timedelta(seconds=60)
    opened = demoted(a_first(), at=START, lease_id=5, until=until).opened
    assert opened is not None
    assert (opened.position, opened.attempts) == (11, 0)
    assert (opened.lease_id, opened.next_try) == (5, until)
