"""Whether the files that are written are those that the next opening will find."""

from __future__ import annotations

import os
import sqlite3


class Place:
    """A database's file and its WAL, by the name they were opened with.

    Who removes or replaces one of them beneath a running hub leaves it writing to what
    nobody finds again: nothing of that is durable, though SQLite says so.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        [path] = [row[2] for row in connection.execute("PRAGMA database_list")][:1]
        self._names = (path, f"{path}-wal") if path else ()
        self._known: dict[str, tuple[int, int]] = {}

    def check(self) -> None:
        """Raises `sqlite3.OperationalError`, as the disk's other failures are."""
        for name in self._names:
            try:
                found = os.stat(name)
            except OSError:
                if name in self._known:
                    raise _gone(name) from None
                continue  # a WAL comes with the first write
            identity = found.st_dev, found.st_ino
            if self._known.setdefault(name, identity) != identity:
                raise _gone(name)


def _gone(name: str) -> sqlite3.OperationalError:
    """Without its directory, since strangers are told why the hub is not ready."""
    return sqlite3.OperationalError(
        f"{os.path.basename(name)} was removed or replaced while it was in use"
    )
