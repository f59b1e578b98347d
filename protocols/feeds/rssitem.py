"""An RSS item, in every version from 0.90 to 2.0, RDF's included."""

from __future__ import annotations

from typing import Final

from protocols.feeds.activity import ACTIVITY
from protocols.feeds.atom import read_source
from protocols.feeds.atomelements import ATOM_ELEMENTS, read_enclosure
from protocols.feeds.constructs import (
    read_html,
    read_link,
    read_person,
    whole_text,
)
from protocols.feeds.drafts import Draft, EntryDraft, begin_entry, read_date
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element, keep_value
from protocols.feeds.mailbox import read_mailbox
from protocols.feeds.markup import markup_inside
from protocols.feeds.modules import MODULES, Table, read_children
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Feed, Link, Text
from protocols.text import text_of_html, text_of_title
from protocols.urls import is_web_url


def read_item(element: Element, scope: Scope) -> EntryDraft:
    scope = scope.within(element)
    draft = begin_entry(scope)
    read_children(draft, element, scope, ITEM)
    return draft


def read_title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("title", text_of_title(text_of(element)), element)


def read_page_link(draft: Draft, element: Element, scope: Scope) -> None:
    """A ``link``; one with ``href`` is Atom's, stripped of its namespace."""
    if element.get("href"):
        link = read_link(element, scope)
    else:
        # Escaped twice: a template did it, and a CDATA section was put around it.
        written = text_of(element).replace("&amp;", "&")
        href = scope.within(element).resolve(written)
        link = Link(href=href) if href else None
    if link and not draft.add_link(link):
        keep_element(draft.extensions, element)


def read_author(draft: Draft, element: Element, scope: Scope) -> None:
    if len(element) == 0:
        mailbox = read_mailbox(text_of(element))
        if mailbox.name or mailbox.email:
            draft.append("authors", mailbox)
        return
    author, has_more = read_person(element, scope)
    if author:
        draft.append("authors", author)
    if has_more:
        keep_element(draft.extensions, element)


def read_category(draft: Draft, element: Element, scope: Scope) -> None:
    scheme = (element.get("domain") or "").strip()
    term = text_of_title(text_of(element))  # escaped twice, as WordPress does it
    if term:
        draft.add_category(term, scheme)
    else:
        keep_element(draft.extensions, element)


def read_categories(draft: Draft, element: Element, scope: Scope) -> None:
    """A wrapper that no version of RSS has around them."""
    if not len(element):
        keep_element(draft.extensions, element)
    for child in element:
        if local_name(child.tag) == "category":
            read_category(draft, child, scope)
        else:
            keep_element(draft.extensions, child)


def read_publication_date(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("published", read_date(draft, element), element)


def _description(draft: EntryDraft, element: Element, scope: Scope) -> None:
    summary = whole_text(read_html(element), scope, draft.summary)
    draft.put("summary", summary, element)


def _content(draft: EntryDraft, element: Element, scope: Scope) -> None:
    content = whole_text(read_html(element), scope, draft.content)
    draft.put("content", content, element)


def _body(draft: EntryDraft, element: Element, scope: Scope) -> None:
    markup = markup_inside(element)
    if markup and draft.content is None:
        draft.content = Text(value=markup, type="xhtml")
    elif markup:
        name = local_name(element.tag)
        keep_value(draft.extensions, "xhtml", name, {"markup": markup})


def _guid(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """ "If its value is false, the guid may not be assumed to be a url"."""
    guid = text_of(element)
    draft.put("id", guid, element)
    told = element.get("isPermaLink") or element.get("ispermalink") or ""
    is_permalink = told.strip().lower() != "false"
    if is_permalink and is_web_url(guid):
        draft.permalink = scope.resolve(guid)


def _abstract(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Of the Channel Definition Format."""
    draft.offer_summary(Text(value=text_of(element)), element, rank=2)


def _id(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Of no version of RSS, as are the dates below: trackers and shops write them."""
    draft.offer("id", text_of(element), element)


def _created(draft: EntryDraft, element: Element, scope: Scope) -> None:
    draft.offer("published", read_date(draft, element), element, rank=1)


def _modified(draft: EntryDraft, element: Element, scope: Scope) -> None:
    draft.offer("updated", read_date(draft, element), element, rank=1)


def _comments(draft: EntryDraft, element: Element, scope: Scope) -> None:
    href = scope.within(element).resolve(text_of(element))
    if href:
        draft.add_link(Link(href=href, rel="replies"))


def _source(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """The feed that an item came from: its name, and its own address."""
    href = scope.within(element).resolve(element.get("url"))
    title = text_of_html(text_of(element))
    if href or title:
        link = Link(href=href, rel="self", type="application/rss+xml")
        source = Feed(title=title, links=(link,) if href else ())
        draft.put("source", source, element)


def _comment_feed(draft: EntryDraft, element: Element, scope: Scope) -> None:
    href = scope.within(element).resolve(text_of(element))
    if href:
        draft.add_link(Link(href=href, rel="replies", type="application/rss+xml"))


def _original_link(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """FeedBurner replaces an item's link with its own; this is the one before that.

    What an item calls its link stays its link; beside it this one is the canonical.
    """
    keep_element(draft.extensions, element)
    href = scope.within(element).resolve(text_of(element))
    if href:
        draft.add_link(Link(href=href, rel="canonical"))


_ELEMENTS: Final[Table[EntryDraft]] = {
    "abstract": _abstract,
    "author": read_author,
    "categories": read_categories,
    "category": read_category,
    "comments": _comments,
    "created": _created,
    "date": _created,
    "description": _description,
    "enclosure": read_enclosure,
    "guid": _guid,
    "id": _id,
    "issued": _created,
    "link": read_page_link,
    "modified": _modified,
    "pubDate": read_publication_date,
    "pubdate": read_publication_date,
    "published": _created,
    "source": _source,
    "title": read_title,
    "updated": _modified,
}
ITEM: Final[Table[EntryDraft]] = {
    **MODULES,
    **ATOM_ELEMENTS,
    **ACTIVITY,
    **qualified("atom", {"source": read_source}),
    **qualified("content", {"encoded": _content}),
    **qualified("feedburner", {"origLink": _original_link}),
    **qualified("wfw", {"commentRss": _comment_feed, "commentRSS": _comment_feed}),
    **qualified("xhtml", {"body": _body, "div": _body}),
    **qualified("rss", _ELEMENTS),
}
