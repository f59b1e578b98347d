"""All entries of the last document, found in the next one before it is opened.

Where they stand there byte for byte, nothing has to be looked for among them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from protocols.feeds.limits import MAX_TEXT_BYTES
from protocols.feeds.outline import known_region
from protocols.feeds.slices import Slices, cut_out

_ENTRY_NAMES: Final[Mapping[str, bytes]] = {
    "feed": b"entry",
    "rdf": b"item",
    "rss": b"item",
}


def entry_name(body: bytes, root: str) -> bytes | None:
    """By the root's name; ``None`` for a document that has to be read whole."""
    # A larger text is refused by the parser, and must be shown to it for that.
    if len(body) > MAX_TEXT_BYTES:
        return None
    return _ENTRY_NAMES.get(root.rpartition(":")[2].lower())


def find_region(body: bytes, root: str, known: bytes | None) -> Slices | None:
    """As one slice, all entries, if those are the ``known`` document's (`pack_known`).

    That one was opened as it was, with nothing to mend.
    """
    region = known_region(known) if known else 0
    name = entry_name(body, root) if region else None
    found = cut_out(body, name) if name else None
    return found if found and found.hashes == (region,) else None
