"""Where the entries of an XML document begin and end, found without parsing it.

Only a guess: a start tag may stand in a CDATA section, a comment or another element.
Whoever relies on it has the parser confirm that each start tag is an entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Final

_BLANKS: Final = b" \t\r\n"
_NAME_ENDS: Final = frozenset(_BLANKS + b"/>")


@dataclass(frozen=True, slots=True)
class Slices:
    """A document's entries: their element's name, places and hashes."""

    name: bytes
    spans: tuple[tuple[int, int], ...]
    hashes: tuple[int, ...]


def cut(body: bytes, name: bytes) -> Slices | None:
    """Find the elements of a name; ``None`` if some have no end, or stand in others.

    There are as many start tags as end tags, and one follows the other: if the parser
    finds as many elements, each slice is the whole of one.
    """
    starts, ends = _tags(body, b"<" + name), _tags(body, b"</" + name)
    if not starts or len(starts) != len(ends):
        return None
    spans = []
    last = 0
    for start, end_tag in zip(starts, ends, strict=True):
        end = body.find(b">", end_tag) + 1
        if not last <= start < end_tag < end:
            return None
        spans.append((start, end))
        last = end
    view = memoryview(body)
    hashes = tuple(_hash(view[start:end]) for start, end in spans)
    if len(set(hashes)) < len(hashes):
        return None  # the same entry twice
    return Slices(name, tuple(spans), hashes)


def replace_known(
    body: bytes, slices: Slices, is_known: Sequence[bool]
) -> tuple[bytes, tuple[bool, ...]]:
    """The document with an empty element in the place of entries that are known.

    Those with nothing but white space between them share one. Also whether each of the
    elements that remain is such a stand-in.
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


def _tags(body: bytes, beginning: bytes) -> list[int]:
    """Where tags begin whose whole name that is."""
    length = len(beginning)
    found = []
    at = body.find(beginning)
    while at >= 0:
        if body[at + length : at + length + 1] and body[at + length] in _NAME_ENDS:
            found.append(at)
        at = body.find(beginning, at + length)
    return found


def _hash(slice: memoryview) -> int:
    """SHA-1 for its speed: whoever finds two alike deceives about their own feed."""
    digest = sha1(slice, usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")
