"""The collections on disk, and the file that lists them.

A collection is never changed. Publication replaces the list in one step: if the hub
crashes before it, the last generation is complete, and files that no list names are
deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from protocols.scp.collection import ALL, CollectionHead, CollectionType, Encoding
from storage.records import PageSection

COLLECTIONS_FOLDER = "scp"
"""The folder of collections, beside the database."""
LIST = "collections.json"
MOST_GONE = 2_000
"""Names of collections that are remembered as gone; older ones count as unknown."""


class CollectionStoreUnusable(Exception):
    """The directory of the collections cannot be created, read or cleaned."""

    def __init__(self, directory: Path, reason: str) -> None:
        self.directory = directory
        self.reason = reason
        super().__init__(f"collections {directory}: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCollection:
    """A collection on disk.

    ``withdrawals``: how many withdrawals its section had counted when it was built.
    ``digest``: SHA-256 of the uncompressed bytes, hex. A collection that is not listed
    is served to readers that know its name.
    """

    name: str
    section: str
    type: CollectionType
    generated: datetime
    since: datetime | None
    expires: datetime
    gone: datetime
    encoding: Encoding
    digest: str
    pages: int
    size: int
    withdrawals: int = 0
    is_listed: bool = True

    @property
    def head(self) -> CollectionHead:
        return CollectionHead(
            section=self.section,
            type=self.type,
            generated=self.generated,
            since=self.since,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Where a section's next delta begins."""

    position: int
    generated: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What is published. ``epoch``: of the database that the positions belong to."""

    epoch: str = ""
    made: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    collections: tuple[StoredCollection, ...] = ()
    chains: Mapping[str, Chain] = field(default_factory=dict)
    gone: tuple[str, ...] = ()

    @property
    def listed(self) -> tuple[StoredCollection, ...]:
        return tuple(each for each in self.collections if each.is_listed)

    def snapshot(self, section: str) -> StoredCollection | None:
        """The latest listed snapshot of a section; None if it has none."""
        found = [
            each
            for each in self.collections
            if each.section == section
            and each.type is CollectionType.SNAPSHOT
            and each.is_listed
        ]
        return max(found, key=lambda each: each.generated, default=None)

    def latest(self, section: str) -> datetime | None:
        """When the section's last collection was generated; None if it has none."""
        found = [each.generated for each in self.collections if each.section == section]
        chain = self.chains.get(section)
        return max(found + ([chain.generated] if chain else []), default=None)


def next_generation(
    before: Generation,
    added: Sequence[StoredCollection],
    chains: Mapping[str, Chain],
    epoch: str,
    now: datetime,
) -> Generation:
    """What is published from now on.

    A new snapshot replaces the section's last one. Expired collections are no longer
    listed; of those that are gone, the names are kept.
    """
    kept = [each for each in before.collections if each.gone > now]
    gone = [each.name for each in before.collections if each.gone <= now]
    collections = tuple(_delisted(each, added, now) for each in kept) + tuple(added)
    return Generation(
        epoch=epoch,
        made=now,
        collections=collections,
        chains=chains,
        gone=(*before.gone, *gone)[-MOST_GONE:],
    )


def withdrawn_of(
    generation: Generation, sections: Iterable[PageSection], epoch: str
) -> frozenset[str]:
    """Names of collections that may contain text which was withdrawn after they were
    built. Collections made from another database are among them, since nothing is known
    of their text."""
    counts = {each.name or ALL: each.withdrawals for each in sections}
    is_known = generation.epoch == epoch
    return frozenset(
        each.name
        for each in generation.collections
        if (each.withdrawals if is_known else 0) < counts.get(each.section, 0)
    )


def without_withdrawn(
    generation: Generation, names: Set[str], now: datetime
) -> Generation:
    """What is published without these collections; their names are kept as gone."""
    return replace(
        generation,
        collections=tuple(
            replace(each, is_listed=False, gone=min(each.gone, now))
            if each.name in names
            else each
            for each in generation.collections
        ),
    )


def without_lost(generation: Generation, lost: Set[str]) -> Generation:
    """What is published if these files no longer exist.

    The snapshot of a section with such a file is no longer listed either: with a delta
    missing it leads nowhere, so another snapshot is built.
    """
    sections = {each.section for each in generation.collections if each.name in lost}
    return replace(
        generation,
        collections=tuple(
            replace(each, is_listed=False)
            if each.section in sections and each.type is CollectionType.SNAPSHOT
            else each
            for each in generation.collections
            if each.name not in lost
        ),
    )


def _delisted(
    each: StoredCollection, added: Sequence[StoredCollection], now: datetime
) -> StoredCollection:
    is_replaced = each.type is CollectionType.SNAPSHOT and any(
        other.section == each.section and other.type is CollectionType.SNAPSHOT
        for other in added
    )
    if is_replaced or each.expires <= now:
        return replace(each, is_listed=False)
    return each


class CollectionStore:
    """The collections on disk. `find` and ``generation`` may be used at any time,
    everything else from one task at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.generation = Generation()

    def open(self) -> None:
        """Read the list, and delete files that it does not name. Raises
        CollectionStoreUnusable."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.generation = self._listed()
            self._sweep()
        except OSError as error:
            reason = error.strerror or str(error)
            raise CollectionStoreUnusable(self.directory, reason) from error

    def _listed(self) -> Generation:
        try:
            packed = (self.directory / LIST).read_bytes()
            return msgspec.json.decode(packed, type=Generation)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return Generation()

    def path(self, name: str) -> Path:
        return self.directory / name

    def find(self, name: str) -> StoredCollection | None:
        for each in self.generation.collections:
            if each.name == name:
                return each
        return None

    def lost(self) -> frozenset[str]:
        """Names of listed collections whose files were deleted from outside; empty if
        the directory cannot be read."""
        try:
            there = set(os.listdir(self.directory))
        except FileNotFoundError:
            there = set()
        except OSError:
            return frozenset()
        return frozenset(
            each.name for each in self.generation.listed if each.name not in there
        )

    def publish(self, generation: Generation) -> None:
        """Replace what is published, whose files are complete. Raises OSError."""
        target = self.directory / LIST
        partial = target.with_suffix(".part")
        with partial.open("wb") as file:
            file.write(msgspec.json.encode(generation))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
        sync_directory(self.directory)
        self.generation = generation
        self._sweep()

    def _sweep(self) -> None:
        known = {each.name for each in self.generation.collections} | {LIST}
        for path in self.directory.iterdir():
            if path.name not in known and path.is_file():
                path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make renames in the directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def later(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=seconds)
