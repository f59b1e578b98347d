"""Atom's own elements, 1.0 and 0.3, wherever they stand: RSS borrows them too."""

from __future__ import annotations

from typing import Final

from protocols.dates import parse_date
from protocols.feeds.constructs import (
    read_category,
    read_link,
    read_person,
    read_plain_text,
    read_text,
)
from protocols.feeds.drafts import Draft, EntryDraft
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.modules import Table
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.urls import is_absolute


def _id(draft: Draft, element: Element, scope: Scope) -> None:
    """RFC 4287 §4.2.6: "Its content MUST be an IRI"; a relative one has a base."""
    id = text_of(element)
    scope = scope.within(element)
    is_relative = scope.is_stated and not is_absolute(id)
    draft.id = draft.id or (scope.resolve(id) if is_relative else id)


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.title = draft.title or read_plain_text(element)


def _rights(draft: Draft, element: Element, scope: Scope) -> None:
    draft.rights = read_plain_text(element)


def _link(draft: Draft, element: Element, scope: Scope) -> None:
    link = read_link(element, scope)
    if link:
        draft.add_link(link)


def _author(draft: Draft, element: Element, scope: Scope) -> None:
    author = read_person(element, scope)
    if author:
        draft.authors.append(author)


def _contributor(draft: Draft, element: Element, scope: Scope) -> None:
    contributor = read_person(element, scope)
    if contributor:
        draft.contributors.append(contributor)


def _category(draft: Draft, element: Element, scope: Scope) -> None:
    draft.add_category(read_category(element))


def _published(draft: Draft, element: Element, scope: Scope) -> None:
    draft.published = parse_date(text_of(element))


def _updated(draft: Draft, element: Element, scope: Scope) -> None:
    draft.updated = parse_date(text_of(element))


def _created(draft: Draft, element: Element, scope: Scope) -> None:
    """Atom 0.3: when it was written, which may be before it was issued."""
    draft.spare_published = parse_date(text_of(element))


def _summary(draft: Draft, element: Element, scope: Scope) -> None:
    draft.summary = read_text(element)


def _content(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Content elsewhere (``src``) is no content; it is kept as an extension."""
    if element.get("src") is not None:
        keep_element(draft.extensions, element)
    elif draft.content is None:
        draft.content = read_text(element)


# Both versions get the names of the other one: some changed the namespace, or the
# elements, and left the rest.
_OF_10: Final[Table[Draft]] = {
    "category": _category,
    "published": _published,
    "rights": _rights,
    "updated": _updated,
}
_OF_03: Final[Table[Draft]] = {
    "copyright": _rights,
    "created": _created,
    "issued": _published,
    "modified": _updated,
}
METADATA: Final[Table[Draft]] = {
    **qualified(
        "atom",
        {
            "author": _author,
            "category": _category,
            "contributor": _contributor,
            "id": _id,
            "link": _link,
            "published": _published,
            "rights": _rights,
            "title": _title,
            "updated": _updated,
            **_OF_03,
        },
    ),
    **qualified(
        "atom03",
        {
            **_OF_10,
            **_OF_03,
            "author": _author,
            "contributor": _contributor,
            "id": _id,
            "link": _link,
            "title": _title,
        },
    ),
}
"""Elements of entries and of heads."""

ATOM_ELEMENTS: Final[Table[EntryDraft]] = {
    **METADATA,
    **qualified("atom", {"content": _content, "summary": _summary}),
    **qualified("atom03", {"content": _content, "summary": _summary}),
}
"""Elements of entries."""
