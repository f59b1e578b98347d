"""The inputs that all parts of a decision on a fetch share."""

from __future__ import annotations

from datetime import datetime

import msgspec

from hub.core.fetched import Fetched, Occasion, ParseOutcome
from hub.core.news.known_slices import UNNAMED
from hub.core.push.hub_trust import is_trusted
from hub.core.schedule.poll_period import (
    Plan,
    PlanningContext,
    PollingRules,
    plan,
    rules_of,
)
from hub.core.status.feed_status import status_of
from protocols.model import Status
from storage.records import FetchTarget, Polling, PollReason, Push


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A feed as it was, what a visit to it brought, and what it is judged by.

    ``understood`` is empty unless the body of a 200 had to be parsed (see
    `hub.core.news.fetch_commit.is_known_body`). ``jitter`` is drawn from -1 to 1.
    ``reader`` names the program that parsed it (`hub.core.news.known_slices`).
    ``elsewhere`` is the seen-set of the feed that this one was redirected to
    (`hub.core.schedule.next_request.comes_from_elsewhere`). The context says what a
    poll is worth.
    """

    target: FetchTarget
    fetched: Fetched
    understood: ParseOutcome
    rules: PollingRules
    jitter: float
    reason: PollReason  # of the visit
    reader: bytes = UNNAMED
    elsewhere: bytes = b""
    planning_context: PlanningContext = msgspec.field(default_factory=PlanningContext)

    @property
    def polling(self) -> Polling:
        return self.target.feed.polling

    @property
    def occasion(self) -> Occasion:
        return Occasion.RING if self.reason.is_by_schedule else Occasion.PING

    @property
    def is_addition(self) -> bool:
        """Whether a publisher brought a part of a feed that has been read itself."""
        return self.fetched.is_partial and bool(self.target.feed.format)

    def plan(self, polling: Polling, push: Push | None = None) -> Plan:
        """The period and next fetch that a new state implies.

        ``push`` is how the feed is pushed then, if anybody may push it.
        """
        own_period = self.target.feed.own_period
        is_failing = bool(polling.failures)
        planned = plan(
            polling,
            self.target.subscribers,
            rules_of(self.rules, own_period, is_failing=is_failing),
            self.fetched.at,
            self.jitter,
            self.planning_context,
            is_pushed=not own_period and is_trusted(push, self.fetched.at),
        )
        if self.fetched.is_partial:  # what it lacks is still to be polled for
            sooner = min(planned.next_fetch, self.target.feed.next_fetch)
            return msgspec.structs.replace(planned, next_fetch=sooner)
        return planned

    def status(
        self, polling: Polling, next_fetch: datetime, title: str | None = None
    ) -> Status:
        """The status after the fetch; ``title`` None: the feed's known title."""
        known = self.target.feed.title if title is None else title
        return status_of(polling, next_fetch, known, self.target.statistics)
