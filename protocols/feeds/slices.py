"""Where the entries of an XML document begin and end, found without parsing it.

Only a guess: a start tag may stand in a CDATA section, a comment or another element.
Whoever relies on it has the parser confirm that each start tag is an entry, and looks
at each slice that is new for another end tag.
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
    """Each element from its start tag to the last end tag before the next one.

    ``None`` if there is none, if one has no end, or if two are the same.
    """
    starts = _start_tags(body, b"<" + name)
    if not starts:
        return None
    end_tag = b"</" + name
    spans = []
    for start, limit in zip(starts, (*starts[1:], len(body)), strict=True):
        last = body.rfind(end_tag, start, limit)
        end = body.find(b">", last, limit) + 1
        if last < 0 or not end:
            return None
        spans.append((start, end))
    view = memoryview(body)
    hashes = tuple(_hash(view[start:end]) for start, end in spans)
    if len(set(hashes)) < len(hashes):
        return None
    return Slices(name, tuple(spans), hashes)


def is_whole(body: bytes, slices: Slices, number: int) -> bool:
    """Whether a slice is exactly one element, provided that its start tag begins one.

    There is one end tag in it, so that is its own.
    """
    return body.count(b"</" + slices.name, *slices.spans[number]) == 1


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


def _start_tags(body: bytes, beginning: bytes) -> list[int]:
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
