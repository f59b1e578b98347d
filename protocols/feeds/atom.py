"""Atom 1.0 (RFC 4287), Atom 0.3, and the tombstones of RFC 6721.

Atom elements are read in RSS, too, which borrows them, and so are those of
ActivityStreams (``as:``): verbs, objects and their types.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from protocols.dates import parse_date
from protocols.feeds.assembly import assemble
from protocols.feeds.constructs import (
    has_more_than_link,
    link_of,
    make_link,
    read_person,
    read_plain_text,
    read_text,
    whole_text,
)
from protocols.feeds.drafts import (
    Draft,
    EntryDraft,
    HeadDraft,
    begin_entry,
    date_of_element,
    read_date,
)
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element, keep_value
from protocols.feeds.limits import newest
from protocols.feeds.long_texts import LongTexts
from protocols.feeds.modules import (
    MODULES,
    SCHEDULE,
    Table,
    find_in_capitals,
    read_children,
)
from protocols.feeds.namespaces import ATOM, ATOM_03, TOMBSTONES, XHTML, qualified
from protocols.feeds.references import make_absolute, resolve_inside
from protocols.feeds.scope import Scope
from protocols.identity import key_of_id
from protocols.model import ActivityObject, Deletion, FeedFormat, ParsedFeed, Text
from protocols.text import text_of_title
from protocols.urls import is_absolute


def _id(draft: Draft, element: Element, scope: Scope) -> None:
    """Read the id. RFC 4287 §4.2.6: "Its content MUST be an IRI"; a relative one is
    resolved against an ``xml:base``.
    """
    id = text_of(element)
    scope = scope.within(element)
    is_relative = scope.is_stated and not is_absolute(id)
    draft.put("id", scope.resolve(id) if is_relative else id, element)


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("title", read_plain_text(element), element)


def _rights(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("rights", read_plain_text(element), element)


def _link(draft: Draft, element: Element, scope: Scope) -> None:
    """Read a link.

    Some feeds write its URL as text, as RSS does. A ``self`` link whose type is that of
    a page is the entry's page.
    """
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
    """Read a category. Some feeds write its term as text, as RSS does."""
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
    """Read Atom 0.3's ``created``: when it was written, possibly before it was
    issued.
    """
    draft.offer("published", read_date(draft, element), element, rank=1)


def _summary(draft: Draft, element: Element, scope: Scope) -> None:
    summary = _read_text(element, scope, draft.summary)
    draft.put("summary", summary, element)


def _read_text(element: Element, scope: Scope, present: Text | None) -> Text | None:
    """Read a text; its references are made absolute if it has a base of its own."""
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
    """Read the content, or the link to content elsewhere (``src``).

    An element with ``src`` is kept as an extension. If it refers to a page, that is the
    entry's page unless there is another; anything else is an enclosure. An entry
    without a language gets the one of its content.
    """
    inside = scope.within(element)
    if not inside.is_unspoken:
        draft.language = draft.language or inside.language
    if (element.get("type") or "").strip().lower() == "multipart/alternative":
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
    """Whether a ``type`` names a page, as a media type or in Atom's short form."""
    return type.partition(";")[0].strip().lower() in _PAGE_TYPES


def read_enclosure(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Read an ``enclosure`` of RSS; some feeds of Atom 0.3 have it as well."""
    href = scope.within(element).resolve(element.get("url"))
    type = (element.get("type") or "").strip()
    link = make_link(href, "enclosure", type, length=element.get("length"))
    is_told = draft.add_link(link) if href else "url" in element.attrib
    if not is_told or not _ENCLOSURE_ATTRIBUTES.issuperset(element.keys()):
        keep_element(draft.extensions, element)


def _best_alternative(element: Element) -> Element:
    """The HTML part of Atom 0.3's ``multipart/alternative``, or else the first part."""
    parts = [child for child in element if child.tag == element.tag]
    return max(parts, key=_richness, default=element)


def _richness(content: Element) -> bool:
    return "html" in (content.get("type") or "")


def _categories(draft: Draft, element: Element, scope: Scope) -> None:
    """Read a ``categories`` wrapper, which is in no version of Atom."""
    if not len(element):
        keep_element(draft.extensions, element)
    for child in element:
        if local_name(child.tag) == "category":
            _category(draft, child, scope)
        else:
            keep_element(draft.extensions, child)


_ENCLOSURE_ATTRIBUTES: Final = frozenset({"url", "type", "length"})
_PAGE_TYPES: Final = frozenset({"html", "xhtml", "text/html", "application/xhtml+xml"})
# Each version is also read with the other's element names: some publishers changed only
# the namespace, or only the elements.
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
"""Elements that entries and heads may have."""

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
"""Elements that entries may have."""


def _verb(draft: EntryDraft, element: Element, scope: Scope) -> None:
    draft.append("verbs", text_of(element))


def _object_type(draft: EntryDraft, element: Element, scope: Scope) -> None:
    draft.append("object_types", text_of(element))


def _object(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Read an ``as:object``, which is structured like an entry."""
    read = EntryDraft()
    scope = scope.within(element)
    if scope.texts is not None:
        # The element may be kept as an extension, which must not contain stand-ins.
        scope = replace(scope, texts=LongTexts())
    read_children(read, element, scope, _OBJECT)
    read.settle()
    if read.extensions or read.rights or read.contributors:
        keep_element(draft.extensions, element)
    if read.content and read.summary:
        keep_value(draft.extensions, "as", "object", {"summary": read.summary.value})
    draft.append(
        "objects",
        ActivityObject(
            id=read.id,
            title=read.title,
            published=read.published,
            updated=read.updated,
            content=make_absolute(read.content or read.summary, scope.base),
            authors=tuple(read.authors),
            categories=read.categories,
            links=read.links,
            object_types=tuple(read.object_types),
        ),
    )


_OBJECT: Final[Table[EntryDraft]] = {
    **ATOM_ELEMENTS,
    **qualified("as", {"object-type": _object_type}),
}
ACTIVITY: Final[Table[EntryDraft]] = qualified(
    "as", {"object": _object, "object-type": _object_type, "verb": _verb}
)


_ENTRIES: Final = frozenset({f"{ATOM}entry", f"{ATOM_03}entry"})
_DELETED_ENTRY: Final = f"{TOMBSTONES}deleted-entry"


def read_atom(root: Element, scope: Scope) -> ParsedFeed:
    """Read a ``feed`` element, or a lone ``entry`` (an Atom Entry Document)."""
    head = HeadDraft(language=scope.language)
    if local_name(root.tag) == "entry":
        return assemble(FeedFormat.ATOM, head, [_read_entry(root, scope)])
    entries: list[Element] = []
    deletions: list[Deletion] = []
    for child in root:
        if child.tag in _ENTRIES:
            entries.append(child)
        elif child.tag == _DELETED_ENTRY:
            deletions.extend(_read_deletion(child))
        else:
            handler = HEAD.get(child.tag) or find_in_capitals(HEAD, child)
            if handler is None:
                keep_element(head.extensions, child)
            else:
                handler(head, child, scope)
    # A document read from a file has no URL; use its own links instead.
    scope = (
        scope if scope.base else scope.within_site(head.links, ("self", "alternate"))
    )
    kept = newest(entries, date_of_element)
    drafts = [_read_entry(entry, scope) for entry in kept]
    return assemble(
        FeedFormat.ATOM, head, drafts, deletions=deletions, written=len(entries)
    )


def _read_entry(element: Element, scope: Scope) -> EntryDraft:
    scope = scope.within(element)
    draft = begin_entry(scope)
    read_children(draft, element, scope, ENTRY)
    return draft


def _read_deletion(element: Element) -> list[Deletion]:
    """RFC 6721 §3: ``ref`` is the id of the entry that is gone."""
    id = (element.get("ref") or "").strip()
    at = parse_date(element.get("when"))
    return [Deletion(key=key_of_id(id), id=id, at=at)] if id else []


def read_source(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Read ``source``: the head of the feed that an entry was copied from."""
    scope = scope.within(element)
    source = HeadDraft(language=scope.language)
    read_children(source, element, scope, HEAD)
    draft.put("source", source.finish(), element)


def _subtitle(draft: HeadDraft, element: Element, scope: Scope) -> None:
    draft.put("subtitle", read_plain_text(element), element)


def _generator(draft: HeadDraft, element: Element, scope: Scope) -> None:
    """Read the generator's name; its URL and version are kept as an extension."""
    draft.generator = text_of(element)
    if element.attrib:
        keep_element(draft.extensions, element)


def _icon(draft: HeadDraft, element: Element, scope: Scope) -> None:
    draft.icon = scope.within(element).resolve(text_of(element))


def _logo(draft: HeadDraft, element: Element, scope: Scope) -> None:
    draft.logo = scope.within(element).resolve(text_of(element))


HEAD: Final[Table[HeadDraft]] = {
    **MODULES,
    **METADATA,
    **SCHEDULE,
    **qualified(
        "atom",
        {
            "generator": _generator,
            "icon": _icon,
            "logo": _logo,
            "subtitle": _subtitle,
            "tagline": _subtitle,
        },
    ),
    **qualified(
        "atom03",
        {"generator": _generator, "subtitle": _subtitle, "tagline": _subtitle},
    ),
}
ENTRY: Final[Table[EntryDraft]] = {
    **MODULES,
    **ATOM_ELEMENTS,
    **ACTIVITY,
    **qualified("atom", {"source": read_source}),
}
