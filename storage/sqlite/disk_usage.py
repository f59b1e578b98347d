"""How much disk space the file uses, and the return of its free pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final

LEAST_FREE_PAGES: Final = 256
FREE_SHARE: Final = 50
"""At least `LEAST_FREE_PAGES`, and one page in so many, stay free: new data fills them,
and shrinking and growing the file all the time would only cost writes."""
_INCREMENTAL: Final = 2
PAGE_BYTES: Final = 4_096
INDEX_STRUCTURE: Final = "SELECT block FROM search_data WHERE id = 10"
TABLES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "entries": {"entries": ("key", "body"), "records": ("status", "refs")},
    "search": {"searched": ("text",)},
    "seen": {
        "seen_sets": ("seen",),
        "slices": ("slices",),
        "inventories": ("inventory",),
    },
    "deliveries": {
        "deliveries": ("members", "outcomes"),
        "chunks": ("members", "outcomes"),
        "attempts": ("error", "details"),
        "dead": ("reason",),
    },
}
"""By purpose, the tables that grow, and their long columns."""
STRETCHES: Final = 16
ROWS_LOOKED_AT: Final = 8
"""Rows sampled from each of so many stretches of a table: the cost does not depend on
its size."""
ROW_BYTES: Final = 60
"""Bytes of a row besides its long columns: other columns, indexes, free room in
pages."""


def estimate_tables() -> str:
    """SQL for rows of purpose and bytes, estimated from a few rows of each table."""
    return " UNION ALL ".join(
        _estimate(purpose, table, columns)
        for purpose, tables in TABLES.items()
        for table, columns in tables.items()
    )


def _estimate(purpose: str, table: str, columns: tuple[str, ...]) -> str:
    """SQL that estimates a table from the first rows of each stretch of rowids: the
    number of rows from how close rowids lie, and their size from these rows."""
    size = " + ".join(f"coalesce(length({each}), 0)" for each in columns)
    key = {"searched": "entry_id", "records": "position"}.get(table, "rowid")
    return (
        f"SELECT '{purpose}', (WITH ends AS (SELECT (SELECT min({key}) FROM {table})"
        f" AS first, (SELECT max({key}) FROM {table}) AS last),"
        " stretches (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM stretches"
        f"  WHERE n < {STRETCHES - 1}),"
        f" begun AS (SELECT first + n * (last - first + 1) / {STRETCHES} AS low,"
        f"  first + (n + 1) * (last - first + 1) / {STRETCHES} AS high"
        "  FROM ends, stretches WHERE first IS NOT NULL),"
        " looked_at AS (SELECT low, high, (SELECT json_array(count(*), max(k), sum(s))"
        f"  FROM (SELECT {key} AS k, {size} + {ROW_BYTES} AS s FROM {table}"
        f"   WHERE {key} >= low AND {key} < high ORDER BY {key}"
        f"   LIMIT {ROWS_LOOKED_AT})) AS seen FROM begun)"
        " SELECT coalesce(sum((seen ->> 2) * iif((seen ->> 0) <"
        f"  {ROWS_LOOKED_AT}, 1.0, (high - low) * 1.0 / ((seen ->> 1) - low + 1))), 0)"
        "  FROM looked_at WHERE (seen ->> 0) > 0)"
    )


def index_bytes(structure: bytes) -> int:
    """Bytes of the index of words, from the record in which FTS5 keeps its segments:
    after a counter of four bytes come numbers packed as in SQLite's records, which
    include each segment's first and last page."""
    numbers = numbers_of(structure[4:])
    try:
        levels, _segments, _writes = next(numbers), next(numbers), next(numbers)
        pages = 0
        for _ in range(levels):
            _merging, segments = next(numbers), next(numbers)
            for _ in range(segments):
                _id, first, last = next(numbers), next(numbers), next(numbers)
                pages += last - first + 1
    except StopIteration:
        return 0
    return pages * PAGE_BYTES


def numbers_of(packed: bytes) -> Iterator[int]:
    """Numbers as FTS5 packs them: seven bits to a byte, the highest first."""
    number = 0
    for byte in packed:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0


def give_back_pages(limit: int, connection: sqlite3.Connection) -> int:
    """Give up to ``limit`` free pages back to the disk; returns how many.

    Always 0 for a file made by an older version: it does not record which page refers
    to which, without which no page can be moved. `storage.sqlite.compaction` rewrites
    it.
    """
    ((mode, pages, free),) = connection.execute(
        "SELECT auto_vacuum, page_count, freelist_count"
        " FROM pragma_auto_vacuum, pragma_page_count, pragma_freelist_count"
    ).fetchall()
    if mode != _INCREMENTAL:
        return 0
    count: int = min(limit, free - max(LEAST_FREE_PAGES, pages // FREE_SHARE))
    for _ in range(count):  # for a larger number the driver takes only the first step
        connection.execute("PRAGMA incremental_vacuum(1)").fetchall()
    return max(0, count)


def note_sample(
    row: tuple[int, int, int], kept_from: int, connection: sqlite3.Connection
) -> None:
    connection.execute(
        "DELETE FROM disk_samples WHERE at NOT BETWEEN ? AND ?", (kept_from, row[0])
    )
    connection.execute("INSERT INTO disk_samples VALUES (?, ?, ?)", row)
