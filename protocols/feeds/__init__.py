"""Source formats: `parse(bytes, context) -> ParsedFeed` and its parts."""

from __future__ import annotations

from protocols.feeds.context import ParseContext
from protocols.feeds.reading import parse

__all__ = ["ParseContext", "parse"]
