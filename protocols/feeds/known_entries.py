"""What an entry's content depends on in its source, and how known entries are
recognized.

In XML that is the bytes of its element. In JSON it is the values of all members of the
item, in order; white space and escapes do not matter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress, starmap
from typing import Any, Final, NamedTuple, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from protocols.feeds.context import ParseContext
from protocols.feeds.element import Element, local_name
from protocols.identity import checksum, fingerprint, key_of_link
from protocols.model import Entry, Feed, IdSource, Outline, ParsedFeed, first_href

_HEADER: Final = struct.Struct("<QQI")
_ROW: Final = "QQ?"
_LAYOUT: Final = struct.Struct(f"<{_ROW}")


class KnownSlice(NamedTuple):
    """``key`` is the fingerprint of the entry's key; ``is_link``: the key is its
    link.
    """

    slice: int
    key: int
    is_link: bool


_UNKNOWN: Final = KnownSlice(0, 0, False)


class PassedOver(Struct, frozen=True):
    """The known entries of a document, which need not be read.

    ``slices`` and ``keys`` are those of all its entries in order, with 0 for entries
    that must be read. ``count`` is the number of known entries, ``known`` are their
    keys, and ``links`` those of the keys that are links.
    """

    slices: tuple[int, ...]
    keys: tuple[int, ...]
    count: int
    known: frozenset[int]
    links: frozenset[int]

    @classmethod
    def of(cls, here: Sequence[KnownSlice | None]) -> PassedOver:
        rows = [each or _UNKNOWN for each in here]
        slices, keys, are_links = zip(*rows, strict=True) if rows else ((), (), ())
        known = frozenset(keys) - {0}
        links = frozenset(compress(keys, are_links))
        return cls(slices, keys, len(here) - keys.count(0), known, links)

    def is_apart_from(self, parsed: ParsedFeed) -> bool:
        """Whether the entries that were read and the known ones do not affect each
        other.

        Of two entries with one id only the first counts, and a link that several
        entries without an id share identifies none of them.
        """
        count = len(self.keys)
        if parsed.deletions or len(parsed.entries) + self.count != count:
            return False
        keys = self.known.union([fingerprint(each.key) for each in parsed.entries])
        return len(keys) == count and self.links.isdisjoint(
            map(_own_link, parsed.entries)
        )


class KnownSlices(Struct, frozen=True):
    """Entries that were read before, in one setting, and need not be read again.

    If all entries of the last document are known, and nothing was between them, they
    are the first ``count``, and ``region`` is the hash of all of them together.
    ``rows`` are unpacked when they are needed.
    """

    setting: int = 0
    region: int = 0
    count: int = 0
    rows: bytes = b""

    @classmethod
    def unpack(cls, packed: bytes) -> KnownSlices:
        """Read the bytes of `pack_known`; ``b""`` if nothing is known."""
        if not packed:
            return cls()
        setting, region, count = _HEADER.unpack_from(packed)
        return cls(setting, region, count, packed[_HEADER.size :])

    def last(self) -> PassedOver:
        """All entries of the last document. Without a region there are none."""
        slices, keys, are_links = self.last_columns()
        links = frozenset(compress(keys, are_links))
        return PassedOver(slices, keys, self.count, frozenset(keys), links)

    def last_columns(
        self,
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...]]:
        """Like `last`, but only the slices and keys, and whether each key is a link."""
        # Unpacked in one call: row by row takes three times as long.
        values = struct.unpack_from(f"<{_ROW * self.count}", self.rows)
        return values[::3], values[1::3], values[2::3]

    def by_hash(self) -> Mapping[int, KnownSlice]:
        rows = map(KnownSlice._make, _LAYOUT.iter_unpack(self.rows))
        return {each.slice: each for each in rows}


def pack_known(
    setting: int, slices: Iterable[KnownSlice], *, region: int = 0, count: int = 0
) -> bytes:
    """Pack known entries. The first ``count`` of them make up the region."""
    header = _HEADER.pack(setting, region, count)
    return header + b"".join(starmap(_LAYOUT.pack, slices))


class EntryLocation(Struct, frozen=True):
    """Where all entries of a document are, and what they inherit there."""

    holder: Element
    entries: tuple[Element, ...]
    inherited: tuple[object, ...]


def find_place(root: Element) -> EntryLocation | None:
    """Find where the entries are; ``None`` if in several places, or before the
    channel.
    """
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
    """A hash of everything an entry's content depends on besides its own bytes.

    That is the names and namespaces around it, bases and languages, and what it
    inherits from the head; the head's other fields may change.
    """
    site: dict[str, str] = {}
    for link in feed.links:
        site.setdefault(link.rel, link.href)
    parts = (
        context.url,
        declaration,
        place.inherited,
        site.get("alternate", ""),
        site.get("self", ""),
        feed.language,
        feed.rights,
        feed.authors,
    )
    return fingerprint(repr(parts))


def _own_link(entry: Entry) -> int:
    """The hash of an entry's link if the entry has no id; else 0."""
    if entry.id_source is IdSource.FEED:
        return 0
    return fingerprint(key_of_link(first_href(entry.links, "alternate")))


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
    """Items of a JSON document as they are written.

    ``region`` is a hash of all of them; 0 if there are none, or if one is nested too
    deeply to be encoded.
    """

    def __init__(self, items: Sequence[object]) -> None:
        self._items = items
        self.region = _hash(items) if items else 0

    @cached_property
    def hashes(self) -> tuple[int, ...]:
        """The hash of each item; 0 for one that is nested too deeply."""
        return tuple(map(_hash, self._items))

    def find_all(self, known: KnownSlices, setting: int) -> AllItems | None:
        """All items, if they and their setting are the last document's; else None."""
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
    """Call ``read`` with all items except those that are ``known`` (`pack_known`).

    If an item may affect another one, all are read. The result has no outline if the
    outline would be incomplete.
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
    """Whether known and read items do not affect each other; problems may mean that
    they do.
    """
    return not parsed.problems and passed.is_apart_from(parsed)


def _hash(value: object) -> int:
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return 0
    return int.from_bytes(checksum(written)[:8], "little")
