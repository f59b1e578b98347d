"""Read an opened document as a feed, by its kind.

Several JSON formats are published at the same paths with the same media type; they are
told apart by their content alone.
"""

from __future__ import annotations

import protocols.openfeeder.read.site_answers as openfeeder  # begins with this package
from protocols.feeds.context import ParseContext
from protocols.feeds.creator import is_creator_feed, read_creator_feed
from protocols.feeds.document import DocumentKind, OpenedDocument, open_document
from protocols.feeds.extensions import Json
from protocols.feeds.incremental import read_incrementally
from protocols.feeds.jsonfeed import is_json_feed, read_json_feed
from protocols.feeds.jsonvalues import load_json
from protocols.feeds.repair import repair_encoding, repair_json
from protocols.feeds.xml import parse_xml
from protocols.model import Feed, FeedFormat, ParsedFeed
from protocols.protocol_errors import LimitExceeded, MalformedDocument
from protocols.scp.read.sitemap_reader import site_of_sitemap


def read_json(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a UTF-8 document.

    Raises a `FeedError`: `NotAFeed` for JSON of no known format.
    """
    document = load_json(body)
    if (
        isinstance(document, dict)
        and not is_json_feed(document)
        and is_creator_feed(document)
    ):
        return read_creator_feed(document, context)
    if isinstance(document, dict) and (
        openfeeder.is_discovery(document) or openfeeder.is_content(document)
    ):
        return read_site(document, context)
    return read_json_feed(document, body, context)


def read_site(document: dict[str, Json], context: ParseContext) -> ParsedFeed:
    """Read the OpenFeeder document that a site is registered by.

    It says where the site's entries are and contains none.
    """
    head = Feed()
    if openfeeder.is_discovery(document):
        head = openfeeder.head_of(openfeeder.read_discovery(document, context.url))
    return ParsedFeed(format=FeedFormat.OPENFEEDER, feed=head)


def parse(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a document in any of the formats, with cheap repairs.

    Raises only a `FeedError`: `EmptyDocument`, `NotAFeed`, `InvalidDocument`,
    `UnsupportedVersion`, `LimitExceeded`, or `MalformedDocument`, in which case
    `parse_leniently` may still be able to read it.
    """
    if context.selector:
        # Imported here: the import is slow, and few documents need it.
        from protocols.feeds.document_parts import read_fragment

        return read_fragment(body, context)
    is_json = body.startswith((b"{", b"["))
    site = None if is_json else site_of_sitemap(body, context.url)
    return site or read_document(open_document(body, context), context)


def read_document(document: OpenedDocument, context: ParseContext) -> ParsedFeed:
    """Like `parse`, for a document that has been opened already."""
    try:
        if document.kind == DocumentKind.JSON:
            return _read_json(document, context)
        if context.known is not None:
            return read_incrementally(document, context.known, context)
        return parse_xml(document, context)
    except (MalformedDocument, LimitExceeded) as error:
        raise document.locate(error) from None


def _read_json(document: OpenedDocument, context: ParseContext) -> ParsedFeed:
    """Read JSON unchanged, or else repaired.

    If both fail, raises the error for the text as decoded, before other repairs.
    """
    try:
        return document.note_reading(read_json(document.body, context))
    except MalformedDocument:
        encoded = repair_encoding(document)
        mended = repair_json(encoded)
        if mended is document:
            raise
    try:
        return mended.note_reading(read_json(mended.body, context))
    except MalformedDocument:
        return encoded.note_reading(read_json(encoded.body, context))
