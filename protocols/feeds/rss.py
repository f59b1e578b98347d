"""RSS 0.9x and 2.0: a ``channel`` that holds its items."""

from __future__ import annotations

from protocols.dates import parse_date
from protocols.feeds.assembly import assemble
from protocols.feeds.channel import read_channel
from protocols.feeds.drafts import Draft, date_of_element
from protocols.feeds.element import Element, local_name
from protocols.feeds.limits import newest
from protocols.feeds.rssitem import read_item
from protocols.feeds.scope import Scope
from protocols.model import FeedFormat, Link, ParsedFeed


def read_rss(root: Element, scope: Scope) -> ParsedFeed:
    """Read an ``rss`` element, or a ``channel`` that lost it."""
    head, items, scope = read_channel(root, scope)
    kept = newest(items, date_of_element)
    drafts = [read_item(item, scope) for item in kept]
    if local_name(root.tag) == "channel":
        _read_attributes(head, root, scope)
        for draft, item in zip(drafts, kept, strict=True):
            _read_attributes(draft, item, scope)
    return assemble(FeedFormat.RSS, head, drafts, written=len(items))


def _read_attributes(draft: Draft, element: Element, scope: Scope) -> None:
    """The Channel Definition Format of 1997 has addresses and times as attributes."""
    href = scope.within(element).resolve(element.get("href"))
    if href and not draft.first_link("alternate"):
        draft.add_link(Link(href=href))
    draft.updated = draft.updated or parse_date(element.get("lastmod"))
