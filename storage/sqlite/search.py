"""`storage.contract.SearchStore` on SQLite, by an index of FTS5."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from storage.packing import pack_bytes, unpack_bytes
from storage.records import (
    AccountId,
    Both,
    Either,
    EntryId,
    Matches,
    Phrase,
    PlaceTerm,
    Position,
    SearchDocument,
    SearchState,
    StoredEntry,
    Term,
)
from storage.sqlite.columns import pack_ids, to_milliseconds
from storage.sqlite.disk_usage import numbers_of
from storage.sqlite.feed_access import may_read
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import ENTRY, read_entry
from storage.sqlite.writer import Writer

FIND = (
    "WITH found AS MATERIALIZED (SELECT rowid AS docid FROM search"
    " WHERE search MATCH :wanted{below} ORDER BY rowid DESC LIMIT :limit)"
    " SELECT found.docid, e.id, length(e.body)"
    " FROM found LEFT JOIN searched s ON s.docid = found.docid"
    " LEFT JOIN entries e ON e.id = s.entry_id AND e.deleted = 0"
    " AND EXISTS (SELECT 1 FROM feeds f WHERE f.id = e.feed_id"
    f"  AND {may_read(':viewer')} AND ("
    "NOT f.unlisted AND NOT e.unlisted OR :viewer IS NULL OR NOT :listed_only AND"
    " EXISTS (SELECT 1 FROM subscriptions u WHERE u.account_id = :viewer"
    "  AND u.feed_id = f.id AND u.state = 'active')))"
    " ORDER BY found.docid DESC"
)
"""One row for each document looked at; without an entry if the viewer must not see it.
Lengths of bodies are read first, to read only as many bodies as fit."""
READ = f"SELECT {ENTRY} FROM entries e WHERE e.id IN (SELECT value FROM json_each(?))"
PAGE_BYTES = 2 * 1024 * 1024
"""The most bytes of packed entries that one page reads; its first entry may be
larger."""
SLOT_BITS = 4
"""The bits of an id that tell documents of one second apart. The index holds an id for
each word of each document, so smaller ids make it smaller."""
MILLISECONDS = 1_000
LEAST_FORGOTTEN = 1_000
"""All segments are merged once more documents than this, and more than half of all,
have been forgotten."""
_FORGET = (
    "DELETE FROM searched WHERE entry_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM search_queue WHERE entry_id IN (SELECT value FROM json_each(?))",
)
_BETWEEN = b"\0"
"""Separates a stored document's words from its places."""


@dataclass(frozen=True, slots=True)
class _Document:
    """A document to index. ``text``: its words, each once, and its places, packed."""

    entry_id: int
    text: bytes
    words: str
    places: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What the index was given for a document that is to be replaced."""

    docid: int
    words: str
    places: str


class SqliteSearch:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._indexing = asyncio.Lock()

    async def state(self) -> SearchState:
        row = await self._readers.first(
            "SELECT days, position, unread, (SELECT min(id) FROM entries),"
            " (SELECT max(id) FROM entries) FROM search_state"
        )
        days, position, unread, first, last = row or (0.0, 0, 0, 0, 0)
        return SearchState(
            days=days,
            position=Position(position),
            unread=EntryId(unread),
            first=EntryId(first or 0),
            last=EntryId(last or 0),
        )

    async def keep(self, days: float) -> None:
        await self._writer.submit(partial(_keep, days))

    async def remove_former(self, limit: int) -> int:
        return await self._writer.submit(partial(_remove_former, limit))

    async def merge(self, limit: int) -> int:
        return await self._writer.submit(partial(_merge, limit))

    async def unread(
        self, since: datetime, limit: int
    ) -> tuple[list[EntryId], EntryId]:
        rows = await self._readers.all(
            "SELECT id, deleted = 0 AND sorted_at >= ? AND NOT EXISTS"
            "  (SELECT 1 FROM searched WHERE entry_id = id)"
            " FROM entries WHERE id < (SELECT unread FROM search_state)"
            " ORDER BY id DESC LIMIT ?",
            (to_milliseconds(since), limit),
        )
        wanted = [EntryId(entry_id) for entry_id, is_wanted in rows if is_wanted]
        return wanted, EntryId(rows[-1][0] if len(rows) == limit else 0)

    async def dated_before(self, moment: datetime, limit: int) -> list[EntryId]:
        rows = await self._readers.all(
            "SELECT entry_id FROM searched WHERE docid < ? ORDER BY docid LIMIT ?",
            (_first_id(to_milliseconds(moment)), limit),
        )
        return [EntryId(entry_id) for (entry_id,) in rows]

    async def waiting(self, limit: int) -> list[EntryId]:
        rows = await self._readers.all(
            "SELECT entry_id FROM search_queue ORDER BY entry_id LIMIT ?", (limit,)
        )
        return [EntryId(entry_id) for (entry_id,) in rows]

    async def index(
        self,
        ids: Sequence[EntryId],
        documents: Sequence[SearchDocument],
        position: Position | None = None,
        *,
        since: datetime | None = None,
        unread: EntryId | None = None,
    ) -> None:
        earliest = None if since is None else to_milliseconds(since)
        async with self._indexing:  # read before it is replaced
            rows = await self._readers.all(
                "SELECT docid, text FROM searched"
                " WHERE entry_id IN (SELECT value FROM json_each(?))",
                (pack_ids(ids),),
            )
            known, encoded = await asyncio.to_thread(_encode, rows, documents)
            await self._writer.submit(
                partial(
                    _index, known, encoded, pack_ids(ids), position, earliest, unread
                )
            )

    async def find(
        self,
        wanted: Term,
        *,
        viewer: AccountId | None,
        limit: int,
        below: int | None = None,
        listed_only: bool = False,
    ) -> Matches:
        sql, parameters = select_matches(
            wanted, viewer, limit, below, listed_only=listed_only
        )
        rows = await self._readers.all(sql, parameters)
        page = rows[: count_fitting(rows)]
        ids = [entry_id for _, entry_id, _ in page if entry_id is not None]
        read = await self._readers.all(READ, (pack_ids(ids),))
        is_last = len(page) == len(rows) < limit
        return matches_of(page, map(read_entry, read), is_last=is_last)


def matches_of(
    page: Sequence[Row], entries: Iterable[StoredEntry], *, is_last: bool
) -> Matches:
    """The documents of a page, with those of their entries that were read."""
    by_id = {each.id: each for each in entries}
    found = [(docid, by_id[id]) for docid, id, _ in page if id in by_id]
    return Matches(
        entries=tuple(entry for _, entry in found),
        places=tuple(docid for docid, _ in found),
        dates=tuple(_second_of(docid) for docid, _ in found),
        next=None if is_last else page[-1][0],
    )


def _second_of(docid: int) -> datetime:
    return datetime.fromtimestamp(docid >> SLOT_BITS, UTC)


def count_fitting(rows: Sequence[Row]) -> int:
    """How many of these documents fit into `PAGE_BYTES`; at least one."""
    left = PAGE_BYTES
    for count, (_, _, size) in enumerate(rows):
        left -= size or 0
        if left < 0:
            return max(count, 1)
    return len(rows)


def select_matches(
    wanted: Term,
    viewer: AccountId | None,
    limit: int,
    below: int | None,
    *,
    listed_only: bool = False,
) -> tuple[str, dict[str, object]]:
    """The statement for a page, and its parameters."""
    sql = FIND.format(below="" if below is None else " AND rowid < :below")
    parameters: dict[str, object] = {
        "wanted": expression(wanted),
        "limit": limit,
        "viewer": viewer,
        "listed_only": listed_only,
    }
    return sql, parameters if below is None else {**parameters, "below": below}


def expression(term: Term) -> str:
    """The search in the query language of FTS5, with all searched text quoted."""
    match term:
        case Phrase(words):
            return f"words : {_quoted(' '.join(words))}"
        case PlaceTerm(name):
            return f"places : {_quoted(name)}"
        case Both(members):
            return f"({' AND '.join(map(expression, members))})"
        case Either(members):
            return f"({' OR '.join(map(expression, members))})"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""').replace("\0", " ") + '"'


def _encode(
    rows: Iterable[tuple[int, bytes]], documents: Iterable[SearchDocument]
) -> tuple[list[_Known], list[_Document]]:
    known = []
    for docid, text in rows:
        words, _, places = unpack_bytes(text).partition(_BETWEEN)
        known.append(_Known(docid, words.decode(), places.decode()))
    encoded = []
    for each in documents:
        in_places = " ".join(each.places)
        distinct = " ".join(sorted(set(each.words.split(" "))))
        packed = pack_bytes(distinct.encode() + _BETWEEN + in_places.encode())
        encoded.append(_Document(each.entry_id, packed, each.words, in_places))
    return known, encoded


# --- units of work ---


def _keep(days: float, connection: sqlite3.Connection) -> None:
    ((before,),) = connection.execute("SELECT days FROM search_state").fetchall()
    if before and not days:
        _begin_empty(connection)
        connection.execute("UPDATE search_state SET forgotten = 0")
    connection.execute("UPDATE search_state SET days = ?", (days,))
    if not before:
        connection.execute("UPDATE search_state SET position = (SELECT head FROM meta)")
    if days > before or not days:
        connection.execute(
            "UPDATE search_state SET unread = iif(days,"
            " (SELECT coalesce(max(id), 0) + 1 FROM entries), 0)"
        )


_OWN_RECORDS: Final = 10
"""The highest id of the records that FTS5 reads whenever it opens an index."""

_EMPTY_INDEX: Final = (
    "DROP TRIGGER entry_gone",  # renaming a table would rename it there as well
    "ALTER TABLE search RENAME TO former_search",
    "ALTER TABLE searched RENAME TO former_searched",
    "CREATE TABLE searched (entry_id INTEGER PRIMARY KEY,"
    " docid INTEGER NOT NULL UNIQUE, text BLOB NOT NULL) STRICT",
    "CREATE VIRTUAL TABLE search USING fts5 (words, places, content = '',"
    " columnsize = 0, tokenize = \"ascii tokenchars '_'\")",
    "INSERT INTO search (search, rank) VALUES ('automerge', 0)",
    "INSERT INTO search (search, rank) VALUES ('crisismerge', 1000)",
    "CREATE TRIGGER entry_gone AFTER DELETE ON entries"
    " WHEN EXISTS (SELECT 1 FROM searched WHERE entry_id = OLD.id)"
    " BEGIN INSERT OR IGNORE INTO search_queue VALUES (OLD.id); END",
    "DELETE FROM search_queue",
)
"""Statements that put new, empty tables, as in the schema, in place of the old ones."""

_ROWS: Final = (
    f"DELETE FROM former_search_data WHERE id IN (SELECT id FROM former_search_data"
    f" WHERE id > {_OWN_RECORDS} LIMIT ?)",
    "DELETE FROM former_search_idx WHERE (segid, term) IN"
    " (SELECT segid, term FROM former_search_idx LIMIT ?)",
    "DELETE FROM former_searched WHERE entry_id IN"
    " (SELECT entry_id FROM former_searched LIMIT ?)",
)


def _begin_empty(connection: sqlite3.Connection) -> None:
    """Put an empty index in place of the current one, which becomes the former index;
    there must be no other. Dropping a large index would block all writes for seconds.
    """
    for statement in _EMPTY_INDEX:
        connection.execute(statement)


def _remove_former(limit: int, connection: sqlite3.Connection) -> int:
    """Delete rows of the former index, which nobody searches any more, and drop it with
    its last rows."""
    ((is_there,),) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'former_search')"
    ).fetchall()
    if not is_there:
        return 0
    removed = 0
    for statement in _ROWS:
        removed += connection.execute(statement, (limit - removed,)).rowcount
    if removed < limit:
        connection.execute("DROP TABLE former_search")
        connection.execute("DROP TABLE former_searched")
    return max(removed, 1)


def _merge(limit: int, connection: sqlite3.Connection) -> int:
    """Merge segments if several have a similar size; or merge all if many of their
    documents were forgotten, since only that removes them.

    FTS5: a negative number begins a merge of all segments, which later merges continue.
    "If [...] the difference between the two values is less than 2, then the 'merge'
    command was a no-op."
    """
    ((forgotten, totals),) = connection.execute(
        "SELECT forgotten, (SELECT block FROM search_data WHERE id = 1)"
        " FROM search_state"
    ).fetchall()
    is_of_all = forgotten > max(LEAST_FORGOTTEN, next(numbers_of(totals), 0) // 2)
    before = connection.total_changes
    connection.execute(
        "INSERT INTO search (search, rank) VALUES ('merge', ?)",
        (-limit if is_of_all else limit,),
    )
    done = connection.total_changes - before
    if is_of_all:
        connection.execute("UPDATE search_state SET forgotten = 0")
    return done if done >= 2 else 0


def _index(
    known: Sequence[_Known],
    documents: Sequence[_Document],
    ids: str,
    position: int | None,
    earliest: int | None,
    unread: int | None,
    connection: sqlite3.Connection,
) -> None:
    _forget(known, ids, connection)
    placed = sorted(_place(documents, earliest, connection))
    connection.executemany(  # in ascending order, so that pages are full
        "INSERT INTO searched VALUES (?, ?, ?)",
        sorted((each.entry_id, docid, each.text) for docid, _, each in placed),
    )
    connection.executemany(  # in ascending order: FTS5 flushes at a lower id
        "INSERT INTO search (rowid, words, places) VALUES (?, ?, ?)",
        [(docid, each.words, each.places) for docid, _, each in placed],
    )
    if position is not None:
        connection.execute("UPDATE search_state SET position = ?", (position,))
    if unread is not None:
        connection.execute("UPDATE search_state SET unread = ?", (unread,))


def _forget(known: Sequence[_Known], ids: str, connection: sqlite3.Connection) -> None:
    """Remove documents from the index. FTS5 needs to know which words they had, not
    where or how often."""
    connection.executemany(
        "INSERT INTO search (search, rowid, words, places) VALUES ('delete', ?, ?, ?)",
        [(each.docid, each.words, each.places) for each in known],
    )
    if known:
        connection.execute(
            "UPDATE search_state SET forgotten = forgotten + ?", (len(known),)
        )
    for forget in _FORGET:
        connection.execute(forget, (ids,))


def _place(
    documents: Sequence[_Document],
    earliest: int | None,
    connection: sqlite3.Connection,
) -> list[tuple[int, int, _Document]]:
    """Choose ids by date for documents; those of entries gone meanwhile are left out.

    Within a second, the lower entry has the higher id, as long as ids are free; then
    ids of the seconds before are used.
    """
    by_id = {each.entry_id: each for each in documents}
    rows = connection.execute(
        "SELECT sorted_at, id FROM entries WHERE deleted = 0 AND sorted_at >= ?"
        " AND id IN (SELECT value FROM json_each(?))"
        " ORDER BY sorted_at / 1000 DESC, id",
        (_EARLIEST if earliest is None else earliest, pack_ids(by_id)),
    ).fetchall()
    placed: list[tuple[int, int, _Document]] = []
    below = sys.maxsize
    for sorted_at, entry_id in rows:
        highest = _first_id(sorted_at + MILLISECONDS) - 1
        below = _free_id(min(highest, below - 1), connection)
        placed.append((below, entry_id, by_id[entry_id]))
    return placed


_EARLIEST: Final = -(2**63)
_FIRST_SECOND: Final = 2**20
"""A second of 1970: all documents with earlier dates get ids there, with room below."""


def _first_id(milliseconds: int) -> int:
    """The lowest id of the second of that time."""
    return max(milliseconds // MILLISECONDS, _FIRST_SECOND) << SLOT_BITS


def _free_id(highest: int, connection: sqlite3.Connection) -> int:
    """An id that is free, not above ``highest``, whose neighbour above is taken."""
    free, step = highest, 1
    while _is_taken(free, connection):
        free -= step
        step *= 2
    taken = free + step // 2
    while taken - free > 1:
        middle = (taken + free) // 2
        if _is_taken(middle, connection):
            taken = middle
        else:
            free = middle
    return free


def _is_taken(docid: int, connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM searched WHERE docid = ?", (docid,))
    return found.fetchone() is not None
