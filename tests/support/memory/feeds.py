"""Feeds and topics of the model, and the order in which it gives out due feeds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, TypeVar

from msgspec.structs import replace

from protocols.urls import resource_url, selector_of
from storage.errors import NotFound
from storage.records import (
    AccessEnded,
    AccountId,
    Credentials,
    DueFeed,
    FeedChange,
    FeedHealth,
    FeedId,
    FeedState,
    FetchTarget,
    HiddenFeeds,
    NewFeed,
    Pace,
    PlaceByPace,
    Poll,
    Polling,
    Posting,
    StoredFeed,
    lateness,
    pace_of,
)
from storage.subscription_filter import keeps_document

from .state import ModelFeed, State, milliseconds
from .subscriptions import MemorySubscriptions


def the_latest(
    feeds: Iterable[StoredFeed], now: datetime, after: PlaceByPace
) -> list[DueFeed]:
    """Due feeds behind the place of their pace, the most overdue first."""
    due = [
        DueFeed(
            id=each.id,
            url=each.polling.fetch_url or each.url,
            next_fetch=each.next_fetch,
            pace=pace_of(each.polling.period),
        )
        for each in feeds
        if each.next_fetch <= now
    ]
    left = (
        each
        for each in due
        if each.pace not in after or (each.next_fetch, each.id) > after[each.pace]
    )
    return sorted(
        left,
        key=lambda each: (
            -lateness(each.next_fetch, each.pace, now),
            each.next_fetch,
            each.id,
        ),
    )


def places(page: Sequence[DueFeed]) -> dict[Pace, tuple[datetime, FeedId]]:
    """For each pace, the place where the next page goes on."""
    return {each.pace: (each.next_fetch, each.id) for each in page}


Key = TypeVar("Key")
Value = TypeVar("Value")


class MemoryFeeds:
    def __init__(self, state: State) -> None:
        self._state = state

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        for known in self._of_resource(feed.url):
            if feed.as_anybody and known.credentials is not None:
                continue
            if known.stored.url == feed.url or known.credentials == feed.credentials:
                return self._add_again(known, feed, now), False
        feed_id = FeedId(self._state.next_id("feed"))
        stored = StoredFeed(
            id=feed_id,
            url=feed.url,
            state=FeedState.ACTIVE,
            private=feed.private,
            category=feed.category,
            title=feed.title,
            format="",
            next_fetch=milliseconds(now),
            created_at=milliseconds(now),
            removed_at=None,
            polling=Polling(),
            has_credentials=feed.credentials is not None,
        )
        self._state.feeds[feed_id] = ModelFeed(stored, feed.credentials)
        return stored, True

    def _of_resource(self, url: str) -> list[ModelFeed]:
        """Feeds of a resource, the one that is most likely meant first."""

        def rank(feed: ModelFeed) -> tuple[bool, bool, bool, FeedId]:
            is_removed = feed.stored.state is FeedState.REMOVED
            is_open = feed.credentials is None
            is_spelled = feed.stored.url == url
            is_meant = is_spelled and not (is_removed and is_open)
            return not is_meant, is_removed, is_open == is_spelled, feed.stored.id

        found = (
            each
            for each in self._state.feeds.values()
            if resource_url(each.stored.url) == resource_url(url)
        )
        aliased = self._state.feeds.get(self._state.topics.get(url, FeedId(0)))
        return sorted(found, key=rank) or ([aliased] if aliased else [])

    def _add_again(self, known: ModelFeed, feed: NewFeed, now: datetime) -> StoredFeed:
        turned_at = milliseconds(now)
        is_removed = known.stored.state is FeedState.REMOVED
        known.version += is_removed or known.stored.state.is_stopped
        if is_removed:
            known.credentials = feed.credentials or known.credentials
            known.stored = replace(
                known.stored,
                private=known.credentials is not None or feed.private,
                category=feed.category or known.stored.category,
                has_credentials=known.credentials is not None,
                state=FeedState.ACTIVE,
                turned_at=turned_at,
                removed_at=None,
                polling=replace(known.stored.polling, last_fetch=None),
            )
        elif known.stored.state.is_stopped:
            known.stored = replace(
                known.stored, state=FeedState.ACTIVE, turned_at=turned_at
            )
        return known.stored

    async def edit(
        self, feed_id: FeedId, change: FeedChange, reason: str, now: datetime
    ) -> tuple[StoredFeed, int]:
        feed = self._state.feed(feed_id)
        stored = feed.stored
        if stored.state is FeedState.REMOVED:
            raise NotFound("feed", feed_id)
        feed.version += 1
        if change.credentials is not None:
            is_none = change.credentials == Credentials()
            feed.credentials = None if is_none else change.credentials
        if change.url is not None:
            stored = self._move(stored, change.url, now)
        has_credentials = feed.credentials is not None
        private = stored.private if change.private is None else change.private
        feed.stored = replace(
            stored,
            private=private or has_credentials,
            category=stored.category if change.category is None else change.category,
            own_period=stored.own_period
            if change.own_period is None
            else change.own_period,
            has_credentials=has_credentials,
        )
        ended = 0
        if change.shuts_out is not None:
            subscriptions = MemorySubscriptions(self._state)
            ended = await subscriptions.end_all(
                feed_id, reason, now, 10**9, change.shuts_out
            )
            self._state.tell(AccessEnded(feeds=(feed_id,)))
        return feed.stored, ended

    def _move(self, stored: StoredFeed, url: str, now: datetime) -> StoredFeed:
        if url != stored.url:
            self._state.topics.setdefault(stored.url, stored.id)
        is_stopped = stored.state.is_stopped
        return replace(
            stored,
            url=url,
            state=FeedState.ACTIVE if is_stopped else stored.state,
            turned_at=milliseconds(now) if is_stopped else stored.turned_at,
            next_fetch=milliseconds(now),
            polling=replace(
                stored.polling,
                fetch_url="",
                redirect=None,
                validators=None,
                found_at="",
                body_hash="",
                gone_sightings=0,
                missing_sightings=0,
                missing_since=None,
                retry_after=None,
                fresh_until=None,
            ),
        )

    async def get(self, feed_id: FeedId) -> StoredFeed | None:
        found = self._state.feeds.get(feed_id)
        return None if found is None else found.stored

    async def several(self, ids: Collection[FeedId]) -> dict[FeedId, StoredFeed]:
        feeds = self._state.feeds
        return {each: feeds[each].stored for each in ids if each in feeds}

    async def find(self, topic: str) -> StoredFeed | None:
        found = self._of_resource(topic)
        return found[0].stored if found else None

    async def parts(self, page: str, limit: int) -> list[StoredFeed]:
        return [
            each
            for each in self._all()
            if selector_of(each.url)
            and resource_url(each.url.partition("#")[0]) == resource_url(page)
            and each.state is not FeedState.REMOVED
        ][:limit]

    async def find_open(self, topic: str) -> StoredFeed | None:
        found = [each.stored for each in self._of_resource(topic)]
        return next((each for each in found if not each.has_credentials), None)

    async def find_readable(
        self, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        found = [each.stored for each in self._of_resource(topic)]
        readable = (each for each in found if self._state.may_read(viewer, each.id))
        return next(readable, None)

    async def readable(
        self, asked: Collection[tuple[AccountId | None, FeedId]]
    ) -> frozenset[tuple[AccountId | None, FeedId]]:
        return frozenset(each for each in asked if self._state.may_read(*each))

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        return [
            each
            for each in self._all()
            if each.id > after
            and (each.state.is_listed if state is None else each.state is state)
        ][:limit]

    async def due(
        self, now: datetime, *, after: PlaceByPace, limit: int
    ) -> list[DueFeed]:
        feeds = [each for each in self._all() if each.state is FeedState.ACTIVE]
        return the_latest(feeds, milliseconds(now), after)[:limit]

    async def next_due(self, without: Collection[FeedId] = ()) -> datetime | None:
        times = (
            each.next_fetch
            for each in self._all()
            if each.state is FeedState.ACTIVE and each.id not in without
        )
        return min(times, default=None)

    async def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> None:
        for feed_id, at in moves:
            if feed_id in self._state.feeds:
                self._change(feed_id, next_fetch=milliseconds(at))

    async def hold_hosts(
        self, holds: Sequence[tuple[str, datetime]], now: datetime
    ) -> None:
        held = self._state.host_holds
        for host, until in holds:
            held[host] = max(milliseconds(until), held.get(host, now))

    async def held_hosts(self, now: datetime) -> list[tuple[str, datetime]]:
        held = sorted(self._state.host_holds.items())
        return [(host, until) for host, until in held if until > now]

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        overdue = [
            each
            for each in self._all()
            if each.state is FeedState.ACTIVE
            and each.next_fetch < now
            and each.polling != Polling()
        ]
        window = min(longest.total_seconds(), len(overdue) / per_second)
        for number, each in enumerate(sorted(overdue, key=lambda feed: feed.id), 1):
            share = number * 2654435769 % 2**32 / 2**32
            later = share * min(each.polling.period, window)
            moved = now + timedelta(milliseconds=int(1_000 * later))
            self._change(each.id, next_fetch=milliseconds(moved))
        return len(overdue)

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        asked = [self._state.feeds[each] for each in ids if each in self._state.feeds]
        return [self._target(each) for each in asked if each.stored.state.is_listed]

    def _target(self, feed: ModelFeed) -> FetchTarget:
        subscribers = self._state.active(feed.stored.id)
        return FetchTarget(
            feed=feed.stored,
            credentials=feed.credentials,
            seen=feed.seen,
            slices=feed.slices,
            inventory=feed.inventory,
            keeps_body=any(
                keeps_document(each.format, feed.stored.format) for each in subscribers
            ),
            subscribers=len(subscribers),
            is_error_awaited=feed.is_error_awaited,
            version=feed.version,
        )

    async def polls(self, feed_id: FeedId) -> list[Poll]:
        feed = self._state.feeds.get(feed_id)
        return list(feed.polls) if feed else []

    async def last_failures(self, ids: Sequence[FeedId]) -> dict[FeedId, Poll]:
        found: dict[FeedId, Poll] = {}
        for id in ids:
            feed = self._state.feeds.get(id)
            for poll in feed.polls if feed else ():
                if poll.outcome.is_failure:
                    found.setdefault(id, poll)
        return found

    async def postings(self, limit: int) -> list[Posting]:
        feeds = [each for each in self._all() if each.state is not FeedState.REMOVED]
        step = max(1, len(feeds) // limit)
        postings = (feed.polling.posting for feed in feeds[::step][:limit])
        return [each for each in postings if each.habits]

    async def hidden(self, ids: Sequence[FeedId]) -> HiddenFeeds:
        feeds = self._state.feeds
        there = {
            each
            for each in ids
            if each in feeds and feeds[each].stored.state is not FeedState.REMOVED
        }
        return HiddenFeeds(
            removed=frozenset(ids) - there,
            private=frozenset(each for each in there if feeds[each].stored.private),
        )

    async def set_state(
        self,
        feed_id: FeedId,
        state: FeedState,
        now: datetime,
        *,
        next_fetch: datetime | None = None,
    ) -> StoredFeed:
        self._state.feed(feed_id).version += 1
        known = self._state.feeds[feed_id].stored
        removed_at = known.removed_at or milliseconds(now)
        is_resumed = (known.state, state) == (FeedState.PAUSED, FeedState.ACTIVE)
        is_new = is_resumed and known.condition is not FeedHealth.FAILING
        self._change(
            feed_id,
            state=state,
            condition_since=milliseconds(now) if is_new else known.condition_since,
            turned_at=known.turned_at if known.state is state else milliseconds(now),
            next_fetch=milliseconds(next_fetch) if next_fetch else known.next_fetch,
            removed_at=removed_at if state is FeedState.REMOVED else None,
        )
        if state is FeedState.REMOVED:
            self._state.tell(AccessEnded(feeds=(feed_id,)))
        return self._state.feeds[feed_id].stored

    async def purge_removed(self, before: datetime, limit: int) -> int:
        removed = sorted(
            (each.removed_at, each.id)
            for each in self._all()
            if each.removed_at is not None and each.removed_at < milliseconds(before)
        )[:limit]
        for _at, feed_id in removed:
            self._purge(feed_id)
        return len(removed)

    def _purge(self, feed_id: FeedId) -> None:
        state = self._state
        gone = {
            each.id for each in state.subscriptions.values() if each.feed_id == feed_id
        }
        positions = set(state.feed_positions(feed_id))
        state.subscriptions = _without(state.subscriptions, gone)
        state.retries = _without(state.retries, gone)
        state.records = _without(state.records, positions)
        state.fanouts = _without(state.fanouts, positions)
        state.chunks = {
            key: each for key, each in state.chunks.items() if each.feed_id != feed_id
        }
        state.finished = [each for each in state.finished if each.feed_id != feed_id]
        state.dead = {
            key: each
            for key, each in state.dead.items()
            if each.subscription_id not in gone
        }
        state.attempts = [
            each for each in state.attempts if each.subscription_id not in gone
        ]
        state.entries = {
            key: each
            for key, each in state.entries.items()
            if each.stored.feed_id != feed_id
        }
        state.trimmed.pop(feed_id, None)
        state.topics = {url: of for url, of in state.topics.items() if of != feed_id}
        del state.feeds[feed_id]

    def _change(self, feed_id: FeedId, **changes: Any) -> None:
        feed = self._state.feeds[feed_id]
        feed.stored = replace(feed.stored, **changes)

    def _all(self) -> list[StoredFeed]:
        return [each.stored for _, each in sorted(self._state.feeds.items())]


def _without(whole: dict[Key, Value], keys: Set[Key]) -> dict[Key, Value]:
    return {key: each for key, each in whole.items() if key not in keys}
