"""Log lines about callbacks: one begins to fail, recovers, is given up or is gone.

Single attempts are not logged. Callbacks are named by subscription and host, because
their paths and queries are often secrets.
"""

from __future__ import annotations

from datetime import datetime

from hub.core.delivery.delivery_outcome import CallbackResponse, DeliveryOutcome
from hub.core.durations import duration
from hub.runtime.clock import Clock
from hub.runtime.event_log import EventLog, LogEvent
from protocols.urls import host_name
from storage.records import NewDeadLetter, Subscription


class CallbackEvents:
    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._events = events
        self._clock = clock

    def failed(
        self,
        subscription: Subscription,
        outcome: DeliveryOutcome,
        reply: CallbackResponse,
        *,
        was_failing: bool,
    ) -> None:
        """Log a failed attempt, if it changes the state of its callback."""
        if outcome.ended is not None:
            sentence = (
                f"{_callback(subscription)} answered 410 Gone:"
                " the subscription has ended"
            )
            self._tell(LogEvent.SUBSCRIPTION_GONE, sentence, subscription)
        elif outcome.given_up is not None:
            if not subscription.exhausted:  # otherwise each new record is one probe
                self.given_up(subscription, outcome.given_up)
        elif not was_failing:
            self._begins_to_fail(subscription, outcome, reply)

    def _begins_to_fail(
        self,
        subscription: Subscription,
        outcome: DeliveryOutcome,
        reply: CallbackResponse,
    ) -> None:
        row = outcome.opened or outcome.moved
        again = ""
        if row is not None:
            wait = (row.next_try - self._clock.now()).total_seconds()
            again = f"; tried again in {duration(max(0.0, round(wait)))}"
        where = f" ({reply.details.stage})" if reply.details else ""
        sentence = f"{_callback(subscription)} began to fail: {reply.error}{where}"
        self._tell(LogEvent.CALLBACK_FAILING, f"{sentence}{again}", subscription)

    def given_up(self, subscription: Subscription, lost: NewDeadLetter) -> None:
        sentence = (
            f"{_callback(subscription)} was given up: records {lost.first} to"
            f" {lost.last} are a dead letter, {lost.reason}"
        )
        self._tell(LogEvent.GIVEN_UP, sentence, subscription)

    def recovered(
        self, subscription: Subscription, since: datetime | None = None
    ) -> None:
        """Log that a callback works again; ``since`` is when it began to fail, if
        known."""
        after = ""
        if since is not None:
            seconds = (self._clock.now() - since).total_seconds()
            after = f" after {duration(max(0.0, round(seconds)))}"
        sentence = f"{_callback(subscription)} works again{after}"
        self._tell(LogEvent.CALLBACK_RECOVERED, sentence, subscription)

    def _tell(self, event: LogEvent, sentence: str, subscription: Subscription) -> None:
        self._events.tell(event, sentence, subscription=subscription.id)


def _callback(subscription: Subscription) -> str:
    host = host_name(subscription.callback)
    return f"the callback of subscription {subscription.id} at {host}"
