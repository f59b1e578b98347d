"""Atom 1.0 (RFC 4287), Atom 0.3, and the tombstones of RFC 6721."""

from __future__ import annotations

from typing import Final

from protocols.dates import parse_date
from protocols.feeds.activity import ACTIVITY
from protocols.feeds.assembly import assemble
from protocols.feeds.atomelements import ATOM_ELEMENTS, METADATA
from protocols.feeds.constructs import read_plain_text
from protocols.feeds.drafts import (
    EntryDraft,
    HeadDraft,
    begin_entry,
    date_of_element,
)
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.limits import newest
from protocols.feeds.modules import MODULES, Table, find_in_capitals, read_children
from protocols.feeds.names import ATOM, ATOM_03, TOMBSTONES, qualified
from protocols.feeds.schedule import SCHEDULE
from protocols.feeds.scope import Scope
from protocols.identity import key_of_id
from protocols.model import Deletion, FeedFormat, ParsedFeed

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
            _read_head_element(head, child, scope)
    # A document read from a file has no URL; what it calls itself will do.
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


def _read_head_element(head: HeadDraft, element: Element, scope: Scope) -> None:
    handler = HEAD.get(element.tag) or find_in_capitals(HEAD, element)
    if handler is None:
        keep_element(head.extensions, element)
    else:
        handler(head, element, scope)


def _read_deletion(element: Element) -> list[Deletion]:
    """RFC 6721 §3: ``ref`` is the id of the entry that is gone."""
    id = (element.get("ref") or "").strip()
    at = parse_date(element.get("when"))
    return [Deletion(key=key_of_id(id), id=id, at=at)] if id else []


def read_source(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """The head of the feed that an entry was copied from."""
    scope = scope.within(element)
    source = HeadDraft(language=scope.language)
    read_children(source, element, scope, HEAD)
    draft.put("source", source.finish(), element)


def _subtitle(draft: HeadDraft, element: Element, scope: Scope) -> None:
    draft.put("subtitle", read_plain_text(element), element)


def _generator(draft: HeadDraft, element: Element, scope: Scope) -> None:
    """Its address and version are kept as an extension."""
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
