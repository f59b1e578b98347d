"""Makes a consistent copy of a database, in use or not, with its key, and helps an
opening recognize a copy that was put in place."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from storage.errors import DestinationTaken, StorageFull, WriteFailed
from storage.records import OnProgress
from storage.secrets import SecretBox, key_path, read_key, write_key
from storage.sqlite.connection_threads import read_only
from storage.sqlite.driver_errors import write_failure
from storage.sqlite.file_identity import flush_directory, owned
from storage.sqlite.schema import refuse_strangers, schema_version

STEP_PAGES: Final = 1_000
"""Pages copied between two reports of progress, usually 4 MiB."""
RESERVE_BYTES: Final = 64 * 1024 * 1024
"""Bytes that a copy leaves free on its disk, which may also hold the database."""
RESTORING: Final = ".restoring"
"""The ending of a restore's copy, behind the database's name, until it is in place."""
_VERSIONS_AT: Final = 18
"""The offset of the read and write versions in the file's header: 2 with a WAL, else
1."""


def ignore_progress(done: int, total: int) -> None:
    """A progress callback that does nothing."""


def copy_database(
    source: Path, destination: Path, progress: OnProgress = ignore_progress
) -> None:
    """Copy a database to a new file, which gets its name only when it is whole.

    Works beside the writer, on a connection of its own. An exception of ``progress``
    ends the copy. Raises `DestinationTaken`, also while another backup writes there,
    `StorageFull` before anything is written if it would not fit, and `WriteFailed`.
    """
    try:
        with _claimed(destination) as partial:
            _require_no_other(destination, source)
            require_room(destination.parent, database_bytes(source))
            _copy_with_key(source, partial, destination, progress)
    except (sqlite3.Error, OSError) as error:
        raise _explained(destination, error) from error


def copy_at_rest(
    path: Path, destination: Path, progress: OnProgress = ignore_progress
) -> None:
    """Make a backup of a database that no hub uses, of any schema version, without
    changing it. So a backup can be made after an update and before its migrations.

    Raises `DatabaseUnusable`, and what `copy_database` raises.
    """
    with owned(path) as file:
        drop_foreign_wal(file)
        with closing(sqlite3.connect(file)) as connection:
            refuse_strangers(connection, str(file))
            end_restore(file, connection)
            copy_database(file, destination, progress)


def copy_pages(source: Path, partial: Path, progress: OnProgress) -> None:
    """Copy a database into an empty file, marked as a copy.

    The pages are copied in steps, from one snapshot: a commit meanwhile does not
    restart the copy.
    """
    with (
        closing(sqlite3.connect(read_only(source), uri=True)) as live,
        closing(sqlite3.connect(partial, isolation_level=None)) as copy,
    ):
        ((page_bytes,),) = live.execute("PRAGMA page_size").fetchall()
        live.execute("BEGIN")
        live.execute("SELECT count(*) FROM sqlite_master").fetchone()

        def tell(_status: int, left: int, total: int) -> None:
            progress((total - left) * page_bytes, total * page_bytes)

        live.backup(copy, pages=STEP_PAGES, progress=tell)
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.execute("UPDATE meta SET is_copy = 1")


def database_bytes(path: Path) -> int:
    """The bytes that a copy takes. Raises `sqlite3.Error`."""
    with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
        ((found,),) = connection.execute(
            "SELECT page_size * page_count FROM pragma_page_size, pragma_page_count"
        ).fetchall()
    return int(found)


def require_room(directory: Path, wanted: int) -> None:
    """Check that so many bytes fit on a disk. Raises `StorageFull` and `OSError`."""
    free = shutil.disk_usage(directory).free
    if free < wanted + RESERVE_BYTES:
        raise StorageFull(
            f"{directory} has {free} bytes left, and the copy takes {wanted} besides"
            f" {RESERVE_BYTES} that stay free"
        )


@contextmanager
def _claimed(destination: Path) -> Iterator[Path]:
    """An empty file beside the destination that no other backup writes to.

    If it still exists at the end, it is removed. Raises `DestinationTaken` and
    `OSError`.
    """
    partial = with_ending(destination, ".partial")
    descriptor = os.open(partial, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if not _is_mine(descriptor, partial):
            raise DestinationTaken(f"another backup to {destination} is running")
        try:
            os.ftruncate(descriptor, 0)
            yield partial
        finally:
            partial.unlink(missing_ok=True)
            with_ending(partial, "-journal").unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _require_no_other(destination: Path, source: Path) -> None:
    """Refuse to overwrite anything but the same key, which a killed backup may have
    left. Raises `DestinationTaken`."""
    key = key_path(destination)
    is_key_taken = key.exists() and not _is_same_file(key, key_path(source))
    for path, is_taken in ((destination, destination.exists()), (key, is_key_taken)):
        if is_taken:
            raise DestinationTaken(f"{path} exists already; name a new file")


def _is_same_file(path: Path, other: Path) -> bool:
    return other.exists() and path.read_bytes() == other.read_bytes()


def _is_mine(descriptor: int, path: Path) -> bool:
    """Whether the file could be locked and still has that name: the former owner of the
    lock may have renamed it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _copy_with_key(
    source: Path, partial: Path, destination: Path, progress: OnProgress
) -> None:
    """Copy the key first, then the database, so that there is never a backup without
    its key."""
    key = key_path(destination)
    try:
        copy_pages(source, partial, progress)
        write_key(key, read_key(key_path(source)) or b"")
        partial.rename(destination)
    except (sqlite3.Error, OSError):
        key.unlink(missing_ok=True)
        raise
    flush_directory(destination.parent)


def drop_foreign_wal(path: Path) -> None:
    """Remove the WAL of a crashed hub whose database was replaced by a backup.

    A backup needs no WAL and says so in its header, but SQLite would still play the
    other file's WAL into it. Raises `OSError`.
    """
    wal = with_ending(path, "-wal")
    if not wal.exists() or not path.exists():
        return
    with path.open("rb") as file:
        file.seek(_VERSIONS_AT)
        has_wal = file.read(2) != b"\x01\x01"
    if not has_wal:
        wal.unlink()
        with_ending(path, "-shm").unlink(missing_ok=True)


def end_restore(path: Path, connection: sqlite3.Connection) -> None:
    """Take over the key of a restore that was killed after its copy was in place.

    A key that does not fit this database comes from a restore that never got so far.
    Raises `sqlite3.Error` and `OSError`.
    """
    waiting = key_path(with_ending(path, RESTORING))
    key = read_key(waiting)
    if key is None:
        return
    if schema_version(connection) and SecretBox(key).key_check == key_check(connection):
        waiting.rename(key_path(path))
        flush_directory(path.parent)
    else:
        waiting.unlink()


def key_check(connection: sqlite3.Connection) -> str:
    """A text that shows whether a key belongs to this database; "" before it has
    one."""
    ((found,),) = connection.execute("SELECT key_check FROM meta").fetchall()
    return str(found)


def with_ending(path: Path, ending: str) -> Path:
    """The path with the ending added to its name."""
    return path.with_name(path.name + ending)


def _explained(destination: Path, error: sqlite3.Error | OSError) -> WriteFailed:
    if isinstance(error, sqlite3.Error):
        return write_failure(error)
    return WriteFailed(f"cannot write {destination}: {error.strerror}")
