"""What maintenance finds out about feeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import FeedId, Standing, StandingWrite


class StandingStore(Protocol):
    """A feed is due ten minutes after it was added, then when its standing says."""

    async def due(self, now: datetime, limit: int) -> list[FeedId]:
        """Feeds that are not removed, the longest due first."""
        ...

    async def save(self, standings: Sequence[StandingWrite]) -> None:
        """Those of feeds that were purged meanwhile are left out."""
        ...

    async def get(self, feed_id: FeedId) -> Standing | None:
        """None before the first maintenance."""
        ...

    async def linking(self, site: str, feed_id: FeedId, most: int) -> int:
        """Other feeds with links to pages of a site, at most so many."""
        ...

    async def related(self, feed_id: FeedId, limit: int) -> list[FeedId]:
        """Other public feeds of the same site, by id."""
        ...

    async def of_site(self, site: str, limit: int) -> list[FeedId]:
        """Public feeds whose page it is (`hub.core.standing.site_of`), by id.

        None for "".
        """
        ...
