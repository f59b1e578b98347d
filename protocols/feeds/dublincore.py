"""Dublin Core elements (``dc:``) and terms (``dcterms:``)."""

from __future__ import annotations

from typing import Final

from protocols.dates import parse_date
from protocols.feeds.drafts import Draft, EntryDraft
from protocols.feeds.element import Element, text_of
from protocols.feeds.mailbox import read_mailbox
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Author, Category, Text
from protocols.text import collapse, text_of_html, text_of_title


def _creator(draft: Draft, element: Element, scope: Scope) -> None:
    creator = read_mailbox(text_of(element))  # many write one as RSS has it
    if creator != Author():
        draft.creators.append(creator)


def _contributor(draft: Draft, element: Element, scope: Scope) -> None:
    name = text_of_html(text_of(element))
    if name:
        draft.contributors.append(Author(name=name))


def _date(draft: Draft, element: Element, scope: Scope) -> None:
    """An entry's day of birth; of a whole feed, when it last changed."""
    if isinstance(draft, EntryDraft):
        _created(draft, element, scope)
    else:
        _modified(draft, element, scope)


def _created(draft: Draft, element: Element, scope: Scope) -> None:
    draft.spare_published = draft.spare_published or parse_date(text_of(element))


def _modified(draft: Draft, element: Element, scope: Scope) -> None:
    draft.spare_updated = draft.spare_updated or parse_date(text_of(element))


def _subject(draft: Draft, element: Element, scope: Scope) -> None:
    draft.add_category(Category(term=collapse(text_of(element))))


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.spare_title = draft.spare_title or text_of_title(text_of(element))


def _description(draft: Draft, element: Element, scope: Scope) -> None:
    description = text_of(element)
    if description and draft.spare_summary is None:
        draft.spare_summary = Text(value=description)


def _language(draft: Draft, element: Element, scope: Scope) -> None:
    draft.language = text_of(element) or draft.language


def _rights(draft: Draft, element: Element, scope: Scope) -> None:
    draft.rights = draft.rights or text_of_html(text_of(element))


DUBLIN_CORE: Final = {
    **qualified(
        "dc",
        {
            "contributor": _contributor,
            "creator": _creator,
            "date": _date,
            "description": _description,
            "language": _language,
            "rights": _rights,
            "subject": _subject,
            "title": _title,
        },
    ),
    **qualified(
        "dcterms",
        {"created": _created, "issued": _created, "modified": _modified},
    ),
}
