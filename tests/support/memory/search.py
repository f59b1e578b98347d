"""The search of the model: every document is looked at."""

from __future__ import annotations

from collections.abc import Sequence

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
    StoredEntry,
    Term,
)

from .state import State


class MemorySearch:
    def __init__(self, state: State) -> None:
        self._state = state
        self._position = Position(0)
        self._documents: dict[EntryId, SearchDocument] = {}

    async def position(self) -> Position:
        return self._position

    async def waiting(self, limit: int) -> list[EntryId]:
        gone = [each for each in self._documents if each not in self._state.entries]
        return sorted(gone)[:limit]

    async def index(
        self,
        ids: Sequence[EntryId],
        documents: Sequence[SearchDocument],
        position: Position | None = None,
    ) -> None:
        for each in ids:
            self._documents.pop(each, None)
        self._documents |= {
            each.entry_id: each
            for each in documents
            if each.entry_id in self._state.entries
        }
        self._position = self._position if position is None else position

    async def find(
        self,
        wanted: Term,
        *,
        viewer: AccountId | None,
        limit: int,
        below: int | None = None,
        listed_only: bool = False,
    ) -> Matches:
        """``next`` counts the documents that were looked at."""
        matching = sorted(
            (
                self._state.entries[entry_id]
                for entry_id, document in self._documents.items()
                if entry_id in self._state.entries and _is_in(wanted, document)
            ),
            key=lambda each: (-each.sorted_at.timestamp(), each.stored.id),
        )
        start = below or 0
        page = [each.stored for each in matching[start : start + limit]]
        return Matches(
            entries=tuple(
                each for each in page if self._may_see(viewer, each, listed_only)
            ),
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
