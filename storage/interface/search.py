"""Entries found by what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import (
    AccountId,
    EntryId,
    Matches,
    Position,
    SearchDocument,
    Term,
)


class SearchStore(Protocol):
    """An index of words, kept by a reader of the log; there may be one only."""

    async def position(self) -> Position:
        """Up to where the log was read for the index."""
        ...

    async def waiting(self, limit: int) -> list[EntryId]:
        """Entries that are to be looked at though the log does not name them."""
        ...

    async def index(
        self,
        ids: Sequence[EntryId],
        documents: Sequence[SearchDocument],
        position: Position | None = None,
    ) -> None:
        """Put these documents in the place of whatever was known of ``ids``.

        Those of ``ids`` without a document are forgotten, and none waits any longer.
        ``position`` None: as it was.
        """
        ...

    async def find(
        self,
        wanted: Term,
        *,
        viewer: AccountId | None,
        limit: int,
        below: int | None = None,
        listed_only: bool = False,
    ) -> Matches:
        """Look at so many documents that match, newest first, on from ``below``; at
        fewer where they are large.

        Deleted entries and those of removed feeds are left out, and private and
        unlisted ones of feeds to which the ``viewer`` does not subscribe; with
        ``listed_only`` unlisted ones of all feeds. None sees all.
        """
        ...
