"""What has changed since a reader's last visit (OpenFeeder 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hub.publishing.openfeeder_gatekeeper import Gatekeeper
from hub.publishing.page_cache import PageCache
from hub.runtime.clock import Clock
from protocols.openfeeder.write.content_queries import SyncPoint, SyncQuery
from protocols.openfeeder.write.page_chunks import PageFacts
from protocols.openfeeder.write.served_documents import SyncResult, Tombstone
from storage.contract import Storage
from storage.records import PageChange, PagesState

MILLISECOND = timedelta(milliseconds=1)
"""The smallest difference between two moments; both bounds are inclusive."""
MOST_CHANGES = 500
"""Changes in one answer: more than are ever decided on in one transaction, so that each
answer leads further."""
LONGEST_HORIZON = 3_650 * 86_400.0
"""Seconds; much more would lead before the first possible date."""


@dataclass(frozen=True, slots=True)
class PageChanges:
    storage: Storage
    cache: PageCache
    clock: Clock
    gatekeeper: Gatekeeper
    tombstone_seconds: float

    async def read(self, query: SyncQuery) -> SyncResult:
        """The changes that a query asks for, none of them later than ``as_of``.

        Raises `StorageError`.
        """
        epoch = (await self.storage.log.end()).epoch
        state = await self.storage.page_list.state()
        after = await self._begin(query.since, epoch, state)
        changes = await self.storage.page_list.changes(
            after=after,
            through=await self._end(query.until, state),
            limit=MOST_CHANGES + 1,
        )
        is_truncated = len(changes) > MOST_CHANGES
        del changes[MOST_CHANGES:]
        last = changes[-1] if is_truncated else state
        as_of = SyncPoint(moment=last.changed_at, epoch=epoch, change=last.change)
        return await self._result(query, changes, as_of, is_truncated)

    async def _begin(
        self, since: SyncPoint | None, epoch: str, state: PagesState
    ) -> int:
        """The last change that a reader already has; a token of this database names
        it."""
        if since is None:
            return 0
        if since.epoch == epoch and 0 < since.change <= state.change:
            return since.change
        return await self.storage.page_list.last_before(since.moment)

    async def _end(self, until: datetime | None, state: PagesState) -> int:
        """The last change that is reported: none is later than ``as_of``."""
        if until is None or until >= state.changed_at:
            return state.change
        return await self.storage.page_list.last_before(until + MILLISECOND)

    async def _result(
        self,
        query: SyncQuery,
        changes: Sequence[PageChange],
        as_of: SyncPoint,
        is_truncated: bool,
    ) -> SyncResult:
        added: list[PageFacts] = []
        updated: list[PageFacts] = []
        shown = [each.page for each in changes if each.page is not None]
        made = iter(await self.cache.make(shown))
        for each in changes:
            if each.page is None:
                continue
            facts = next(made).page.facts
            if self.gatekeeper.shows(facts):
                is_new = _is_new(each.page.shown_at, each.changed_at, query.since)
                (added if is_new else updated).append(facts)
        deleted, is_complete = self._tombstones(changes if query.since else ())
        return SyncResult(
            since=query.since.moment if query.since else None,
            until=query.until,
            as_of=as_of,
            added=added,
            updated=updated,
            deleted=deleted,
            tracks_deletions=is_complete,
            is_truncated=is_truncated,
        )

    def _tombstones(
        self, changes: Sequence[PageChange]
    ) -> tuple[list[Tombstone], bool]:
        """The tombstones that are not too old, and whether none was left out as too
        old."""
        gone = [each for each in changes if each.page is None]
        seconds = min(self.tombstone_seconds, LONGEST_HORIZON)
        horizon = self.clock.now() - timedelta(seconds=seconds)
        tombstones = [
            Tombstone(url=each.url, deleted_at=each.changed_at)
            for each in gone
            if each.changed_at >= horizon and self.gatekeeper.shows_url(each.url)
        ]
        return tombstones, all(each.changed_at >= horizon for each in gone)


def _is_new(shown_at: datetime, changed_at: datetime, since: SyncPoint | None) -> bool:
    """Whether the page did not exist yet at ``since``.

    With ``until`` alone no page is new. A page that appeared at the very moment of a
    token was already reported together with that token.
    """
    if since is None:
        return False
    if since.change and shown_at == since.moment:
        return shown_at == changed_at
    return shown_at >= since.moment
