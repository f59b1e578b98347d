"""`storage.contract.SearchStore` on SQLite: FTS5, known only here."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

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
    Term,
)
from storage.sqlite.columns import pack_ids
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
"""A row for each document looked at; without an entry if that is not to be seen. Bodies
are read after their lengths."""
READ = f"SELECT {ENTRY} FROM entries e WHERE e.id IN (SELECT value FROM json_each(?))"
PAGE_BYTES = 2 * 1024 * 1024
"""Of packed entries that one page reads, but for its first."""
ID_BITS = 21
_FORGET = (
    "DELETE FROM searched WHERE entry_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM search_queue WHERE entry_id IN (SELECT value FROM json_each(?))",
)
_BETWEEN = b"\0"
"""Words and places of a document, as they are kept."""


@dataclass(frozen=True, slots=True)
class _Document:
    """``text`` is words and places, packed."""

    entry_id: int
    text: bytes
    words: str
    places: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What the index was given of a document that is to be replaced."""

    docid: int
    words: str
    places: str


class SqliteSearch:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._indexing = asyncio.Lock()

    async def position(self) -> Position:
        row = await self._readers.first("SELECT position FROM search_state")
        return Position(row[0] if row else 0)

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
    ) -> None:
        async with self._indexing:  # what is known is read before it is replaced
            rows = await self._readers.all(
                "SELECT docid, text FROM searched"
                " WHERE entry_id IN (SELECT value FROM json_each(?))",
                (pack_ids(ids),),
            )
            known, encoded = await asyncio.to_thread(_encode, rows, documents)
            await self._writer.submit(
                partial(_index, known, encoded, pack_ids(ids), position)
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
        page = rows[: _count_fitting(rows)]
        ids = [entry_id for _, entry_id, _ in page if entry_id is not None]
        read = await self._readers.all(READ, (pack_ids(ids),))
        by_id = {row[0]: read_entry(row) for row in read}
        is_last = len(page) == len(rows) < limit
        return Matches(
            entries=tuple(by_id[entry_id] for entry_id in ids if entry_id in by_id),
            next=None if is_last else page[-1][0],
        )


def _count_fitting(rows: Sequence[Row]) -> int:
    """How many of the documents are read at once, by their bytes; at least one."""
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
    """The search in the language of FTS5.

    Whatever is searched for stands in quotes.
    """
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
    return known, [_encode_document(each) for each in documents]


def _encode_document(document: SearchDocument) -> _Document:
    places = " ".join(document.places)
    text = document.words.encode() + _BETWEEN + places.encode()
    return _Document(document.entry_id, pack_bytes(text), document.words, places)


# --- the unit of work ---


def _index(
    known: Sequence[_Known],
    documents: Sequence[_Document],
    ids: str,
    position: int | None,
    connection: sqlite3.Connection,
) -> None:
    _forget(known, ids, connection)
    placed = sorted(_place(documents, connection))
    connection.executemany(  # in ascending order: so pages are full, not half so
        "INSERT INTO searched VALUES (?, ?, ?)",
        sorted((each.entry_id, docid, each.text) for docid, _, each in placed),
    )
    connection.executemany(  # in ascending order: FTS5 writes out at every step back
        "INSERT INTO search (rowid, words, places) VALUES (?, ?, ?)",
        [(docid, each.words, each.places) for docid, _, each in placed],
    )
    if position is not None:
        connection.execute("UPDATE search_state SET position = ?", (position,))


def _forget(known: Sequence[_Known], ids: str, connection: sqlite3.Connection) -> None:
    connection.executemany(
        "INSERT INTO search (search, rowid, words, places) VALUES ('delete', ?, ?, ?)",
        [(each.docid, each.words, each.places) for each in known],
    )
    for forget in _FORGET:
        connection.execute(forget, (ids,))


def _place(
    documents: Sequence[_Document], connection: sqlite3.Connection
) -> list[tuple[int, int, _Document]]:
    """With ids by date; those of entries that are gone meanwhile are left out."""
    by_id = {each.entry_id: each for each in documents}
    rows = connection.execute(
        "SELECT id, sorted_at FROM entries WHERE deleted = 0"
        " AND id IN (SELECT value FROM json_each(?))",
        (pack_ids(by_id),),
    ).fetchall()
    placed: dict[int, tuple[int, int, _Document]] = {}
    for entry_id, sorted_at in rows:
        docid = max(sorted_at, 0) + 1 << ID_BITS
        docid -= 1 + entry_id % (1 << ID_BITS)
        while docid in placed or _is_taken(docid, connection):
            docid += 1
        placed[docid] = docid, entry_id, by_id[entry_id]
    return list(placed.values())


def _is_taken(docid: int, connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM searched WHERE docid = ?", (docid,))
    return found.fetchone() is not None
