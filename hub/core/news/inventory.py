"""What a source that lists everything was last known to have, and what it has deleted.

An entry missing in such a document was deleted by its publisher. But a list that is
suddenly empty, or has lost most of its entries, is more often an accident: it is
believed when the next document confirms it.

Entries keep the id that readers saw first, whatever address they move to.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from protocols.feeds.limits import MAX_ENTRIES
from protocols.identity import fingerprint
from protocols.model import Deletion, Entry, ParsedFeed
from storage.packing import pack, unpack

MOST_GONE = 0.5
"""The largest share of a list that may be gone at once without being confirmed."""


class _Listed(msgspec.Struct, frozen=True, array_like=True):
    key: str
    id: str  # as first shown to readers
    is_gone: bool = False


class _Inventory(msgspec.Struct, frozen=True, array_like=True):
    entries: tuple[_Listed, ...] = ()
    is_doubted: bool = False  # the last document had lost too many to be believed


class InventoryComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A document with the deletions it implies, and the inventory from now on.

    ``is_doubted``: so much is missing that nothing counts as deleted until the document
    is read again.
    """

    document: ParsedFeed
    inventory: bytes | None  # packed; None: as it was
    is_doubted: bool = False


def compare_inventory(document: ParsedFeed, inventory: bytes) -> InventoryComparison:
    """Compare a document with what was listed before (``b""``: nothing was)."""
    if not document.format.lists_all:
        return InventoryComparison(document=document, inventory=None)
    before = unpack(inventory, _Inventory) if inventory else _Inventory()
    known = {fingerprint(each.key): each for each in before.entries}
    entries = tuple(_as_first_shown(each, known) for each in document.entries)
    read = {fingerprint(each.key): _Listed(each.key, each.id) for each in entries}
    there = read.keys() | _not_read(document)
    missing = [each for key, each in known.items() if key not in there]
    gone = [each for each in missing if not each.is_gone and document.is_complete]
    listed = sum(not each.is_gone for each in before.entries)
    is_doubted = len(gone) > MOST_GONE * listed and not before.is_doubted
    withdrawn = {each.key for each in gone if not is_doubted}
    after = {key: _stay(each, key in there, withdrawn) for key, each in known.items()}
    packed = pack(_Inventory(_bounded({**after, **read}.values()), is_doubted))
    deletions = tuple(Deletion(key=e.key, id=e.id) for e in gone if not is_doubted)
    return InventoryComparison(
        document=replace(
            document, entries=entries, deletions=document.deletions + deletions
        ),
        inventory=packed if packed != inventory else None,
        is_doubted=is_doubted,
    )


def _not_read(document: ParsedFeed) -> frozenset[int]:
    """Fingerprints of keys that the document has, though not among its entries."""
    passed_over = document.outline.keys if document.outline else ()
    return frozenset((*passed_over, *map(fingerprint, document.spared)))


def _as_first_shown(entry: Entry, known: Mapping[int, _Listed]) -> Entry:
    before = known.get(fingerprint(entry.key))
    return entry if before is None else replace(entry, id=before.id)


def _stay(listed: _Listed, is_there: bool, withdrawn: Container[str]) -> _Listed:
    is_gone = not is_there and (listed.is_gone or listed.key in withdrawn)
    return _Listed(listed.key, listed.id, is_gone)


def _bounded(entries: Iterable[_Listed]) -> tuple[_Listed, ...]:
    """Drop the oldest of too many deleted entries: these may return with new ids."""
    everyone = tuple(entries)
    gone = [each for each in everyone if each.is_gone]
    forgotten = {each.key for each in gone[: max(0, len(gone) - MAX_ENTRIES)]}
    return tuple(each for each in everyone if each.key not in forgotten)
