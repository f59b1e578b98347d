"""Which entries need not be parsed again, by the bytes of each.

An entry is skipped only if the latest known state of it came from exactly these bytes,
in the same context and with the same program. So a partial parse finds everything that
a full one would.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import compress, starmap
from typing import Final, NamedTuple

from hub.core.news.seen_set import Sighting, last_sightings, mark_of, shared_marks
from protocols.feeds.known_entries import KnownSlice, pack_known
from protocols.identity import fingerprint
from protocols.model import IdSource, ParsedFeed

READER_BYTES: Final = 8
"""The length of a reader's name: a hash of the program that makes entries of bytes."""
UNNAMED: Final = bytes(READER_BYTES)
_SETTING: Final = struct.Struct("<Q")
_REGION: Final = struct.Struct("<QI")
_LAYOUT: Final = struct.Struct("<QQQ?")
_START: Final = READER_BYTES + _SETTING.size + _REGION.size
_MASK: Final = 2**64 - 1


class _Slice(NamedTuple):
    """An entry that was read once from the bytes with this hash; packed in 25 bytes."""

    slice: int
    key: int
    state: int
    is_link: bool


def known_slices(slices: bytes, seen: bytes, reader: bytes) -> bytes:
    """The known slices in the form that the parser takes (`ParseContext.known`)."""
    if not slices.startswith(reader) or len(slices) < _START:
        return b""
    remembered = [*_unpack(slices)]
    last = last_sightings(seen, {each.key for each in remembered})
    (setting,) = _SETTING.unpack_from(slices, READER_BYTES)
    region, count = _REGION.unpack_from(slices, READER_BYTES + _SETTING.size)
    marks = shared_marks(seen)
    is_known = []
    for each in remembered:
        sighting = last.get(each.key)
        is_last_word = (
            sighting is not None
            and not sighting.is_deleted
            and each.state == _state(sighting)
        )
        # Several entries may have shared its id, or its link.
        is_shared = bool(marks) and mark_of(_source_before(each), each.key) in marks
        is_known.append(is_last_word and not is_shared)
    if not all(is_known[:count]):
        region = count = 0
    known = [
        KnownSlice(each.slice, each.key, each.is_link)
        for each in compress(remembered, is_known)
    ]
    return pack_known(setting, known, region=region, count=count)


def remember(
    slices: bytes, document: ParsedFeed, sightings: Sequence[Sighting], reader: bytes
) -> bytes:
    """The slices of this document, and then as many of the documents before it.

    Two versions of a document that alternate are both remembered. A document that has
    no outline changes nothing.
    """
    outline = document.outline
    if outline is None or len(sightings) != len(outline.slices):
        return slices
    start = reader + _SETTING.pack(outline.setting)
    before = {each.slice: each for each in _unpack(slices)}
    sharing = {fingerprint(each.key) for each in document.shared_keys}
    entries = iter(document.entries)
    current = []  # of entries whose id, or link, no other entry has
    for slice, key, sighting in zip(
        outline.slices, outline.keys, sightings, strict=True
    ):
        source = _source_before(before[slice]) if key else next(entries).id_source
        is_own = source in (IdSource.FEED, IdSource.LINK)
        # An entry without a hash is not to be recognized later.
        if slice and is_own and sighting.key not in sharing:
            is_link = source is IdSource.LINK
            current.append(_Slice(slice, sighting.key, _state(sighting), is_link))
    count = len(current)
    is_complete = outline.region and count == len(outline.slices)
    region = _REGION.pack(*((outline.region, count) if is_complete else (0, 0)))
    here = set(outline.slices)
    if slices.startswith(start):
        older = [each for each in _unpack(slices) if each.slice not in here]
        current += older[: len(here)]
    return start + region + b"".join(starmap(_LAYOUT.pack, current))


def _state(sighting: Sighting) -> int:
    """A hash of an entry's content. Python hashes numbers alike in all processes; if it
    did not, everything would be read again."""
    return hash((sighting.link, sighting.title, sighting.content)) & _MASK


def _source_before(each: _Slice) -> IdSource:
    return IdSource.LINK if each.is_link else IdSource.FEED


def _unpack(slices: bytes) -> Iterator[_Slice]:
    return map(_Slice._make, _LAYOUT.iter_unpack(slices[_START:]))
