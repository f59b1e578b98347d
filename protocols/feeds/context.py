"""What a parser needs to know about a document: its URL, its type and the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseContext:
    """The document's source, and what is wanted of it.

    ``url`` is the URL that answered, ``content_type`` the header as sent. ``known``
    lists entries that need not be read again, as packed for
    `protocols.feeds.known_entries.KnownSlices`; b"" if none are known but the result
    should have an outline, by which they can be recognized the next time; None if no
    outline is wanted either. ``selector`` asks for a part of the document, which then
    need not be a feed (`protocols.urls`).
    """

    url: str
    content_type: str = ""
    now: datetime
    known: bytes | None = None
    selector: str = ""
