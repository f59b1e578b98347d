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

SCHEME: Final = "http://www.itunes.com/"
"""Of the categories that are Apple's, or keywords for its directory."""


def _author(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.spare_author = text_of_html(text_of(element))


def _image(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    image = scope.within(element).resolve(element.get("href") or text_of(element))
    if not image:
        return
    if isinstance(draft, HeadDraft):
        draft.offer("logo", image)
    else:
        draft.add_link(make_link(image, "image"))


def _summary(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.offer_summary(Text(value=text_of(element)))


def _subtitle(draft: Draft, element: Element, scope: Scope) -> None:
    """Shorter than a summary, so it only counts when there is none."""
    keep_element(draft.extensions, element)
    draft.offer_summary(Text(value=text_of(element)), rank=2)


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.offer("title", text_of_title(text_of(element)))


def _category(draft: Draft, element: Element, scope: Scope) -> None:
    """Apple's own categories; subcategories stand inside their category."""
    keep_element(draft.extensions, element)
    for each in element.iter():
        if each.tag == element.tag:
            term = text_of_title(each.get("text") or "")
            draft.add_category(term, SCHEME)


def _keywords(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    for keyword in text_of(element).split(","):
        draft.add_category(text_of_title(keyword), SCHEME)


ITUNES: Final = qualified(
    "itunes",
    {
        "author": _author,
        "category": _category,
        "image": _image,
        "keywords": _keywords,
        "subtitle": _subtitle,
        "summary": _summary,
        "title": _title,
    },
)
