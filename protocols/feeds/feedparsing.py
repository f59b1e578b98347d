"""Read a document with feedparser, the last resort, and map its result to our model.

feedparser flattens extension modules: ``itunes:duration`` becomes ``itunes_duration``
in lower case, with the element's text or its attributes; media elements become lists of
these. They are put where our own readers put them.

Ids of RSS are kept as written. feedparser resolves a guid that may be an address
against ``xml:base``; for us, as for RSS, a guid is a string. feedparser does not
resolve ``rdf:about``, which is an address, and drops that of the channel. If an item
has several guids, it takes the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from html import unescape
from io import BytesIO
from itertools import islice
from typing import Final, TypeAlias

import feedparser
from msgspec.structs import replace

from protocols.dates import parse_date
from protocols.feeds.assembly import assemble
from protocols.feeds.atom import is_page
from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.document import OpenedDocument
from protocols.feeds.drafts import Draft, EntryDraft, HeadDraft
from protocols.feeds.extensions import Json, keep_value
from protocols.feeds.limits import newest
from protocols.feeds.markup import with_markup_unescaped
from protocols.feeds.modules import read_point
from protocols.feeds.namespaces import NAMESPACES, usual_declarations, usual_name
from protocols.feeds.scope import Scope
from protocols.languages import language_tag
from protocols.model import Author, Feed, FeedFormat, Link, ParsedFeed, Text
from protocols.protocol_errors import MalformedDocument
from protocols.text import text_of_html, text_of_title
from protocols.urls import is_absolute, is_web_url, resolve

Fields: TypeAlias = Mapping[str, object]

_READ: Final = frozenset({"atom", "atom03", "content", "dc", "dcterms", "rdf", "rss"})
"""Prefixes for whose elements feedparser has fields of its own."""


def read_extras(draft: Draft, fields: Fields, scope: Scope) -> None:
    """Read the extensions of a head or an entry, and the links and places in them."""
    for name in fields:
        prefix, _, local = name.partition("_")
        if local and prefix in NAMESPACES and prefix not in _READ:
            value = _plain(fields[name])
            if value:
                keep_value(draft.extensions, prefix, usual_name(local), value)
    image = scope.resolve(text_at(_mapping(fields, "image"), "href"))
    if not isinstance(draft, EntryDraft):
        draft.offer("logo", image)
        return
    if image:
        draft.add_link(make_link(image, "image"))
    comments = scope.resolve(text_at(fields, "comments"))
    if comments:
        draft.add_link(Link(href=comments, rel="replies"))
    _read_media(draft, fields, scope)
    _read_place(draft, fields)
    _read_source(draft, _mapping(fields, "source"), scope)


def _read_media(draft: EntryDraft, fields: Fields, scope: Scope) -> None:
    for file in mappings_at(fields, "media_content"):
        url, type = scope.resolve(text_at(file, "url")), text_at(file, "type")
        is_image = text_at(file, "medium") == "image" or type.startswith("image/")
        if url:
            rel = "image" if is_image else "enclosure"
            length = text_at(file, "filesize")
            draft.add_link(make_link(url, rel, type, length=length))
    for picture in mappings_at(fields, "media_thumbnail"):
        url = scope.resolve(text_at(picture, "url"))
        if url:
            draft.add_link(make_link(url, "thumbnail"))


def _read_place(draft: EntryDraft, fields: Fields) -> None:
    """Read the place, from GeoJSON, longitude first, or from ``geo:lat`` and
    ``geo:long``.

    The latter are then not kept as extensions.
    """
    where = _mapping(fields, "where")
    coordinates = where.get("coordinates") if where.get("type") == "Point" else ()
    if isinstance(coordinates, tuple) and coordinates:
        draft.geo = read_point(" ".join(map(str, reversed(coordinates))))
    elif place := read_point(
        f"{text_at(fields, 'geo_lat')} {text_at(fields, 'geo_long')}"
    ):
        draft.geo = place
        del draft.extensions["geo"]


def _read_source(draft: EntryDraft, source: Fields, scope: Scope) -> None:
    """Read the source. RSS gives its title and URL; of Atom's, feedparser passes on
    little more.
    """
    href, title = scope.resolve(text_at(source, "href")), text_at(source, "title")
    if href or title or "authors" in source:
        link = Link(href=href, rel="self", type="application/rss+xml")
        id, links = text_at(source, "id"), (link,) if href else ()
        people = (read_author(each, scope) for each in mappings_at(source, "authors"))
        draft.source = Feed(
            id=id,
            title=text_of_html(title),
            links=links,
            authors=tuple(each for each in people if each.name or each.email),
        )


def read_author(author: Fields, scope: Scope) -> Author:
    return Author(
        name=text_at(author, "name"),
        email=text_at(author, "email"),
        uri=scope.resolve(text_at(author, "href")),
    )


def text_at(fields: Fields, name: str) -> str:
    """A text field; "" if it is missing.

    `dict.get` is used because feedparser makes up some missing fields, with a warning.
    Character references may give lone surrogates, which cannot be encoded; `_sound`
    replaces them.
    """
    value = dict.get(fields, name) if isinstance(fields, dict) else None
    return _sound(value) if isinstance(value, str) else ""


def mappings_at(fields: Fields, name: str) -> Iterator[Fields]:
    values = dict.get(fields, name) if isinstance(fields, dict) else None
    if isinstance(values, Iterable):
        yield from (each for each in values if isinstance(each, Mapping))


def base_at(fields: Fields) -> str:
    """The ``xml:base`` inside an entry, which feedparser gives with its texts; "" if
    none.
    """
    details = (_mapping(fields, name) for name in ("title_detail", "summary_detail"))
    return next((base for each in details if (base := text_at(each, "base"))), "")


def _mapping(fields: Fields, name: str) -> Fields:
    value = dict.get(fields, name) if isinstance(fields, dict) else None
    return value if isinstance(value, Mapping) else {}


def _plain(value: object) -> Json:
    """Texts, attributes, and lists of these; other values become None."""
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, list):
        parts: list[Json] = [part for each in value if (part := _plain(each))]
        return parts[0] if len(parts) == 1 else parts
    if isinstance(value, Mapping):
        texts = {
            usual_name(k): _sound(v) for k, v in value.items() if isinstance(v, str)
        }
        kept: dict[str, Json] = {name: text for name, text in texts.items() if text}
        return kept
    return None


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode().strip()


_GUID: Final = re.compile(
    rb"<guid(?:\s[^<>]{0,200})?>\s{0,40}(?:<!\[CDATA\[\s{0,40})?([^<>\[\]]{1,500})",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(rb"<item[\s>]", re.IGNORECASE)
_CHANNEL: Final = re.compile(
    rb"<channel\s[^<>]{0,500}?\brdf:about\s*=\s*[\"']([^\"'<>]{1,500})", re.IGNORECASE
)
_ORIGIN: Final = re.compile(r"[a-zA-Z]+://[^/?#]+")


def relative_guids(body: bytes) -> frozenset[str]:
    """The relative guids of a UTF-8 document; none if it has no ``xml:base``."""
    if b"xml:base" not in body:
        return frozenset()
    found = {match[1].decode("utf-8", "replace") for match in _GUID.finditer(body)}
    guids = {unescape(each).strip() for each in found}
    return frozenset(each for each in guids if each and not is_absolute(each))


def as_written(id: str, base: str, guids: frozenset[str]) -> str:
    """The guid that feedparser resolved to this id, if it was relative; else the id."""
    origin = _ORIGIN.match(base)
    for beginning in (base[: base.rfind("/") + 1], origin[0] if origin else ""):
        rest = id[len(beginning) :]
        if beginning and id.startswith(beginning) and rest in guids:
            return rest
    return id


def channel_id(body: bytes) -> str:
    """The ``rdf:about`` of RDF's channel; "" if there is none."""
    found = _CHANNEL.search(body)
    return unescape(found[1].decode("utf-8", "replace")).strip() if found else ""


def first_guids(body: bytes, count: int) -> tuple[str, ...]:
    """The first guid of each of ``count`` items of a UTF-8 document.

    "" for an item with fewer than two guids, and for all items if another number of
    them is found.
    """
    starts = [match.start() for match in _ITEM.finditer(body)]
    if len(starts) != count:
        return ("",) * count
    ends = (*starts[1:], len(body))
    return tuple(map(partial(_first_of_several, body), starts, ends))


def _first_of_several(body: bytes, start: int, end: int) -> str:
    guids = [*islice(_GUID.finditer(body, start, end), 2)]
    if len(guids) < 2:
        return ""
    return unescape(guids[0][1].decode("utf-8", "replace")).strip()


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
    document: OpenedDocument, context: ParseContext
) -> ParsedFeed | None:
    """Read a UTF-8 document; ``None`` if feedparser finds no feed in it.

    feedparser is given only a stream: if bytes or a text happened to name a file, it
    would open that file.
    """
    try:
        result = feedparser.parse(
            BytesIO(usual_declarations(_without_declaration(document.body))),
            response_headers=_HEADERS,
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except Exception as error:
        # feedparser may raise any exception, including RecursionError.
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
    return document.note_reading(parsed, "feedparser")


def _without_declaration(body: bytes) -> bytes:
    """The body without the XML declaration.

    feedparser is told the encoding. It would otherwise look for it in a first line that
    begins with ``<?``, in time cubic in the line's length.
    """
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
    """Correct the id: in RDF it is an address, which is resolved; in other RSS it is
    not.
    """
    if format != FeedFormat.RDF:
        item.id = as_written(item.id, base, guids)
    elif item.id and base and not is_absolute(item.id):
        item.id = resolve(item.id, base)


def _complete_item(item: EntryDraft, fields: Fields) -> None:
    """Complete an item of RSS: its id may be its page.

    A date of Dublin Core is the date of publication.
    """
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
    """Merge an author who has only an address with one who has only a name."""
    names = [author.name for author in authors if author.name]
    addresses = [author for author in authors if author.email]
    if len(authors) == 2 and len(names) == len(addresses) == 1:
        return [replace(addresses[0], name=names[0])]
    return authors


def _read_elsewhere(entry: EntryDraft, fields: Fields, scope: Scope) -> None:
    """Read Atom content that is not in the document (``src``)."""
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
