"""Entries of feeds, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import EntryId, EntryPlace, EntrySource, FeedId, StoredEntry


class EntryStore(Protocol):
    """Entries that are not deleted, of one feed or of several together.

    What a page costs depends on its length and the number of feeds only.
    """

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
        """The newest of those that are older than ``before`` and newer than ``after``;

        those two themselves are left out. ``also``: entries of other feeds that stand
        among them, each of which is looked at. ``listed_only``: without those that are
        unlisted, by themselves or with their feed.
        """
        ...

    async def place(
        self, feeds: Sequence[FeedId], keys: Sequence[str]
    ) -> EntryPlace | None:
        """Of the entry with one of these keys, also if it was deleted since."""
        ...

    async def place_of(self, entry_id: EntryId) -> EntryPlace | None: ...

    async def sources(self, feeds: Sequence[FeedId]) -> list[EntrySource]:
        """In the order asked for; unknown ids are left out."""
        ...
