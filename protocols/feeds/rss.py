"""RSS 0.9x and 2.0: a ``channel`` that holds its items."""

from __future__ import annotations

from protocols.feeds.assembly import assemble
from protocols.feeds.channel import read_channel
from protocols.feeds.element import Element
from protocols.feeds.limits import MAX_ENTRIES
from protocols.feeds.rssitem import read_item
from protocols.feeds.scope import Scope
from protocols.model import FeedFormat, ParsedFeed


def read_rss(root: Element, scope: Scope) -> ParsedFeed:
    """Read an ``rss`` element, or a ``channel`` that lost it."""
    head, items, scope = read_channel(root, scope)
    drafts = [read_item(item, scope) for item in items[:MAX_ENTRIES]]
    return assemble(FeedFormat.RSS, head, drafts, written=len(items))
