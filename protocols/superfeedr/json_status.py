"""The status block as an object."""

from __future__ import annotations

from protocols.model import Status
from protocols.superfeedr.json_values import JsonObject, seconds


def status_object(
    status: Status,
    *,
    topic: str,
    has_generated_ids: bool = False,
    is_digest: bool = False,
) -> JsonObject:
    """``code``, ``http`` and ``feed`` are always there; the rest only when known."""
    facts = {
        "nextFetch": seconds(status.next_fetch) if status.next_fetch else None,
        "entriesCountSinceLastMaintenance": status.entries_count_since_last_maintenance,
        "velocity": status.velocity,
        "popularity": status.popularity,
        "pornRank": status.porn_rank,
        "bozoRank": status.bozo_rank,
        "generatedIds": has_generated_ids or None,
        "title": status.title or None,
        "period": status.period,
        "lastFetch": seconds(status.last_fetch) if status.last_fetch else None,
        "lastParse": seconds(status.last_parse) if status.last_parse else None,
        "lastMaintenanceAt": (
            seconds(status.last_maintenance_at) if status.last_maintenance_at else None
        ),
        "digest": is_digest or None,
    }
    known = {key: value for key, value in facts.items() if value is not None}
    return {"code": status.code, "http": status.http, **known, "feed": topic}
