"""Where a document came from, as far as reading it needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseContext:
    """``url`` is the address that answered, ``content_type`` its header as sent."""

    url: str
    content_type: str = ""
    now: datetime
