"""Which feeds are due, the latest by their period first: one range of an index each.

Of each pace the first rows of its range are read, and the latest of all are chosen. So
a page costs the same however many feeds are overdue.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime

from storage.records import PACES, PlaceByPace
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.writer import Assignments

_BEFORE_ALL = (-1, 0)
_NOW, _LIMIT = "?1", "?2"


def _range(pace: int) -> str:
    """SQL for the feeds of one pace that follow its place, by (next_fetch, feed_id)."""
    place = f"(?{2 * pace + 3}, ?{2 * pace + 4})"
    return (
        "SELECT * FROM (SELECT feed_id, next_fetch, pace FROM schedule"
        f" WHERE is_active = 1 AND pace = {pace} AND next_fetch <= {_NOW}"
        f" AND (next_fetch, feed_id) > {place}"
        f" ORDER BY next_fetch, feed_id LIMIT {_LIMIT})"
    )


def _first(pace: int) -> str:
    return (
        "SELECT min(next_fetch) AS first FROM schedule"
        f" WHERE is_active = 1 AND pace = {pace}"
    )


def _oldest(pace: int) -> str:
    return (
        "SELECT * FROM (SELECT next_fetch AS first FROM schedule"
        f" WHERE is_active = 1 AND pace = {pace}"
        " AND feed_id NOT IN (SELECT value FROM json_each(?))"
        " ORDER BY next_fetch LIMIT 1)"
    ).replace("?", "?1")


_RANGES = " UNION ALL ".join(map(_range, range(PACES)))
_FIRSTS = " UNION ALL ".join(map(_first, range(PACES)))
_ORDER = "lateness DESC, next_fetch, feed_id"

DUE = (
    "SELECT f.id, CASE f.fetch_url WHEN '' THEN f.url ELSE f.fetch_url END,"
    " s.next_fetch, s.pace FROM (SELECT feed_id, next_fetch, pace,"
    f" ({_NOW} - next_fetch) * 1.0 / (1 << pace) AS lateness"
    f" FROM ({_RANGES}) ORDER BY {_ORDER} LIMIT {_LIMIT}) s"
    f" CROSS JOIN feeds f ON f.id = s.feed_id ORDER BY {_ORDER}"
)

NEXT_DUE = f"(SELECT min(first) FROM ({_FIRSTS}))"
"""The earliest next fetch of an active feed."""

_OLDEST = " UNION ALL ".join(map(_oldest, range(PACES)))
OLDEST_DUE = f"(SELECT min(first) FROM ({_OLDEST}))"
"""The same of those that are not in a list of ids, which is the first parameter."""

DEFER = Assignments(
    "UPDATE schedule SET next_fetch = asked.value FROM json_each(?) asked"
    " WHERE feed_id = CAST(asked.key AS INTEGER)"
)
"""The next fetch of feeds, in milliseconds."""


_OVERDUE = """
FROM schedule s JOIN feeds f ON f.id = s.feed_id
WHERE s.is_active = 1 AND s.next_fetch < :now AND f.polling <> x''
"""
SPREAD = f"""
UPDATE schedule SET next_fetch = :now + CAST(
    1000 * min(overdue.period, :window) * overdue.share AS INTEGER)
FROM (
    SELECT s.feed_id,
        coalesce(json_extract(CAST(f.polling AS TEXT), '$.period'), 0) AS period,
        (row_number() OVER (ORDER BY s.feed_id) * 2654435769 % 4294967296)
            / 4294967296.0 AS share
    {_OVERDUE}
) overdue WHERE overdue.feed_id = schedule.feed_id
"""
"""Multiples of the golden section, without their whole part, lie evenly."""


def spread_overdue(
    now: int, longest: float, per_second: float, connection: sqlite3.Connection
) -> int:
    ((count,),) = connection.execute(
        f"SELECT count(*) {_OVERDUE}", {"now": now}
    ).fetchall()
    window = min(longest, count / per_second)
    connection.execute(SPREAD, {"now": now, "window": window})
    return int(count)


def defer_all(assigned: str, connection: sqlite3.Connection) -> None:
    connection.execute(DEFER, (assigned,))


def due_parameters(now: datetime, after: PlaceByPace, limit: int) -> list[int]:
    """The parameters of `DUE`."""
    parameters = [to_milliseconds(now), limit]
    for pace in range(PACES):
        place = after.get(pace)
        at, feed_id = (to_milliseconds(place[0]), place[1]) if place else _BEFORE_ALL
        parameters += (at, feed_id)
    return parameters
