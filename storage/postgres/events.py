"""`storage.contract.EventStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from protocols.model import Status
from protocols.operational_events import EventType, takes
from storage.postgres.connections import Connections, Row
from storage.postgres.deliveries import FollowingClaims
from storage.postgres.fetch_commits import to_jsonb
from storage.postgres.rows import news_of
from storage.records import OperationalEvent, Position, RecordKind, StoredFeed
from storage.sqlite.log_end import LogEnd
from storage.sqlite.rows import decode_event, hash_key, read_feed

_STATUS: Final = msgspec.json.encode(Status())
_NEWS: Final = news_of(RecordKind.EVENT, any_fresh=False, is_superseded=False)
_PUBLISH: Final = (
    "SELECT published, head FROM"
    " publish_events(convert_from(%s, 'UTF8')::jsonb, %s, %s, %s, %s)"
)
_NOTE: Final = (
    "SELECT note_hub_conditions(convert_from(%s, 'UTF8')::jsonb,"
    " convert_from(%s, 'UTF8')::jsonb, %s::text[], %s::text[])"
)


class PostgresEvents:
    def __init__(
        self, connections: Connections, log_end: LogEnd, claims: FollowingClaims
    ) -> None:
        self._connections = connections
        self._log_end = log_end
        self._claims = claims

    async def topic(self, name: str, now: datetime) -> StoredFeed:
        rows = await self._connections.write(
            "SELECT * FROM topic_of_events(%s, %s, %s)", (name, hash_key(name), now)
        )
        return read_feed(rows[0])

    async def publish(self, now: datetime, limit: int) -> int:
        if await self._connections.first("SELECT 1 FROM event_queue LIMIT 1") is None:
            return 0
        takers = to_jsonb(await self._takers())
        terms = self._claims.ask()
        try:
            rows = await self._connections.write(
                _PUBLISH, (takers, _NEWS, _STATUS, now, limit), then=self._advance
            )
        finally:
            if terms is not None:
                self._claims.follow(terms)
        return int(rows[0][0])

    async def _takers(self) -> dict[str, list[int]]:
        """The feeds of the topics that take each type of event."""
        topics = await self._connections.all(
            "SELECT id, url FROM feeds WHERE state = 'events' ORDER BY id"
        )
        return {
            type.value: [feed_id for feed_id, topic in topics if takes(topic, type)]
            for type in EventType
        }

    def _advance(self, rows: Sequence[Row]) -> None:
        self._log_end.advance((Position(rows[0][1]),))

    async def note_conditions(
        self, holding: Sequence[OperationalEvent], now: datetime
    ) -> None:
        by_name = {each.condition: each for each in holding}
        rows = await self._connections.all("SELECT name, event FROM hub_conditions")
        known = {name: decode_event(event) for name, event in rows}
        if by_name.keys() == known.keys():
            return
        begun = [each for name, each in sorted(by_name.items()) if name not in known]
        over = [
            replace(each, at=now, is_over=True)
            for name, each in sorted(known.items())
            if name not in by_name
        ]
        names = [[each.condition for each in events] for events in (begun, over)]
        await self._connections.write(_NOTE, (to_jsonb(begun), to_jsonb(over), *names))
