"""`storage.contract.FeedStatisticsStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.postgres.claims import unclaimed
from storage.postgres.connections import Connections
from storage.postgres.fetch_commits import to_jsonb
from storage.records import (
    FeedId,
    FeedStatistics,
    FeedStatisticsWrite,
    WorkKind,
)
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.feed_statistics import read_statistics

_PUBLIC: Final = "NOT f.private AND NOT f.unlisted AND f.state <> 'removed'"
_LINKING: Final = """
SELECT count(*) FROM (SELECT DISTINCT l.feed_id FROM feed_links l
    JOIN feeds f ON f.id = l.feed_id AND f.state <> 'removed'
    WHERE (l.place = %(site)s
        OR l.place >= %(site)s || '/' AND l.place < %(site)s || '0')
    AND l.feed_id <> %(feed)s LIMIT %(most)s) linking
"""
_RELATED: Final = f"""
SELECT o.feed_id FROM feed_statistics s
JOIN feed_statistics o ON o.site = s.site AND o.site <> ''
JOIN feeds f ON f.id = o.feed_id AND {_PUBLIC}
WHERE s.feed_id = %(feed)s AND o.feed_id <> %(feed)s
ORDER BY o.feed_id LIMIT %(limit)s
"""


class PostgresFeedStatistics:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def due(self, now: datetime, limit: int) -> list[FeedId]:
        rows = await self._connections.all(
            "SELECT s.feed_id FROM feed_statistics s JOIN feeds f ON f.id = s.feed_id"
            " WHERE s.due <= %(now)s AND f.state <> 'removed'"
            " AND (%(owner)s = 0 OR owns_feed(%(owner)s, f.id))"
            f" AND {unclaimed(WorkKind.STATISTICS, 's.feed_id')}"
            " ORDER BY s.due LIMIT %(limit)s",
            {"now": now, "owner": self._connections.owner, "limit": limit},
        )
        return [FeedId(feed_id) for (feed_id,) in rows]

    async def save(
        self, feed_statistics: Sequence[FeedStatisticsWrite], *, lease_id: int
    ) -> frozenset[FeedId]:
        ((held,),) = await self._connections.write(
            "SELECT save_statistics(convert_from(%s, 'UTF8')::jsonb, %s, %s)",
            (
                to_jsonb([_encode(each) for each in feed_statistics]),
                lease_id,
                self._connections.incarnation,
            ),
        )
        return frozenset(map(FeedId, held))

    async def get(self, feed_id: FeedId) -> FeedStatistics | None:
        row = await self._connections.first(
            "SELECT maintained_at, popularity, porn_rank, is_stale"
            " FROM feed_statistics WHERE feed_id = %s",
            (feed_id,),
        )
        return None if row is None else read_statistics(row)

    async def linking(self, site: str, feed_id: FeedId, most: int) -> int:
        row = await self._connections.first(
            _LINKING, {"site": site, "feed": feed_id, "most": most}
        )
        return row[0] if row else 0

    async def related(self, feed_id: FeedId, limit: int) -> list[FeedId]:
        rows = await self._connections.all(_RELATED, {"feed": feed_id, "limit": limit})
        return [FeedId(other) for (other,) in rows]

    async def of_site(self, site: str, limit: int) -> list[FeedId]:
        rows = await self._connections.all(
            "SELECT s.feed_id FROM feed_statistics s"
            f" JOIN feeds f ON f.id = s.feed_id AND {_PUBLIC}"
            " WHERE s.site = %s AND s.site <> '' ORDER BY s.feed_id LIMIT %s",
            (site, limit),
        )
        return [FeedId(feed_id) for (feed_id,) in rows]


def _encode(write: FeedStatisticsWrite) -> dict[str, object]:
    return {
        "feed_id": write.feed_id,
        "due": to_milliseconds(write.due),
        "at": to_milliseconds(write.statistics.maintained_at),
        "popularity": write.statistics.popularity,
        "porn_rank": write.statistics.porn_rank,
        "is_stale": write.statistics.is_stale,
        "site": write.site,
        "places": sorted(write.places),
    }
