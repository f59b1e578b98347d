"""Apple's podcast elements. All are kept as extensions too: apps look there."""

from __future__ import annotations

from typing import Final

from protocols.feeds.constructs import make_link
from protocols.feeds.drafts import Draft, HeadDraft
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Text
from protocols.text import text_of_html, text_of_title


def _author(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.spare_author = text_of_html(text_of(element))


def _image(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    image = scope.within(element).resolve(element.get("href") or text_of(element))
    if not image:
        return
    if isinstance(draft, HeadDraft):
        draft.spare_logo = image
    else:
        draft.add_link(make_link(image, "image"))


def _summary(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    summary = text_of(element)
    if summary:
        draft.spare_summary = Text(value=summary)


def _subtitle(draft: Draft, element: Element, scope: Scope) -> None:
    """Shorter than a summary, so it only counts when there is none."""
    keep_element(draft.extensions, element)
    subtitle = text_of(element)
    if subtitle and draft.spare_summary is None:
        draft.spare_summary = Text(value=subtitle)


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.spare_title = draft.spare_title or text_of_title(text_of(element))


ITUNES: Final = qualified(
    "itunes",
    {
        "author": _author,
        "image": _image,
        "subtitle": _subtitle,
        "summary": _summary,
        "title": _title,
    },
)
