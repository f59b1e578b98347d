"""Parse only what is new in a document.

Most changed documents differ only in their head, or in one entry. The content of an
entry depends on its own bytes and on its context; if neither has changed, the entry
need not be parsed again. The document is then parsed with a stand-in for each run of
known entries: by finding every stand-in where entries belong, the parser confirms that
they are not text, a comment, or part of something else. In case of doubt the whole
document is parsed.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from protocols.feeds.context import ParseContext
from protocols.feeds.document import OpenedDocument, read_prolog
from protocols.feeds.known_entries import (
    EntryLocation,
    KnownSlices,
    PassedOver,
    find_place,
    setting_of,
)
from protocols.feeds.limits import MAX_ENTRIES
from protocols.feeds.slices import (
    Slices,
    cut,
    entry_name,
    is_whole,
    region_of,
    replace_known,
)
from protocols.feeds.xml import (
    build_tree,
    parse_tree,
    parse_xml,
    read_shortened,
    read_tree,
)
from protocols.model import Outline, ParsedFeed
from protocols.protocol_errors import FeedError

PATH: Final = "incremental"


def read_incrementally(
    document: OpenedDocument, known: bytes, context: ParseContext
) -> ParsedFeed:
    """Like `parse_xml`, but without the entries that are among the ``known`` ones.

    The result has no outline if the outline would be incomplete. Raises a `FeedError`.
    """
    memory = KnownSlices.unpack(known)
    if document.region is not None:  # the entries are those of the last document
        parts = replace_known(document.body, document.region, (True,))
        parsed = _read_parts(document, parts, memory.last(), memory, context)
        if parsed is not None:
            return parsed
    name = entry_name(document.body, read_prolog(document.body).root)
    slices = cut(document.body, name, MAX_ENTRIES) if name else None
    if slices is None:
        return parse_xml(document, context)
    parsed = _read_unknown(document, slices, memory, context)
    return parsed or _read_all(document, slices, context)


def _read_all(
    document: OpenedDocument, slices: Slices, context: ParseContext
) -> ParsedFeed:
    place, parsed = _read_with_place(document, context)
    count = len(slices.spans)
    if place is None or parsed.deletions or parsed.problems:
        return parsed
    if not count == len(place.entries) == len(parsed.entries):
        return parsed
    if not all(is_whole(document.body, slices, number) for number in range(count)):
        return parsed
    outline = Outline(
        setting=setting_of(place, _declaration(document.body), parsed.feed, context),
        slices=slices.hashes,
        keys=(0,) * count,
        region=region_of(document.body, slices),
    )
    return replace(parsed, outline=outline)


def _read_with_place(
    document: OpenedDocument, context: ParseContext
) -> tuple[EntryLocation | None, ParsedFeed]:
    """Read the whole document; the place is None if the document had to be repaired."""
    found = read_shortened(
        document.body,
        lambda root, body, texts: (
            find_place(root),
            read_tree(root, body, context, texts),
        ),
    )
    if found is not None:
        return found[0], document.note_reading(found[1])
    opened, root = build_tree(document)
    place = find_place(root) if opened is document else None
    return place, opened.note_reading(read_tree(root, opened.body, context))


def _read_unknown(
    document: OpenedDocument, slices: Slices, known: KnownSlices, context: ParseContext
) -> ParsedFeed | None:
    """Read all but the known entries; ``None`` if the result might not be the same."""
    by_hash = known.by_hash()
    here = [by_hash.get(each) for each in slices.hashes]
    if not any(here):
        return None
    is_known = [each is not None for each in here]
    for number, known_here in enumerate(is_known):
        if not known_here and not is_whole(document.body, slices, number):
            return None
    parts = replace_known(document.body, slices, is_known)
    parsed = _read_parts(document, parts, PassedOver.of(here), known, context)
    if parsed is None or parsed.outline is None:
        return None
    # A document that had to be repaired gets no region: its entries cannot be skipped.
    region = 0 if document.repairs else region_of(document.body, slices)
    outline = replace(parsed.outline, slices=slices.hashes, region=region)
    return replace(parsed, outline=outline)


def _read_parts(
    document: OpenedDocument,
    parts: tuple[bytes, tuple[bool, ...]],
    passed: PassedOver,
    known: KnownSlices,
    context: ParseContext,
) -> ParsedFeed | None:
    """Read a document in which stand-ins replace the known entries.

    ``None`` if the result might differ from reading the whole document.
    """
    body, stand_ins = parts
    try:
        found = _read_with_stand_ins(body, stand_ins, context)
    except FeedError:
        return None  # parsing the whole document gives the right error
    if found is None or not passed.is_apart_from(found[1]):
        return None
    place, parsed = found
    if parsed.problems:
        return None  # perhaps of entries that affect the known ones
    setting = setting_of(place, _declaration(body), parsed.feed, context)
    if setting != known.setting:
        return None
    outline = Outline(
        setting=setting,
        slices=passed.slices,
        keys=passed.keys,
        region=known.region,
    )
    return document.note_reading(parsed, PATH, outline)


def _read_with_stand_ins(
    body: bytes, stand_ins: tuple[bool, ...], context: ParseContext
) -> tuple[EntryLocation, ParsedFeed] | None:
    """Read a document with stand-ins, without them; the entries' place, and the feed.

    ``None`` unless every stand-in, and every entry to be read, is in one place.
    """
    root = parse_tree(body)
    place = find_place(root)
    if place is None or len(place.entries) != len(stand_ins):
        return None
    for element, is_stand_in in zip(place.entries, stand_ins, strict=True):
        if is_stand_in:
            place.holder.remove(element)
    return place, read_tree(root, body, context)


def _declaration(body: bytes) -> bytes:
    return body[: body.find(b"?>") + 2] if body.startswith(b"<?xml") else b""
