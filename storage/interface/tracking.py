"""Track queries: topics without a feed of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeAlias

from storage.records import (
    NOBODY,
    AccountId,
    FeedId,
    StoredFeed,
    TrackMatch,
    TrackQuery,
)

QueryListener: TypeAlias = Callable[[int, Sequence[TrackQuery], Sequence[FeedId]], None]
"""Is told the version, the queries that came, and the feeds of those that went. The
version is 0 where none came."""


class TrackStore(Protocol):
    """Each query is a feed in the state ``TRACK``, private and never due.

    Whatever reads records, and subscriptions, take it for a feed.
    """

    async def add(
        self, name: str, query: str, now: datetime, owner: AccountId = NOBODY
    ) -> StoredFeed:
        """The feed of an account's query, made or brought back if need be; it is wanted
        now. It finds what its owner may read; nobody's, what is public.

        That is noted once an hour, so that reading what a query finds writes nothing.
        ``name`` is what all spellings of the query have in common. The first spelling
        is kept.
        """
        ...

    async def find(self, name: str) -> StoredFeed | None:
        """Of any owner, the first; also one that is removed."""
        ...

    async def version(self) -> int:
        """How often queries came: see `storage.records.Matched`."""
        ...

    async def page(self, *, after: FeedId, limit: int) -> list[TrackQuery]:
        """Queries that are not removed, by id."""
        ...

    async def sample(self, limit: int, most_bytes: int) -> list[bytes]:
        """Packed bodies among the entries stored last, of feeds that are public now.

        At most ``limit`` are looked at, and none larger than ``most_bytes`` is taken.
        """
        ...

    async def matches(self, feeds: Sequence[FeedId], records: int) -> list[TrackMatch]:
        """What queries found, the last first: of each query its last ``records``.

        As far back as the log, and of feeds that the query's owner may read now.
        """
        ...

    async def retire(
        self,
        unwanted_since: datetime,
        listened: Sequence[FeedId],
        now: datetime,
        limit: int,
    ) -> int:
        """Remove queries that nobody has wanted since then; how many.

        Wanted are those with subscriptions, until these ended, and those just asked
        for or ``listened`` to now. A removed one returns, or is purged, as feeds are.
        """
        ...

    def watch(self, tell: QueryListener) -> AbstractContextManager[None]:
        """While entered, tell of queries that come and go.

        On the event loop, as soon as it is durable, and before whoever did it goes on.
        """
        ...
