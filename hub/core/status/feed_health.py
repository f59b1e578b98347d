"""A feed's state, and the reason: what lists of feeds show and filter by."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from hub.core.fetched import Fetched
from hub.core.push.hub_trust import is_trusted
from storage.records import FeedHealth, FeedState, Polling, Push, StoredFeed

SLOW_AFTER: Final = timedelta(seconds=3)
"""Of an answer: as long as a visit keeps its slot (`hub.ingest.visit_slots`)."""

STOP_REASONS: Final = {
    FeedState.GONE: "it answered 410 Gone twice in a row",
    FeedState.DEAD: "it answered nothing but 404 for days",
}


def condition_after(
    before: FeedHealth, polling: Polling, fetched: Fetched, push: Push | None
) -> FeedHealth:
    """How a feed's polls go, after one that led to this state.

    What a publisher brings says nothing of how fast its server is.
    """
    if polling.failures:
        return FeedHealth.FAILING
    if is_trusted(push, fetched.at):
        return FeedHealth.PUSHED
    if fetched.is_partial:
        return FeedHealth.SLOW if before is FeedHealth.SLOW else FeedHealth.OK
    is_slow = fetched.at - fetched.started >= SLOW_AFTER
    return FeedHealth.SLOW if is_slow else FeedHealth.OK


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """``reason``: why it is not well, for people; "" where nothing is to be said."""

    state: FeedHealth
    since: datetime
    reason: str


def health_of(feed: StoredFeed) -> HealthReport:
    return HealthReport(
        state=feed.health, since=feed.health_since, reason=_reason(feed)
    )


def _reason(feed: StoredFeed) -> str:
    match feed.health:
        case FeedHealth.FAILING:
            return feed.polling.error
        case FeedHealth.SLOW:
            return f"its server took {SLOW_AFTER.total_seconds():g} s or longer"
        case FeedHealth.GONE:
            return STOP_REASONS[feed.state]
        case _:
            return ""
