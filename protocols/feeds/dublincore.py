"""Dublin Core elements (``dc:``) and terms (``dcterms:``)."""

from __future__ import annotations

from typing import Final

from protocols.feeds.drafts import Draft, EntryDraft, read_date, read_language
from protocols.feeds.element import Element, text_of
from protocols.feeds.mailbox import read_mailbox
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Author, Text
from protocols.text import text_of_html, text_of_title


def _creator(draft: Draft, element: Element, scope: Scope) -> None:
    creator = read_mailbox(text_of(element))  # many write one as RSS has it
    if creator.name or creator.email:
        draft.append("creators", creator)


def _contributor(draft: Draft, element: Element, scope: Scope) -> None:
    name = text_of_html(text_of(element))
    if name:
        draft.append("contributors", Author(name=name))


def _date(draft: Draft, element: Element, scope: Scope) -> None:
    """An entry's day of birth; of a whole feed, when it last changed."""
    if isinstance(draft, EntryDraft):
        _issued(draft, element, scope)
    else:
        _modified(draft, element, scope)


def _created(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("published", read_date(draft, element), element, rank=1)


def _issued(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("published", read_date(draft, element), element)


def _modified(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("updated", read_date(draft, element), element)


def _subject(draft: Draft, element: Element, scope: Scope) -> None:
    draft.add_category(text_of_title(text_of(element)))


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("title", text_of_title(text_of(element)), element)


def _description(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer_summary(Text(value=text_of(element)), element, rank=1)


def _rights(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("rights", text_of_html(text_of(element)), element)


_ELEMENTS: Final = {
    "author": _creator,  # there is no such element, but it is written
    "contributor": _contributor,
    "creator": _creator,
    "date": _date,
    "description": _description,
    "language": read_language,
    "rights": _rights,
    "subject": _subject,
    "title": _title,
}
_DATES: Final = {"created": _created, "issued": _issued, "modified": _modified}
# "dcterms:title" is the "dc:title" of today: all fifteen elements are terms, too.
DUBLIN_CORE: Final = {
    **qualified("dc", _ELEMENTS),
    **qualified("dcterms", _ELEMENTS | _DATES),
}
