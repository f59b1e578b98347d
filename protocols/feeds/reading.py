"""From an opened document to a feed, by its kind."""

from __future__ import annotations

from protocols.errors import LimitExceeded, MalformedDocument
from protocols.feeds.context import ParseContext
from protocols.feeds.document import Document, open_document
from protocols.feeds.incremental import read_incrementally
from protocols.feeds.jsondocument import read_json
from protocols.feeds.jsonrepair import repair_json
from protocols.feeds.repair import repair_encoding
from protocols.feeds.sniff import Kind
from protocols.feeds.xml import parse_xml
from protocols.model import ParsedFeed
from protocols.scp.reading.fronts import site_of_sitemap


def parse(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a document in any of the formats, mending what is cheaply mended.

    Raises a `FeedError` and nothing else: `EmptyDocument`, `NotAFeed`,
    `InvalidDocument`, `UnsupportedVersion`, `LimitExceeded`, or `MalformedDocument`,
    which `parse_leniently` may still read.
    """
    if context.selector:
        # What it needs takes long to import, and few documents are read this way.
        from protocols.feeds.resource import read_fragment

        return read_fragment(body, context)
    is_json = body.startswith((b"{", b"["))
    site = None if is_json else site_of_sitemap(body, context.url)
    return site or read_document(open_document(body, context), context)


def read_document(document: Document, context: ParseContext) -> ParsedFeed:
    """As `parse`, for a document that was opened before."""
    try:
        return _read(document, context)
    except (MalformedDocument, LimitExceeded) as error:
        raise document.locate(error) from None


def _read(document: Document, context: ParseContext) -> ParsedFeed:
    if document.kind == Kind.JSON:
        return _read_json(document, context)
    if context.known is not None:
        return read_incrementally(document, context.known, context)
    return parse_xml(document, context)


def _read_json(document: Document, context: ParseContext) -> ParsedFeed:
    """As it is, or mended; the error is that of the first that is UTF-8."""
    try:
        return document.sign(read_json(document.body, context))
    except MalformedDocument:
        encoded = repair_encoding(document)
        mended = repair_json(encoded)
        if mended is document:
            raise
    try:
        return mended.sign(read_json(mended.body, context))
    except MalformedDocument:
        return encoded.sign(read_json(encoded.body, context))
