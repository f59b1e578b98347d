"""Findings about a feed that an operator may want to act on.

None of them is an error of the hub: feeds die, move, ask for patience, or are polled
far more often than they post.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from hub.core.durations import duration
from hub.core.push.hub_subscription import PushFacts, PushState
from hub.core.schedule.posting_profile import velocity
from storage.records import FeedState, Polling, StoredFeed

FAILING_AFTER = timedelta(days=2)
"""How long a feed has to be in error to become a finding."""
WATCHED_LEAST = timedelta(days=14)
"""How long a feed is watched before its polls are called wasteful."""
WASTEFUL = 2_000.0
"""Polls for each new entry: at an entry in twelve weeks, one poll an hour."""
_DAY = 86_400.0


class FindingKind(StrEnum):
    DEAD = "dead"  # no longer polled: it is gone
    FAILING = "failing"  # in error for days, still polled
    MOVED = "moved"  # redirects for good
    THROTTLED = "throttled"  # its server asks for patience
    FLOODING = "flooding"  # more new entries than are sent in a day
    WASTEFUL = "wasteful"  # thousands of polls for an entry
    HUB = "hub"  # names a hub, and is polled all the same
    PUSHED = "pushed"  # its hub pushes what is new


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFinding:
    """What was seen, and what may be done about it; a sentence each."""

    kind: FindingKind
    what: str
    suggestion: str


def polls_per_entry(feed: StoredFeed, now: datetime) -> float | None:
    """Polls for each entry at the feed's period and the rate it was seen to post at;
    None if it is not polled, or was not seen to post."""
    polling = feed.polling
    a_day = velocity(polling.posting, now)
    if feed.state is not FeedState.ACTIVE or not polling.period or not a_day:
        return None
    return _DAY / polling.period / a_day


def findings(
    feed: StoredFeed, now: datetime, push: PushFacts | None = None
) -> tuple[FeedFinding, ...]:
    """All findings on a feed, in the order of the kinds; mostly none.

    ``push`` None: nobody pushes it, or nobody may.
    """
    if feed.state.is_stopped:
        return (_dead(feed),)
    if feed.state is not FeedState.ACTIVE:
        return ()
    found = (
        _failing(feed.polling, now),
        _moved(feed),
        _throttled(feed.polling, now),
        _flooding(feed.polling),
        _wasteful(feed, now),
        _hub(feed.polling) if push is None else _pushed(push),
    )
    return tuple(each for each in found if each is not None)


def _dead(feed: StoredFeed) -> FeedFinding:
    answered = "410" if feed.state is FeedState.GONE else "nothing but 404 for days"
    return FeedFinding(
        kind=FindingKind.DEAD,
        what=f"it answered {answered} and is no longer polled",
        suggestion="remove it, or resume it if it is back",
    )


def _failing(polling: Polling, now: datetime) -> FeedFinding | None:
    since = polling.failing_since
    if since is None or now - since < FAILING_AFTER or polling.code == 429:
        return None
    span = duration((now - since).total_seconds())
    return FeedFinding(
        kind=FindingKind.FAILING,
        what=f"failing for {span}: {polling.error}",
        suggestion="open its address in a browser; remove it if it is no longer a feed",
    )


def _moved(feed: StoredFeed) -> FeedFinding | None:
    target = feed.polling.fetch_url
    if not target or target == feed.url:
        return None
    return FeedFinding(
        kind=FindingKind.MOVED,
        what=f"it redirects permanently to {target}, which is polled now",
        suggestion="no action needed; new subscribers may use that address",
    )


def _throttled(polling: Polling, now: datetime) -> FeedFinding | None:
    until = polling.retry_after
    is_asked_to_wait = until is not None and until > now
    if polling.code != 429 and not is_asked_to_wait:
        return None
    what = f"its server answered {polling.code}"
    if until is not None and until > now:
        what += (
            f" and asks for no request for {duration((until - now).total_seconds())}"
        )
    return FeedFinding(
        kind=FindingKind.THROTTLED,
        what=what,
        suggestion="if this continues, ask its publisher for a hub, or poll all"
        " feeds less often (FANFARE_POLL_BUDGET)",
    )


def _flooding(polling: Polling) -> FeedFinding | None:
    if not polling.waiting:
        return None
    megabytes = polling.bytes_of_day / 1e6
    what = f"{polling.told_of_day:,} new entries in a day, {megabytes:,.1f} MB with"
    what += f" changed ones; {polling.waiting:,} more are waiting"
    return FeedFinding(
        kind=FindingKind.FLOODING,
        what=what,
        suggestion="check whether its ids change with every poll; pause it, or raise"
        " FANFARE_ENTRIES_OF_DAY or FANFARE_BYTES_OF_DAY",
    )


def _wasteful(feed: StoredFeed, now: datetime) -> FeedFinding | None:
    polling = feed.polling
    since = polling.posting.since
    if since is None or now - max(since, feed.created_at) < WATCHED_LEAST:
        return None
    polls = polls_per_entry(feed, now)
    if not polling.period or (polls is not None and polls < WASTEFUL):
        return None
    every = duration(polling.period)
    what = f"polled every {every}, " + (
        "without a new entry" if polls is None else f"{polls:,.0f} polls for an entry"
    )
    return FeedFinding(
        kind=FindingKind.WASTEFUL, what=what, suggestion=_against_waste(polling)
    )


def _against_waste(polling: Polling) -> str:
    if not polling.subscribers:
        return "it has no subscribers: pause it if nobody reads it here"
    if not polling.answers_304:
        return "each poll fetches the whole document: its publisher should send an ETag"
    return "lower FANFARE_POLL_BUDGET if many feeds are like this"


def _hub(polling: Polling) -> FeedFinding | None:
    if not polling.hubs:
        return None
    return FeedFinding(
        kind=FindingKind.HUB,
        what=f"it names the hub {polling.hubs[0]}, but is polled",
        suggestion="no action needed",
    )


_STANDS = {
    PushState.UNWANTED: "is not asked to push it",
    PushState.WAITING: "has not been asked to push it yet",
    PushState.ASKED: "has not confirmed the subscription yet",
    PushState.SUBSCRIBED: "is not trusted to push it yet: {counts}",
}


def _pushed(push: PushFacts) -> FeedFinding:
    pushes = f"{push.brought} times" if push.brought != 1 else "once"
    counts = f"{pushes} so far, {push.late} late, and missed {push.missed}"
    if push.is_trusted:
        return FeedFinding(
            kind=FindingKind.PUSHED,
            what=f"its hub {push.hub} pushes it: {counts}",
            suggestion="no action needed: it is polled rarely",
        )
    if push.error:
        return FeedFinding(
            kind=FindingKind.HUB,
            what=f"its hub {push.hub} does not push it: {push.error}",
            suggestion="no action needed: the hub is asked again, ever less often",
        )
    return FeedFinding(
        kind=FindingKind.HUB,
        what=f"its hub {push.hub} {_STANDS[push.state].format(counts=counts)}",
        suggestion="no action needed: it is polled like any other feed",
    )
