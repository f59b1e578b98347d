"""Rewrites the file of a database, which no hub may be using, to drop its free pages.

The new file replaces the old one by a rename, so a killed process leaves one of the
two, whole. A file of an older version cannot return freed pages; the new one can
(`auto_vacuum`), so the hub does it from then on.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from storage.errors import DatabaseUnusable
from storage.records import OnProgress
from storage.sqlite.backup import (
    drop_foreign_wal,
    ignore_progress,
    require_room,
    with_ending,
)
from storage.sqlite.driver_errors import is_busy
from storage.sqlite.file_identity import flush_directory, owned
from storage.sqlite.restoring import (
    COMPACTING,
    create_private,
    remove_unfinished,
)
from storage.sqlite.schema import refuse_strangers

_STEPS_TOLD: Final = 200_000
"""SQLite instructions between two reports of progress."""


def compact_database(
    path: Path, progress: OnProgress = ignore_progress
) -> tuple[int, int]:
    """Rewrite the file; returns its bytes before and after.

    It stays the same database, with its key and its epoch. Raises `DatabaseUnusable`,
    and `StorageFull` before anything is written if the new file would not fit.
    """
    with owned(path) as file:
        drop_foreign_wal(file)
        remove_unfinished(file)
        before = file.stat().st_size
        fresh = with_ending(file, COMPACTING)
        try:
            _write_anew(file, fresh, progress)
            fresh.rename(file)
            flush_directory(file.parent)
        finally:
            remove_unfinished(file)
        return before, file.stat().st_size


def _write_anew(file: Path, fresh: Path, progress: OnProgress) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        refuse_strangers(connection, str(file))
        _fold_wal(file, connection)
        ((wanted,),) = connection.execute(
            "SELECT s.page_size * (c.page_count - f.freelist_count)"
            " FROM pragma_page_size s, pragma_page_count c, pragma_freelist_count f"
        ).fetchall()
        require_room(file.parent, wanted)
        create_private(fresh)

        def tell() -> int:
            progress(min(fresh.stat().st_size, wanted), wanted)
            return 0

        connection.set_progress_handler(tell, _STEPS_TOLD)
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # for the new file
        connection.execute("VACUUM INTO ?", (str(fresh),))
        progress(wanted, wanted)
    with fresh.open("rb") as written:
        os.fsync(written.fileno())


def _fold_wal(file: Path, connection: sqlite3.Connection) -> None:
    """Move all of the WAL into the file, and use none from then on: it would outlive
    the file.

    Raises `DatabaseUnusable` and `sqlite3.Error`.
    """
    try:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.OperationalError as error:
        if is_busy(error):
            reason = "another program has it open; close that first"
            raise DatabaseUnusable(str(file), reason) from error
        raise
