"""Atom's own elements, 1.0 and 0.3, wherever they stand: RSS borrows them too."""

from __future__ import annotations

from typing import Final

from protocols.feeds.constructs import (
    has_more_than_link,
    link_of,
    read_person,
    read_plain_text,
    read_text,
    whole_text,
)
from protocols.feeds.drafts import Draft, EntryDraft, read_date
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.modules import Table
from protocols.feeds.names import XHTML, qualified
from protocols.feeds.references import make_absolute, resolve_inside
from protocols.feeds.scope import Scope
from protocols.model import Text
from protocols.text import collapse
from protocols.urls import is_absolute


def _id(draft: Draft, element: Element, scope: Scope) -> None:
    """RFC 4287 §4.2.6: "Its content MUST be an IRI"; a relative one has a base."""
    id = text_of(element)
    scope = scope.within(element)
    is_relative = scope.is_stated and not is_absolute(id)
    draft.put("id", scope.resolve(id) if is_relative else id, element)


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("title", read_plain_text(element), element)


def _rights(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("rights", read_plain_text(element), element)


def _link(draft: Draft, element: Element, scope: Scope) -> None:
    said = dict(element.items())
    link = link_of(said, scope.within(element))
    is_told = draft.add_link(link) if link else "href" in said
    if not is_told or has_more_than_link(said):
        keep_element(draft.extensions, element)


def _author(draft: Draft, element: Element, scope: Scope) -> None:
    author, has_more = read_person(element, scope)
    if author:
        draft.append("authors", author)
    if has_more:
        keep_element(draft.extensions, element)


def _contributor(draft: Draft, element: Element, scope: Scope) -> None:
    contributor, has_more = read_person(element, scope)
    if contributor:
        draft.append("contributors", contributor)
    if has_more:
        keep_element(draft.extensions, element)


def _category(draft: Draft, element: Element, scope: Scope) -> None:
    """Some write the term as text, as RSS does."""
    said, text = dict(element.items()), text_of(element)
    term = collapse(said.get("term") or text)
    draft.add_category(
        term, said.get("scheme", "").strip(), collapse(said.get("label", ""))
    )
    if not term or text not in ("", term):
        keep_element(draft.extensions, element)


def _published(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("published", read_date(draft, element), element)


def _updated(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("updated", read_date(draft, element), element)


def _created(draft: Draft, element: Element, scope: Scope) -> None:
    """Atom 0.3: when it was written, which may be before it was issued."""
    draft.offer("published", read_date(draft, element), element, rank=1)


def _summary(draft: Draft, element: Element, scope: Scope) -> None:
    summary = _read_text(element, scope, draft.summary)
    draft.put("summary", summary, element)


def _read_text(element: Element, scope: Scope, present: Text | None) -> Text | None:
    """With absolute references, where the text has a base of its own."""
    if scope.is_uniform:
        return whole_text(read_text(element), scope, present)
    inner = scope.within(element)
    for child in element:
        if child.tag.startswith(XHTML):
            inner = inner.within(child)
            resolve_inside(child, inner)
        break
    text = whole_text(read_text(element), scope, present)
    return text if inner.base == scope.base else make_absolute(text, inner.base)


def _content(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Content elsewhere (``src``) is no content; it is kept as an extension.

    Its language is the entry's where the entry has none.
    """
    inside = scope.within(element)
    if not inside.is_unspoken:
        draft.language = draft.language or inside.language
    element = _best_alternative(element)
    if element.get("src") is not None:
        keep_element(draft.extensions, element)
    else:
        content = _read_text(element, scope, draft.content)
        draft.put("content", content, element)


def _best_alternative(element: Element) -> Element:
    """Of Atom 0.3's ``multipart/alternative``, the one that says most."""
    type = (element.get("type") or "").strip().lower()
    if type != "multipart/alternative":
        return element
    parts = [child for child in element if child.tag == element.tag]
    return max(parts, key=_richness, default=element)


def _richness(content: Element) -> bool:
    return "html" in (content.get("type") or "")


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
