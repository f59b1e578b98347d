"""A feed's state, and the reason: what lists of feeds show and filter by, and what
operational events say of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from hub.core.fetched import Fetched
from hub.core.push.hub_trust import is_trusted
from protocols.operational_events import EventType
from storage.records import (
    CONFIRMED_FAILURES,
    FeedHealth,
    FeedState,
    FetchCommit,
    OperationalEvent,
    Polling,
    Push,
    StoredFeed,
)

SLOW_AFTER: Final = timedelta(seconds=3)
"""An answer that takes longer is slow: a visit keeps its slot no longer than this
(`hub.ingest.visit_slots`)."""

STOP_REASONS: Final = {
    FeedState.GONE: "it answered 410 Gone twice in a row",
    FeedState.DEAD: "it answered nothing but 404 for days",
}


def condition_after(
    before: FeedHealth, polling: Polling, fetched: Fetched, push: Push | None
) -> FeedHealth:
    """A feed's condition after a poll that led to this state.

    Content that a publisher brings says nothing of how fast its server is.
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
    """A feed's state. ``reason``: why it is not well, for people; "" without one."""

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


# --- events ---


def events_of_fetch(
    feed: StoredFeed, commit: FetchCommit
) -> tuple[OperationalEvent, ...]:
    """The events of a fetch; mostly none. ``feed`` is as it was before.

    A failing feed is reported from its second failure in a row on, and as working again
    only after that. For a feed that is no longer polled, that is the only event.
    """
    before, after = feed.polling, commit.polling
    was_failing = before.failures >= CONFIRMED_FAILURES
    events = []
    if commit.state in STOP_REASONS:
        reason = STOP_REASONS[commit.state]
        events.append(_event(EventType.FEED_GONE, feed, commit, reason))
    elif after.failures >= CONFIRMED_FAILURES and not was_failing:
        events.append(_event(EventType.FEED_FAILING, feed, commit, after.error))
    elif was_failing and not after.failures:
        events.append(_event(EventType.FEED_RECOVERED, feed, commit, ""))
    watched, target = before.redirect, after.fetch_url
    if watched is not None and watched.target == target != before.fetch_url:
        moved = OperationalEvent(
            type=EventType.FEED_MOVED,
            at=commit.at,
            subject=feed.id,
            url=feed.url,
            is_private=feed.private,
            target=target,
            since=watched.first_seen,
        )
        events.append(moved)
    return tuple(events)


def _event(
    type: EventType, feed: StoredFeed, commit: FetchCommit, reason: str
) -> OperationalEvent:
    return OperationalEvent(
        type=type,
        at=commit.at,
        subject=feed.id,
        url=feed.url,
        is_private=feed.private,
        since=feed.polling.failing_since or commit.polling.failing_since,
        reason=reason,
        code=commit.polling.code,
    )
