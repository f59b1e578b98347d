"""Replaces a database that no hub uses by a backup.

The copy and its key are written beside the database, checked and flushed. The former
database gets a second name, and then two renames put the new files in place. A process
killed before the first leaves the database as it was; one killed after it leaves the
new one, with its key still under another name: the next opening takes that over
(`storage.sqlite.backup.end_restore`).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from storage.errors import DatabaseUnusable, DestinationTaken
from storage.records import OnProgress
from storage.secrets import SecretBox, key_path, read_key, write_key
from storage.sqlite.backup import (
    RESTORING,
    copy_pages,
    database_bytes,
    drop_foreign_wal,
    end_restore,
    ignore_progress,
    key_check,
    require_room,
    with_ending,
)
from storage.sqlite.connection_threads import read_only
from storage.sqlite.file_identity import flush_directory, owned
from storage.sqlite.integrity import find_damage
from storage.sqlite.schema import (
    APPLICATION_ID,
    check_version,
    holds_secrets,
)

COMPACTING: Final = ".compacting"
"""The ending of a compaction's new file, behind the database's name."""
FORMER: Final = ".before-restore-"
"""Stands between the database's name and the time in the name of the former database,
which a restore keeps."""


def restore_database(
    backup: Path, path: Path, stamp: str, progress: OnProgress = ignore_progress
) -> Path | None:
    """Put a copy of ``backup`` in the database's place; returns the former one's path.

    None if there was none. The former database is kept beside the new one, with its
    key; ``stamp`` is the end of its name. It does not change before the copy is whole
    and known to be sound. Raises `DatabaseUnusable`, `DestinationTaken`, `StorageFull`
    and `WriteFailed`.
    """
    _require_backup(backup)
    with owned(path) as file:
        if backup.resolve() == file:
            raise DatabaseUnusable(
                str(backup), "this is the database itself, not a backup"
            )
        _end_earlier(file)
        fresh, former = with_ending(file, RESTORING), with_ending(file, FORMER + stamp)
        try:
            _write_beside(backup, file, fresh, progress)
            has_former = _keep(file, former)
            _put_in_place(file, fresh)
        finally:
            if fresh.exists():  # if not, this key is now the database's
                key_path(fresh).unlink(missing_ok=True)
            for each in _written_for(fresh):
                each.unlink(missing_ok=True)
        return former if has_former else None


def _require_backup(backup: Path) -> None:
    if not backup.is_file():
        raise DatabaseUnusable(str(backup), "there is no such file")
    try:
        with closing(sqlite3.connect(read_only(backup), uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.Error as error:
        raise DatabaseUnusable(str(backup), str(error)) from error
    if application != APPLICATION_ID:
        raise DatabaseUnusable(str(backup), "this is not a Fanfare database")


def _end_earlier(file: Path) -> None:
    """End a restore that was killed, as the next opening would."""
    drop_foreign_wal(file)
    remove_unfinished(file)
    if key_path(with_ending(file, RESTORING)).exists():
        with closing(sqlite3.connect(file)) as connection:
            end_restore(file, connection)


def _write_beside(backup: Path, file: Path, fresh: Path, progress: OnProgress) -> None:
    """Write the copy and its key under names of their own, check and flush them."""
    require_room(file.parent, database_bytes(backup))
    create_private(fresh)
    copy_pages(backup, fresh, progress)
    _check(backup, fresh)
    key = _key_of(backup, file, fresh)
    if key is not None:
        write_key(key_path(fresh), key)
    flush_directory(file.parent)


def create_private(path: Path) -> None:
    """Make an empty file that only its owner may read. Raises `OSError`."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _check(backup: Path, fresh: Path) -> None:
    with closing(sqlite3.connect(fresh)) as connection:
        check_version(connection, str(backup), migrate=True)
    damage = find_damage(fresh, has_key=False)
    if damage:
        raise DatabaseUnusable(str(backup), f"it is damaged: {damage[0]}")


def _key_of(backup: Path, file: Path, fresh: Path) -> bytes | None:
    """The key that opens the copy: the backup's own, or the database's if that fits.

    None if nothing in the copy is encrypted: then any key will do. Raises
    `DatabaseUnusable`.
    """
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        known = key_check(connection)
        for path in (key_path(backup), key_path(file)):
            key = read_key(path)
            if key is not None and SecretBox(key).key_check == known:
                return key
        if known and holds_secrets(connection):
            name = key_path(backup).name
            reason = f"its key file {name} is missing or belongs to another database"
            raise DatabaseUnusable(str(backup), reason)
        connection.execute("UPDATE meta SET key_check = ''")
    return None


def _keep(file: Path, former: Path) -> bool:
    """Give the present database a second name, with its key, and its WAL if a hub
    crashed; returns False for an empty file."""
    if not file.stat().st_size:
        return False
    names = [
        (file, former),
        (with_ending(file, "-wal"), with_ending(former, "-wal")),
        (key_path(file), key_path(former)),
    ]
    for _old, new in names:
        if new.exists():
            raise DestinationTaken(f"{new} exists already")
    for old, new in names:
        if old.exists():
            _link_or_copy(old, new)
    flush_directory(former.parent)
    return True


def _link_or_copy(old: Path, new: Path) -> None:
    """Give a file a second name, or copy it if the disk has no links."""
    try:
        new.hardlink_to(old)
    except OSError:
        create_private(new)
        shutil.copyfile(old, new)
        with new.open("rb") as file:
            os.fsync(file.fileno())


def _put_in_place(file: Path, fresh: Path) -> None:
    """Rename the copy, then its key. If the process is killed between the two, the next
    opening renames the key."""
    fresh.rename(file)
    flush_directory(file.parent)
    if key_path(fresh).exists():
        key_path(fresh).rename(key_path(file))
    drop_foreign_wal(file)
    flush_directory(file.parent)


def remove_unfinished(file: Path) -> None:
    """Remove what a killed restore or compaction has written.

    Also the second name of a database that is still in its place. Call it only as the
    database's owner: another process may be restoring it. Raises `OSError`.
    """
    for ending in (RESTORING, COMPACTING):
        for each in _written_for(with_ending(file, ending)):
            each.unlink(missing_ok=True)
    for former in tuple(_second_names(file)):
        for each in (key_path(former), with_ending(former, "-wal"), former):
            each.unlink(missing_ok=True)


def _second_names(file: Path) -> Iterator[Path]:
    if not file.exists():
        return
    prefix = file.name + FORMER
    for each in [*file.parent.iterdir()]:
        if each.name.startswith(prefix) and each.samefile(file):
            yield each  # never its key or its WAL, which are files of their own


def _written_for(path: Path) -> tuple[Path, ...]:
    """The files written under a name, except the key: an opening may take that over."""
    return path, with_ending(path, "-journal"), with_ending(key_path(path), ".partial")
