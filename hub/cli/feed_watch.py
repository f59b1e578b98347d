"""When a feed is polled next, in words, and what happens to it in the meantime."""

from __future__ import annotations

from datetime import datetime

from hub.cli.hub_client import Document, Hub, HubRefused
from hub.cli.wording import HubUnreachable, moment, plural, printable
from hub.core.durations import duration
from hub.runtime.clock import Clock

LOOK_SECONDS = 10.0
"""Pause between two looks at a feed: it may be polled though it is not due yet."""
DUE_LOOK_SECONDS = 1.0
"""Pause between two looks while the feed is due."""


def next_poll(feed: Document) -> str:
    """Return when a feed is polled next and why, or why it is not polled.

    For example ``next poll 2026-01-01 12:15:00Z (in 5 min): it is new: …``.
    """
    if feed["state"] == "track":
        return "matched against the new entries of all feeds as they come"
    if feed["state"] != "active":
        resume = f"fanfare feeds resume {feed['id']}"
        return f"{feed['state']}: not polled until `{resume}`"
    reason = printable(feed.get("next_fetch_reason", ""))
    return f"next poll {moment(feed['next_fetch'])}" + (f": {reason}" if reason else "")


def how_to_poll(feed: Document) -> str:
    """Return the command that polls a feed at once; "" for what is never polled."""
    if feed["state"] in ("track", "removed"):
        return ""
    return f"to poll it now: fanfare feeds fetch {feed['id']}"


class FeedWatch:
    """Looks at a feed at intervals, as long as the hub shows it to this token."""

    def __init__(self, hub: Hub, feed: Document, clock: Clock) -> None:
        self._hub = hub
        self._feed = feed
        self._clock = clock
        self._next_look = clock.monotonic() + self._pause()
        self._is_shown = feed["state"] != "track"
        self._is_away = False

    def look(self) -> str:
        """Return what has happened to the feed since the last look; "" if nothing.

        The hub is asked only if it is time for the next look.
        """
        now = self._clock.monotonic()
        if not self._is_shown or now < self._next_look:
            return ""
        self._next_look = now + self._pause()
        try:
            seen = self._hub.get(f"/api/feeds/{self._feed['id']}")
        except HubRefused:
            self._is_shown = False
            return ""
        except HubUnreachable:
            was_away, self._is_away = self._is_away, True
            return "" if was_away else "the hub does not answer; waiting for it"
        return self._compare(seen)

    def countdown(self) -> str:
        """Return ``next poll in 57 s``; "" while the hub does not show the feed."""
        if not self._is_shown or self._is_away:
            return ""
        if self._feed["state"] != "active":
            return next_poll(self._feed)
        left = self._seconds_left()
        return f"next poll in {_clock_time(left)}" if left > 0 else "polling"

    def _compare(self, seen: Document) -> str:
        before, self._feed = self._feed, seen
        was_away, self._is_away = self._is_away, False
        self._next_look = self._clock.monotonic() + self._pause()
        if seen["last_fetch"] != before["last_fetch"] and seen["last_fetch"]:
            return f"{self._outcome(seen)}; {_news_of_plan(before, seen)}"
        if was_away:
            return f"the hub answers again; {_news_of_plan(before, seen)}"
        if seen["state"] != before["state"]:
            return next_poll(seen)
        return ""

    def _outcome(self, feed: Document) -> str:
        if feed["error"]:
            return f"poll failed: {printable(feed['error'])}"
        polls = self._hub.get(f"/api/feeds/{feed['id']}/history")["polls"]
        return f"polled: {_found(polls[0])}" if polls else "polled"

    def _pause(self) -> float:
        """Return the seconds until the next look, at most until the feed is due."""
        return min(LOOK_SECONDS, max(DUE_LOOK_SECONDS, self._seconds_left()))

    def _seconds_left(self) -> float:
        due = datetime.fromisoformat(self._feed["next_fetch"])
        return (due - self._clock.now()).total_seconds()


def found(feed: Document) -> str:
    """Return what the feed had when it was last fetched; these entries are not news."""
    if feed["last_fetch"] is None:
        return "not polled yet"
    entries = plural(feed["entries"], "entry", "entries")
    return f"{entries} so far; only later ones are sent"


def _news_of_plan(before: Document, seen: Document) -> str:
    """Return when the feed is polled next, with the reason only if it has changed."""
    is_known = seen["next_fetch_reason"] == before["next_fetch_reason"]
    return next_poll({**seen, "next_fetch_reason": ""} if is_known else seen)


def _found(poll: Document) -> str:
    match poll["outcome"]:
        case "new":
            return plural(poll["entries"], "new entry", "new entries")
        case "changed":
            return "changed, no new entry"
        case outcome:
            return str(outcome)


def _clock_time(seconds: float) -> str:
    """Return a span for a countdown: in whole seconds below two minutes."""
    return f"{int(seconds) + 1} s" if seconds < 120 else duration(seconds)
