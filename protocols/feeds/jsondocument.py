"""Which of the formats written in JSON a document is, told by its content alone.

Several are published at the same paths with the same media type.
"""

from __future__ import annotations

import protocols.openfeeder.reading as openfeeder  # which begins with this package
from protocols.feeds.context import ParseContext
from protocols.feeds.creator import is_creator_feed, read_creator_feed
from protocols.feeds.extensions import Json
from protocols.feeds.jsonfeed import is_json_feed, read_json_feed
from protocols.feeds.jsonvalues import load_json
from protocols.model import Feed, FeedFormat, ParsedFeed
from protocols.openfeeder.entries import head_of


def read_json(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a document in UTF-8. Raises a `FeedError`: `NotAFeed` for any other JSON."""
    document = load_json(body)
    if (
        isinstance(document, dict)
        and not is_json_feed(document)
        and is_creator_feed(document)
    ):
        return read_creator_feed(document, context)
    if isinstance(document, dict) and (
        openfeeder.is_discovery(document) or openfeeder.is_content(document)
    ):
        return read_site(document, context)
    return read_json_feed(document, body, context)


def read_site(document: dict[str, Json], context: ParseContext) -> ParsedFeed:
    """What a site is registered by says where its entries are, and has none."""
    head = Feed()
    if openfeeder.is_discovery(document):
        head = head_of(openfeeder.read_discovery(document, context.url))
    return ParsedFeed(format=FeedFormat.OPENFEEDER, feed=head)
