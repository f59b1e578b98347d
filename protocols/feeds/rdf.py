"""RSS 0.90 and 1.0: RDF, where items and image stand beside the channel."""

from __future__ import annotations

from typing import Final

from protocols.feeds.assembly import assemble
from protocols.feeds.channel import read_channel
from protocols.feeds.drafts import EntryDraft, date_of_element
from protocols.feeds.element import Element
from protocols.feeds.limits import newest
from protocols.feeds.names import RDF
from protocols.feeds.rssitem import read_item
from protocols.feeds.scope import Scope
from protocols.model import FeedFormat, ParsedFeed
from protocols.urls import is_web_url

_ABOUT: Final = f"{RDF}about"


def read_rdf(root: Element, scope: Scope) -> ParsedFeed:
    """Read an ``rdf:RDF`` element."""
    head, items, scope = read_channel(root, scope)
    drafts = [_read_item(item, scope) for item in newest(items, date_of_element)]
    return assemble(FeedFormat.RDF, head, drafts, written=len(items))


def _read_item(element: Element, scope: Scope) -> EntryDraft:
    """RSS 1.0 §5.5: an item's id is the URI it is about."""
    draft = read_item(element, scope)
    about = (element.get(_ABOUT) or "").strip()
    if about:
        inner = scope.within(element)
        draft.id = inner.resolve(about) if inner.is_stated else about
        draft.permalink = draft.id if is_web_url(draft.id) else draft.permalink
    return draft
