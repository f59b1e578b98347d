"""What is done next about a subscription at a hub of somebody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hub.core.push.hub_subscription import (
    CONFIRMED_WITHIN,
    DOUBT_PAUSE,
    ENDED_WITHIN,
    LEASE,
    LEAST_PAUSE,
    LONGEST_BACKOFF,
    DropCallback,
    ForgetPush,
    LeaveHub,
    PushStep,
    SubscribeAtHub,
    WaitUntil,
    next_step,
    request_backoff,
)
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
OTHER = replace(OFFER, hub="https://other.example/")


def a_callback(
    id: int = 1,
    state: CallbackState = CallbackState.ACTIVE,
    *,
    offer: PushOffer = OFFER,
    asked_at: datetime = NOW - 2 * HOUR,
    until: datetime = NOW + LEASE,
) -> PushCallback:
    return PushCallback(
        id=id,
        feed_id=FeedId(1),
        way=offer.way,
        hub=offer.hub,
        topic=offer.topic,
        token=f"token {id}",
        secret="a secret",
        state=state,
        asked_at=asked_at,
        until=until,
    )


def an_upstream(
    *callbacks: PushCallback, offer: PushOffer | None = OFFER, **more: object
) -> FeedPush:
    values: dict[str, object] = {
        "feed_id": FeedId(1),
        "feed_state": FeedState.ACTIVE,
        "has_credentials": False,
        "push": Push(offer=offer),
        "callbacks": callbacks,
        **more,
    }
    return FeedPush(**values)  # type: ignore[arg-type]


def test_what_a_feed_offers_is_asked_for() -> None:
    assert next_step(an_upstream(), NOW) == SubscribeAtHub(OFFER)


def test_it_is_not_asked_for_again_while_the_hub_may_yet_confirm_it() -> None:
    asked = a_callback(state=CallbackState.ASKED, until=NOW + HOUR)
    assert next_step(an_upstream(asked), NOW) == WaitUntil(NOW + HOUR)


def test_what_no_hub_confirmed_is_dropped() -> None:
    asked = a_callback(state=CallbackState.ASKED, until=NOW)
    assert next_step(an_upstream(asked), NOW) == DropCallback(asked)


def test_after_a_failure_it_waits() -> None:
    upstream = an_upstream(retry_at=NOW + HOUR)
    assert next_step(upstream, NOW) == WaitUntil(NOW + HOUR)
    assert next_step(upstream, NOW + HOUR) == SubscribeAtHub(OFFER)


@pytest.mark.parametrize(
    ("way", "lease", "renewed_after"),
    [
        (PushWay.WEBSUB, timedelta(days=10), timedelta(days=8)),
        (PushWay.CLOUD, timedelta(hours=25), timedelta(hours=24)),
        (PushWay.WEBSUB, timedelta(seconds=10), None),
    ],
)
def test_it_is_renewed_before_the_lease_ends(
    way: PushWay, lease: timedelta, renewed_after: timedelta | None
) -> None:
    offer = replace(OFFER, way=way)
    active = a_callback(offer=offer, asked_at=NOW, until=NOW + lease)
    upstream = an_upstream(active, offer=offer, asked_at=NOW)
    if renewed_after is None:  # not, however short the hub makes it
        assert next_step(upstream, NOW + timedelta(seconds=9)) == WaitUntil(NOW + lease)
        return
    assert next_step(upstream, NOW) == WaitUntil(NOW + renewed_after)
    assert next_step(upstream, NOW + renewed_after) == SubscribeAtHub(offer)


def test_no_hub_is_asked_twice_within_an_hour_whatever_it_grants() -> None:
    upstream = an_upstream(asked_at=NOW)
    assert next_step(upstream, NOW) == WaitUntil(NOW + LEAST_PAUSE)


def test_the_old_callback_is_left_once_the_new_one_is_confirmed() -> None:
    old, new = a_callback(1), a_callback(2)
    assert next_step(an_upstream(old, new), NOW) == LeaveHub(old)
    asked = replace(new, state=CallbackState.ASKED, until=NOW + HOUR)
    assert next_step(an_upstream(old, asked), NOW) == WaitUntil(NOW + HOUR)


def test_one_that_was_left_stays_until_its_end_may_have_been_confirmed() -> None:
    old = a_callback(1, CallbackState.ENDING, until=NOW + HOUR)
    new = a_callback(2, asked_at=NOW)
    assert next_step(an_upstream(old, new), NOW) == WaitUntil(NOW + HOUR)
    assert next_step(an_upstream(old, new), NOW + HOUR) == DropCallback(old)


def test_another_hub_is_asked_and_the_former_one_left() -> None:
    former = a_callback()
    upstream = an_upstream(former, offer=OTHER)
    assert next_step(upstream, NOW) == LeaveHub(former)
    left = replace(former, state=CallbackState.ENDING)
    assert next_step(an_upstream(left, offer=OTHER), NOW) == SubscribeAtHub(OTHER)


@pytest.mark.parametrize(
    "changes",
    [
        {"feed_state": FeedState.PAUSED},
        {"feed_state": FeedState.REMOVED},
        {"feed_state": FeedState.GONE},
        {"has_credentials": True},
        {"offer": None},
    ],
)
def test_what_is_not_polled_is_not_pushed(changes: dict[str, object]) -> None:
    active = a_callback()
    assert next_step(an_upstream(active, **changes), NOW) == LeaveHub(active)
    left = replace(active, state=CallbackState.ENDING, until=NOW + HOUR)
    assert next_step(an_upstream(left, **changes), NOW) == WaitUntil(NOW + HOUR)
    last = next_step(an_upstream(**changes), NOW)
    assert last == (ForgetPush() if "offer" in changes else WaitUntil(None))


def test_a_feed_that_names_hubs_in_turn_does_not_have_all_of_them_asked() -> None:
    upstream = an_upstream(offer=None, asked_at=NOW)
    assert next_step(upstream, NOW) == WaitUntil(NOW + LEAST_PAUSE)
    assert next_step(upstream, NOW + LEAST_PAUSE) == ForgetPush()


def test_a_hub_that_missed_something_is_asked_again_within_a_day() -> None:
    doubted = Push(offer=OFFER, record=PushRecord(missed_at=NOW))
    active = a_callback(asked_at=NOW - DOUBT_PAUSE)
    assert next_step(an_upstream(active, push=doubted), NOW) == SubscribeAtHub(OFFER)
    active = a_callback(asked_at=NOW - HOUR)
    assert next_step(an_upstream(active, push=doubted), NOW) == WaitUntil(
        NOW - HOUR + DOUBT_PAUSE
    )


def test_pauses_grow_to_a_week() -> None:
    assert request_backoff(1, 0.0) == HOUR
    assert request_backoff(1, 1.0) == 2 * HOUR
    assert request_backoff(99, 1.0) == LONGEST_BACKOFF


@dataclass
class Life:
    """A feed's subscription, its steps done as the reconciler does them."""

    upstream: FeedPush = field(default_factory=an_upstream)
    now: datetime = NOW
    asked: list[datetime] = field(default_factory=list)
    ids: int = 0

    def do(self, step: PushStep) -> None:
        if isinstance(step, SubscribeAtHub):
            self.ids += 1
            self.asked.append(self.now)
            new = a_callback(
                self.ids,
                CallbackState.ASKED,
                offer=step.offer,
                asked_at=self.now,
                until=self.now + CONFIRMED_WITHIN,
            )
            callbacks = (*self.upstream.callbacks, new)
            self.upstream = replace(
                self.upstream, callbacks=callbacks, asked_at=self.now
            )
        elif isinstance(step, LeaveHub):
            ending = replace(
                step.callback,
                state=CallbackState.ENDING,
                until=min(step.callback.until, self.now + ENDED_WITHIN),
            )
            self._replace(step.callback, ending)
        elif isinstance(step, DropCallback):
            self._replace(step.callback)

    def confirm(self, lease: timedelta) -> None:
        for each in self.upstream.callbacks:
            if each.state is CallbackState.ASKED:
                active = replace(
                    each, state=CallbackState.ACTIVE, until=self.now + lease
                )
                self._replace(each, active)

    def _replace(self, old: PushCallback, *new: PushCallback) -> None:
        others = [it for it in self.upstream.callbacks if it.id != old.id]
        callbacks = sorted((*others, *new), key=lambda it: it.id)
        self.upstream = replace(self.upstream, callbacks=tuple(callbacks))

    def settle(self) -> PushStep:
        for _ in range(20):
            step = next_step(self.upstream, self.now)
            if isinstance(step, WaitUntil | ForgetPush):
                return step
            self.do(step)
        raise AssertionError("it never comes to rest")


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 14 * 24 * 60)),
        st.tuples(st.just("confirm"), st.integers(0, 30 * 24 * 60)),
        st.tuples(st.sampled_from(["offer", "other", "none", "pause"]), st.just(0)),
    ),
    max_size=40,
)


@given(EVENTS)
def test_whatever_hubs_and_feeds_do_it_comes_to_rest_and_asks_rarely(
    events: list[tuple[str, int]],
) -> None:
    life = Life()
    for event, minutes in events:
        if event == "wait":
            life.now += timedelta(minutes=minutes)
        elif event == "confirm":
            life.confirm(timedelta(minutes=minutes))
        elif event == "pause":
            life.upstream = replace(life.upstream, feed_state=FeedState.PAUSED)
        else:
            offer = {"offer": OFFER, "other": OTHER, "none": None}[event]
            life.upstream = replace(
                life.upstream, push=Push(offer=offer), feed_state=FeedState.ACTIVE
            )
        rest = life.settle()
        if isinstance(rest, WaitUntil):
            assert rest.until is None or rest.until > life.now
        states = [each.state for each in life.upstream.callbacks]
        assert states.count(CallbackState.ACTIVE) <= 1
        assert states.count(CallbackState.ASKED) <= 1
    gaps = [b - a for a, b in zip(life.asked, life.asked[1:], strict=False)]
    assert all(gap >= LEAST_PAUSE for gap in gaps)
