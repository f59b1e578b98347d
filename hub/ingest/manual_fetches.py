"""Fetches requested by hand or by a ping: who waits for them, and which are
repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from hub.ingest.poll_schedule import PollSchedule
from hub.runtime.clock import Clock
from storage.errors import StorageError
from storage.records import FeedId, Polling, PollReason, StoredFeed


@dataclass(frozen=True, slots=True)
class WantedFetch:
    """``only_first``: not wanted any more once the feed has been fetched."""

    feed: StoredFeed
    reason: PollReason
    only_first: bool = False


@dataclass(frozen=True, slots=True)
class PendingFetch:
    """A visit that was asked for. ``done`` is set after the visit; its value is the
    failure of storage, or None."""

    wanted: WantedFetch
    done: asyncio.Future[StorageError | None]


class ManualFetches:
    """Puts feeds first in a schedule; sets ``awake`` when one is added."""

    def __init__(
        self,
        schedule: PollSchedule,
        clock: Clock,
        awake: asyncio.Event,
        is_pushed: Callable[[str], bool] = lambda url: False,
    ) -> None:
        """``is_pushed``: whether the answer for a URL has been pushed, so that no
        server is asked."""
        self._is_pushed = is_pushed
        self._serverless: set[FeedId] = set()  # their servers asked for patience
        self._schedule = schedule
        self._clock = clock
        self._awake = awake
        self._waiting: dict[FeedId, PendingFetch] = {}
        self._again: dict[FeedId, WantedFetch] = {}  # pinged while under way
        self._cut: dict[FeedId, WantedFetch] = {}  # nothing of them could be stored
        self._retried: set[FeedId] = set()
        self._is_over = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._again)

    def reason(self, feed_id: FeedId) -> PollReason | None:
        """Why somebody wants the feed visited; None if nobody does."""
        pending = self._waiting.get(feed_id)
        return None if pending is None else pending.wanted.reason

    def may_fetch(self, feed: StoredFeed) -> bool:
        """Whether the feed may be visited. It may not if its server would have to be
        asked, but has asked for patience."""
        return self._is_pushed(_fetch_url(feed)) or self._may_ask_server(feed)

    def is_wanted(self, feed: StoredFeed) -> bool:
        """Whether a visit that was asked for must still be made: its first fetch may
        have been made, or pushed content withdrawn, before the feed's turn."""
        if self._waiting[feed.id].wanted.only_first and feed.polling.last_fetch:
            return False
        return feed.id not in self._serverless or self.may_fetch(feed)

    def _may_ask_server(self, feed: StoredFeed) -> bool:
        patience = feed.polling.retry_after
        is_early = patience is not None and self._clock.now() < patience
        return not is_early and not self._schedule.is_held(_fetch_url(feed))

    def request(
        self, feed: StoredFeed, reason: PollReason, *, only_first: bool = False
    ) -> asyncio.Future[StorageError | None]:
        """Ask for a visit. The future is done after the visit; its value is the failure
        of storage, or None. ``only_first``: no visit is made if there has been one."""
        pending = self._waiting.get(feed.id)
        if pending is not None and pending.wanted.only_first and not only_first:
            self._waiting[feed.id] = PendingFetch(
                WantedFetch(feed, reason), pending.done
            )
        if pending is None:
            done = asyncio.get_running_loop().create_future()
            if self._is_over:
                done.set_result(None)
                return done
            wanted = WantedFetch(feed, reason, only_first)
            self._waiting[feed.id] = PendingFetch(wanted, done)
            if self._may_ask_server(feed):  # at the pace of its host
                self._schedule.ask(feed.id, _fetch_url(feed))
            else:
                self._serverless.add(feed.id)
                self._schedule.ask(feed.id, "")
            self._awake.set()
        return self._waiting[feed.id].done

    def ping(self, feed: StoredFeed, reason: PollReason) -> bool:
        """Visit a feed soon, and once more if it is being visited; nobody waits for it.

        Returns False and does nothing if its server asked for patience.
        """
        if not self.may_fetch(feed):
            return False
        if self._schedule.is_under_way(feed.id):
            self._again[feed.id] = WantedFetch(feed, reason)
        else:
            self.request(feed, reason)
        return True

    def is_pinged(self, feed_id: FeedId) -> bool:
        """Whether a visit that was asked for is yet to begin."""
        if feed_id in self._again:
            return True
        return feed_id in self._waiting and not self._schedule.is_under_way(feed_id)

    def learn(self, feed_id: FeedId, polling: Polling) -> None:
        """Let a visit for a ping that came meanwhile start from what this visit has
        stored."""
        if feed_id in self._again:
            again = self._again[feed_id]
            feed = replace(again.feed, polling=polling)
            self._again[feed_id] = WantedFetch(feed, again.reason)

    def finish(self, feed_id: FeedId, failure: StorageError | None) -> None:
        """Note that the visit is over, for all who wait for it."""
        pending = self._waiting.pop(feed_id, None)
        self._serverless.discard(feed_id)
        if pending is None:
            return
        pending.done.set_result(failure)
        if failure is None:
            self._retried.discard(feed_id)
        elif feed_id not in self._retried:
            self._cut[feed_id] = pending.wanted

    def resume(self, *, after_outage: bool) -> None:
        """Visit the feeds of which nothing could be stored, now that storage works
        again.

        Each feed is visited again once only, since its content may be the reason.
        ``after_outage``: storage took nothing at all, so no feed was the reason.
        """
        cut, self._cut = self._cut, {}
        self._retried = set() if after_outage else self._retried | cut.keys()
        for each in cut.values():
            self.ping(each.feed, each.reason)

    def finish_all(self) -> None:
        """Answer all who wait, now or later, at once: there are no more visits."""
        self._is_over = True
        for feed_id in list(self._waiting):
            self.finish(feed_id, None)

    def ping_again(self, feed_id: FeedId) -> None:
        """Visit a feed once more after a visit, if it was pinged meanwhile."""
        again = self._again.pop(feed_id, None)
        if again is not None:
            self.ping(again.feed, again.reason)


def _fetch_url(feed: StoredFeed) -> str:
    return feed.polling.fetch_url or feed.url
