"""Documents as they came: what identifies their bytes, and what is kept of them."""

from __future__ import annotations

from hub.core.fetched import Fetched
from protocols.checksum import checksum
from protocols.http import sendable_content_type
from protocols.model import Entry, FeedFormat, ParsedFeed, Text
from storage.packing import pack_bytes
from storage.records import StoredBody


def body_hash(body: bytes) -> str:
    """The identity of a document's bytes, in hex."""
    return checksum(body).hex()


def whole_body(fetched: Fetched, type_of_it: str) -> StoredBody:
    """The document, for those who get it as it is; with its type, for origins that do
    not send one."""
    content_type = sendable_content_type(fetched.content_type, type_of_it)
    return StoredBody(content_type=content_type, body=pack_bytes(fetched.body))


def news_body(fetched: Fetched, document: ParsedFeed) -> StoredBody:
    """The document of a feed, or the part of it that the feed is."""
    if document.format is FeedFormat.PART:
        return part_body(document.entries[0])
    return whole_body(fetched, document.format.media_type)


def raw_body(fetched: Fetched, document: ParsedFeed) -> StoredBody | None:
    """The document itself, of formats that may say more than entries can hold."""
    if not document.format.lists_all:
        return None
    return StoredBody(
        content_type=document.format.media_type, body=pack_bytes(fetched.body)
    )


def part_body(entry: Entry) -> StoredBody:
    """The part of a resource that an entry tells of: what was selected, and nothing
    around it."""
    content = entry.content or Text(value="")
    is_page = content.type == "html"
    content_type = "text/html; charset=utf-8" if is_page else content.type
    return StoredBody(
        content_type=content_type, body=pack_bytes(content.value.encode())
    )
