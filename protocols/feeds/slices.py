"""Find where the entries of an XML document begin and end, without parsing it.

This is only a guess: a start tag may be in a CDATA section, a comment or another
element. A caller that relies on it has the parser confirm that each start tag is an
entry, and searches each new slice for another end tag. Entries of the last document
that are in the next one byte for byte are not searched again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from itertools import pairwise
from typing import Final

from protocols.feeds.known_entries import KnownSlices
from protocols.feeds.limits import MAX_TEXT_BYTES
from protocols.identity import checksum

_BLANKS: Final = b" \t\r\n"
_NAME_ENDS: Final = frozenset(_BLANKS + b"/>")


@dataclass(frozen=True, slots=True)
class Slices:
    """The entries of a document: the name of their elements, their positions and
    hashes.
    """

    name: bytes
    spans: tuple[tuple[int, int], ...]
    hashes: tuple[int, ...]


def cut(body: bytes, name: bytes, most: int) -> Slices | None:
    """Find each element from its start tag to the last end tag before the next one.

    ``None`` if there is none or more than ``most``, if one has no end, or if two are
    the same.
    """
    starts = _start_tags(body, b"<" + name, most + 1)
    if not 0 < len(starts) <= most:
        return None
    end_tag = b"</" + name
    spans, hashes = [], []
    view = memoryview(body)
    for start, limit in zip(starts, (*starts[1:], len(body)), strict=True):
        last = body.rfind(end_tag, start, limit)
        end = body.find(b">", last, limit) + 1
        if last < 0 or not end:
            return None
        spans.append((start, end))
        # SHA-1 starts faster than `checksum`: most slices are short.
        digest = sha1(view[start:end], usedforsecurity=False).digest()
        hashes.append(int.from_bytes(digest[:8], "little"))
    if len(set(hashes)) < len(hashes):
        return None
    return Slices(name, tuple(spans), tuple(hashes))


def cut_out(body: bytes, name: bytes) -> Slices | None:
    """One slice from the first start tag to the last end tag; None if there is none."""
    start = _next_start_tag(body, b"<" + name, 0)
    last = body.rfind(b"</" + name)
    end = body.find(b">", last) + 1
    if not 0 <= start < last < end:
        return None
    return Slices(name, ((start, end),), (_hash_region(body, start, end),))


def region_of(body: bytes, slices: Slices) -> int:
    """The hash of what `cut_out` finds; 0 if anything but blanks is between the
    slices.
    """
    spans = slices.spans
    for (_, end), (start, _) in pairwise(spans):
        if body[end:start].strip(_BLANKS):
            return 0
    return _hash_region(body, spans[0][0], spans[-1][1])


def is_whole(body: bytes, slices: Slices, number: int) -> bool:
    """Whether a slice is exactly one element, provided that its start tag begins one.

    It contains a single end tag, which must then be its own.
    """
    return body.count(b"</" + slices.name, *slices.spans[number]) == 1


def replace_known(
    body: bytes, slices: Slices, is_known: Sequence[bool]
) -> tuple[bytes, tuple[bool, ...]]:
    """Replace known entries in the document by empty elements as stand-ins.

    Known entries with only white space between them share one. Also returns, for each
    remaining element, whether it is a stand-in.
    """
    parts: list[bytes] = []
    elements: list[bool] = []
    stand_in = b"<%b/>" % slices.name
    last = 0
    for (start, end), known in zip(slices.spans, is_known, strict=True):
        between = body[last:start]
        is_run = known and elements and elements[-1] and not between.strip(_BLANKS)
        if not is_run:
            parts += between, stand_in if known else body[start:end]
            elements.append(known)
        last = end
    parts.append(body[last:])
    return b"".join(parts), tuple(elements)


def _start_tags(body: bytes, beginning: bytes, most: int) -> list[int]:
    """The positions of the first ``most`` start tags."""
    found: list[int] = []
    at = _next_start_tag(body, beginning, 0)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = _next_start_tag(body, beginning, at + len(beginning))
    return found


def _next_start_tag(body: bytes, beginning: bytes, start: int) -> int:
    """The position of the next tag with exactly this name; -1 if there is none."""
    at = body.find(beginning, start)
    while at >= 0:
        end = at + len(beginning)
        if body[end : end + 1] and body[end] in _NAME_ENDS:
            return at
        at = body.find(beginning, end)
    return at


def _hash_region(body: bytes, start: int, end: int) -> int:
    return int.from_bytes(checksum(memoryview(body)[start:end])[:8], "little")


_ENTRY_NAMES: Final[Mapping[str, bytes]] = {
    "feed": b"entry",
    "rdf": b"item",
    "rss": b"item",
}


def entry_name(body: bytes, root: str) -> bytes | None:
    """The name of a document's entries, by its root; None if it must be read whole."""
    # The parser must see a document that is too large, to refuse it.
    if len(body) > MAX_TEXT_BYTES:
        return None
    return _ENTRY_NAMES.get(root.rpartition(":")[2].lower())


def find_region(body: bytes, root: str, known: bytes | None) -> Slices | None:
    """All entries as one slice, if they are the same as in the ``known`` document.

    ``known`` is packed by `pack_known`; that document was read without any repair.
    """
    region = KnownSlices.unpack(known).region if known else 0
    name = entry_name(body, root) if region else None
    found = cut_out(body, name) if name else None
    return found if found and found.hashes == (region,) else None
