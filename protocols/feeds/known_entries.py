"""What an entry's content depends on in its source, and which entries are recognized by
it.

In XML that is the bytes of its element. In JSON it is the values of all members of the
item, in their order; white space and escapes do not matter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, Final, NamedTuple, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from protocols.feeds.context import ParseContext
from protocols.feeds.element import Element, local_name
from protocols.identity import checksum, fingerprint, key_of_link
from protocols.model import Entry, Feed, IdSource, Outline, ParsedFeed

_HEADER: Final = struct.Struct("<QQI")
_ROW: Final = "QQ?"
_LAYOUT: Final = struct.Struct(f"<{_ROW}")
_SITE_RELATIONS: Final = ("alternate", "self")


class KnownSlice(NamedTuple):
    """``key`` is the fingerprint of the entry's key; ``is_link``: that is its link."""

    slice: int
    key: int
    is_link: bool


class PassedOver(Struct, frozen=True):
    """What of a document need not be read.

    ``slices`` and ``keys`` are those of its entries in their order, with 0 for those
    that are read. Of the ``count`` others ``known`` are all keys, and ``links`` those
    that are links.
    """

    slices: tuple[int, ...]
    keys: tuple[int, ...]
    count: int
    known: frozenset[int]
    links: frozenset[int]

    @classmethod
    def of(cls, here: Sequence[KnownSlice | None]) -> PassedOver:
        met = [each for each in here if each is not None]
        return cls(
            tuple(each.slice if each else 0 for each in here),
            tuple(each.key if each else 0 for each in here),
            len(met),
            frozenset(each.key for each in met),
            frozenset(each.key for each in met if each.is_link),
        )

    def is_apart_from(self, parsed: ParsedFeed) -> bool:
        """Whether what was read besides and what is known do not bear on each other.

        Of two entries with one id the first counts, and a link that several entries
        without an id share is the identity of none.
        """
        count = len(self.keys)
        if parsed.deletions or len(parsed.entries) + self.count != count:
            return False
        keys = self.known.union(fingerprint(each.key) for each in parsed.entries)
        return len(keys) == count and not any(
            _own_link(entry) in self.links for entry in parsed.entries
        )


class KnownSlices(Struct, frozen=True):
    """Entries that were read before, in one setting, and need not be read again.

    If all entries of the last document are known, and nothing stood between them,
    these are the first ``count``, and ``region`` is the hash of all that. ``rows`` are
    unpacked when they are asked for.
    """

    setting: int = 0
    region: int = 0
    count: int = 0
    rows: bytes = b""

    @classmethod
    def unpack(cls, packed: bytes) -> KnownSlices:
        """Read `pack_known`'s bytes; ``b""`` when nothing is known."""
        if not packed:
            return cls()
        setting, region, count = _HEADER.unpack_from(packed)
        return cls(setting, region, count, packed[_HEADER.size :])

    def last(self) -> PassedOver:
        """All entries of the last document. There is one, or there is no region."""
        slices, keys, are_links = self.last_columns()
        links = frozenset(compress(keys, are_links))
        return PassedOver(slices, keys, self.count, frozenset(keys), links)

    def last_columns(
        self,
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...]]:
        """Like `last`, only its slices and keys, and which of these are links."""
        # At one go: row by row takes three times as long.
        values = struct.unpack_from(f"<{_ROW * self.count}", self.rows)
        return values[::3], values[1::3], values[2::3]

    def by_hash(self) -> Mapping[int, KnownSlice]:
        rows = map(KnownSlice._make, _LAYOUT.iter_unpack(self.rows))
        return {each.slice: each for each in rows}


def pack_known(
    setting: int, slices: Iterable[KnownSlice], *, region: int = 0, count: int = 0
) -> bytes:
    """``count``: so many of them, the first, make up the region."""
    header = _HEADER.pack(setting, region, count)
    return header + b"".join(_LAYOUT.pack(*each) for each in slices)


def known_region(packed: bytes) -> int:
    """Only the region's hash of `pack_known`'s bytes."""
    _, region, _ = _HEADER.unpack_from(packed)
    return int(region)


class EntryLocation(Struct, frozen=True):
    """Where all entries of a document stand, and what they inherit there."""

    holder: Element
    entries: tuple[Element, ...]
    inherited: tuple[object, ...]


def find_place(root: Element) -> EntryLocation | None:
    """``None`` if entries stand in several places, or before the channel."""
    if local_name(root.tag).lower() == "feed":
        return EntryLocation(root, _children(root, "entry"), _inherited(root))
    channels, beside = _children(root, "channel"), _children(root, "item")
    if len(channels) != 1:
        return None
    channel = channels[0]
    inherited = _inherited(root) + _inherited(channel)
    inside = _children(channel, "item")
    if not beside:
        return EntryLocation(channel, inside, inherited)
    first = next(each for each in root if local_name(each.tag) in ("channel", "item"))
    if inside or first is not channel:
        return None
    return EntryLocation(root, beside, inherited)


def setting_of(
    place: EntryLocation, declaration: bytes, feed: Feed, context: ParseContext
) -> int:
    """A hash of all that an entry's reading depends on beside its own bytes.

    That is the names and namespaces around it, bases and languages, and what it
    inherits from the head; the head's other fields may change as they like.
    """
    sites = (
        next((link.href for link in feed.links if link.rel == rel), "")
        for rel in _SITE_RELATIONS
    )
    parts = (
        context.url,
        declaration,
        place.inherited,
        *sites,
        feed.language,
        feed.rights,
        feed.authors,
    )
    return fingerprint(repr(parts))


def _own_link(entry: Entry) -> int:
    """The link by which an entry without an id might be known."""
    if entry.id_source is IdSource.FEED:
        return 0
    hrefs = (link.href for link in entry.links if link.rel == "alternate")
    return fingerprint(key_of_link(next(hrefs, "")))


def _children(element: Any, name: str) -> tuple[Element, ...]:
    return tuple(element.iterchildren(f"{{*}}{name}"))


def _inherited(element: Element) -> tuple[object, ...]:
    return element.tag, element.prefix, element.nsmap, element.items()


Item = TypeVar("Item")


class AllItems(NamedTuple):
    """The slices and keys of an `Outline`."""

    slices: tuple[int, ...]
    keys: tuple[int, ...]


class WrittenItems:
    """``region`` is a hash of all of them; 0 if there are none, or if one is nested
    too deep to be written."""

    def __init__(self, items: Sequence[object]) -> None:
        self._items = items
        self.region = _hash(items) if items else 0

    @cached_property
    def hashes(self) -> tuple[int, ...]:
        """The hash of each item; 0 for one that is nested too deep."""
        return tuple(map(_hash, self._items))

    def find_all(self, known: KnownSlices, setting: int) -> AllItems | None:
        """All items, if these are the last document's and mean what they meant."""
        if not self.region or (self.region, setting) != (known.region, known.setting):
            return None
        slices, keys, _ = known.last_columns()
        return AllItems(slices, keys)


def read_unknown(
    items: Sequence[Item],
    known: bytes,
    setting: int,
    read: Callable[[Sequence[Item]], ParsedFeed],
) -> ParsedFeed:
    """Have ``read`` all items but those that are ``known`` (`pack_known`).

    Where one might bear on another, all are read; the outline is missing where it would
    not tell everything.
    """
    written, memory = WrittenItems(items), KnownSlices.unpack(known)
    found = written.find_all(memory, setting)
    if found is not None:
        return _outlined(read(()), setting, found.slices, found.keys, written)
    by_hash = memory.by_hash() if memory.setting == setting else {}
    passed = PassedOver.of([by_hash.get(each) for each in written.hashes])
    parsed = read(
        [item for item, key in zip(items, passed.keys, strict=True) if not key]
    )
    if passed.count and not _is_certain(passed, parsed):
        passed, parsed = PassedOver.of([None] * len(items)), read(items)
    if not _is_certain(passed, parsed):
        return parsed
    return _outlined(parsed, setting, written.hashes, passed.keys, written)


def _outlined(
    parsed: ParsedFeed,
    setting: int,
    slices: tuple[int, ...],
    keys: tuple[int, ...],
    written: WrittenItems,
) -> ParsedFeed:
    outline = Outline(setting=setting, slices=slices, keys=keys, region=written.region)
    return replace(parsed, outline=outline)


def _is_certain(passed: PassedOver, parsed: ParsedFeed) -> bool:
    """Problems may be of items that bear on those that are known."""
    return not parsed.problems and passed.is_apart_from(parsed)


def _hash(value: object) -> int:
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return 0
    return int.from_bytes(checksum(written)[:8], "little")
