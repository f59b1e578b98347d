"""How a feed is pushed, as people are told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hub.core.push.hub_subscription import PushFacts, PushState, push_facts
from storage.records import (
    CallbackState,
    FeedId,
    FeedPush,
    FeedState,
    Push,
    PushCallback,
    PushOffer,
    PushRecord,
    PushWay,
)
from tests.support.fetch_targets import START

NOW = START
HOUR = timedelta(hours=1)
OFFER = PushOffer(
    way=PushWay.WEBSUB, hub="https://hub.example/", topic="https://feed.example/"
)


def asked() -> PushCallback:
    return PushCallback(
        id=1,
        feed_id=FeedId(1),
        way=OFFER.way,
        hub=OFFER.hub,
        topic=OFFER.topic,
        token="a token",
        secret="a secret",
        state=CallbackState.ASKED,
        asked_at=NOW,
        until=NOW + HOUR,
    )


def facts(
    push: Push, *callbacks: PushCallback, state: FeedState = FeedState.ACTIVE
) -> PushFacts:
    upstream = FeedPush(
        feed_id=FeedId(1),
        feed_state=state,
        has_credentials=False,
        push=push,
        callbacks=callbacks,
        error="answered 500",
    )
    found = push_facts(upstream, NOW)
    assert found is not None
    return found


def test_of_a_feed_that_names_no_hub_there_are_none() -> None:
    nothing = FeedPush(
        feed_id=FeedId(1),
        feed_state=FeedState.ACTIVE,
        has_credentials=False,
        push=Push(offer=None),
    )
    assert push_facts(None, NOW) is None
    assert push_facts(nothing, NOW) is None


def test_they_say_where_and_how_well() -> None:
    record = PushRecord(proofs=2, brought=7, late=1, missed=2, foreign=3)
    found = facts(Push(offer=OFFER, record=record, until=NOW + HOUR))
    assert (found.hub, found.topic, found.way) == (OFFER.hub, OFFER.topic, OFFER.way)
    assert (found.brought, found.late, found.missed, found.foreign) == (7, 1, 2, 3)
    assert found.is_trusted
    assert found.error == "answered 500"
    assert not found.is_hinted
    assert facts(Push(offer=OFFER, hinted_at=NOW)).is_hinted


@pytest.mark.parametrize(
    ("until", "callbacks", "state", "expected"),
    [
        (None, (), FeedState.PAUSED, PushState.UNWANTED),
        (NOW + HOUR, (), FeedState.ACTIVE, PushState.SUBSCRIBED),
        (NOW, (), FeedState.ACTIVE, PushState.WAITING),
        (None, (asked(),), FeedState.ACTIVE, PushState.ASKED),
        (None, (), FeedState.ACTIVE, PushState.WAITING),
    ],
)
def test_they_say_how_far_it_is(
    until: object,
    callbacks: tuple[PushCallback, ...],
    state: FeedState,
    expected: PushState,
) -> None:
    push = Push(offer=OFFER, until=until)  # type: ignore[arg-type]
    assert facts(push, *callbacks, state=state).state is expected
