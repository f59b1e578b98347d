"""What entries come to, taken into the pages: one unit of the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from storage.records import JudgedEntry

from .log_rows import hash_key
from .page_counts import CountChanges
from .times import to_milliseconds, to_milliseconds_or_none

_Page = tuple[int, str]
"""A page's id, and the section that an entry of it was in."""


def judge_all(
    judged: Sequence[JudgedEntry], now: int, connection: sqlite3.Connection
) -> None:
    """Every unit has a time of its own, after all before it, whatever the clock says:

    so who has seen all up to a time can go on from there.
    """
    change, last = connection.execute(
        "SELECT change, changed_at FROM pages ORDER BY change DESC LIMIT 1"
    ).fetchone() or (0, 0)
    counts = CountChanges()
    moment = max(now, last + 1)
    for each in judged:
        change = _judge(each, moment, max(change, 0), counts, connection)
    counts.write(connection)


def _judge(
    each: JudgedEntry,
    now: int,
    change: int,
    counts: CountChanges,
    connection: sqlite3.Connection,
) -> int:
    """The number of the last change afterwards."""
    before = connection.execute(
        "SELECT page_id, section FROM page_entries WHERE entry_id = ?",
        (each.entry_id,),
    ).fetchone()
    after = _place(each, now, connection)
    connection.execute(
        "DELETE FROM page_news WHERE entry_id = :id"
        " AND coalesce((SELECT revision FROM entries WHERE id = :id), 0) = :revision",
        {"id": each.entry_id, "revision": each.revision},
    )
    has_moved = before != after
    for page_id in dict.fromkeys(page[0] for page in (before, after) if page):
        change = _show(page_id, has_moved, now, change, counts, connection)
    if before and has_moved and not each.is_dropped:
        _note_withdrawal(before, change, connection)
    return change


def _place(each: JudgedEntry, now: int, connection: sqlite3.Connection) -> _Page | None:
    """Note which page the entry belongs to, if any."""
    if not each.url:
        connection.execute(
            "DELETE FROM page_entries WHERE entry_id = ?", (each.entry_id,)
        )
        return None
    url_hash = hash_key(each.url)
    connection.execute(
        "INSERT INTO pages (url_hash, url, entry_id, revision, modified, change,"
        " changed_at) SELECT ?, ?, 0, 0, 0,"
        " -1 - (SELECT coalesce(max(id), 0) FROM pages), ?"
        " WHERE NOT EXISTS (SELECT 1 FROM pages WHERE url_hash = ?)",
        (url_hash, each.url, now, url_hash),
    )
    ((page_id,),) = connection.execute(
        "SELECT id FROM pages WHERE url_hash = ?", (url_hash,)
    ).fetchall()
    stated = to_milliseconds_or_none(each.modified)
    connection.execute(
        "INSERT OR REPLACE INTO page_entries VALUES (?, ?, ?, ?, ?, ?)",
        (
            *(each.entry_id, page_id, each.section),
            now if each.dated is None else to_milliseconds(each.dated),
            *(each.revision, (now if stated is None else stated) // 1_000),
        ),
    )
    connection.execute(
        "INSERT OR IGNORE INTO page_sections VALUES (?, 0)", (each.section,)
    )
    return page_id, each.section


def _show(
    page_id: int,
    has_moved: bool,
    now: int,
    change: int,
    counts: CountChanges,
    connection: sqlite3.Connection,
) -> int:
    """Have the page show its newest entry; the number of the last change."""
    ((shown, revision, modified, dated, shown_at),) = connection.execute(
        "SELECT entry_id, revision, modified, dated, shown_at FROM pages WHERE id = ?",
        (page_id,),
    ).fetchall()
    newest = connection.execute(
        "SELECT entry_id, revision, stated, dated FROM page_entries WHERE page_id = ?"
        " ORDER BY dated DESC, entry_id DESC LIMIT 1",
        (page_id,),
    ).fetchone()
    if newest is None:
        state = (0, 0, modified, dated, shown_at)
        is_change = shown != 0
    else:
        is_other = (shown, revision) != newest[:2]
        latest = _next_modified(newest[2], modified, now // 1_000)
        since = shown_at if shown else now
        state = (*newest[:2], latest if is_other else modified, newest[3], since)
        is_change = is_other or has_moved
    if is_change:
        change += 1
        connection.execute(
            "UPDATE pages SET entry_id = ?, revision = ?, modified = ?, dated = ?,"
            " shown_at = ?, change = ?, changed_at = ? WHERE id = ?",
            (*state, change, now, page_id),
        )
        if shown:
            counts.add(dated, -1)
        if newest is not None:
            counts.add(newest[3], 1)
    return change


def _next_modified(stated: int, published: int, now: int) -> int:
    """First what the feed says; a change is dated when it was seen, and always after

    what was published before: readers take nothing that is not newer.
    """
    if not published:
        return max(stated, 1)
    return max(stated, now, published + 1)


def _note_withdrawal(
    before: _Page, change: int, connection: sqlite3.Connection
) -> None:
    """A section that has lost a page; ``change`` is that of the loss, or after it."""
    page_id, section = before
    connection.execute(
        "UPDATE page_sections SET withdrawn = :change WHERE name = :section AND"
        " NOT EXISTS (SELECT 1 FROM page_entries"
        "  WHERE page_id = :page_id AND section = :section)",
        {"change": change, "section": section, "page_id": page_id},
    )
    connection.execute(
        "UPDATE page_sections SET withdrawn = ? WHERE name = '' AND"
        " NOT EXISTS (SELECT 1 FROM page_entries WHERE page_id = ?)",
        (change, page_id),
    )
