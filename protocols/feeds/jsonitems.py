"""The items of a JSON document as they would be written again, to be known by that.

What an item says is all in its members, in their order; how it stood in the document,
with which white space and escapes, says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import orjson
from msgspec.structs import replace

from protocols.checksum import checksum
from protocols.feeds.outline import KnownSlices, PassedOver
from protocols.model import Outline, ParsedFeed

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
        """Of each item; 0 for one that is nested too deep."""
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
