"""What entries come to, taken into the pages: one unit of the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from storage.records import JudgedEntry

from .log_rows import hash_key
from .page_counts import CountChanges
from .times import to_milliseconds, to_milliseconds_or_none

_Place = tuple[int, str]
"""A page's id, and the section that an entry of it was in."""
_State = tuple[int, int, str | None]
"""What a page shows of an entry: its id, its revision, and in which language."""
_Shown = tuple[int, int, str | None, int, int]
"""With what it states, and its date."""

LAST_CHANGE = (
    "SELECT max(coalesce((SELECT max(change) FROM pages), 0), coalesce("
    "(SELECT max((SELECT max(change) FROM section_pages WHERE section = s.name))"
    " FROM page_sections s), 0))"
)
"""Of all pages, in all sections: each found at the end of an index."""
_SHOWN_BY = (
    "UPDATE page_sections SET withdrawals = withdrawals + 1 WHERE name IN"
    " (SELECT section FROM page_shown WHERE feed_id ="
    "  (SELECT feed_id FROM entries WHERE id = ?))"
)
_NEWEST = (
    "SELECT entry_id, revision, language, stated, dated FROM page_entries"
    " WHERE page_id = ?"
    "{section} ORDER BY rank, dated DESC, entry_id DESC LIMIT 1"
)
_NEWEST_OF_ALL = _NEWEST.format(section="")
_NEWEST_OF_SECTION = _NEWEST.format(section=" AND section = ?")


def judge_all(
    judged: Sequence[JudgedEntry], now: int, connection: sqlite3.Connection
) -> None:
    """Every unit has a time of its own, after all before it, whatever the clock says:

    so who has seen all up to a time can go on from there.
    """
    (last,) = connection.execute(
        "SELECT coalesce((SELECT changed_at FROM pages ORDER BY change DESC LIMIT 1),"
        " 0)"
    ).fetchone()
    (change,) = connection.execute(LAST_CHANGE).fetchone()
    judging = _Judging(max(now, last + 1), max(change, 0), connection)
    for each in judged:
        judging.place(each)
    judging.show_all()


class _Judging:
    """All entries find their places first; then each page shows the one that is due.

    ``now`` in milliseconds; ``change``: the number of the last one so far.
    """

    def __init__(self, now: int, change: int, connection: sqlite3.Connection) -> None:
        self._now = now
        self._change = change
        self._connection = connection
        self._counts = CountChanges()
        self._pages: dict[int, bool] = {}  # to be shown; whether an entry has moved
        self._places: dict[_Place, None] = {}  # the same, in sections
        self._sections: set[str] = set()
        self._feeds: dict[int, int | None] = {}  # of entries that were judged
        self._noted: set[tuple[int, str]] = set()

    def place(self, each: JudgedEntry) -> None:
        execute = self._connection.execute
        before: _Place | None = execute(
            "SELECT page_id, section FROM page_entries WHERE entry_id = ?",
            (each.entry_id,),
        ).fetchone()
        after = self._put(each)
        self._feeds[each.entry_id] = each.feed_id
        execute(
            "DELETE FROM page_news WHERE entry_id = :id AND"
            " coalesce((SELECT revision FROM entries WHERE id = :id), 0) = :revision",
            {"id": each.entry_id, "revision": each.revision},
        )
        for place in filter(None, (before, after)):
            page_id, section = place
            self._pages[page_id] = self._pages.get(page_id, False) or before != after
            if section:
                self._places[place] = None
        has_left = before and (after is None or before[0] != after[0])
        if has_left and not each.is_dropped:
            execute(_SHOWN_BY, (each.entry_id,))

    def show_all(self) -> None:
        for page_id, has_moved in self._pages.items():
            self._show(page_id, has_moved=has_moved)
        for page_id, section in self._places:
            self._show_in(section, page_id)
        self._counts.write(self._connection)

    def _put(self, each: JudgedEntry) -> _Place | None:
        """Note which page the entry belongs to, if any."""
        execute = self._connection.execute
        if not each.url:
            execute("DELETE FROM page_entries WHERE entry_id = ?", (each.entry_id,))
            return None
        url_hash = hash_key(each.url)
        execute(
            "INSERT INTO pages (url_hash, url, entry_id, revision, modified, change,"
            " changed_at) SELECT ?, ?, 0, 0, 0,"
            " -1 - (SELECT coalesce(max(id), 0) FROM pages), ?"
            " WHERE NOT EXISTS (SELECT 1 FROM pages WHERE url_hash = ?)",
            (url_hash, each.url, self._now, url_hash),
        )
        ((page_id,),) = execute(
            "SELECT id FROM pages WHERE url_hash = ?", (url_hash,)
        ).fetchall()
        stated = to_milliseconds_or_none(each.modified)
        execute(
            "INSERT OR REPLACE INTO page_entries"
            " (entry_id, page_id, section, dated, revision, stated, rank, language,"
            "  inherits_language) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(each.entry_id, page_id, each.section),
                self._now if each.dated is None else to_milliseconds(each.dated),
                *(each.revision, (self._now if stated is None else stated) // 1_000),
                *(each.rank, each.language, each.inherits_language),
            ),
        )
        if each.section not in self._sections:
            self._sections.add(each.section)
            execute(
                "INSERT OR IGNORE INTO page_sections (name, withdrawals) VALUES (?, 0)",
                (each.section,),
            )
        return page_id, each.section

    def _show(self, page_id: int, *, has_moved: bool) -> None:
        """Have the page show the entry that is due."""
        execute = self._connection.execute
        ((*before, modified, dated, shown_at, published),) = execute(
            "SELECT entry_id, revision, language, modified, dated, shown_at, published"
            " FROM pages WHERE id = ?",
            (page_id,),
        ).fetchall()
        shown = before[0]
        newest: _Shown | None = execute(_NEWEST_OF_ALL, (page_id,)).fetchone()
        if newest is None:
            state: tuple[object, ...] = (0, 0, None, modified, dated, shown_at)
            is_change = shown != 0
        else:
            is_other = _is_other(before, newest)
            if is_other:
                modified = self._next_modified(newest[3], published)
            since = shown_at if shown else self._now
            state = (*newest[:3], modified, newest[4], since)
            is_change = is_other or has_moved
            if before[2] is None and not is_change:
                sql = "UPDATE pages SET language = ? WHERE id = ?"
                execute(sql, (newest[2], page_id))
            self._note_shown(newest[0], "")
        if is_change:
            self._change += 1
            execute(
                "UPDATE pages SET entry_id = ?, revision = ?, language = ?,"
                " modified = ?, dated = ?, shown_at = ?,"
                " published = max(published, modified, ?), change = ?, changed_at = ?"
                " WHERE id = ?",
                (*state, modified, self._change, self._now, page_id),
            )
            if shown:
                self._counts.add(dated, -1)
            if newest is not None:
                self._counts.add(newest[4], 1)

    def _show_in(self, section: str, page_id: int) -> None:
        """Have a section show what is due of its own feeds: what all sections show

        together is of the same time there, anything else later than all before.
        """
        execute = self._connection.execute
        *before, modified = execute(
            "SELECT entry_id, revision, language, modified FROM section_pages"
            " WHERE section = ? AND page_id = ?",
            (section, page_id),
        ).fetchone() or (0, 0, None, 0)
        newest: _Shown | None = execute(
            _NEWEST_OF_SECTION, (page_id, section)
        ).fetchone()
        if newest is not None:
            self._note_shown(newest[0], section)
        state: _State = newest[:3] if newest else (0, 0, None)
        if not _is_other(before, state):
            if before[2] is None and newest is not None:
                sql = (
                    "UPDATE section_pages SET language = ?"
                    " WHERE section = ? AND page_id = ?"
                )
                execute(sql, (newest[2], section, page_id))
            return
        if newest is not None:
            ((*of_all, its_modified, published),) = execute(
                "SELECT entry_id, revision, language, modified, published FROM pages"
                " WHERE id = ?",
                (page_id,),
            ).fetchall()
            if tuple(of_all) == state and its_modified > modified:
                modified = its_modified
            else:
                modified = self._next_modified(newest[3], published)
                execute(
                    "UPDATE pages SET published = ? WHERE id = ?", (modified, page_id)
                )
        self._change += 1
        execute(
            "INSERT OR REPLACE INTO section_pages (section, page_id, entry_id,"
            " revision, language, modified, change) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (section, page_id, *state, modified, self._change),
        )

    def _next_modified(self, stated: int, published: int) -> int:
        """First what the feed says; a change is dated when it was seen, and always

        after what was published before: readers take nothing that is not newer.
        """
        if not published:
            return max(stated, 1)
        return max(stated, self._now // 1_000, published + 1)

    def _note_shown(self, entry_id: int, section: str) -> None:
        """That the entry's feed is to be looked for in what is built of the section."""
        feed_id = self._feeds.get(entry_id)
        if feed_id is None:
            (feed_id,) = self._connection.execute(
                "SELECT feed_id FROM entries WHERE id = ?", (entry_id,)
            ).fetchone() or (None,)
        if feed_id is not None and (feed_id, section) not in self._noted:
            self._noted.add((feed_id, section))
            self._connection.execute(
                "INSERT OR IGNORE INTO page_shown VALUES (?, ?)", (feed_id, section)
            )


def _is_other(before: Sequence[int | str | None], after: Sequence[object]) -> bool:
    """Whether something else is to be shown. Of a page from before languages were

    noted the language is not known.
    """
    if before[2] is None and before[0]:
        return tuple(before[:2]) != tuple(after[:2])
    return tuple(before[:3]) != tuple(after[:3])
