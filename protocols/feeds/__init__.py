"""Source formats: `parse(bytes, context) -> ParsedFeed` and its parts."""

from __future__ import annotations

from protocols.feeds.context import ParseContext
from protocols.feeds.feed_reading import parse

__all__ = ["ParseContext", "parse"]
