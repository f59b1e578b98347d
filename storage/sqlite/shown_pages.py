"""Decides which entry each page shows, overall and in each section: one unit of work.

It also counts the pages in each stretch of time, on several levels. By these counts a
place in the list of pages is found within a few short stretches, however many pages
come before it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from storage.records import EntryVisibility
from storage.sqlite.columns import to_milliseconds, to_milliseconds_or_none
from storage.sqlite.rows import hash_key

# --- counts ---

SHIFTS = (35, 28, 21, 14)
"""Bits to shift dates in milliseconds by: to a year, three days, half an hour, 16
seconds."""
_BRANCHES = 7
"""Bits between two levels."""


class CountChanges:
    """The changes that a unit of work makes to the counts, written at its end."""

    def __init__(self) -> None:
        self._changes: Counter[int] = Counter()

    def add(self, dated: int, pages: int) -> None:
        """Count pages by the shortest stretch of time; all others follow from it."""
        self._changes[dated >> SHIFTS[-1]] += pages

    def write(self, connection: sqlite3.Connection) -> None:
        changes: Counter[tuple[int, int]] = Counter()
        for bucket, pages in self._changes.items():
            for level, shift in enumerate(SHIFTS):
                changes[level, bucket >> (shift - SHIFTS[-1])] += pages
        connection.executemany(
            "INSERT INTO page_counts VALUES (?, ?, ?) ON CONFLICT (level, bucket)"
            " DO UPDATE SET pages = pages + excluded.pages",
            [(*key, pages) for key, pages in sorted(changes.items()) if pages],
        )


def _stretches(within: str, level: int) -> str:
    """SQL for the stretch of a level that the wanted place lies in.

    It comes with how many pages are before it.
    """
    bounds = ""
    if level:
        bounds = (
            f" AND c.bucket >= {within}.bucket << {_BRANCHES}"
            f" AND c.bucket < ({within}.bucket + 1) << {_BRANCHES}"
        )
    source = f"{within}, page_counts c" if level else "page_counts c"
    before = f"{within}.before + " if level else ""
    return (
        f"SELECT bucket, before FROM (SELECT c.bucket,"
        f" {before}sum(c.pages) OVER (ORDER BY c.bucket DESC) - c.pages AS before"
        f" FROM {source} WHERE c.level = {level} AND c.pages > 0{bounds})"
        " WHERE before <= :skip ORDER BY before DESC LIMIT 1"
    )


PLACE = "WITH " + ", ".join(
    f"level{level} AS MATERIALIZED ({_stretches(f'level{level - 1}', level)})"
    for level in range(len(SHIFTS))
)
"""Ends in ``level3``: the shortest stretch that the place ``:skip`` lies in."""


_Place = tuple[int, str]
"""A page's id, and the section that an entry of it was in."""


# --- what is shown ---


class _Page(NamedTuple):
    """What a row of ``pages`` shows, and since when; if ``entry_id`` is 0, nothing."""

    entry_id: int
    revision: int
    language: str | None
    owner: int
    modified: int
    dated: int
    shown_at: int
    published: int


class _Candidate(NamedTuple):
    """An entry that a page may show."""

    entry_id: int
    revision: int
    language: str | None
    owner: int
    section: str
    stated: int
    dated: int


@dataclass(slots=True)
class _Touched:
    """What this unit of work has changed about a page."""

    has_moved: bool = False  # whether an entry has come or gone
    sections: dict[str, None] = field(default_factory=dict)  # in the order of entries


LAST_CHANGE = (
    "SELECT max(coalesce((SELECT max(change) FROM pages), 0), coalesce("
    "(SELECT max((SELECT max(change) FROM section_pages WHERE section = s.name))"
    " FROM page_sections s), 0))"
)
"""SQL for the last change of any page in any section; both are ends of an index."""
_SHOWN_BY = (
    "UPDATE page_sections SET withdrawals = withdrawals + 1 WHERE name IN"
    " (SELECT section FROM page_shown WHERE feed_id ="
    "  (SELECT feed_id FROM entries WHERE id = ?))"
)
_PAGE = f"SELECT {', '.join(_Page._fields)} FROM pages WHERE id = ?"
_FIRST = (
    f"SELECT {', '.join(_Candidate._fields)} FROM page_entries WHERE page_id = ?"
    "{section} ORDER BY rank, dated DESC, entry_id DESC LIMIT 1"
)
_FIRST_OF_ALL = _FIRST.format(section="")
_FIRST_OF_SECTION = _FIRST.format(section=" AND section = ? AND owner <= ?")
# Only changed columns are set: each index of a column costs a page of the file.
_CHANGE = "UPDATE pages SET {columns} WHERE id = :id"
_OF_TEXT = (
    *("revision", "language", "owner", "modified", "shown_at", "published"),
    *("change", "changed_at"),
)
_CHANGE_TEXT = _CHANGE.format(
    columns=", ".join(f"{each} = :{each}" for each in _OF_TEXT)
)
_CHANGE_ENTRY = _CHANGE.format(
    columns=", ".join(f"{each} = :{each}" for each in ("entry_id", "dated", *_OF_TEXT))
)
_STAY = (
    "UPDATE page_entries SET dated = ?1, revision = ?2, stated = ?3, rank = ?4,"
    " owner = ?5, language = ?6, inherits_language = ?7 WHERE entry_id = ?8"
)
_COME = (
    "INSERT OR REPLACE INTO page_entries (dated, revision, stated, rank, owner,"
    " language, inherits_language, entry_id, page_id, section)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_WITHDRAW_FROM = (
    "UPDATE page_sections SET withdrawals = withdrawals + 1 WHERE name = :section"
    " AND EXISTS (SELECT 1 FROM page_entries"
    "  WHERE page_id = :page_id AND section = :section)"
)


def update_pages(
    entries: Sequence[EntryVisibility], now: int, connection: sqlite3.Connection
) -> None:
    """Take entries into the pages, as one unit of work.

    Each unit has a time of its own, later than all before it, whatever the clock says:
    a reader who has seen everything up to a time can go on from there.
    """
    (last,) = connection.execute(
        "SELECT coalesce((SELECT changed_at FROM pages ORDER BY change DESC LIMIT 1),"
        " 0)"
    ).fetchone()
    (change,) = connection.execute(LAST_CHANGE).fetchone()
    update = _PageUpdate(max(now, last + 1), max(change, 0), connection)
    update.run(entries)


class _PageUpdate:
    """Assigns all entries to pages, then decides anew what each of these pages shows.

    ``now`` in milliseconds; ``change``: the number of the last change so far.
    """

    def __init__(self, now: int, change: int, connection: sqlite3.Connection) -> None:
        self._now = now
        self._change = change
        self._connection = connection
        self._counts = CountChanges()
        self._touched: dict[int, _Touched] = {}
        self._sections: set[str] = set()
        self._feeds: dict[int, int | None] = {}  # by id of this unit's entries
        self._noted: set[tuple[int, str]] = set()

    def run(self, entries: Sequence[EntryVisibility]) -> None:
        for each in entries:
            self._place(each)
        for page_id, touched in self._touched.items():
            self._show(page_id, touched)
        self._counts.write(self._connection)

    def _place(self, each: EntryVisibility) -> None:
        execute = self._connection.execute
        before: _Place | None = execute(
            "SELECT page_id, section FROM page_entries WHERE entry_id = ?",
            (each.entry_id,),
        ).fetchone()
        after = self._put(each, before)
        self._feeds[each.entry_id] = each.feed_id
        execute(
            "DELETE FROM page_news WHERE entry_id = :id AND"
            " coalesce((SELECT revision FROM entries WHERE id = :id), 0) = :revision",
            {"id": each.entry_id, "revision": each.revision},
        )
        for page_id, section in filter(None, (before, after)):
            touched = self._touched.setdefault(page_id, _Touched())
            touched.has_moved |= before != after
            touched.sections[section] = None
        has_left = before and (after is None or before[0] != after[0])
        if has_left and not each.is_dropped:
            execute(_SHOWN_BY, (each.entry_id,))

    def _put(self, each: EntryVisibility, before: _Place | None) -> _Place | None:
        """Note which page the entry belongs to, if any."""
        execute = self._connection.execute
        if not each.url:
            execute("DELETE FROM page_entries WHERE entry_id = ?", (each.entry_id,))
            return None
        after = self._page_id(each.url), each.section
        stated = to_milliseconds_or_none(each.modified)
        values = (
            self._now if each.dated is None else to_milliseconds(each.dated),
            *(each.revision, (self._now if stated is None else stated) // 1_000),
            *(each.rank, each.owner, each.language, each.inherits_language),
        )
        if before == after:
            execute(_STAY, (*values, each.entry_id))
        else:
            execute(_COME, (*values, each.entry_id, *after))
        if each.section not in self._sections:
            self._sections.add(each.section)
            execute(
                "INSERT OR IGNORE INTO page_sections (name, withdrawals) VALUES (?, 0)",
                (each.section,),
            )
        return after

    def _page_id(self, url: str) -> int:
        """The id of the page with this URL, which is made if there is none."""
        url_hash = hash_key(url)
        self._connection.execute(
            "INSERT INTO pages (url_hash, url, entry_id, revision, modified, change,"
            " changed_at) SELECT ?, ?, 0, 0, 0,"
            " -1 - (SELECT coalesce(max(id), 0) FROM pages), ?"
            " WHERE NOT EXISTS (SELECT 1 FROM pages WHERE url_hash = ?)",
            (url_hash, url, self._now, url_hash),
        )
        page_id: int
        ((page_id,),) = self._connection.execute(
            "SELECT id FROM pages WHERE url_hash = ?", (url_hash,)
        ).fetchall()
        return page_id

    def _show(self, page_id: int, touched: _Touched) -> None:
        """Have the page show the entry that it should, overall and in its sections."""
        before = _Page(*self._connection.execute(_PAGE, (page_id,)).fetchone())
        first = self._find(_FIRST_OF_ALL, page_id)
        page = self._show_to_all(page_id, before, first, has_moved=touched.has_moved)
        if first is not None and before.entry_id and page.owner != before.owner:
            rows = self._connection.execute(
                "SELECT DISTINCT section FROM page_entries WHERE page_id = ?",
                (page_id,),
            )
            touched.sections.update(dict.fromkeys(section for (section,) in rows))
        for section in filter(None, touched.sections):
            page = self._show_in(section, page_id, page, first)

    def _show_to_all(
        self, page_id: int, before: _Page, first: _Candidate | None, *, has_moved: bool
    ) -> _Page:
        """Have the page show the entry that it should overall.

        Returns the page as it is then.
        """
        modified, shown = before.modified, bool(before.entry_id)
        is_other = shown if first is None else _is_other(before, first)
        if first is None:
            page = before._replace(entry_id=0, revision=0, language=None)
        else:
            self._note_shown(first.entry_id, "")
            if is_other:
                modified = self._next_modified(first.stated, before.published)
            since = before.shown_at if shown else self._now
            published = max(before.published, before.modified, modified)
            page = _Page(*first[:4], modified, first.dated, since, published)
        if is_other or (has_moved and first is not None):
            self._change += 1
            is_same = (page.entry_id, page.dated) == (before.entry_id, before.dated)
            change = {"change": self._change, "changed_at": self._now, "id": page_id}
            self._connection.execute(
                _CHANGE_TEXT if is_same else _CHANGE_ENTRY, page._asdict() | change
            )
            if shown:
                self._counts.add(before.dated, -1)
            if first is not None:
                self._counts.add(first.dated, 1)
        elif (page.language, page.owner) != (before.language, before.owner):
            self._connection.execute(
                "UPDATE pages SET language = ?, owner = ? WHERE id = ?",
                (page.language, page.owner, page_id),
            )
        return page

    def _find(self, sql: str, *parameters: int | str) -> _Candidate | None:
        row = self._connection.execute(sql, parameters).fetchone()
        return None if row is None else _Candidate(*row)

    def _show_in(
        self, section: str, page_id: int, page: _Page, first: _Candidate | None
    ) -> _Page:
        """Have a section show the right entry of its own feeds.

        Returns the page as it is then. If a feed of another section has a better right
        to the page, the section shows nothing. An entry that the page also shows
        overall has the same ``modified`` in both; any other gets one later than all
        before.
        """
        execute = self._connection.execute
        *before, modified = execute(
            "SELECT entry_id, revision, language, modified FROM section_pages"
            " WHERE section = ? AND page_id = ?",
            (section, page_id),
        ).fetchone() or (0, 0, None, 0)
        if first is not None and first.section != section:
            first = self._find(_FIRST_OF_SECTION, page_id, section, page.owner)
        if first is not None:
            self._note_shown(first.entry_id, section)
        elif before[0]:
            execute(_WITHDRAW_FROM, {"section": section, "page_id": page_id})
        state = (0, 0, None) if first is None else first[:3]
        if not _is_other(before, state):
            if before[2] is None and first is not None:
                sql = (
                    "UPDATE section_pages SET language = ?"
                    " WHERE section = ? AND page_id = ?"
                )
                execute(sql, (first.language, section, page_id))
            return page
        if first is not None:
            if page[:3] == state and page.modified > modified:
                modified = page.modified
            else:
                modified = self._next_modified(first.stated, page.published)
                page = page._replace(published=modified)
                execute(
                    "UPDATE pages SET published = ? WHERE id = ?", (modified, page_id)
                )
        self._change += 1
        execute(
            "INSERT OR REPLACE INTO section_pages (section, page_id, entry_id,"
            " revision, language, modified, change) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (section, page_id, *state, modified, self._change),
        )
        return page

    def _next_modified(self, stated: int, published: int) -> int:
        """The page's time of modification, in seconds: what the feed says for a new
        page, and for a change when it was seen.

        It is later than the last published one: readers take nothing that is not newer.
        """
        if not published:
            return max(stated, 1)
        return max(stated, self._now // 1_000, published + 1)

    def _note_shown(self, entry_id: int, section: str) -> None:
        """Note that the section has shown text of the entry's feed.

        If that feed is withdrawn, documents built from the section are withdrawn as
        well.
        """
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
    """Whether something else is to be shown.

    A page written before languages were stored has none to compare.
    """
    if before[2] is None and before[0]:
        return tuple(before[:2]) != tuple(after[:2])
    return tuple(before[:3]) != tuple(after[:3])
