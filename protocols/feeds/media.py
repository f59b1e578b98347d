"""Media RSS: files and thumbnails become links, texts stand in for missing ones.

Groups are read like their parts. All is kept as an extension, too: sizes, durations,
ratings and statistics have no other place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from protocols.feeds.capitals import usual_name
from protocols.feeds.constructs import make_link
from protocols.feeds.drafts import Draft
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import Attributes, Inside, keep_element, parts_of
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Text
from protocols.text import text_of_title

Handler: TypeAlias = Callable[[Draft, Element, Scope], None]
Reader: TypeAlias = Callable[[Draft, Element, Attributes, Scope], None]
SCHEME: Final = "http://search.yahoo.com/mrss/category_schema"
"""Of categories without one, as Media RSS 1.5.1 has it (media:category)."""


def _kept(read: Reader, readers: Mapping[str, Reader] | None = None) -> Handler:
    """Read, with the parts that have a reader, and kept as an extension, too."""

    def read_and_keep(draft: Draft, element: Element, scope: Scope) -> None:
        said = dict(element.items())
        scope = scope.within(element)
        read(draft, element, said, scope)
        inside = parts_of(element) if len(element) else []
        if readers:
            _read_parts(draft, inside, scope, readers)
        keep_element(draft.extensions, element, said, inside)

    return read_and_keep


def _group(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    """It says nothing of its own."""


def _read_parts(
    draft: Draft, inside: Inside, scope: Scope, readers: Mapping[str, Reader]
) -> None:
    for child, said in inside:
        read = readers.get(child.tag) or readers.get(usual_name(child.tag))
        if read:
            read(draft, child, said, scope.within(child))


def _content(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    """An image is shown, any other file is offered; both have their own relation."""
    url = scope.resolve(said.get("url"))
    if url:
        type = said.get("type", "").strip()
        is_image = said.get("medium") == "image" or type.startswith("image/")
        rel = "image" if is_image else "enclosure"
        draft.add_link(make_link(url, rel, type, length=said.get("fileSize")))


def _content_in_group(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    _content(draft, element, said, scope)
    if len(element):
        _read_parts(draft, parts_of(element), scope, _DETAILS)


def _thumbnail(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    url = scope.resolve(said.get("url") or text_of(element))
    if url:
        draft.add_link(make_link(url, "thumbnail"))


def _title(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    draft.offer("title", text_of_title(text_of(element)), rank=1)


def _description(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    """``type`` is plain by default (Media RSS 1.5.1, media:description)."""
    type = "html" if said.get("type") == "html" else "text"
    draft.offer_summary(Text(value=text_of(element), type=type), rank=1)


def _category(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    draft.add_category(
        text_of_title(text_of(element)),
        said.get("scheme", "").strip() or SCHEME,
        text_of_title(said.get("label", "")),
    )


def _keywords(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    for keyword in text_of(element).split(","):
        draft.add_category(text_of_title(keyword), SCHEME)


# Three levels, none of which holds itself: nothing here recurses.
_DETAILS: Final = qualified(
    "media",
    {
        "category": _category,
        "description": _description,
        "keywords": _keywords,
        "thumbnail": _thumbnail,
        "title": _title,
    },
)
_PARTS: Final = {**_DETAILS, **qualified("media", {"content": _content_in_group})}
MEDIA: Final = {
    **{tag: _kept(read) for tag, read in _DETAILS.items()},
    **qualified(
        "media", {"content": _kept(_content, _DETAILS), "group": _kept(_group, _PARTS)}
    ),
}
