"""When each feed's entries were posted, read from a file that a hub may be using."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path

from storage.errors import DatabaseUnusable
from storage.sqlite.connections import read_only

_TIMES = (
    "SELECT f.url, e.sorted_at / 1000.0 FROM feeds f JOIN entries e ON e.feed_id = f.id"
    " WHERE f.state <> 'removed' AND e.deleted = 0 ORDER BY f.id, e.sorted_at"
)


def read_times(path: Path) -> Mapping[str, tuple[float, ...]]:
    """Unix seconds by feed URL, in order: an entry's own date, or its first sighting.

    Raises `DatabaseUnusable`.
    """
    try:
        with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
            rows = connection.execute(_TIMES)
            return {
                url: tuple(at for _, at in of_feed)
                for url, of_feed in groupby(rows, key=lambda row: str(row[0]))
            }
    except sqlite3.Error as error:
        raise DatabaseUnusable(str(path), str(error)) from error
