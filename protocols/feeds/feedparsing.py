"""feedparser's reading of a document, mapped into our own model. The last resort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Final, TypeAlias

import feedparser

from protocols.dates import parse_date
from protocols.errors import MalformedDocument
from protocols.feeds.assembly import assemble
from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.document import Document
from protocols.feeds.drafts import Draft, EntryDraft, HeadDraft
from protocols.feeds.limits import MAX_ENTRIES
from protocols.feeds.scope import Scope
from protocols.model import Author, Category, FeedFormat, ParsedFeed, Text
from protocols.text import text_of_title

Fields: TypeAlias = Mapping[str, object]

_FORMATS: Final = (
    ("rss10", FeedFormat.RDF),
    ("rss090", FeedFormat.RDF),
    ("atom", FeedFormat.ATOM),
    ("rss", FeedFormat.RSS),
)
_TYPES: Final = {"text/plain": "text", "application/xhtml+xml": "xhtml"}
_HEADERS: Final = {"content-type": "application/xml; charset=utf-8"}


def read_with_feedparser(
    document: Document, context: ParseContext
) -> ParsedFeed | None:
    """Read a UTF-8 document; ``None`` when feedparser finds no feed in it.

    It is given a stream and nothing else: bytes or text that happen to name a file
    make it open that file.
    """
    try:
        result = feedparser.parse(
            BytesIO(document.body),
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
    entries = result["entries"]
    drafts = [_read_entry(entry, scope) for entry in entries[:MAX_ENTRIES]]
    parsed = assemble(format, head, drafts, written=len(entries))
    return document.sign(parsed, "feedparser")


def _read_head(fields: Fields, scope: Scope) -> HeadDraft:
    head = HeadDraft(
        subtitle=text_of_title(_text(fields, "subtitle")),
        generator=_text(fields, "generator"),
    )
    _read_common(head, fields, scope)
    return head


def _read_entry(fields: Fields, scope: Scope) -> EntryDraft:
    entry = EntryDraft(content=_content(fields), base=scope.base)
    _read_common(entry, fields, scope)
    summary = _text(fields, "summary")
    if summary and (entry.content is None or summary != entry.content.value):
        entry.summary = Text(value=summary)
    return entry


def _read_common(draft: Draft, fields: Fields, scope: Scope) -> None:
    draft.id = _text(fields, "id")
    draft.title = text_of_title(_text(fields, "title"))
    draft.published = parse_date(_text(fields, "published"))
    draft.updated = parse_date(_text(fields, "updated"))
    draft.language = _text(fields, "language")
    draft.rights = _text(fields, "rights")
    for link in [*_mappings(fields, "links"), *_mappings(fields, "enclosures")]:
        href = scope.resolve(_text(link, "href"))
        if href:
            rel, type = _text(link, "rel") or "alternate", _text(link, "type")
            length = _text(link, "length")
            draft.add_link(make_link(href, rel, type, _text(link, "title"), length))
    for author in _mappings(fields, "authors"):
        if _text(author, "name") or _text(author, "email"):
            draft.append("authors", _author(author, scope))
    for tag in _mappings(fields, "tags"):
        term, scheme, label = (_text(tag, name) for name in ("term", "scheme", "label"))
        draft.add_category(Category(term=term, scheme=scheme, label=label))


def _author(author: Fields, scope: Scope) -> Author:
    return Author(
        name=_text(author, "name"),
        email=_text(author, "email"),
        uri=scope.resolve(_text(author, "href")),
    )


def _content(fields: Fields) -> Text | None:
    for content in _mappings(fields, "content"):
        value = _text(content, "value")
        if value:
            type = _TYPES.get(_text(content, "type"), "html")
            return Text(value=value, type=type)
    return None


def _text(fields: Fields, name: str) -> str:
    """A field as it is: feedparser makes up missing ones, with a warning, if asked.

    Character references give it half characters; nobody could encode them again.
    """
    value = dict.get(fields, name) if isinstance(fields, dict) else None
    if not isinstance(value, str):
        return ""
    return value.encode("utf-8", "replace").decode().strip()


def _mappings(fields: Fields, name: str) -> Iterator[Fields]:
    values = dict.get(fields, name) if isinstance(fields, dict) else None
    if isinstance(values, Iterable):
        yield from (each for each in values if isinstance(each, Mapping))
