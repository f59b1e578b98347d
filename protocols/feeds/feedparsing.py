"""feedparser's reading of a document, mapped into our own model. The last resort."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from typing import Final

import feedparser
from msgspec.structs import replace

from protocols.dates import parse_date
from protocols.errors import MalformedDocument
from protocols.feeds.assembly import assemble
from protocols.feeds.atomelements import is_page
from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.document import Document
from protocols.feeds.drafts import Draft, EntryDraft, HeadDraft
from protocols.feeds.feedparserextras import (
    Fields,
    base_at,
    mappings_at,
    read_author,
    read_extras,
    text_at,
)
from protocols.feeds.limits import newest
from protocols.feeds.markup import with_markup_unescaped
from protocols.feeds.names import usual_declarations
from protocols.feeds.scope import Scope
from protocols.feeds.writtenids import (
    as_written,
    channel_id,
    first_guids,
    relative_guids,
)
from protocols.languages import language_tag
from protocols.model import Author, FeedFormat, ParsedFeed, Text
from protocols.text import text_of_title
from protocols.urls import is_absolute, is_web_url, resolve

_FORMATS: Final = (
    ("rss10", FeedFormat.RDF),
    ("rss090", FeedFormat.RDF),
    ("atom", FeedFormat.ATOM),
    ("rss", FeedFormat.RSS),
)
_TYPES: Final = {"text/plain": "text", "application/xhtml+xml": "xhtml"}
_HEADERS: Final = {"content-type": "application/xml; charset=utf-8"}
_LONGEST_DECLARATION: Final = 1_000


def read_with_feedparser(
    document: Document, context: ParseContext
) -> ParsedFeed | None:
    """Read a UTF-8 document; ``None`` when feedparser finds no feed in it.

    It is given a stream and nothing else: bytes or text that happen to name a file
    make it open that file.
    """
    try:
        result = feedparser.parse(
            BytesIO(usual_declarations(_without_declaration(document.body))),
            response_headers=_HEADERS,
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except Exception as error:
        # Its parser raises whatever the input provokes, RecursionError included.
        raise MalformedDocument(f"feedparser failed: {type(error).__name__}") from error
    version = str(result.get("version", ""))
    format = next((each for name, each in _FORMATS if version.startswith(name)), None)
    if format is None:
        return None
    scope = Scope.of_document(context)
    head = _read_head(result["feed"], scope)
    if format != FeedFormat.ATOM:
        scope = scope.within_site(head.links, ("alternate", "self"))
    written = len(result["entries"])
    entries = newest(result["entries"], _date_of)
    drafts = [_read_entry(entry, scope) for entry in entries]
    if format != FeedFormat.ATOM:
        head.id = head.id or channel_id(document.body)
        guids, base = relative_guids(document.body), base_at(result["feed"])
        firsts = first_guids(document.body, len(entries))
        for entry, draft, first in zip(entries, drafts, firsts, strict=False):
            _mend_id(draft, base_at(entry) or base, guids, format)
            draft.id = first or draft.id
            _complete_item(draft, entry)
    parsed = assemble(format, head, drafts, written=written)
    return document.sign(parsed, "feedparser")


def _without_declaration(body: bytes) -> bytes:
    """It is told the encoding, and would look for it in a first line that begins with
    ``<?``, in time that grows with the cube of its length."""
    is_declared = body.startswith(b"<?xml")
    end = body.find(b"?>", 0, _LONGEST_DECLARATION) if is_declared else -1
    return b"\n" + (body if end < 0 else body[end + 2 :])


def _read_head(fields: Fields, scope: Scope) -> HeadDraft:
    head = HeadDraft(
        subtitle=text_of_title(text_at(fields, "subtitle")),
        generator=text_at(fields, "generator"),
    )
    _read_common(head, fields, scope)
    return head


def _read_entry(fields: Fields, scope: Scope) -> EntryDraft:
    entry = EntryDraft(content=_content(fields), base=scope.base)
    _read_common(entry, fields, scope)
    _read_elsewhere(entry, fields, scope)
    summary = with_markup_unescaped(text_at(fields, "summary"))
    if summary and (entry.content is None or summary != entry.content.value):
        entry.summary = Text(value=summary)
    for contributor in mappings_at(fields, "contributors"):
        if text_at(contributor, "name"):
            entry.append("contributors", read_author(contributor, scope))
    return entry


def _date_of(fields: Fields) -> datetime | None:
    names = ("published", "created", "updated")
    dates = (parse_date(text_at(fields, name)) for name in names)
    return next(filter(None, dates), None)


def _mend_id(
    item: EntryDraft, base: str, guids: frozenset[str], format: FeedFormat
) -> None:
    """Of RDF it is an address, of other RSS it is not."""
    if format != FeedFormat.RDF:
        item.id = as_written(item.id, base, guids)
    elif item.id and base and not is_absolute(item.id):
        item.id = resolve(item.id, base)


def _complete_item(item: EntryDraft, fields: Fields) -> None:
    """Of RSS: an id may be the address, and a date of Dublin Core's is the first."""
    if fields.get("guidislink", True) and is_web_url(item.id):
        item.permalink = item.id
    if item.published is None:
        item.published, item.updated = item.updated, None


def _read_common(draft: Draft, fields: Fields, scope: Scope) -> None:
    draft.id = text_at(fields, "id")
    title = text_at(fields, "title") or text_at(fields, "itunes_title")
    draft.title = text_of_title(title)
    draft.published = parse_date(text_at(fields, "published"))
    draft.updated = parse_date(text_at(fields, "updated"))
    draft.language = language_tag(text_at(fields, "language"))
    draft.rights = text_at(fields, "rights")
    for link in [*mappings_at(fields, "links"), *mappings_at(fields, "enclosures")]:
        href = scope.resolve(text_at(link, "href"))
        if href:
            rel, type = text_at(link, "rel") or "alternate", text_at(link, "type")
            length = text_at(link, "length")
            draft.add_link(make_link(href, rel, type, text_at(link, "title"), length))
            if rel == "self" and is_page(type):
                draft.permalink = draft.permalink or href
    people = (read_author(each, scope) for each in mappings_at(fields, "authors"))
    draft.authors = _one_person([each for each in people if each.name or each.email])
    for tag in mappings_at(fields, "tags"):
        term, scheme, label = (
            text_at(tag, name) for name in ("term", "scheme", "label")
        )
        draft.add_category(text_of_title(term), scheme, text_of_title(label))
    read_extras(draft, fields, scope)


def _one_person(authors: list[Author]) -> list[Author]:
    """One with an address only and one with a name only are the same."""
    names = [author.name for author in authors if author.name]
    addresses = [author for author in authors if author.email]
    if len(authors) == 2 and len(names) == len(addresses) == 1:
        return [replace(addresses[0], name=names[0])]
    return authors


def _read_elsewhere(entry: EntryDraft, fields: Fields, scope: Scope) -> None:
    """Content of Atom that is not in the document."""
    for content in mappings_at(fields, "content"):
        href, type = scope.resolve(text_at(content, "src")), text_at(content, "type")
        if is_page(type):
            entry.permalink = entry.permalink or href
        elif href:
            entry.add_link(make_link(href, "enclosure", type))


def _content(fields: Fields) -> Text | None:
    for content in mappings_at(fields, "content"):
        value = text_at(content, "value")
        if value:
            type = _TYPES.get(text_at(content, "type"), "html")
            if type == "html":
                value = with_markup_unescaped(value)
            return Text(value=value, type=type)
    return None
