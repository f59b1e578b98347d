"""The result of a fetch, as a value: the answer, or the reason why there is none; and
what identifies and is kept of its document."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from protocols.http import sendable_content_type
from protocols.identity import checksum
from protocols.model import Entry, FeedFormat, ParsedFeed, Text
from protocols.protocol_errors import FeedError
from storage.records import DocumentWrite


class Occasion(StrEnum):
    """Why a fetch was made; shown in the status line."""

    RING = "ring"  # our own schedule
    PING = "ping"  # told from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRedirect:
    """One redirect that was followed: its status, from and to."""

    status: int
    source: str
    target: str


class Fetched(Struct, frozen=True, kw_only=True):
    """One finished request for a feed, redirects included.

    ``status`` is that of the last answer, 0 if there was none. ``is_unanswered``: there
    was none, although the host of ``url`` was asked. ``error`` is "" only for a whole
    200 or a 304. Headers are as sent, "" when absent. ``body`` is decompressed and
    complete, ``b""`` unless the answer is a 200.
    """

    at: datetime  # when the answer was complete
    started: datetime
    url: str  # of the last request
    instead_of: str = ""  # the URL of a newer version of it, which cannot be read here
    status: int
    error: str = ""
    is_lasting: bool = False  # asking again soon would bring the same error
    is_unanswered: bool = False
    redirects: tuple[FollowedRedirect, ...] = ()
    body: bytes = b""
    conditional: bool = False  # validators were sent
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    cache_control: str = ""
    expires: str = ""
    date: str = ""
    age: str = ""
    retry_after: str = ""
    rate_limit_reset: str = ""  # X-RateLimit-Reset
    refusal: bytes = b""  # the body of a 429, or its beginning
    link: str = ""
    speaks_openfeeder: bool = False  # X-OpenFeeder
    is_partial: bool = False  # the publisher brought it, perhaps only the new entries
    is_pushed: bool = False  # another hub brought it: also is_partial, and doubtful
    heeds_until: datetime | None = None
    """For a push: hints up to this time were taken up. None: some earlier hints may not
    have been stored yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseOutcome:
    """The parser's result for a 200: a feed, or why it is none. Both None: not parsed.

    ``body_hash``: of its bytes, if it was computed (`hub.core.fetched`).
    """

    feed: ParsedFeed | None = None
    error: FeedError | None = None
    body_hash: str = ""


NOT_PARSED = ParseOutcome()


# --- documents as received -----------------------------------------------------------


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
