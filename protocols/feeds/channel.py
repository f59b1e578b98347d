"""The head of an RSS or RDF document: its ``channel``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from protocols.feeds.atomelements import METADATA
from protocols.feeds.drafts import HeadDraft, read_date, read_language
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.modules import MODULES, Table, find_in_capitals
from protocols.feeds.names import RDF, qualified
from protocols.feeds.rssitem import (
    read_author,
    read_categories,
    read_category,
    read_page_link,
    read_publication_date,
    read_title,
)
from protocols.feeds.schedule import SCHEDULE
from protocols.feeds.scope import Scope
from protocols.text import text_of_html

_ABOUT: Final = f"{RDF}about"
_ITEMS: Final = frozenset(qualified("rss", {"item": True}))


def read_channel(root: Element, scope: Scope) -> tuple[HeadDraft, list[Element], Scope]:
    """The head, its items unread, and the scope that the items are in.

    Items and images stand inside the channel or, in RDF, beside it; either way is
    taken for both. A document may also be a channel and nothing else.
    """
    head = HeadDraft(language=scope.language)
    items: list[Element] = []
    beside: list[Element] = []
    for child in [root] if local_name(root.tag) == "channel" else root:
        if local_name(child.tag) == "channel":
            head.id = (child.get(_ABOUT) or "").strip()
            scope = scope.within(child)
            items += _read_children(head, child, scope)
        else:
            beside.append(child)
    items += _read_children(head, beside, scope)
    head.language = head.language or scope.language
    return head, items, scope.within_site(head.links, ("alternate", "self"))


def _read_children(
    head: HeadDraft, children: Iterable[Element], scope: Scope
) -> list[Element]:
    items = []
    for child in children:
        handler = CHANNEL.get(child.tag) or find_in_capitals(CHANNEL, child)
        if child.tag in _ITEMS:
            items.append(child)
        elif handler is None:
            keep_element(head.extensions, child)
        else:
            handler(head, child, scope)
    return items


def _description(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("subtitle", text_of_html(text_of(element)), element)


def _copyright(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("rights", text_of_html(text_of(element)), element)


def _generator(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("generator", text_of(element), element)


def _last_build_date(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("updated", read_date(head, element), element)


def _image(head: HeadDraft, element: Element, scope: Scope) -> None:
    """Its title, link and sizes have no place of their own.

    RDF's channel has an empty one, which only refers to the one beside it.
    """
    for child in element:
        if local_name(child.tag) == "url":
            head.logo = scope.within(child).resolve(text_of(child))
    if len(element):
        keep_element(head.extensions, element)


def _table_of_contents(head: HeadDraft, element: Element, scope: Scope) -> None:
    """RDF's list of its own items says nothing that the items do not."""


_ELEMENTS: Final[Table[HeadDraft]] = {
    "author": read_author,
    "categories": read_categories,
    "category": read_category,
    "copyright": _copyright,
    "description": _description,
    "generator": _generator,
    "image": _image,
    "items": _table_of_contents,
    "language": read_language,
    "lastBuildDate": _last_build_date,
    "lastbuilddate": _last_build_date,
    "link": read_page_link,
    "managingEditor": read_author,
    "managingeditor": read_author,
    "pubDate": read_publication_date,
    "pubdate": read_publication_date,
    "title": read_title,
}
CHANNEL: Final[Table[HeadDraft]] = {
    **MODULES,
    **METADATA,
    **SCHEDULE,
    **qualified("rss", _ELEMENTS),
}
