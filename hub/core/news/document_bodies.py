"""Documents as received: what identifies their bytes, and what is kept of them."""

from __future__ import annotations

from hub.core.fetched import Fetched
from protocols.http import sendable_content_type
from protocols.identity import checksum
from protocols.model import Entry, FeedFormat, ParsedFeed, Text
from storage.records import DocumentWrite


def body_hash(body: bytes) -> str:
    """The identity of a document's bytes, in hex."""
    return checksum(body).hex()


def whole_body(fetched: Fetched, type_of_it: str) -> DocumentWrite:
    """The document as received; ``type_of_it`` is for origins that send no type."""
    content_type = sendable_content_type(fetched.content_type, type_of_it)
    return DocumentWrite(content_type=content_type, body=fetched.body)


def news_body(fetched: Fetched, document: ParsedFeed) -> DocumentWrite:
    """The document of a feed; of a feed that is a part of it, only that part."""
    if document.format is FeedFormat.PART:
        return part_body(document.entries[0])
    return whole_body(fetched, document.format.media_type)


def raw_body(fetched: Fetched, document: ParsedFeed) -> DocumentWrite | None:
    """The document, if its format may say more than entries can hold; else None."""
    if not document.format.lists_all:
        return None
    return DocumentWrite(content_type=document.format.media_type, body=fetched.body)


def part_body(entry: Entry) -> DocumentWrite:
    """The selected part of a resource, which an entry holds, and nothing around it."""
    content = entry.content or Text(value="")
    is_page = content.type == "html"
    content_type = "text/html; charset=utf-8" if is_page else content.type
    return DocumentWrite(content_type=content_type, body=content.value.encode())
