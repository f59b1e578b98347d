"""`storage.contract.FeedStatisticsStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from storage.records import (
    FeedId,
    FeedStatistics,
    FeedStatisticsWrite,
    WorkKind,
)
from storage.sqlite.claims import end_claims, unclaimed
from storage.sqlite.columns import from_milliseconds, to_milliseconds
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer


class SqliteFeedStatistics:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def due(self, now: datetime, limit: int) -> list[FeedId]:
        rows = await self._readers.all(
            "SELECT s.feed_id FROM standings s CROSS JOIN feeds f ON f.id = s.feed_id"
            " WHERE s.due <= ? AND f.state <> 'removed'"
            f" AND {unclaimed(WorkKind.STATISTICS, 's.feed_id')}"
            " ORDER BY s.due LIMIT ?",
            (to_milliseconds(now), to_milliseconds(now), limit),
        )
        return [FeedId(feed_id) for (feed_id,) in rows]

    async def save(
        self, feed_statistics: Sequence[FeedStatisticsWrite], *, lease_id: int
    ) -> frozenset[FeedId]:
        encoded = {each.feed_id: _encode(each) for each in feed_statistics}
        held = await self._writer.submit(partial(_save, encoded, lease_id))
        return frozenset(map(FeedId, held))

    async def get(self, feed_id: FeedId) -> FeedStatistics | None:
        row = await self._readers.first(
            "SELECT maintained_at, popularity, porn_rank, is_stale FROM standings"
            " WHERE feed_id = ?",
            (feed_id,),
        )
        return None if row is None else read_statistics(row)

    async def linking(self, site: str, feed_id: FeedId, most: int) -> int:
        row = await self._readers.first(
            "SELECT count(*) FROM (SELECT DISTINCT l.feed_id FROM feed_links l"
            " CROSS JOIN feeds f ON f.id = l.feed_id AND f.state <> 'removed'"
            " WHERE (place = :site"
            "  OR (place >= :site || '/' AND place < :site || '0'))"
            " AND l.feed_id <> :feed_id LIMIT :most)",
            {"site": site, "feed_id": feed_id, "most": most},
        )
        return row[0] if row else 0

    async def related(self, feed_id: FeedId, limit: int) -> list[FeedId]:
        rows = await self._readers.all(
            "SELECT o.feed_id FROM standings s"
            " CROSS JOIN standings o ON o.site = s.site AND o.site <> ''"
            " CROSS JOIN feeds f ON f.id = o.feed_id"
            " WHERE s.feed_id = :id AND o.feed_id <> :id"
            " AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed'"
            " ORDER BY o.feed_id LIMIT :limit",
            {"id": feed_id, "limit": limit},
        )
        return [FeedId(other) for (other,) in rows]

    async def of_site(self, site: str, limit: int) -> list[FeedId]:
        rows = await self._readers.all(
            "SELECT s.feed_id FROM standings s"
            " CROSS JOIN feeds f ON f.id = s.feed_id"
            " WHERE s.site = ? AND s.site <> ''"
            " AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed'"
            " ORDER BY s.feed_id LIMIT ?",
            (site, limit),
        )
        return [FeedId(feed_id) for (feed_id,) in rows]


def read_statistics(row: Row) -> FeedStatistics | None:
    """Statistics from the columns time of maintenance, popularity, porn rank and
    staleness."""
    maintained_at, popularity, porn_rank, is_stale = row
    if maintained_at is None:
        return None
    return FeedStatistics(
        maintained_at=from_milliseconds(maintained_at),
        popularity=popularity,
        porn_rank=porn_rank,
        is_stale=bool(is_stale),
    )


def _encode(write: FeedStatisticsWrite) -> dict[str, object]:
    return {
        "feed_id": write.feed_id,
        "due": to_milliseconds(write.due),
        "at": to_milliseconds(write.statistics.maintained_at),
        "popularity": write.statistics.popularity,
        "porn_rank": write.statistics.porn_rank,
        "is_stale": write.statistics.is_stale,
        "site": write.site,
        "places": msgspec.json.encode(sorted(write.places)).decode(),
    }


def _save(
    encoded: Mapping[FeedId, dict[str, object]],
    lease_id: int,
    connection: sqlite3.Connection,
) -> list[int]:
    held = end_claims(WorkKind.STATISTICS, [*encoded], lease_id, connection)
    for each in map(encoded.__getitem__, map(FeedId, held)):
        updated = connection.execute(
            "UPDATE standings SET due = :due, maintained_at = :at,"
            " popularity = :popularity, porn_rank = :porn_rank, is_stale = :is_stale,"
            " site = :site WHERE feed_id = :feed_id",
            each,
        )
        if updated.rowcount:
            connection.execute(
                "DELETE FROM feed_links WHERE feed_id = :feed_id AND place NOT IN"
                " (SELECT value FROM json_each(:places))",
                each,
            )
            connection.execute(
                "INSERT OR IGNORE INTO feed_links"
                " SELECT value, :feed_id FROM json_each(:places)",
                each,
            )
    return held
