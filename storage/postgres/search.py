"""`storage.contract.SearchStore` on PostgreSQL, by tsvector.

A letter before each word tells words from places. Only the first 16,383 words of a
document have positions of their own: phrases after these are not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.postgres.connections import Connections, storable
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
    Term,
)
from storage.sqlite.rows import ENTRY, read_entry
from storage.sqlite.search import count_fitting, matches_of

_FIND: Final = """
WITH found AS MATERIALIZED (
    SELECT s.docid, s.entry_id FROM searched s
    WHERE s.generation = (SELECT generation FROM search_state)
        AND s.document @@ %(wanted)s::text::tsquery{below}
    ORDER BY s.docid DESC LIMIT %(limit)s
)
SELECT found.docid, e.id, length(e.body)
FROM found LEFT JOIN entries e ON e.id = found.entry_id AND NOT e.deleted
    AND EXISTS (SELECT 1 FROM feeds f WHERE f.id = e.feed_id
        AND may_read(%(viewer)s::bigint, f) AND (
            NOT f.unlisted AND NOT e.unlisted OR %(viewer)s::bigint IS NULL
            OR NOT %(listed_only)s AND EXISTS (SELECT 1 FROM subscriptions u
                WHERE u.account_id = %(viewer)s AND u.feed_id = f.id
                AND u.state = 'active')))
ORDER BY found.docid DESC
"""
"""One row for each document looked at; without an entry if the viewer must not see it.
Lengths of bodies are read first, to read only as many bodies as fit."""
_UNREAD: Final = """
SELECT e.id, NOT e.deleted AND e.sorted_at >= %s AND NOT EXISTS (
    SELECT 1 FROM searched s WHERE s.generation = t.generation AND s.entry_id = e.id)
FROM search_state t JOIN entries e ON e.id < t.unread ORDER BY e.id DESC LIMIT %s
"""
_DATED_BEFORE: Final = """
SELECT entry_id FROM searched WHERE generation = (SELECT generation FROM search_state)
    AND docid < first_docid(%s) ORDER BY docid LIMIT %s
"""
_REMOVE_FORMER: Final = """
DELETE FROM searched WHERE (generation, entry_id) IN (
    SELECT generation, entry_id FROM searched
    WHERE generation < (SELECT generation FROM search_state)
    ORDER BY generation, entry_id LIMIT %s)
"""
_LONGEST: Final = 2_000
"""The most bytes of a word: longer ones are left out."""
_MOST_BYTES: Final = 800_000
"""The most bytes of a document; PostgreSQL takes a megabyte."""
_LAST_PLACE: Final = 16_383
_MOST_PLACES: Final = 255
"""The most positions of one word that PostgreSQL keeps."""


class PostgresSearch:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def state(self) -> SearchState:
        row = await self._connections.first(
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
        await self._connections.write("SELECT keep_index(%s)", (float(days),))

    async def remove_former(self, limit: int) -> int:
        return await self._connections.change(_REMOVE_FORMER, (limit,))

    async def merge(self, limit: int) -> int:
        """The server merges by itself (autovacuum)."""
        return 0

    async def unread(
        self, since: datetime, limit: int
    ) -> tuple[list[EntryId], EntryId]:
        rows = await self._connections.all(_UNREAD, (since, limit))
        wanted = [EntryId(entry_id) for entry_id, is_wanted in rows if is_wanted]
        return wanted, EntryId(rows[-1][0] if len(rows) == limit else 0)

    async def dated_before(self, moment: datetime, limit: int) -> list[EntryId]:
        rows = await self._connections.all(_DATED_BEFORE, (moment, limit))
        return [EntryId(entry_id) for (entry_id,) in rows]

    async def waiting(self, limit: int) -> list[EntryId]:
        rows = await self._connections.all(
            "SELECT entry_id FROM search_queue ORDER BY entry_id LIMIT %s", (limit,)
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
        encoded = await asyncio.to_thread(lambda: [*map(encode_document, documents)])
        await self._connections.write(
            "SELECT index_documents(%s::bigint[], %s::bigint[], %s::text[],"
            " %s, %s, %s)",
            (
                *(list(ids), [each.entry_id for each in documents], encoded),
                *(position, since, unread),
            ),
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
        sql = _FIND.format(below="" if below is None else " AND s.docid < %(below)s")
        rows = await self._connections.all(
            sql,
            {
                "wanted": query_of(wanted),
                "limit": limit,
                "viewer": viewer,
                "listed_only": listed_only,
                "below": below,
            },
        )
        page = rows[: count_fitting(rows)]
        ids = [entry_id for _, entry_id, _ in page if entry_id is not None]
        read = await self._connections.all(
            f"SELECT {ENTRY} FROM entries e WHERE e.id = ANY(%s::bigint[])", (ids,)
        )
        is_last = len(page) == len(rows) < limit
        return matches_of(page, map(read_entry, read), is_last=is_last)


def encode_document(document: SearchDocument) -> str:
    """The document as the text of a tsvector."""
    places: dict[str, list[int]] = {}
    size = 0
    for number, word in enumerate(document.words.split(), 1):
        known = places.get(word)
        if known is None:
            size += len(word.encode()) + 8
            if size > _MOST_BYTES:
                break
            places[word] = known = []
        if number <= _LAST_PLACE and len(known) < _MOST_PLACES:
            known.append(number)
    words = (
        f"{_quoted('w' + word)}{':' if found else ''}{','.join(map(str, found))}"
        for word, found in places.items()
        if len(word.encode()) <= _LONGEST
    )
    named = (_quoted("p" + place) for place in document.places)
    return " ".join((*words, *named))


def query_of(term: Term) -> str:
    """The search as the text of a tsquery, with all searched text quoted."""
    match term:
        case Phrase(words):
            found = (_quoted("w" + word) for word in words if word)
            return f"({' <-> '.join(found) or _quoted('w')})"
        case PlaceTerm(name):
            return _quoted("p" + name)
        case Both(members):
            return f"({' & '.join(map(query_of, members))})"
        case Either(members):
            return f"({' | '.join(map(query_of, members))})"


def _quoted(text: str) -> str:
    escaped = storable(text).replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
