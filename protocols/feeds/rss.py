"""RSS: 0.9x and 2.0, where the ``channel`` holds its items, and 0.90 and 1.0 (RDF).

In RDF, items and image are beside the channel. Items are read in the same way in all
versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from protocols.dates import parse_date
from protocols.feeds.assembly import assemble
from protocols.feeds.atom import (
    ACTIVITY,
    ATOM_ELEMENTS,
    METADATA,
    read_enclosure,
    read_source,
)
from protocols.feeds.constructs import (
    read_html,
    read_link,
    read_mailbox,
    read_person,
    whole_text,
)
from protocols.feeds.drafts import (
    Draft,
    EntryDraft,
    HeadDraft,
    begin_entry,
    date_of_element,
    read_date,
    read_language,
)
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element, keep_value
from protocols.feeds.limits import newest
from protocols.feeds.markup import markup_inside
from protocols.feeds.modules import (
    MODULES,
    SCHEDULE,
    Table,
    find_in_capitals,
    read_children,
)
from protocols.feeds.namespaces import RDF, qualified
from protocols.feeds.scope import Scope
from protocols.model import Feed, FeedFormat, Link, ParsedFeed, Text
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
    """Read a ``link``; one with ``href`` is Atom's, without its namespace."""
    if element.get("href"):
        link = read_link(element, scope)
    else:
        # Escaped by a template, and again by a CDATA section around it.
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
    term = text_of_title(text_of(element))  # may be escaped twice, by WordPress
    if term:
        draft.add_category(term, scheme)
    else:
        keep_element(draft.extensions, element)


def read_categories(draft: Draft, element: Element, scope: Scope) -> None:
    """Read a ``categories`` wrapper, which is in no version of RSS."""
    if not len(element):
        keep_element(draft.extensions, element)
    for child in element:
        if local_name(child.tag) == "category":
            read_category(draft, child, scope)
        else:
            keep_element(draft.extensions, child)


def read_publication_date(draft: Draft, element: Element, scope: Scope) -> None:
    draft.put("published", read_date(draft, element), element)


def _item_description(draft: EntryDraft, element: Element, scope: Scope) -> None:
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
    """Read the guid.

    "If its value is false, the guid may not be assumed to be a url" (``isPermaLink``).
    """
    guid = text_of(element)
    draft.put("id", guid, element)
    attribute = element.get("isPermaLink") or element.get("ispermalink") or ""
    is_permalink = attribute.strip().lower() != "false"
    if is_permalink and is_web_url(guid):
        draft.permalink = scope.resolve(guid)


def _abstract(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Read the ``abstract`` of the Channel Definition Format."""
    draft.offer_summary(Text(value=text_of(element)), element, rank=2)


def _id(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """Read an ``id``. Like the dates below it is in no version of RSS, but trackers and
    shops write it.
    """
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
    """Read the feed that an item came from: its name, and its own URL."""
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
    """Read the item's link from before FeedBurner replaced it with its own.

    The item's ``link`` stays its link; this one becomes the canonical link.
    """
    keep_element(draft.extensions, element)
    href = scope.within(element).resolve(text_of(element))
    if href:
        draft.add_link(Link(href=href, rel="canonical"))


_ITEM_ELEMENTS: Final[Table[EntryDraft]] = {
    "abstract": _abstract,
    "author": read_author,
    "categories": read_categories,
    "category": read_category,
    "comments": _comments,
    "created": _created,
    "date": _created,
    "description": _item_description,
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
    **qualified("rss", _ITEM_ELEMENTS),
}


_ABOUT: Final = f"{RDF}about"
_ITEMS: Final = frozenset(qualified("rss", {"item": True}))


def read_channel(root: Element, scope: Scope) -> tuple[HeadDraft, list[Element], Scope]:
    """Read the head, but not the items.

    Returns the head, the items, and the scope for the items. Items and images are
    inside the channel or, in RDF, beside it; both are accepted in either format. A
    document may also consist of a channel only.
    """
    head = HeadDraft(language=scope.language)
    items: list[Element] = []
    beside: list[Element] = []
    for child in [root] if local_name(root.tag) == "channel" else root:
        if local_name(child.tag) == "channel":
            head.id = (child.get(_ABOUT) or "").strip()
            scope = scope.within(child)
            items += _read_children(head, child, scope)
        else:
            beside.append(child)
    items += _read_children(head, beside, scope)
    head.language = head.language or scope.language
    return head, items, scope.within_site(head.links, ("alternate", "self"))


def _read_children(
    head: HeadDraft, children: Iterable[Element], scope: Scope
) -> list[Element]:
    items = []
    for child in children:
        handler = CHANNEL.get(child.tag) or find_in_capitals(CHANNEL, child)
        if child.tag in _ITEMS:
            items.append(child)
        elif handler is None:
            keep_element(head.extensions, child)
        else:
            handler(head, child, scope)
    return items


def _channel_description(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("subtitle", text_of_html(text_of(element)), element)


def _copyright(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("rights", text_of_html(text_of(element)), element)


def _generator(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("generator", text_of(element), element)


def _last_build_date(head: HeadDraft, element: Element, scope: Scope) -> None:
    head.put("updated", read_date(head, element), element)


def _image(head: HeadDraft, element: Element, scope: Scope) -> None:
    """Read the logo. Title, link and sizes are kept as an extension.

    The channel of RDF has an empty one, which only refers to the one beside it.
    """
    for child in element:
        if local_name(child.tag) == "url":
            head.logo = scope.within(child).resolve(text_of(child))
    if len(element):
        keep_element(head.extensions, element)


def _table_of_contents(head: HeadDraft, element: Element, scope: Scope) -> None:
    """Ignore RDF's list of its items, which adds nothing to the items."""


_CHANNEL_ELEMENTS: Final[Table[HeadDraft]] = {
    "author": read_author,
    "categories": read_categories,
    "category": read_category,
    "copyright": _copyright,
    "description": _channel_description,
    "generator": _generator,
    "image": _image,
    "items": _table_of_contents,
    "language": read_language,
    "lastBuildDate": _last_build_date,
    "lastbuilddate": _last_build_date,
    "link": read_page_link,
    "managingEditor": read_author,
    "managingeditor": read_author,
    "pubDate": read_publication_date,
    "pubdate": read_publication_date,
    "title": read_title,
}
CHANNEL: Final[Table[HeadDraft]] = {
    **MODULES,
    **METADATA,
    **SCHEDULE,
    **qualified("rss", _CHANNEL_ELEMENTS),
}


def read_rdf(root: Element, scope: Scope) -> ParsedFeed:
    """Read an ``rdf:RDF`` element."""
    head, items, scope = read_channel(root, scope)
    drafts = [_read_item(item, scope) for item in newest(items, date_of_element)]
    return assemble(FeedFormat.RDF, head, drafts, written=len(items))


def _read_item(element: Element, scope: Scope) -> EntryDraft:
    """Read an item of RDF. RSS 1.0 §5.5: its id is the URI in ``rdf:about``."""
    draft = read_item(element, scope)
    about = (element.get(_ABOUT) or "").strip()
    if about:
        inner = scope.within(element)
        draft.id = inner.resolve(about) if inner.is_stated else about
        draft.permalink = draft.id if is_web_url(draft.id) else draft.permalink
    return draft


def read_rss(root: Element, scope: Scope) -> ParsedFeed:
    """Read an ``rss`` element, or a ``channel`` without one."""
    head, items, scope = read_channel(root, scope)
    kept = newest(items, date_of_element)
    drafts = [read_item(item, scope) for item in kept]
    if local_name(root.tag) == "channel":
        _read_attributes(head, root, scope)
        for draft, item in zip(drafts, kept, strict=True):
            _read_attributes(draft, item, scope)
    return assemble(FeedFormat.RSS, head, drafts, written=len(items))


def _read_attributes(draft: Draft, element: Element, scope: Scope) -> None:
    """Read the Channel Definition Format of 1997, which has URLs and times in
    attributes.
    """
    href = scope.within(element).resolve(element.get("href"))
    if href and not draft.first_link("alternate"):
        draft.add_link(Link(href=href))
    draft.updated = draft.updated or parse_date(element.get("lastmod"))
