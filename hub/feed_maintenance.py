"""Maintenance of feeds: each feed once a day, a few at a time, with the lowest
priority.

It works on stored data only; nothing is fetched for it.
"""

from __future__ import annotations

from functools import partial

import structlog

from hub.core.status.feed_stats import (
    EVERY,
    LATEST_ENTRIES,
    MOST_LINKING,
    Examination,
    WordList,
    examine,
    is_stale,
    popularity,
)
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.runtime.work_leases import WorkClaims
from protocols.model import Entry
from storage.contract import Storage
from storage.errors import StorageError
from storage.packing import unpack, unpack_head
from storage.records import (
    FeedId,
    FeedStatistics,
    FeedStatisticsWrite,
    StoredFeed,
    WorkKind,
)

FEEDS_A_ROUND = 500
PAGE = 20
"""Feeds whose statistics are stored together."""

log = structlog.get_logger()


class Maintenance:
    """Maintains feeds. ``listed``: the words of the porn rank; None: feeds get no such
    rank."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        listed: WordList | None,
        claims: WorkClaims,
        feeds_a_round: int = FEEDS_A_ROUND,
    ) -> None:
        self._claims = claims
        self._feeds_a_round = feeds_a_round
        self._storage = storage
        self._clock = clock
        self._listed = listed

    async def round(self) -> int:
        """Maintain the feeds that have been due the longest; returns how many. Raises
        `StorageError`."""
        done = 0
        while done < self._feeds_a_round and await self._claims.may_begin():
            maintained = await self._maintain_page()
            done += maintained
            if maintained < PAGE:
                break
        return done

    async def _maintain_page(self) -> int:
        statistics, kind = self._storage.feed_statistics, WorkKind.STATISTICS
        due = await statistics.due(self._clock.now(), PAGE)
        lease_id, held = await self._claims.claim(kind, due)
        saved: frozenset[FeedId] = frozenset()
        try:
            async with self._claims.renewed(kind, held, lease_id):
                tried = [await self._try(each) for each in due if each in held]
                if writes := [each for each in tried if each is not None]:
                    saved = await statistics.save(writes, lease_id=lease_id)
        finally:
            await self._claims.release(kind, [*held - saved], lease_id)
        return len(saved)

    async def _try(self, feed_id: FeedId) -> FeedStatisticsWrite | None:
        """Maintain a feed; if that fails, it keeps its statistics, but not its links,
        for another day.

        Raises `StorageError`.
        """
        try:
            return await self._maintain(feed_id)
        except StorageError:
            raise
        except Exception:  # what one feed sends must not keep all after it waiting
            log.exception("maintenance_failed", feed=feed_id)
            return await self._put_off(feed_id)

    async def _put_off(self, feed_id: FeedId) -> FeedStatisticsWrite:
        now = self._clock.now()
        known = await self._storage.feed_statistics.get(feed_id)
        return FeedStatisticsWrite(
            feed_id=feed_id,
            statistics=known or FeedStatistics(maintained_at=now),
            site="",
            places=frozenset(),
            due=now + EVERY,
        )

    async def _maintain(self, feed_id: FeedId) -> FeedStatisticsWrite | None:
        """None if it was purged meanwhile."""
        feed = await self._storage.feeds.get(feed_id)
        if feed is None:
            return None
        found = await self._examine(feed)
        now = self._clock.now()
        return FeedStatisticsWrite(
            feed_id=feed_id,
            statistics=FeedStatistics(
                maintained_at=now,
                popularity=await self._popularity(feed, found.site),
                porn_rank=found.porn_rank,
                is_stale=is_stale(feed, now),
            ),
            site=found.site,
            places=frozenset() if feed.private else found.places,
            due=now + EVERY,
        )

    async def _examine(self, feed: StoredFeed) -> Examination:
        head = await self._storage.log.feed_head(feed.id)
        latest = await self._storage.log.latest_entries(feed.id, LATEST_ENTRIES)
        bodies = [each.body for each in latest]
        return await run_in_thread(partial(_examined, head, bodies, self._listed))

    async def _popularity(self, feed: StoredFeed, site: str) -> float:
        subscribers = await self._storage.subscriptions.count(feed.id)
        if not site:
            return popularity(subscribers, 0)
        linking = await self._storage.feed_statistics.linking(
            site, feed.id, MOST_LINKING
        )
        return popularity(subscribers, linking)


def _examined(
    head: bytes | None, bodies: list[bytes], listed: WordList | None
) -> Examination:
    entries = [unpack(body, Entry) for body in bodies]
    return examine(unpack_head(head), entries, listed)
