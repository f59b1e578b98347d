"""Every column that keeps a time, and how far ahead of the clock it may lie.

At an opening, and when the clock has gone back, times farther ahead are brought within
their limit: otherwise the hub would wait for a time that only a wrong clock has named.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from protocols.websub.websub_parameters import LONGEST_LEASE
from storage.clock_steps import (
    LONGEST_RETRY_AFTER,
    LONGEST_WAIT,
    NOTICED,
    FeedTimes,
    capped_times,
    correct_times,
)
from storage.records import Polling, PushRecord
from storage.sqlite.columns import from_milliseconds, to_milliseconds
from storage.sqlite.polling_state import encode_cold, encode_hot

_MILLISECOND = timedelta(milliseconds=1)
_SECOND, _HOUR, _DAY = (timedelta(seconds=each) for each in (1, 3_600, 86_400))
_LEASE = timedelta(seconds=LONGEST_LEASE)
_ENDLESS = timedelta(days=3_651)
"""The limit for a lease that another hub grants: as long as Superfeedr's endless
ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """``ahead``: how far a time may lie ahead; 0 for a past time that is acted upon.

    ``is_wait``: something waits for the time, which is moved back with the clock.
    ``among``: the rows that are looked at, so that an index finds them. ``is_sought``:
    no index finds them, so they are looked for only when the clock has gone back.
    ``unit``: what the column counts in.
    """

    ahead: timedelta = timedelta(0)
    is_wait: bool = False
    among: str = "TRUE"
    is_sought: bool = False
    unit: timedelta = _MILLISECOND


HISTORY: Final = None
"""For a time that is shown and compared with others, but decides nothing."""

_NEW_RECORDS = (
    "position > coalesce((SELECT position FROM records WHERE at <= :latest"
    " ORDER BY position DESC LIMIT 1), 0)"
)

TIME_COLUMNS: Final[Mapping[str, Mapping[str, Limit | None]]] = {
    "attempts": {"at": Limit()},
    "audit": {"at": HISTORY},
    "chunks": {"at": Limit(), "due": Limit(ahead=_HOUR, is_wait=True)},
    "claims": {"until": Limit(ahead=_HOUR, is_wait=True)},
    "dead": {"at": HISTORY},
    "deliveries": {"at": Limit()},
    "digests": {"due": Limit(ahead=_DAY, is_wait=True)},
    "disk_samples": {"at": HISTORY},  # the next sample deletes those ahead
    "entries": {"sorted_at": HISTORY},
    "feeds": {
        "condition_since": HISTORY,
        "created_at": HISTORY,
        "removed_at": Limit(among="state = 'removed'"),
        "turned_at": HISTORY,
    },
    "host_holds": {"until": Limit(ahead=LONGEST_RETRY_AFTER, is_wait=True)},
    "list_watches": {
        "changed_at": HISTORY,
        "created_at": HISTORY,
        "due": Limit(ahead=timedelta(days=7), is_wait=True),
        "read_at": HISTORY,
    },
    "meta": {"seen_at": Limit()},
    "page_entries": {"dated": HISTORY, "stated": HISTORY},
    "pages": {
        "changed_at": Limit(),
        "dated": HISTORY,
        "modified": Limit(is_sought=True, unit=_SECOND),
        "published": Limit(is_sought=True, unit=_SECOND),
        "shown_at": Limit(is_sought=True),
    },
    "plans": {
        "confirmed_at": Limit(),
        "created_at": HISTORY,
        "expires_at": Limit(ahead=_HOUR),
        "finished_at": HISTORY,
    },
    "playground_runs": {"used_at": HISTORY},
    "push_callbacks": {"asked_at": Limit(), "until": Limit(ahead=_ENDLESS)},
    "pushes": {
        "asked_at": Limit(),
        "due": Limit(ahead=_ENDLESS, is_wait=True),
        "hinted_at": Limit(),
        "retry_at": Limit(ahead=timedelta(days=7), is_wait=True),
        "until": Limit(ahead=_ENDLESS),
    },
    "records": {"at": Limit(among=_NEW_RECORDS)},
    "schedule": {"next_fetch": Limit(ahead=LONGEST_WAIT)},  # and see `_correct_feeds`
    "section_pages": {"modified": Limit(is_sought=True, unit=_SECOND)},
    "fine_samples": {"at": HISTORY},  # the next sample deletes those ahead
    "series_samples": {"at": HISTORY},  # likewise
    "sessions": {"created_at": Limit(), "used_at": Limit()},
    "standings": {
        "due": Limit(ahead=_DAY, is_wait=True),
        "maintained_at": Limit(is_sought=True),
    },
    "stragglers": {
        "due": Limit(ahead=_DAY, is_wait=True),
        "failing_since": Limit(),
        "news_from": Limit(ahead=_DAY, is_wait=True),
        "next_try": Limit(ahead=_DAY, is_wait=True),
    },
    "subscriptions": {
        "condition_since": HISTORY,
        "created_at": HISTORY,
        "ended_at": Limit(among="state = 'ended'"),
        "former_until": Limit(ahead=_LEASE),
        "lease_end": Limit(ahead=_LEASE, among="state = 'active'"),
        "paused_at": HISTORY,
        "told_since": HISTORY,
    },
    "tokens": {"created_at": HISTORY, "revoked_at": HISTORY, "used_at": Limit()},
    "track_queries": {"wanted_at": Limit()},
    "verifications": {
        "created_at": HISTORY,
        "due": Limit(ahead=_HOUR, is_wait=True),
        "kept_until": Limit(ahead=_LEASE + timedelta(days=7)),
        "tried_at": HISTORY,
    },
}
"""The time columns by table. Times in states of feeds and hubs, which are JSON, are
corrected by `storage.clock_steps`."""

_polling_decoder = msgspec.json.Decoder(Polling)
_record_decoder = msgspec.json.Decoder(PushRecord)


def note_time(now: int, is_first: bool, connection: sqlite3.Connection) -> int:
    """Note the time; returns how many milliseconds the clock went back since the last
    note, 0 if it did not.

    If it did, all waiting times are moved back with it. ``is_first``: at an opening,
    where limits are applied in any case: the file may come from a version that noted no
    time.
    """
    ((seen,),) = connection.execute("SELECT seen_at FROM meta").fetchall()
    back = seen - now if seen - now >= NOTICED / _MILLISECOND else 0
    if back or not seen:
        _correct_feeds(now, back, connection)
        _correct_pushes(now, connection)
    if back or is_first:
        hold_columns(now, back, connection)
    latest = now if back else max(seen, now)
    connection.execute("UPDATE meta SET seen_at = ?", (latest,))
    return int(back)


def hold_columns(now: int, back: int, connection: sqlite3.Connection) -> None:
    for table, columns in TIME_COLUMNS.items():
        for column, limit in columns.items():
            if limit is None or (limit.is_sought and not back):
                continue
            if limit.is_wait and back:
                connection.execute(
                    f"UPDATE {table} SET {column} = max(:now, {column} - :back)"
                    f" WHERE {column} > :now",
                    {"now": now, "back": back},
                )
            latest = (now * _MILLISECOND + limit.ahead) // limit.unit
            connection.execute(
                f"UPDATE {table} SET {column} = :latest"
                f" WHERE {column} > :latest AND {limit.among}",
                {"latest": latest},
            )


def _correct_feeds(now: int, back: int, connection: sqlite3.Connection) -> None:
    at, step = from_milliseconds(now), back * _MILLISECOND
    rows = connection.execute(
        "SELECT id, polling, created_at, next_fetch FROM stored_feeds"
    )
    for feed_id, polling, created_at, next_fetch in rows.fetchall():
        found = FeedTimes(
            polling=_polling_decoder.decode(polling) if polling else Polling(),
            created_at=from_milliseconds(created_at),
            next_fetch=from_milliseconds(next_fetch),
        )
        right = correct_times(found, at, step)
        if right.next_fetch != found.next_fetch:
            connection.execute(
                "UPDATE schedule SET next_fetch = ? WHERE feed_id = ?",
                (to_milliseconds(right.next_fetch), feed_id),
            )
        if right.polling != found.polling:
            connection.execute(
                "UPDATE feeds SET polling = ?, version = version + 1 WHERE id = ?",
                (encode_cold(right.polling), feed_id),
            )
            connection.execute(
                "UPDATE feed_hot SET polling = ? WHERE feed_id = ?",
                (encode_hot(right.polling), feed_id),
            )


def _correct_pushes(now: int, connection: sqlite3.Connection) -> None:
    at = from_milliseconds(now)
    rows = connection.execute("SELECT feed_id, record FROM pushes").fetchall()
    for feed_id, record in rows:
        found = _record_decoder.decode(record)
        right = capped_times(found, at, timedelta(0))
        if right != found:
            connection.execute(
                "UPDATE pushes SET record = ? WHERE feed_id = ?",
                (msgspec.json.encode(right), feed_id),
            )
