"""What the hub does about a subscription as it is, and what people can do, in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from hub.core.delivery.retry_schedule import FAILURES_ALLOWED, NEWS_PAUSE
from hub.core.durations import duration
from protocols.operational_events import types_of_topic
from storage.records import (
    ANONYMOUS,
    DeadLetter,
    DeliveryLag,
    Position,
    RetryingSubscription,
    Subscription,
    SubscriptionHealth,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGap:
    """What a subscription did not get since it ended, or before it began anew, as far
    as the log has it: how many ``records``, or more (``has_more``), the ``first`` of
    them, and from when ``until`` when they came. ``until`` None: it has ended, and
    there will be more."""

    records: int
    first: Position
    oldest: datetime
    until: datetime | None = None
    has_more: bool = False

    def __str__(self) -> str:
        least = "at least " if self.has_more else ""
        records = f"{self.records} record{'' if self.records == 1 else 's'}"
        until = "on" if self.until is None else f"until {_second(self.until)}"
        return f"it did not get {least}{records} from {_second(self.oldest)} {until}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionFacts:
    """``dead_letter``: the latest, if there is any. ``took``: seconds of the latest
    request, None if it made none. ``is_refused``: that request was not accepted."""

    subscription: Subscription
    health: SubscriptionHealth
    retrying: RetryingSubscription | None
    lag: DeliveryLag
    dead_letter: DeadLetter | None = None
    took: float | None = None
    is_refused: bool = False
    gap: SubscriptionGap | None = None


def explain_delivery(facts: SubscriptionFacts, now: datetime) -> str:
    """What is being done, and when: ``3 tries by the schedule failed; …``."""
    missed = "" if facts.gap is None else f"; {facts.gap}"
    return f"{_doing(facts, now)}{missed}"


def _doing(facts: SubscriptionFacts, now: datetime) -> str:
    match facts.health:
        case SubscriptionHealth.GONE | SubscriptionHealth.ENDED:
            return "it has ended: nothing is sent"
        case SubscriptionHealth.PENDING:
            return "nothing is sent before its callback has confirmed it"
        case SubscriptionHealth.PAUSED:
            return f"nothing is sent until it is resumed{_still_under_way(facts)}"
        case SubscriptionHealth.OK if not facts.lag.records:
            return f"nothing waits to be delivered{_what_was_dropped(facts)}"
    if facts.retrying is not None:
        doing = _catching_up(facts.subscription, facts.retrying, now)
        return f"{_slowness(facts)}{_what_was_asked(facts, facts.retrying)}{doing}"
    if facts.subscription.exhausted:
        said = "it was given up; each new record is tried once"
        kept = "; what was given up is kept as a dead letter, and can be sent again"
        return said if facts.dead_letter is None else said + kept
    return "new records are being sent"


def _second(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBeginning:
    """How a subscription that has ended begins anew: by which ``command`` of its
    account or the operator, "" if only its subscriber can ask for it. ``refusal``: why
    it is not done in one step, "" if it is."""

    command: str = ""
    refusal: str = ""


def new_beginning(subscription: Subscription) -> NewBeginning:
    if subscription.account == ANONYMOUS:
        return NewBeginning(
            refusal="it was made without an account, so its subscriber has to ask for"
            " it"
        )
    if types := types_of_topic(subscription.topic):
        named = shlex.quote(",".join(types))
        callback = shlex.quote(subscription.callback)
        return NewBeginning(
            command=f"fanfare events subscribe {callback} --types {named}",
            refusal="it is of events, to which callbacks are subscribed elsewhere",
        )
    return NewBeginning(command=f"fanfare subs resubscribe {subscription.id}")


def _slowness(facts: SubscriptionFacts) -> str:
    """Why it is called slow, before what is done about it."""
    if facts.health is not SubscriptionHealth.SLOW:
        return ""
    behind = facts.lag.records
    records = f"{behind} record{'' if behind == 1 else 's'} behind; "
    if facts.took is None:
        return records
    return f"its last request took {duration(facts.took)}; {records}"


def _what_was_asked(facts: SubscriptionFacts, late: RetryingSubscription) -> str:
    """Why one that is well has records that wait, before what is done about it."""
    is_well = facts.health is SubscriptionHealth.OK
    if is_well and late.skip_after is not None and late.position < late.skip_after:
        return "it is sent records again, as asked; "
    return ""


def _what_was_dropped(facts: SubscriptionFacts) -> str:
    if facts.dead_letter is not None:
        return "; what was given up is kept as a dead letter, and can be sent again"
    if facts.is_refused:
        return (
            "; what its last request was to deliver was not accepted, and was discarded"
        )
    return ""


def _still_under_way(facts: SubscriptionFacts) -> str:
    late = facts.retrying
    is_under_way = late is not None and late.lease_id
    return "; a request that had begun is under way" if is_under_way else ""


def _catching_up(
    subscription: Subscription, late: RetryingSubscription, now: datetime
) -> str:
    tries = (
        f"{late.attempts} tries by the schedule"
        if late.attempts > 1
        else "1 try by the schedule"
    )
    failed = f"{tries} failed; " if late.attempts else ""
    if late.lease_id:
        return f"{failed}a request is under way"
    last = ""
    if late.attempts and not subscription.exhausted:
        last = (
            f"; it is given up after {FAILURES_ALLOWED + 1} such failures in a row."
            " A new record is tried sooner if the last try was at least"
            f" {NEWS_PAUSE:.0f} s ago, or as long ago as its Retry-After asks; such a"
            " try does not count, but is listed, too"
        )
    return f"{failed}the next try is {_moment(late.next_try, now)}{last}"


def _moment(at: datetime, now: datetime) -> str:
    seconds = round((at - now).total_seconds())
    return (
        f"at {at:%Y-%m-%d %H:%M:%S}Z (in {duration(seconds)})"
        if seconds > 0
        else "due now"
    )


def advise_on(facts: SubscriptionFacts) -> tuple[str, ...]:
    """Commands that may help, each with what it does."""
    if facts.gap is None or facts.gap.until is None:
        return _advice(facts)
    again = f"fanfare subs replay {facts.subscription.id} --record {facts.gap.first}"
    what = "everything from the first of them on, also what it got since"
    return (*_advice(facts), f"send {what}: {again}")


def _advice(facts: SubscriptionFacts) -> tuple[str, ...]:
    number = facts.subscription.id
    match facts.health:
        case SubscriptionHealth.PAUSED:
            return (f"resume it: fanfare subs resume {number}",)
        case SubscriptionHealth.GONE | SubscriptionHealth.ENDED:
            command = new_beginning(facts.subscription).command
            return (f"subscribe again: {command}",) if command else ()
        case SubscriptionHealth.FAILING:
            return tuple(_repairs(facts))
        case _:
            return ()


def _repairs(facts: SubscriptionFacts) -> Iterator[str]:
    number, retry = facts.subscription.id, "fanfare deliveries retry"
    yield f"test its callback: fanfare subs test {number}"
    if facts.retrying is not None and not facts.retrying.lease_id:
        yield f"retry now: {retry} --subscription {number}"
    if facts.dead_letter is not None:
        yield f"send what was given up: {retry} --dead-letter {facts.dead_letter.id}"
    yield f"send nothing for now: fanfare subs pause {number}"
