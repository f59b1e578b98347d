"""The context of a document that its parser needs: its URL, its type and the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseContext:
    """``url`` is the address that answered, ``content_type`` its header as sent.

    ``known`` lists entries that need not be read again, as packed for
    `protocols.feeds.known_entries.KnownSlices`; b"" asks for the outline only by which
    they may be known the next time, None for neither. ``selector`` asks for a part of
    the document, which then need not be a feed (`protocols.urls`).
    """

    url: str
    content_type: str = ""
    now: datetime
    known: bytes | None = None
    selector: str = ""
