"""Deletes the oldest records, and entry states that nothing refers to any more.

The log is trimmed from its beginning only, so one position, the tail, says what is
gone. Nothing is deleted that a fan-out or a chunk still has to deliver. A retry holds
up the soft limits but not the hard ones; then what it missed becomes a dead letter.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from storage.records import Retention
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.retries import add_dead_letter
from storage.sqlite.rows import PACKED_REF_BYTES

MOST_TRIMMED_ENTRIES = 1_000
"""The most entries named by the records deleted together, unless a single record names
more."""
LATEST_ENTRIES = 50
"""Entries of each feed that are kept however old, for replays and late subscribers."""

TRIMMED = "trimmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimLimits:
    """Records older than the times (milliseconds) or beyond the counts may be deleted.

    So may records up to the ends, unless they are from ``spared_from`` or later.
    """

    now: int
    soft_before: float
    soft_count: int
    hard_before: float
    hard_count: int
    soft_end: int
    hard_end: int
    spared_from: float


def encode_limits(retention: Retention, now: datetime) -> TrimLimits:
    at = to_milliseconds(now)
    return TrimLimits(
        now=at,
        soft_before=at - retention.soft_age * 1000,
        soft_count=retention.soft_count,
        hard_before=at - retention.hard_age * 1000,
        hard_count=retention.hard_count,
        soft_end=retention.soft_end,
        hard_end=retention.hard_end,
        spared_from=at - retention.spared_age * 1000,
    )


def trim_log(limits: TrimLimits, limit: int, connection: sqlite3.Connection) -> int:
    """Trim the log; returns how many positions were trimmed, ``limit`` at most. They
    include positions whose records were deleted with their feed before."""
    ((log_end, tail),) = connection.execute("SELECT head, tail FROM meta").fetchall()
    last = min(
        _before_many_entries(tail, limit, connection),
        _before_undelivered(log_end, connection),
    )
    spared = _before_spared(limits.spared_from, tail, last, connection)
    soft = max(
        _last_beyond(
            limits.soft_before, log_end - limits.soft_count, tail, last, connection
        ),
        min(limits.soft_end, spared),
    )
    hard = max(
        _last_beyond(
            limits.hard_before, log_end - limits.hard_count, tail, last, connection
        ),
        min(limits.hard_end, spared),
    )
    end = max(hard, min(soft, _before_retries(soft, connection)))
    if end <= tail:
        return 0
    _pass_retries_by(end, limits.now, connection)
    _drop(end, connection)
    return int(end - tail)


def _before_many_entries(tail: int, limit: int, connection: sqlite3.Connection) -> int:
    """The end of the oldest records that a short transaction can drop; one at least."""
    rows = connection.execute(
        "SELECT position, length(refs) / ? FROM records WHERE position > ?"
        " AND position <= ? ORDER BY position",
        (PACKED_REF_BYTES, tail, tail + limit),
    )
    left = MOST_TRIMMED_ENTRIES
    for number, (position, entries) in enumerate(rows):
        left -= entries
        if left < 0:
            return int(position) - (number > 0)
    return tail + limit


def _before_undelivered(log_end: int, connection: sqlite3.Connection) -> int:
    ((last,),) = connection.execute(
        "SELECT min(coalesce((SELECT min(position) - 1 FROM fanouts), :log_end),"
        " coalesce((SELECT min(position) - 1 FROM chunks), :log_end))",
        {"log_end": log_end},
    ).fetchall()
    return int(last)


def _last_beyond(
    before: float, position: int, tail: int, last: int, connection: sqlite3.Connection
) -> int:
    """The end of the oldest records that are all beyond a limit."""
    ((kept,),) = connection.execute(
        "SELECT min(position) FROM records WHERE position > ? AND position <= ?"
        " AND at >= ? AND position > ?",
        (tail, last, before, position),
    ).fetchall()
    return last if kept is None else int(kept) - 1


def _before_spared(
    spared_from: float, tail: int, last: int, connection: sqlite3.Connection
) -> int:
    """The end of the oldest records old enough to be deleted for the log's size."""
    ((spared,),) = connection.execute(
        "SELECT min(position) FROM records WHERE position > ? AND position <= ?"
        " AND at >= ?",
        (tail, last, spared_from),
    ).fetchall()
    return last if spared is None else int(spared) - 1


def _before_retries(end: int, connection: sqlite3.Connection) -> int:
    """The position up to which no retry needs a record, at most ``end``."""
    ((needed,),) = connection.execute(
        "SELECT min((SELECT min(r.position) FROM records r"
        " WHERE r.feed_id = s.feed_id AND r.position > s.position))"
        " FROM stragglers s WHERE s.position < ?",
        (end,),
    ).fetchall()
    return end if needed is None else int(needed) - 1


def _pass_retries_by(end: int, now: int, connection: sqlite3.Connection) -> None:
    """Move retries past the deleted records; wanted ones among these become a dead
    letter."""
    missed = connection.execute(
        "SELECT s.subscription_id, min(r.position), max(r.position)"
        " FROM stragglers s JOIN subscriptions b ON b.id = s.subscription_id"
        " JOIN records r ON r.feed_id = s.feed_id"
        "  AND r.position > s.position AND r.position <= :end"
        " WHERE s.position < :end"
        " AND NOT (r.position > coalesce(s.skip_after, r.position)"
        "  AND r.position <= coalesce(s.skip_to, 0))"
        " AND EXISTS (SELECT 1 FROM temp.wanted w"
        "  WHERE w.taker = b.format || '/' || b.updates"
        "  AND w.news = r.news)"
        " GROUP BY s.subscription_id",
        {"end": end},
    ).fetchall()
    for subscription_id, first, last in missed:
        add_dead_letter(subscription_id, first, last, TRIMMED, now, connection)
        connection.execute(
            "UPDATE stragglers SET position = ?, missed_last = ?,"
            " missed_first = coalesce(missed_first, ?) WHERE subscription_id = ?",
            (end, last, first, subscription_id),
        )


def _drop(end: int, connection: sqlite3.Connection) -> None:
    found = connection.execute(
        "SELECT coalesce(source_id, feed_id) FROM records WHERE position <= ?", (end,)
    ).fetchall()
    connection.execute(
        "INSERT OR REPLACE INTO trimmed SELECT feed_id, max(position) FROM records"
        " WHERE position <= ? AND kind != 'baseline' GROUP BY feed_id",
        (end,),
    )
    connection.execute("DELETE FROM records WHERE position <= ?", (end,))
    connection.execute("UPDATE meta SET tail = ?", (end,))
    for (feed_id,) in set(found):
        _drop_entries(feed_id, end, connection)


def _drop_entries(feed_id: int, end: int, connection: sqlite3.Connection) -> None:
    connection.execute(
        "DELETE FROM entries WHERE feed_id = :feed_id AND last_position <= :end"
        " AND id NOT IN (SELECT id FROM entries WHERE feed_id = :feed_id"
        "  AND deleted = 0 ORDER BY sorted_at DESC, id LIMIT :latest)",
        {"feed_id": feed_id, "end": end, "latest": LATEST_ENTRIES},
    )
