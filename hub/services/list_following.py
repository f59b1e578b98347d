"""Brings the hub's feeds in step with a list of feeds that was read.

Feeds are changed one by one, and the outcome of each is stored, so that an interrupted
reading continues with the others. A feed belongs to somebody else if it existed before,
if somebody has changed its category, or if it has subscribers. Such a feed stays when
the list no longer has it, and only loses the category that the list gave it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from msgspec import structs

from hub.core.watched_lists import changes_of
from hub.runtime.offloading import run_in_thread
from hub.services.feed_registration import ADDED_AT_ONCE, FeedService
from hub.services.feed_requests import (
    AddFeed,
    EditFeed,
    ImportedFeed,
    ImportOutcome,
)
from hub.services.service_errors import ServiceError
from protocols.opml import ListedFeed, OutlineWalk
from protocols.protocol_errors import InvalidValue
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    FeedState,
    ListWatch,
    ListWatchId,
    StoredFeed,
    WatchedFate,
    WatchedFeed,
)

PAGE: Final = 1_000
URL_BYTES: Final = 100
"""About the bytes of a URL; comparing very many of them is work for a thread."""
MOST_NAMED: Final = 3
"""Lists within a list that could not be read and whose reasons its status shows."""
_OURS: Final = (WatchedFate.PENDING, WatchedFate.ADDED)


@dataclass(slots=True)
class ReadingProgress:
    """How many feeds were changed, of the ``total`` that must change; ``total`` 0: not
    known yet. ``is_stopped``: the others are left unchanged."""

    done: int = 0
    total: int = 0
    is_stopped: bool = False


class ListFollower:
    def __init__(self, storage: Storage, feeds: FeedService) -> None:
        self._storage = storage
        self._watches = storage.list_watches
        self._feeds = feeds
        self._turn = asyncio.Lock()
        """Held while feeds are changed: a feed may move from one list to another."""

    async def follow(
        self, watch: ListWatch, walk: OutlineWalk, progress: ReadingProgress
    ) -> ListWatch:
        """Bring the hub in step with a list; returns the list with the outcome."""
        known = await self._known(watch.id)
        listed = [
            replace(each, category=each.category or watch.category)
            for each in walk.feeds
        ]
        changes = await run_in_thread(
            partial(
                changes_of,
                known,
                listed,
                is_whole=walk.is_whole,
                is_confirmed=watch.is_doubted,
            ),
            URL_BYTES * len(listed),
        )
        progress.total = len(changes.added) + len(changes.moved) + len(changes.left)
        pending = {each.url: each for each in known if each.fate is WatchedFate.PENDING}
        fates = Counter[WatchedFate]()
        for start in range(0, len(changes.added), ADDED_AT_ONCE):
            part = changes.added[start : start + ADDED_AT_ONCE]
            async with self._turn:
                if progress.is_stopped:
                    return watch
                fates.update(await self._add(watch, part, pending))
            progress.done += len(part)
        for feed, category in changes.moved:
            async with self._turn:
                if progress.is_stopped:
                    return watch
                await self._move(watch.id, feed, category)
            progress.done += 1
        removed = 0
        for feed in changes.left:
            async with self._turn:
                if progress.is_stopped:
                    return watch
                removed += await self._let_go(watch.id, feed)
            progress.done += 1
        followed = structs.replace(
            watch,
            is_doubted=bool(changes.doubt),
            error=_gaps(walk, changes.doubt),
            feeds=len(listed),
            refused=fates[WatchedFate.REFUSED],
            validators=watch.validators if _is_one(walk, changes.doubt) else None,
        )
        if not fates[WatchedFate.ADDED] and not changes.left:
            return followed
        return structs.replace(
            followed,
            added=fates[WatchedFate.ADDED],
            removed=removed,
            kept=len(changes.left) - removed,
            changed_at=watch.read_at,
        )

    async def _known(self, watch_id: ListWatchId) -> list[WatchedFeed]:
        known: list[WatchedFeed] = []
        while page := await self._watches.feeds(
            watch_id, after=known[-1].url if known else "", limit=PAGE
        ):
            known += page
        return known

    async def _add(
        self,
        watch: ListWatch,
        part: Sequence[ListedFeed],
        pending: Mapping[str, WatchedFeed],
    ) -> list[WatchedFate]:
        """Add feeds; returns the outcome of each. ``pending``: by URL, the feeds of an
        interrupted reading.

        Whether a feed existed is stored before it is added: otherwise, after an
        interruption, a feed that was added here could count as somebody else's, or the
        reverse.
        """
        before = [
            pending.get(each.url) or await self._noted(each.url, each.category)
            for each in part
        ]
        await self._watches.put_feeds(watch.id, before)
        imported = await self._feeds.add_all(
            [_request(each, watch) for each in part], keeps_known=True
        )
        after = []
        for each, feed, outcome in zip(part, before, imported, strict=True):
            is_resumed = each.url in pending
            noted = _after_import(feed, outcome, is_resumed=is_resumed)
            after.append(await self._moved(noted, outcome.feed, each.category))
        await self._watches.put_feeds(watch.id, after)
        return [each.fate for each in after]

    async def _noted(self, url: str, category: str) -> WatchedFeed:
        """A feed before it is added; one that existed has no category from the list."""
        found = await self._feeds.find(url)
        if found is None:
            return WatchedFeed(url=url, category=category, fate=WatchedFate.PENDING)
        return WatchedFeed(
            url=url, category="", fate=WatchedFate.KNOWN, feed_id=found.id
        )

    async def _move(
        self, watch_id: ListWatchId, feed: WatchedFeed, category: str
    ) -> None:
        moved = await self._moved(feed, await self._find(feed), category)
        await self._watches.put_feeds(watch_id, [moved])

    async def _moved(
        self, feed: WatchedFeed, found: StoredFeed | None, category: str
    ) -> WatchedFeed:
        """A feed that the list has in another category now. It gets that category
        unless somebody has given it another one, and then it counts as not added by the
        list."""
        fate = feed.fate
        if found is not None and found.category != feed.category:
            fate = fate if await self._is_from_a_list(found) else WatchedFate.KNOWN
        elif found is not None and _gives_category(feed) and category != feed.category:
            await self._categorize(found, category)
            if fate is WatchedFate.KNOWN:
                fate = WatchedFate.CATEGORIZED
        return structs.replace(feed, category=category, fate=fate)

    async def _let_go(self, watch_id: ListWatchId, feed: WatchedFeed) -> bool:
        """Let go of a feed that left the list; returns whether it was removed. It is
        removed only if the list added it and nobody else uses it."""
        found, is_removed = await self._find(feed), False
        if found is not None:
            own = watch_id, feed.url
            holders = await self._watches.holders(found.id)
            others = [held for held in holders if (held[0], held[1].url) != own]
            if others:
                await self._hand_over(found, feed, *others[0])
            elif await self._is_unwanted(found, feed):
                await self._feeds.remove(found.id)
                is_removed = True
            else:
                await self._moved(feed, found, "")
        await self._watches.drop_feeds(watch_id, [feed.url])
        return is_removed

    async def _hand_over(
        self,
        found: StoredFeed,
        feed: WatchedFeed,
        other_id: ListWatchId,
        other: WatchedFeed,
    ) -> None:
        """Hand a feed over to another list that has it, or to another place in the same
        list."""
        moved = await self._moved(feed, found, other.category)
        if other.fate is WatchedFate.KNOWN or moved.fate in _OURS:
            taken = structs.replace(other, fate=moved.fate)
            await self._watches.put_feeds(other_id, [taken])

    async def _is_unwanted(self, found: StoredFeed, feed: WatchedFeed) -> bool:
        is_untouched = feed.fate in _OURS and found.category == feed.category
        return is_untouched and not await self._storage.subscriptions.count(found.id)

    async def _find(self, feed: WatchedFeed) -> StoredFeed | None:
        """The feed on the hub; None if somebody has removed it."""
        if feed.feed_id is None:
            is_there = feed.fate is WatchedFate.PENDING
            return await self._feeds.find(feed.url) if is_there else None
        found = await self._storage.feeds.get(feed.feed_id)
        is_gone = found is None or found.state is FeedState.REMOVED
        return None if is_gone else found

    async def _is_from_a_list(self, found: StoredFeed) -> bool:
        """Whether another list gave the feed its category."""
        return any(
            each.category == found.category and each.fate is not WatchedFate.KNOWN
            for _, each in await self._watches.holders(found.id)
        )

    async def _categorize(self, found: StoredFeed, category: str) -> None:
        """Set the category, unless somebody changes the feed at the same time."""
        with suppress(ServiceError, InvalidValue, NotFound):
            await self._feeds.edit(found.id, EditFeed(category=category))


def _gives_category(feed: WatchedFeed) -> bool:
    """Whether the category of a feed was given by the list, if both are equal."""
    return feed.fate is not WatchedFate.KNOWN or not feed.category


def _request(feed: ListedFeed, watch: ListWatch) -> AddFeed:
    return AddFeed(
        url=feed.url,
        category=feed.category,
        title="" if feed.title == feed.url else feed.title,
        description=feed.description,
        private=watch.private,
        wait=0,
    )


def _after_import(
    before: WatchedFeed, imported: ImportedFeed, *, is_resumed: bool
) -> WatchedFeed:
    found, fate = imported.feed, before.fate
    if imported.outcome is ImportOutcome.REFUSED or found is None:
        return structs.replace(before, fate=WatchedFate.REFUSED)
    if fate is not WatchedFate.PENDING:
        return before
    is_added = not is_resumed or imported.outcome is ImportOutcome.ADDED
    return structs.replace(
        before,
        category=found.category if is_added else before.category,
        fate=WatchedFate.ADDED,
        feed_id=found.id,
    )


def _gaps(walk: OutlineWalk, doubt: str) -> str:
    """Why no feed that left the list was removed; "" if such feeds were removed."""
    if doubt:
        return f"{doubt}; they are removed if the next reading confirms it"
    if walk.is_whole:
        return ""
    unread = [f"{each.url}: {each.error}" for each in walk.lists if each.error]
    named = "; ".join((unread or walk.notes)[:MOST_NAMED])
    return f"{named}; nothing is removed until all of it can be read"


def _is_one(walk: OutlineWalk, doubt: str) -> bool:
    """Whether nothing in the list can have changed if its own document has not."""
    return walk.is_whole and len(walk.lists) == 1 and not doubt
