"""Media RSS: files and thumbnails become links, texts stand in for missing ones.

Groups are read like their parts. All is kept as an extension, too: sizes, durations,
ratings and statistics have no other place.
"""

from __future__ import annotations

from typing import Final

from protocols.feeds.constructs import make_link
from protocols.feeds.drafts import Draft
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Text
from protocols.text import text_of_title


def _kept(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    _ELEMENTS[element.tag](draft, element, scope.within(element))


def _group(draft: Draft, element: Element, scope: Scope) -> None:
    for child in element:
        if child.tag in _PARTS:
            _PARTS[child.tag](draft, child, scope.within(child))


def _content(draft: Draft, element: Element, scope: Scope) -> None:
    """An image is shown, any other file is offered; both have their own relation."""
    url = scope.resolve(element.get("url"))
    type = (element.get("type") or "").strip()
    if url:
        is_image = element.get("medium") == "image" or type.startswith("image/")
        rel = "image" if is_image else "enclosure"
        draft.add_link(make_link(url, rel, type, length=element.get("fileSize")))
    for child in element:
        if child.tag in _DETAILS:
            _DETAILS[child.tag](draft, child, scope)


def _thumbnail(draft: Draft, element: Element, scope: Scope) -> None:
    url = scope.resolve(element.get("url") or text_of(element))
    if url:
        draft.add_link(make_link(url, "thumbnail"))


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.spare_title = draft.spare_title or text_of_title(text_of(element))


def _description(draft: Draft, element: Element, scope: Scope) -> None:
    """``type`` is plain by default (Media RSS 1.5.1, media:description)."""
    description = text_of(element)
    if description and draft.spare_summary is None:
        type = "html" if element.get("type") == "html" else "text"
        draft.spare_summary = Text(value=description, type=type)


# Three levels, none of which holds itself: nothing here recurses.
_DETAILS: Final = qualified(
    "media",
    {"description": _description, "thumbnail": _thumbnail, "title": _title},
)
_PARTS: Final = {**_DETAILS, **qualified("media", {"content": _content})}
_ELEMENTS: Final = {**_PARTS, **qualified("media", {"group": _group})}
MEDIA: Final = dict.fromkeys(_ELEMENTS, _kept)
