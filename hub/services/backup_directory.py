"""The directory of scheduled backups: their names, and which are kept.

A backup is recognized by its name, which contains the time when it was begun. Other
files in the directory are left alone. Everything here waits for the disk, which may be
a network share that hangs: call it in a thread.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from storage.secrets import key_path

_STAMP: Final = "%Y%m%dT%H%M%SZ"
ABANDONED_SECONDS: Final = 3_600.0
"""Seconds after which an unfinished file that is not written to belongs to a dead
hub."""


class BackupFile(msgspec.Struct, frozen=True, kw_only=True):
    """A backup in the directory."""

    file: str
    at: datetime
    bytes: int


class BackupDirectory:
    def __init__(self, path: Path, database: Path, *, every: float, kept: int) -> None:
        """``every``: seconds from one backup to the next. ``kept``: how many backups
        are kept, at least one."""
        self.path = path.absolute()
        self.every = every
        self.kept = kept
        self._stem = database.stem
        name = rf"{re.escape(self._stem)}-(\d{{8}}T\d{{6}}Z)\.db"
        self._name = re.compile(name, re.ASCII)

    def new_file(self, now: datetime) -> Path:
        return self.path / f"{self._stem}-{now:{_STAMP}}.db"

    def files(self) -> list[BackupFile]:
        """The backups, newest first. Raises `OSError`."""
        found = []
        for path in self.path.iterdir():
            named = self._name.fullmatch(path.name)
            if named and path.is_file():
                at = datetime.strptime(named[1], _STAMP).replace(tzinfo=UTC)
                size = path.stat().st_size
                found.append(BackupFile(file=str(path), at=at, bytes=size))
        return sorted(found, key=lambda each: each.at, reverse=True)

    def due_in(self, now: datetime) -> float:
        """Seconds until the next backup is due. Raises `OSError`.

        A backup from the future does not count: the clock was wrong then. The directory
        is created if it is missing and its parent exists.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        times = [each.at for each in self.files() if each.at <= now]
        if not times:
            return 0.0
        return max(0.0, self.every - (now - times[0]).total_seconds())

    def rotate(self) -> list[Path]:
        """Remove all but the newest backups, and unfinished files; returns the removed
        backups.

        Raises `OSError`.
        """
        expired = [Path(each.file) for each in self.files()[self.kept :]]
        for path in expired:
            path.unlink(missing_ok=True)
            key_path(path).unlink(missing_ok=True)
        self._remove_abandoned()
        return expired

    def _remove_abandoned(self) -> None:
        before = time.time() - ABANDONED_SECONDS
        for path in self.path.glob("*.db.partial"):
            named = self._name.fullmatch(path.name.removesuffix(".partial"))
            if named and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
