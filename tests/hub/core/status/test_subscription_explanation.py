from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hub.core.status.subscription_explanation import (
    SubscriptionFacts,
    SubscriptionGap,
    advise_on,
    explain_delivery,
    new_beginning,
)
from protocols.operational_events import event_topic
from storage.records import (
    ANONYMOUS,
    AccountId,
    DeadLetter,
    DeliveryLag,
    Position,
    RetryingSubscription,
    SubscriptionHealth,
    SubscriptionId,
)
from tests.support.subscriptions import START, a_subscription

FAILING, SLOW = SubscriptionHealth.FAILING, SubscriptionHealth.SLOW
OK, PAUSED = SubscriptionHealth.OK, SubscriptionHealth.PAUSED
GONE = SubscriptionHealth.GONE
NO_LAG = DeliveryLag(records=0)
BEHIND = DeliveryLag(records=2, oldest=START)
DEAD = DeadLetter(
    id=3,
    subscription_id=SubscriptionId(1),
    topic="",
    callback="",
    first=Position(1),
    last=Position(2),
    reason="answered 500",
    at=START,
)

AGAIN = {"skip_after": Position(4), "skip_to": Position(4)}
GAP = SubscriptionGap(
    records=1, first=Position(7), oldest=START, until=START + timedelta(seconds=9)
)


def a_retry(**more: Any) -> RetryingSubscription:
    known: dict[str, Any] = {
        "attempts": 0,
        "next_try": START + timedelta(minutes=2),
        "failing_since": START,
        "last_status": 0,
        "last_error": "",
    }
    return RetryingSubscription(
        subscription=a_subscription(), position=Position(0), **{**known, **more}
    )


def facts(
    health: SubscriptionHealth,
    retrying: RetryingSubscription | None = None,
    *,
    is_exhausted: bool = False,
    lag: DeliveryLag = BEHIND,
    dead_letter: DeadLetter | None = None,
    took: float | None = None,
    is_refused: bool = False,
    gap: SubscriptionGap | None = None,
    **of_subscription: Any,
) -> SubscriptionFacts:
    return SubscriptionFacts(
        subscription=a_subscription(exhausted=is_exhausted, **of_subscription),
        health=health,
        retrying=retrying,
        lag=lag,
        dead_letter=dead_letter,
        took=took,
        is_refused=is_refused,
        gap=gap,
    )


@pytest.mark.parametrize(
    ("known", "explained"),
    [
        (facts(OK, lag=NO_LAG), "nothing waits to be delivered"),
        (
            facts(OK, lag=NO_LAG, is_refused=True),
            "nothing waits to be delivered; what its last request was to deliver was"
            " not accepted, and was discarded",
        ),
        (
            facts(OK, lag=NO_LAG, dead_letter=DEAD, is_refused=True),
            "nothing waits to be delivered; what was given up is kept as a dead"
            " letter, and can be sent again",
        ),
        (facts(OK), "new records are being sent"),
        (
            facts(OK, a_retry(lease_id=9, **AGAIN)),
            "it is sent records again, as asked; a request is under way",
        ),
        (
            facts(OK, a_retry(next_try=START, **AGAIN)),
            "it is sent records again, as asked; the next try is due now",
        ),
        (
            facts(OK, a_retry(lease_id=9, skip_after=0, skip_to=0)),
            "a request is under way",
        ),
        (
            facts(SLOW, a_retry(lease_id=9, **AGAIN)),
            "2 records behind; a request is under way",
        ),
        (facts(OK, a_retry(lease_id=9)), "a request is under way"),
        (
            facts(FAILING, a_retry(attempts=1)),
            "1 try by the schedule failed; the next try is at 2026-01-01 00:02:00Z"
            " (in 2 min); it is given up after 11 such failures in a row. A new record"
            " is tried sooner if the last try was at least 10 s ago, or as long ago as"
            " its Retry-After asks; such a try does not count, but is listed, too",
        ),
        (
            facts(FAILING, a_retry(attempts=3, lease_id=9)),
            "3 tries by the schedule failed; a request is under way",
        ),
        (
            facts(FAILING, is_exhausted=True),
            "it was given up; each new record is tried once",
        ),
        (
            facts(FAILING, a_retry(attempts=1, next_try=START), is_exhausted=True),
            "1 try by the schedule failed; the next try is due now",
        ),
        (
            facts(SLOW, a_retry(lease_id=9), took=20.001),
            "its last request took 20 s; 2 records behind; a request is under way",
        ),
        (
            facts(SLOW, a_retry(next_try=START), lag=DeliveryLag(records=1)),
            "1 record behind; the next try is due now",
        ),
        (facts(PAUSED), "nothing is sent until it is resumed"),
        (facts(PAUSED, a_retry()), "nothing is sent until it is resumed"),
        (
            facts(PAUSED, a_retry(lease_id=9)),
            "nothing is sent until it is resumed; a request that had begun is under"
            " way",
        ),
        (
            facts(SubscriptionHealth.PENDING),
            "nothing is sent before its callback has confirmed it",
        ),
        (facts(GONE), "it has ended: nothing is sent"),
        (facts(SubscriptionHealth.ENDED), "it has ended: nothing is sent"),
        (
            facts(GONE, gap=replace(GAP, until=None)),
            "it has ended: nothing is sent; it did not get 1 record from 2026-01-01"
            " 00:00:00Z on",
        ),
        (
            facts(GONE, gap=replace(GAP, records=100, until=None, has_more=True)),
            "it has ended: nothing is sent; it did not get at least 100 records"
            " from 2026-01-01 00:00:00Z on",
        ),
        (
            facts(OK, lag=NO_LAG, gap=GAP),
            "nothing waits to be delivered; it did not get 1 record from 2026-01-01"
            " 00:00:00Z until 2026-01-01 00:00:09Z",
        ),
    ],
)
def test_what_is_done_about_it_is_said(
    known: SubscriptionFacts, explained: str
) -> None:
    assert explain_delivery(known, START) == explained


TEST = "test its callback: fanfare subs test 1"
PAUSE = "send nothing for now: fanfare subs pause 1"


@pytest.mark.parametrize(
    ("known", "advice"),
    [
        (facts(OK), ()),
        (
            facts(OK, gap=GAP),
            (
                "send everything from the first of them on, also what it got since:"
                " fanfare subs replay 1 --record 7",
            ),
        ),
        (facts(SLOW, a_retry()), ()),
        (facts(PAUSED), ("resume it: fanfare subs resume 1",)),
        (facts(GONE), ("subscribe again: fanfare subs resubscribe 1",)),
        (
            facts(GONE, gap=replace(GAP, until=None)),
            ("subscribe again: fanfare subs resubscribe 1",),
        ),
        (facts(GONE, account=ANONYMOUS), ()),
        (
            facts(GONE, topic=event_topic(("feed.*", "hub.disk"))),
            (
                "subscribe again: fanfare events subscribe https://callback.example/1"
                " --types 'feed.*,hub.disk'",
            ),
        ),
        (
            facts(FAILING, a_retry(attempts=1)),
            (TEST, "retry now: fanfare deliveries retry --subscription 1", PAUSE),
        ),
        (facts(FAILING, a_retry(attempts=1, lease_id=9)), (TEST, PAUSE)),
        (
            facts(FAILING, is_exhausted=True, dead_letter=DEAD),
            (
                TEST,
                "send what was given up: fanfare deliveries retry --dead-letter 3",
                PAUSE,
            ),
        ),
    ],
)
def test_commands_that_help_are_named(
    known: SubscriptionFacts, advice: tuple[str, ...]
) -> None:
    assert advise_on(known) == advice


ACCOUNT = AccountId(7)
OF_EVENTS = event_topic(("hub.*",))


@pytest.mark.parametrize(
    ("of_subscription", "command", "refusal"),
    [
        ({"account": ACCOUNT}, "fanfare subs resubscribe 1", ""),
        ({"account": ANONYMOUS}, "", "its subscriber has to ask for it"),
        (
            {"account": ACCOUNT, "topic": OF_EVENTS},
            "fanfare events subscribe https://callback.example/1 --types 'hub.*'",
            "it is of events, to which callbacks are subscribed elsewhere",
        ),
        (
            {"account": ANONYMOUS, "topic": OF_EVENTS},
            "",
            "its subscriber has to ask for it",
        ),
    ],
)
def test_it_is_said_by_which_command_one_begins_anew_or_why_not(
    of_subscription: dict[str, Any], command: str, refusal: str
) -> None:
    beginning = new_beginning(a_subscription(**of_subscription))
    assert beginning.command == command
    assert beginning.refusal.endswith(refusal)
    assert bool(beginning.refusal) == bool(refusal)
