"""One process owns a database file: an advisory lock on a file beside it.

The kernel drops the lock with the process, so what a killed one leaves behind blocks
nobody. The file itself stays; removing it would let two processes lock two files.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from storage.errors import DatabaseLocked


class FileLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, database: Path) -> FileLock:
        """Raises `DatabaseLocked`, with the owner's process id if it can be told."""
        path = database.with_name(database.name + ".lock")
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DatabaseLocked(str(database), owner) from error
        _write_owner(descriptor)
        return cls(descriptor)

    def release(self) -> None:
        os.close(self._descriptor)


def _write_owner(descriptor: int) -> None:
    """For the message to a second process; a full disk only makes it shorter."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
    except OSError:
        return
