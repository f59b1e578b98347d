"""Which of the formats written in JSON a document is, told by its content alone.

Several are published at the same paths with the same media type.
"""

from __future__ import annotations

from protocols.feeds.context import ParseContext
from protocols.feeds.creator import is_creator_feed, read_creator_feed
from protocols.feeds.jsonfeed import is_json_feed, read_json_feed
from protocols.feeds.jsonvalues import load_json
from protocols.model import ParsedFeed


def read_json(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a document in UTF-8. Raises a `FeedError`: `NotAFeed` for any other JSON."""
    document = load_json(body)
    if (
        isinstance(document, dict)
        and not is_json_feed(document)
        and is_creator_feed(document)
    ):
        return read_creator_feed(document, context)
    return read_json_feed(document, body, context)
