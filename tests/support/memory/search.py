"""The search of the model: every document is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from storage.records import (
    AccountId,
    Both,
    Either,
    EntryId,
    Matches,
    Phrase,
    PlaceTerm,
    Position,
    SearchDocument,
    SearchState,
    StoredEntry,
    Term,
)

from .state import State


class MemorySearch:
    def __init__(self, state: State) -> None:
        self._state = state
        self._days = 0.0
        self._position = Position(0)
        self._unread = EntryId(0)
        self._documents: dict[EntryId, SearchDocument] = {}
        self._former = 0

    async def state(self) -> SearchState:
        return SearchState(
            days=self._days,
            position=self._position,
            unread=self._unread,
            first=EntryId(min(self._state.entries, default=0)),
            last=self._last,
        )

    @property
    def _last(self) -> EntryId:
        return EntryId(max(self._state.entries, default=0))

    async def keep(self, days: float) -> None:
        before, self._days = self._days, days
        if not before:
            self._position = Position(self._state.log_end)
        if not days:
            self._former, self._unread = len(self._documents), EntryId(0)
            self._documents.clear()
        elif days > before:
            self._unread = EntryId(self._last + 1)

    async def remove_former(self, limit: int) -> int:
        removed = min(limit, self._former)
        self._former -= removed
        return removed

    async def merge(self, limit: int) -> int:
        return 0

    async def unread(
        self, since: datetime, limit: int
    ) -> tuple[list[EntryId], EntryId]:
        below = sorted(each for each in self._state.entries if each < self._unread)
        page = below[-limit:][::-1]
        wanted = [
            each
            for each in page
            if each not in self._documents and self._is_dated(each, since)
        ]
        return wanted, page[-1] if len(page) == limit else EntryId(0)

    def _is_dated(self, entry_id: EntryId, since: datetime | None) -> bool:
        entry = self._state.entries.get(entry_id)
        if entry is None or entry.stored.deleted:
            return False
        return since is None or entry.sorted_at >= since

    async def dated_before(self, moment: datetime, limit: int) -> list[EntryId]:
        found = [each for each in self._documents if not self._is_dated(each, moment)]
        found.sort(key=lambda each: self._state.entries[each].sorted_at)
        return found[:limit]

    async def waiting(self, limit: int) -> list[EntryId]:
        gone = [each for each in self._documents if each not in self._state.entries]
        return sorted(gone)[:limit]

    async def index(
        self,
        ids: Sequence[EntryId],
        documents: Sequence[SearchDocument],
        position: Position | None = None,
        *,
        since: datetime | None = None,
        unread: EntryId | None = None,
    ) -> None:
        for each in ids:
            self._documents.pop(each, None)
        self._documents |= {
            each.entry_id: each
            for each in documents
            if self._is_dated(each.entry_id, since)
        }
        self._position = self._position if position is None else position
        self._unread = self._unread if unread is None else unread

    async def find(
        self,
        wanted: Term,
        *,
        viewer: AccountId | None,
        limit: int,
        below: int | None = None,
        listed_only: bool = False,
    ) -> Matches:
        """Find documents; ``next`` counts those that were looked at."""
        matching = sorted(
            (
                self._state.entries[entry_id]
                for entry_id, document in self._documents.items()
                if entry_id in self._state.entries and _is_in(wanted, document)
            ),
            key=lambda each: (-each.sorted_at.timestamp(), each.stored.id),
        )
        start = below or 0
        page = matching[start : start + limit]
        found = [
            (place, each)
            for place, each in enumerate(page, start + 1)
            if self._may_see(viewer, each.stored, listed_only)
        ]
        return Matches(
            entries=tuple(each.stored for _, each in found),
            places=tuple(place for place, _ in found),
            dates=tuple(each.sorted_at.replace(microsecond=0) for _, each in found),
            next=start + limit if len(page) == limit else None,
        )

    def _may_see(
        self, viewer: AccountId | None, entry: StoredEntry, listed_only: bool
    ) -> bool:
        feed = self._state.feeds[entry.feed_id].stored
        if entry.deleted or not self._state.may_read(viewer, feed.id):
            return False
        is_unlisted = entry.unlisted or feed.polling.unlisted
        subscribers = {each.account for each in self._state.active(feed.id)}
        if viewer is None or not is_unlisted:
            return True
        return viewer in subscribers and not listed_only


def _is_in(term: Term, document: SearchDocument) -> bool:
    match term:
        case Phrase(words):
            text = " ".join(document.words.split())
            return f" {' '.join(words)} " in f" {text} "
        case PlaceTerm(name):
            return name in document.places
        case Both(members):
            return all(_is_in(each, document) for each in members)
        case Either(members):
            return any(_is_in(each, document) for each in members)
