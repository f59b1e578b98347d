"""Atom's own elements, 1.0 and 0.3, wherever they stand: RSS borrows them too."""

from __future__ import annotations

from typing import Final

from protocols.feeds.constructs import (
    has_more_than_link,
    link_of,
    make_link,
    read_person,
    read_plain_text,
    read_text,
    whole_text,
)
from protocols.feeds.drafts import Draft, EntryDraft, read_date
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.modules import Table
from protocols.feeds.names import XHTML, qualified
from protocols.feeds.references import make_absolute, resolve_inside
from protocols.feeds.scope import Scope
from protocols.model import Text
from protocols.text import text_of_title
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
    """Some write the address as text, as RSS does; and a page's own is a page."""
    said = dict(element.items())
    if "href" not in said and (written := text_of(element)):
        said["href"] = written
    link = link_of(said, scope.within(element))
    if link and link.rel == "self" and is_page(said.get("type", "")):
        draft.permalink = draft.permalink or link.href
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
    term = text_of_title(said.get("term") or text)
    draft.add_category(
        term, said.get("scheme", "").strip(), text_of_title(said.get("label", ""))
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
    """Content elsewhere (``src``) is no content: a page is the entry's address if it
    has no other, anything else a file. It is kept as an extension, too.

    Its language is the entry's where the entry has none.
    """
    inside = scope.within(element)
    if not inside.is_unspoken:
        draft.language = draft.language or inside.language
    element = _best_alternative(element)
    if element.get("src") is not None:
        keep_element(draft.extensions, element)
        href = inside.resolve(element.get("src"))
        type = (element.get("type") or "").strip().lower()
        if not type or is_page(type):
            draft.permalink = draft.permalink or href
        elif href:
            draft.add_link(make_link(href, "enclosure", type))
    else:
        content = _read_text(element, scope, draft.content)
        draft.put("content", content, element)


def is_page(type: str) -> bool:
    """Whether a media type, or Atom's own word for it, is that of a page."""
    return type.partition(";")[0].strip().lower() in _PAGE_TYPES


def read_enclosure(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Of RSS; some feeds of Atom 0.3 have it as well."""
    href = scope.within(element).resolve(element.get("url"))
    type = (element.get("type") or "").strip()
    link = make_link(href, "enclosure", type, length=element.get("length"))
    is_told = draft.add_link(link) if href else "url" in element.attrib
    if not is_told or not _ENCLOSURE_ATTRIBUTES.issuperset(element.keys()):
        keep_element(draft.extensions, element)


def _best_alternative(element: Element) -> Element:
    """Of Atom 0.3's ``multipart/alternative``, the one that says most."""
    type = (element.get("type") or "").strip().lower()
    if type != "multipart/alternative":
        return element
    parts = [child for child in element if child.tag == element.tag]
    return max(parts, key=_richness, default=element)


def _richness(content: Element) -> bool:
    return "html" in (content.get("type") or "")


def _categories(draft: Draft, element: Element, scope: Scope) -> None:
    """A wrapper that no version of Atom has around them."""
    if not len(element):
        keep_element(draft.extensions, element)
    for child in element:
        if local_name(child.tag) == "category":
            _category(draft, child, scope)
        else:
            keep_element(draft.extensions, child)


_ENCLOSURE_ATTRIBUTES: Final = frozenset({"url", "type", "length"})
_PAGE_TYPES: Final = frozenset({"html", "xhtml", "text/html", "application/xhtml+xml"})
# Both versions get the names of the other one: some changed the namespace, or the
# elements, and left the rest.
_OF_10: Final[Table[Draft]] = {
    "categories": _categories,
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
            "categories": _categories,
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

_OF_ENTRIES: Final[Table[EntryDraft]] = {
    "content": _content,
    "enclosure": read_enclosure,
    "summary": _summary,
}
ATOM_ELEMENTS: Final[Table[EntryDraft]] = {
    **METADATA,
    **qualified("atom", _OF_ENTRIES),
    **qualified("atom03", _OF_ENTRIES),
}
"""Elements of entries."""
