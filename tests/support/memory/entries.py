"""Entries of the model, newest first."""

from __future__ import annotations

from collections.abc import Sequence

from storage.records import (
    EntryId,
    EntryPlace,
    EntrySource,
    FeedId,
    StoredEntry,
)

from .state import ModelEntry, State


class MemoryEntries:
    def __init__(self, state: State) -> None:
        self._state = state

    async def newest(
        self,
        feeds: Sequence[FeedId],
        *,
        limit: int,
        before: EntryPlace | None = None,
        after: EntryPlace | None = None,
        also: Sequence[EntryId] = (),
        listed_only: bool = False,
    ) -> list[StoredEntry]:
        found = [
            each
            for each in self._state.entries.values()
            if (
                each.stored.feed_id in feeds
                or (each.stored.id in also and not each.stored.unlisted)
            )
            and not each.stored.deleted
            and not (listed_only and self._is_unlisted(each.stored))
            and (before is None or _order(_place(each)) > _order(before))
            and (after is None or _order(_place(each)) < _order(after))
        ]
        found.sort(key=lambda each: _order(_place(each)))
        return [each.stored for each in found[:limit]]

    def _is_unlisted(self, entry: StoredEntry) -> bool:
        feed = self._state.feeds[entry.feed_id].stored
        return entry.unlisted or feed.polling.unlisted

    async def place(
        self, feeds: Sequence[FeedId], keys: Sequence[str]
    ) -> EntryPlace | None:
        found = [
            _place(each)
            for each in self._state.entries.values()
            if each.stored.feed_id in feeds and each.stored.key in keys
        ]
        return min(found, key=_order, default=None)

    async def place_of(self, entry_id: EntryId) -> EntryPlace | None:
        found = self._state.entries.get(entry_id)
        return None if found is None else _place(found)

    async def sources(self, feeds: Sequence[FeedId]) -> list[EntrySource]:
        known = [self._state.feeds[each] for each in feeds if each in self._state.feeds]
        return [EntrySource(feed=each.stored, head=each.head) for each in known]


def _place(entry: ModelEntry) -> EntryPlace:
    return EntryPlace(entry.sorted_at, entry.stored.id)


def _order(place: EntryPlace) -> tuple[float, int]:
    return -place.at.timestamp(), place.id
