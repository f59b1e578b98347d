"""How much of the disk the file takes, and giving back what nothing in it takes."""

from __future__ import annotations

import sqlite3
from typing import Final

LEAST_FREE_PAGES: Final = 256
FREE_SHARE: Final = 50
"""So many pages stay free, or one of so many: what comes next fills them, and a file
that shrinks and grows all the time only costs writes."""
_INCREMENTAL: Final = 2


def give_back_pages(limit: int, connection: sqlite3.Connection) -> int:
    """Give free pages back to the disk, ``limit`` at most; how many it were.

    None of a file that an older version made: it knows no owners of its pages, without
    which none can be moved. `storage.sqlite.compaction` writes it anew.
    """
    ((mode, pages, free),) = connection.execute(
        "SELECT auto_vacuum, page_count, freelist_count"
        " FROM pragma_auto_vacuum, pragma_page_count, pragma_freelist_count"
    ).fetchall()
    if mode != _INCREMENTAL:
        return 0
    count: int = min(limit, free - max(LEAST_FREE_PAGES, pages // FREE_SHARE))
    for _ in range(count):  # of several at once the driver takes the first step only
        connection.execute("PRAGMA incremental_vacuum(1)").fetchall()
    return max(0, count)
