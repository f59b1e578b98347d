"""Copying a whole database, between the engines or from one to its like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from storage.copying.database_copy import (
    CopyOutcome,
    CopySource,
    CopyStage,
    CopyTarget,
    OnCopyProgress,
    copy_tables,
)
from storage.copying.sqlite_copies import sqlite_source, sqlite_target
from storage.database_names import is_on_server, name_location
from storage.errors import DatabaseUnusable
from storage.postgres import requiring_driver
from storage.secrets import key_path, read_key, write_key
from storage.sqlite.file_identity import lock_database

__all__ = ["CopyOutcome", "CopyStage", "OnCopyProgress", "copy_content"]


def copy_content(
    source: str,
    target: str,
    local: Path,
    tell: OnCopyProgress,
    *,
    restart: bool = False,
) -> CopyOutcome:
    """Copy what one URL names to what the other names, with its key.

    ``local``: the path after which the key of a database on a server is named. A copy
    that was broken off goes on, or begins anew (``restart``). Raises
    `DatabaseUnusable` for what cannot be copied, or be a target, `CopyDiffers`, and
    other `StorageError` for what breaks it off.
    """
    _refuse_same(source, target)
    with _opened_source(source, local) as found:
        key_file = key_path(local if is_on_server(target) else _path(target))
        with _opened_target(target, local, found.size(), restart) as to:
            _require_no_other_key(key_file, found.key, target)
            if found.key is not None and not key_file.exists():
                _put_key(key_file, found.key)
            return copy_tables(found, to, tell)


def _path(url: str) -> Path:
    return Path(url.partition(":")[2])


def _refuse_same(source: str, target: str) -> None:
    is_same = source == target
    if not is_on_server(source) and not is_on_server(target):
        is_same = _path(source).resolve() == _path(target).resolve()
    if is_same:
        raise DatabaseUnusable(_name(source), "a database cannot be copied to itself")


def _name(url: str) -> str:
    return name_location(url) if is_on_server(url) else str(_path(url))


@contextmanager
def _opened_source(url: str, local: Path) -> Iterator[CopySource]:
    if not is_on_server(url):
        with sqlite_source(_path(url)) as source:
            yield source
        return
    with requiring_driver(url):
        from storage.copying.postgres_copies import postgres_source
    with postgres_source(url, key_path(local)) as source:
        yield source


@contextmanager
def _opened_target(
    url: str, local: Path, size: int, restart: bool
) -> Iterator[CopyTarget]:
    if not is_on_server(url):
        with sqlite_target(_path(url), restart=restart, wanted_bytes=size) as target:
            yield target
        return
    with requiring_driver(url):
        from storage.copying.postgres_copies import postgres_target
    with ExitStack() as stack:
        stack.callback(lock_database(local).release)
        yield stack.enter_context(
            postgres_target(url, key_path(local), restart=restart)
        )


def _require_no_other_key(key_file: Path, key: bytes | None, target: str) -> None:
    known = read_key(key_file)
    if known is not None and known != key:
        raise DatabaseUnusable(
            _name(target),
            f"{key_file} is the key of another database; move it away if that is not"
            " used any more, or name another directory",
        )


def _put_key(key_file: Path, key: bytes) -> None:
    try:
        key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_key(key_file, key)
    except OSError as error:
        reason = f"the key cannot be written: {error.strerror or error}"
        raise DatabaseUnusable(str(key_file), reason) from error
