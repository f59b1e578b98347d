"""JSON that may be anything, mended as feeds in JSON are where it cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from protocols.errors import InvalidDocument, MalformedDocument
from protocols.feeds.context import ParseContext
from protocols.feeds.document import open_document
from protocols.feeds.extensions import Json
from protocols.feeds.jsonrepair import repair_json
from protocols.feeds.jsonvalues import load_json
from protocols.feeds.repair import repair_encoding
from protocols.feeds.sniff import Kind

LARGEST_MENDED: Final = 512 * 1024
"""Bytes; to mend more may take long, and others wait for the thread."""
_NOWHERE: Final = ParseContext(url="", now=datetime(1970, 1, 1, tzinfo=UTC))


def load_loosely(body: bytes) -> Json:
    """In whichever encoding; what people and templates write for JSON is mended.

    Raises a `FeedError`: `NotAFeed` for a page or whatever else is no JSON at all,
    `MalformedDocument` for what nothing mends, or is too large to be mended.
    """
    document = open_document(body, _NOWHERE)
    if document.kind != Kind.JSON:
        raise InvalidDocument("", "expected JSON")
    try:
        return load_json(document.body)
    except MalformedDocument as error:
        if len(document.body) > LARGEST_MENDED:
            raise document.locate(error) from None
        mended = repair_json(repair_encoding(document))
        if mended is document:
            raise document.locate(error) from None
    return load_json(mended.body)
