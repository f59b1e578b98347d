"""Operational events, queued by the units of work that cause them.

A subscription gets an event once it has failed twice in a row, and another when it no
longer fails. In between, ``told_since`` holds the time since which it fails.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import msgspec

from protocols.operational_events import EventType
from storage.records import CONFIRMED_FAILURES, NewDeadLetter, OperationalEvent
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    pack_ids,
    to_milliseconds,
)

_WANTED: Final = (
    "SELECT 1 FROM feeds f CROSS JOIN feed_audience a ON a.feed_id = f.id"
    " WHERE f.state = 'events' AND a.subscribers > 0"
)


def are_wanted(connection: sqlite3.Connection) -> bool:
    """Whether anybody subscribes to events; if not, none is queued."""
    return connection.execute(f"{_WANTED} LIMIT 1").fetchone() is not None


def encode_event(event: OperationalEvent) -> str:
    return msgspec.json.encode(event).decode()


def queue_events(encoded: Iterable[str], connection: sqlite3.Connection) -> None:
    connection.executemany(
        "INSERT INTO event_queue (event) VALUES (?)", ((each,) for each in encoded)
    )


class _Failing(NamedTuple):
    """An active subscription to anything but events, as a row of `_ABOUT`."""

    id: int
    topic: str
    is_private: int
    callback: str
    since: int | None  # since when it fails
    reason: str
    code: int | None

    def event(self, type: EventType, at: int) -> OperationalEvent:
        return OperationalEvent(
            type=type,
            at=from_milliseconds(at),
            subject=self.id,
            url=self.topic,
            is_private=bool(self.is_private),
            callback=self.callback,
            since=from_milliseconds_or_none(self.since),
            reason=self.reason,
            code=self.code,
        )


_ABOUT: Final = """
SELECT s.id, t.url, f.private, s.callback,
    iif(s.condition = 'failing', s.condition_since, NULL), s.failure,
    iif(s.condition = 'failing', g.last_status, NULL)
FROM json_each(?) asked
CROSS JOIN subscriptions s ON s.id = asked.value AND s.state = 'active'
CROSS JOIN topics t ON t.id = s.topic_id
CROSS JOIN feeds f ON f.id = s.feed_id AND f.state <> 'events'
LEFT JOIN stragglers g ON g.subscription_id = s.id
"""


def _about(ids: Collection[int], connection: sqlite3.Connection) -> list[_Failing]:
    rows = connection.execute(f"{_ABOUT} ORDER BY s.id", (pack_ids(ids),))
    return [_Failing(*row) for row in rows]


def _queue(events: Iterable[OperationalEvent], connection: sqlite3.Connection) -> None:
    queue_events(map(encode_event, events), connection)


def queue_endings(
    ids: Collection[int], reason: str, at: int, connection: sqlite3.Connection
) -> None:
    """Queue events for those of these subscriptions that are active; called before they
    end."""
    if not are_wanted(connection):
        return
    events = (
        each._replace(reason=reason).event(EventType.SUBSCRIPTION_ENDED, at)
        for each in _about(ids, connection)
    )
    _queue(events, connection)


def queue_given_up(given_up: NewDeadLetter, connection: sqlite3.Connection) -> None:
    """Queue an event before a subscription becomes exhausted. An exhausted one causes
    no more: each new record is a single try."""
    if not are_wanted(connection):
        return
    told = connection.execute(
        "UPDATE subscriptions SET"
        " told_since = coalesce(told_since, condition_since, :at)"
        " WHERE id = :id AND NOT exhausted",
        {"id": given_up.subscription_id, "at": to_milliseconds(given_up.at)},
    )
    if not told.rowcount:
        return
    events = (
        msgspec.structs.replace(
            each._replace(reason=given_up.reason, code=None).event(
                EventType.SUBSCRIPTION_GIVEN_UP, to_milliseconds(given_up.at)
            ),
            first=given_up.first,
            last=given_up.last,
        )
        for each in _about([given_up.subscription_id], connection)
    )
    _queue(events, connection)


_RECOVERED: Final = """
SELECT s.id, s.told_since FROM json_each(?) asked
CROSS JOIN subscriptions s ON s.id = asked.value
WHERE s.told_since IS NOT NULL AND s.state = 'active' AND s.condition <> 'failing'
"""
_CONFIRMED: Final = f"""
SELECT s.id FROM json_each(?) asked
CROSS JOIN subscriptions s ON s.id = asked.value
CROSS JOIN stragglers g ON g.subscription_id = s.id
WHERE s.told_since IS NULL AND s.state = 'active' AND s.condition = 'failing'
    AND g.attempts >= {CONFIRMED_FAILURES}
"""


def queue_turns(ids: Collection[int], at: int, connection: sqlite3.Connection) -> None:
    """Queue events after the conditions of these subscriptions were stored."""
    listed = pack_ids(ids)
    recovered = dict(connection.execute(_RECOVERED, (listed,)).fetchall())
    if recovered:
        connection.execute(
            "UPDATE subscriptions SET told_since = NULL"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (pack_ids(recovered),),
        )
    if not are_wanted(connection):
        return
    _queue(
        (
            each._replace(since=recovered[each.id], reason="").event(
                EventType.SUBSCRIPTION_RECOVERED, at
            )
            for each in _about(recovered, connection)
        ),
        connection,
    )
    _queue_failing(listed, at, connection)


def _queue_failing(listed: str, at: int, connection: sqlite3.Connection) -> None:
    failing = [id for (id,) in connection.execute(_CONFIRMED, (listed,))]
    events = (
        each.event(EventType.SUBSCRIPTION_FAILING, at)
        for each in _about(failing, connection)
    )
    _queue(events, connection)
    connection.execute(
        "UPDATE subscriptions SET told_since = coalesce(condition_since, ?)"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (at, pack_ids(failing)),
    )
