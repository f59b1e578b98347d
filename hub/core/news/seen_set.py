"""The seen-set: what a feed has ever shown, as hashes, packed for storage.

It outlives the entries: one that vanishes from a document and comes back is still
known. A sighting takes 36 bytes, and unpacking or packing fifty takes microseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable
from datetime import UTC, datetime, timedelta
from itertools import starmap
from typing import NamedTuple

from protocols.identity import (
    READING_VERSION,
    content_hash,
    fingerprint,
    key_of_link,
)
from protocols.model import Entry, IdSource, first_href

KEPT_DAYS = 90
"""Days for which a key is kept after its last sighting."""
KEPT_DOCUMENTS = 2
"""As many keys as so many documents hold are kept, however old they are."""
MOST_SIGHTINGS = 20_000
"""The most sightings kept, unless the document itself holds more."""

PRESENT = 1
"""Flag: the entry was in the last document."""
DELETED = 2
"""Flag: its publisher said that it is gone."""
MADE_UP = 4
"""Flag: its id is its link or its enclosure."""
HASHED = 8
"""Flag: its id is a hash of what it says."""
UNDATED = 16
"""Flag: it has no date that can be read."""

SHARED = 32
"""Flag: no entry, but an id that several have had at once (`mark_of`)."""

_HEADER = bytes((1, READING_VERSION))
"""The version of the layout, and of how entries are read."""
_LAYOUT = struct.Struct("<QQQQHBB")
_ARE_SHARED = bytes(bool(flags & SHARED) for flags in range(256))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_MOST_CHANGES = 255
_HALF = 0xFFFF_FFFF


class Sighting(NamedTuple):
    """One entry as it was last seen. Hashes are 64 bits; 0 means there is none."""

    key: int
    link: int  # of the host in the upper half, and of the rest of it
    title: int  # of title and date together; 0 without a date, unless the id is a hash
    content: int
    day: int  # of the last sighting, in days since 1970
    changes: int = 0  # of the content, on that day
    flags: int = PRESENT

    @property
    def path(self) -> int:
        """The hash of the link without its host; 0 if it has nothing else."""
        return self.link & _HALF

    @property
    def is_present(self) -> bool:
        return bool(self.flags & PRESENT)

    @property
    def is_deleted(self) -> bool:
        return bool(self.flags & DELETED)

    @property
    def has_generated_id(self) -> bool:
        return bool(self.flags & (MADE_UP | HASHED))

    def changed(self, content: int) -> Sighting:
        changes = min(self.changes + 1, _MOST_CHANGES)
        return self._replace(content=content, changes=changes)


def day_of(moment: datetime) -> int:
    return (moment - _EPOCH) // _DAY


def sight(entry: Entry, day: int) -> Sighting:
    """What is remembered of an entry that was in a document on that day."""
    link = first_href(entry.links, "alternate")
    content = content_hash(entry)
    date = entry.published or entry.updated
    dated = f"{entry.title or content}\n{date.isoformat()}" if date else ""
    if not date and entry.id_source is IdSource.CONTENT:
        dated = entry.title  # only the title may outlast an edit
    return Sighting(
        key=fingerprint(entry.key),
        link=link_of(key_of_link(link)),
        title=fingerprint(dated),
        content=fingerprint(content),
        day=day,
        flags=PRESENT | _SOURCES[entry.id_source] | (0 if date else UNDATED),
    )


_SOURCES = {
    IdSource.FEED: 0,
    IdSource.LINK: MADE_UP,
    IdSource.ENCLOSURE: MADE_UP,
    IdSource.CONTENT: HASHED,
}


def link_of(key: str) -> int:
    """A fingerprint of a link's key, host and path apart: so a site is recognized on
    another host."""
    start = key.find("/", 2) if key.startswith("//") else 0
    host, path = (key[:start], key[start:]) if start >= 0 else (key, "")
    low = 0 if path in ("", "/") else fingerprint(path) & _HALF
    return (fingerprint(host) & _HALF) << 32 | low


def last_sightings(packed: bytes, keys: Container[int]) -> dict[int, Sighting]:
    """The sightings of these keys, without unpacking the whole set.

    Empty for a set of another version, which cannot be compared.
    """
    if not packed.startswith(_HEADER):
        return {}
    sightings = _LAYOUT.iter_unpack(memoryview(packed)[len(_HEADER) :])
    return {each[0]: Sighting._make(each) for each in sightings if each[0] in keys}


def mark_of(source: IdSource, key: int) -> int:
    """The key that records that several entries share an id, link or enclosure.

    It differs from the keys of these entries. ``key`` is the fingerprint of what they
    share.
    """
    return fingerprint(f"shared {source} {key}")


def shared_marks(packed: bytes) -> frozenset[int]:
    """Marks of what entries have shared, without unpacking the whole set."""
    rows = memoryview(packed)[len(_HEADER) :]
    flags = bytes(rows[_LAYOUT.size - 1 :: _LAYOUT.size])
    if 1 not in flags.translate(_ARE_SHARED):
        return frozenset()
    return frozenset(
        key for key, *_, flags in _LAYOUT.iter_unpack(rows) if flags & SHARED
    )


class SeenSet(dict[int, Sighting]):
    """All sightings of one feed, by key. `pack` and `unpack` are exact inverses.

    ``is_former``: a former version has read the entries.
    """

    def __init__(
        self, sightings: Iterable[Sighting] = (), *, is_former: bool = False
    ) -> None:
        super().__init__((sighting.key, sighting) for sighting in sightings)
        self.is_former = is_former

    @classmethod
    def unpack(cls, packed: bytes) -> SeenSet:
        """Read `pack`'s bytes; ``b""`` is the empty set of a feed never parsed.

        Content hashes of another version cannot be compared. They are left out, lest an
        upgrade turns every entry into an update.
        """
        sightings = map(Sighting._make, _LAYOUT.iter_unpack(packed[len(_HEADER) :]))
        if packed.startswith(_HEADER):
            return cls(sightings)
        former = (each._replace(content=0) for each in sightings)
        return cls(former, is_former=bool(packed))

    def pack(self) -> bytes:
        """Pack the set; never ``b""``, since an empty set was parsed once."""
        return _HEADER + b"".join(starmap(_LAYOUT.pack, self.values()))

    def mark(self, shared: int, day: int) -> None:
        """Remember what entries of the last document share (`mark_of`)."""
        self[shared] = Sighting(shared, 0, 0, 0, day, flags=SHARED | PRESENT)

    def remove(self, keys: Iterable[int]) -> None:
        for key in set(keys):
            del self[key]

    def close_document(self, day: int) -> None:
        """Note that the last document's entries were there until ``day``.

        A document that stays the same for months is not read again, so the days on
        which its entries were last seen are filled in here.
        """
        for key, sighting in self.items():
            if sighting.flags & PRESENT:
                seen = _last_seen(sighting, day)
                self[key] = seen._replace(flags=sighting.flags ^ PRESENT)

    def forget(self, today: int, document_length: int) -> None:
        """Drop sightings that are old and beyond the number to keep, oldest first."""
        floor = KEPT_DOCUMENTS * document_length
        if len(self) <= floor:
            return
        oldest_first = sorted(
            self.values(), key=lambda each: (each.is_present, each.day)
        )
        most = max(MOST_SIGHTINGS, document_length)
        kept = [
            each
            for rank, each in enumerate(oldest_first[: -most - 1 : -1])
            if rank < floor or each.day >= today - KEPT_DAYS
        ]
        if len(kept) < len(self):
            self.clear()
            self.update((each.key, each) for each in reversed(kept))


def _last_seen(sighting: Sighting, day: int) -> Sighting:
    """The sighting, seen again on a day; changes are counted anew each day."""
    if day <= sighting.day:
        return sighting
    return sighting._replace(day=day, changes=0)


def sighted_again(known: Sighting, current: Sighting) -> Sighting:
    """A known entry in a new document, with the known content if there is any."""
    return _last_seen(known, current.day)._replace(
        link=current.link,
        title=current.title,
        content=known.content or current.content,
        flags=current.flags,
    )
