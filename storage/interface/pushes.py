"""Push by hubs of others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from storage.records import (
    FeedId,
    NewPushCallback,
    PushCallback,
    PushCount,
    PushHub,
    Upstream,
)


class PushStore(Protocol):
    """Feeds that may be pushed, and callbacks that hubs of others know.

    What feeds offer, and how they are pushed, is written by `LogStore.commit`.
    """

    async def get(self, feed_id: FeedId) -> Upstream | None: ...

    async def of(self, ids: Sequence[FeedId]) -> list[Upstream]:
        """Of those feeds that have any."""
        ...

    async def due(
        self, now: datetime, *, limit: int, without: Collection[FeedId] = ()
    ) -> list[Upstream]:
        """Those of which something may have to be done now, the latest first."""
        ...

    async def postpone(self, feed_id: FeedId, due: datetime | None) -> None:
        """Not due before then, unless something happens to it."""
        ...

    async def switch(self, *, is_on: bool) -> None:
        """At the start. On: active feeds that rest until something happens are due.
        Off: those that a hub may push are, and are not pushed any more."""
        ...

    async def ask(self, new: NewPushCallback) -> None:
        """A hub is about to be told this callback; counted."""
        ...

    async def fail(
        self,
        callback: PushCallback,
        what: PushCount,
        *,
        trouble: str,
        retry_at: datetime,
    ) -> None:
        """A request led to nothing: its callback goes, and the next one waits."""
        ...

    async def confirm(self, callback: PushCallback, until: datetime) -> None:
        """The hub has confirmed it: active until then, and what failed is forgotten."""
        ...

    async def leave(self, callback: PushCallback, until: datetime) -> None:
        """It is not wanted any more; until then the hub may ask whether that is so."""
        ...

    async def drop(self, callback: PushCallback) -> None:
        """Its time is over, or its end was confirmed."""
        ...

    async def forget(self, feed_id: FeedId) -> None:
        """The feed is not pushed any more; unless it offers something again."""
        ...

    async def find(self, token: str) -> PushCallback | None:
        """By the last part of its path."""
        ...

    async def hint(self, callback: PushCallback, at: datetime) -> None:
        """The hub says that there is news, or what; counted as delivered. The latest
        hint that no fetch has heeded yet stays."""
        ...

    async def hinted(self, *, after: FeedId, limit: int) -> list[FeedId]:
        """Feeds with hints that no fetch has heeded yet, by id."""
        ...

    async def count(self, hub: str, what: PushCount) -> None: ...

    async def hubs(self, limit: int) -> list[PushHub]:
        """Those with the most confirmed subscriptions, and first of all "", for the
        sums over all hubs."""
        ...
