"""Copies one database into another one, of whichever engine, and checks the copy.

How far each table has come is written with its rows, in the target. So a copy that was
broken off goes on where it was; first it reads once more what it had, to find out
whether the source is still the same. Nothing may write to either of them meanwhile. The
target cannot be opened by a hub before all of it has been read again and is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from storage.copying.copied_tables import (
    TABLES,
    CopiedRows,
    CopiedTable,
    TableProgress,
    Values,
)
from storage.errors import CopyDiffers, DatabaseUnusable
from storage.secrets import SecretBox


class CopyStage(StrEnum):
    REREADING = "reading what was copied before"
    COPYING = "copying"
    INDEXING = "making indexes"
    CHECKING = "checking"


OnCopyProgress: TypeAlias = Callable[[CopyStage, int, int], None]
"""Called with the rows done in a stage, and those in all."""


class CopiedHub(msgspec.Struct, frozen=True, kw_only=True):
    """What a database holds once. ``is_copy``: its log may lack its end, so that its
    next opening begins a new epoch."""

    key_check: str
    checked_at: int
    seen_at: int
    epoch: str
    head: int
    tail: int
    queries: int
    is_copy: bool
    search_days: float


class CopyOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Which database a copy is of. The same by another name has the same key and
    epoch."""

    location: str
    engine: str
    key_check: str
    epoch: str

    def is_same(self, other: CopyOrigin) -> bool:
        mine, others = (
            (each.engine, each.key_check, each.epoch) for each in (self, other)
        )
        return mine == others


class CopyOutcome(msgspec.Struct, frozen=True, kw_only=True):
    rows: int
    tables: int  # with any rows
    epoch: str
    is_copy: bool


class ReadTables(Protocol):
    """A database that is read table by table; it stays the same meanwhile."""

    @property
    def location(self) -> str: ...

    def count(self, table: CopiedTable) -> int: ...

    def batches(self, table: CopiedTable, after: Values) -> Iterator[CopiedRows]:
        """Its rows behind that key, ascending."""
        ...


class CopySource(ReadTables, Protocol):
    engine: str

    @property
    def key(self) -> bytes | None:
        """What its secrets are encrypted with; None if it never had one."""
        ...

    def size(self) -> int:
        """About how many bytes its tables take."""
        ...

    def hub(self) -> CopiedHub: ...

    def last_ids(self) -> Mapping[str, int]:
        """The highest id that each table ever gave."""
        ...


class CopyTarget(ReadTables, Protocol):
    def begin(self, origin: CopyOrigin, box: SecretBox | None) -> CopyOrigin:
        """Mark it as a copy that is not complete, unless it is one; of what."""
        ...

    def progress(self) -> Mapping[str, TableProgress]: ...

    def write(
        self, table: CopiedTable, rows: Sequence[Values], progress: TableProgress
    ) -> None: ...

    def derive(self, hub: CopiedHub) -> None:
        """Counters, listings and indexes, from the tables. May be repeated."""
        ...

    def complete(self, hub: CopiedHub, last_ids: Mapping[str, int]) -> None:
        """From now on a hub can use it."""
        ...


def copy_tables(
    source: CopySource, target: CopyTarget, tell: OnCopyProgress
) -> CopyOutcome:
    """Raises `StorageError`: `DatabaseUnusable` if the target is something else, or the
    source has changed since the copy was begun; `CopyDiffers`."""
    box = None if source.key is None else SecretBox(source.key)
    origin = _origin_of(source)
    begun = target.begin(origin, box)
    if not begun.is_same(origin):
        raise DatabaseUnusable(
            target.location,
            f"this is an unfinished copy of {begun.location}, not of {source.location}",
        )
    known = dict(target.progress())
    _require_unchanged(source, target, known, tell)
    _copy_rest(source, target, known, tell)
    hub = source.hub()
    tell(CopyStage.INDEXING, 0, 0)
    target.derive(hub)
    _compare(source, target, known, tell)
    target.complete(hub, source.last_ids())
    return CopyOutcome(
        rows=sum(each.rows for each in known.values()),
        tables=sum(each.rows > 0 for each in known.values()),
        epoch=hub.epoch,
        is_copy=hub.is_copy,
    )


def _origin_of(source: CopySource) -> CopyOrigin:
    hub = source.hub()
    return CopyOrigin(
        location=source.location,
        engine=source.engine,
        key_check=hub.key_check,
        epoch=hub.epoch,
    )


def _require_unchanged(
    source: CopySource,
    target: CopyTarget,
    known: Mapping[str, TableProgress],
    tell: OnCopyProgress,
) -> None:
    """Of a table that is not whole yet, the rows so far must be the first."""
    done, total = 0, sum(each.rows for each in known.values())
    for table in TABLES:
        before = known.get(table.name)
        if before is None:
            continue
        now = TableProgress()
        for rows in source.batches(table, ()):
            now = now.with_rows(
                rows if before.is_whole else _first(rows, before.rows - now.rows)
            )
            tell(CopyStage.REREADING, done + now.rows, total)
            if not before.is_whole and now.rows == before.rows:
                break
        done += now.rows
        if (now.rows, now.checksum) != (before.rows, before.checksum):
            raise DatabaseUnusable(
                source.location,
                f"it has changed since its copy to {target.location} was begun"
                f" ({table.name}); begin the copy anew with --restart",
            )


def _first(rows: CopiedRows, count: int) -> CopiedRows:
    return CopiedRows(rows.rows[:count], rows.encoded[:count], rows.last_key)


def _copy_rest(
    source: CopySource,
    target: CopyTarget,
    known: dict[str, TableProgress],
    tell: OnCopyProgress,
) -> None:
    done = sum(each.rows for each in known.values())
    total = sum(source.count(table) for table in TABLES)
    for table in TABLES:
        progress = known.get(table.name, TableProgress())
        if not progress.is_whole:
            before = progress.rows
            for rows in source.batches(table, progress.last_key):
                progress = progress.with_rows(rows)
                target.write(table, rows.rows, progress)
                tell(CopyStage.COPYING, done + progress.rows - before, total)
            done += progress.rows - before
            progress = msgspec.structs.replace(progress, is_whole=True)
            target.write(table, (), progress)
        known[table.name] = progress


def _compare(
    source: CopySource,
    target: CopyTarget,
    known: Mapping[str, TableProgress],
    tell: OnCopyProgress,
) -> None:
    """What was read from the source, with what now is in the target."""
    done, total = 0, sum(each.rows for each in known.values())
    for table in TABLES:
        found = TableProgress()
        for rows in target.batches(table, ()):
            found = found.with_rows(rows)
            tell(CopyStage.CHECKING, done + found.rows, total)
        done += found.rows
        wanted = known[table.name]
        if (found.rows, found.checksum) != (wanted.rows, wanted.checksum):
            raise CopyDiffers(
                f"{target.location}: {table.name} has {found.rows} rows with the"
                f" checksum {found.checksum}; {source.location} has {wanted.rows} with"
                f" {wanted.checksum}. The copy is not complete; begin it anew with"
                " --restart"
            )
