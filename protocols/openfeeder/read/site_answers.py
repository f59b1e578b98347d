"""Read answers of OpenFeeder sites leniently.

A document that is invalid as a whole raises `InvalidDocument`, with a JSON pointer and
what was expected there. An invalid item is left out and noted; an invalid optional
value is left out. Broken JSON is repaired as for feeds.

Both bounds of a differential answer (3.4) are inclusive. Some servers take the time of
an answer only after they have looked for changes, so that changes in between are in no
answer. Therefore the next request begins a little earlier; items that come twice are
recognized by their content.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final

import orjson
from msgspec import Struct

from protocols.feeds.context import ParseContext
from protocols.feeds.document import DocumentKind, open_document
from protocols.feeds.extensions import Json
from protocols.feeds.jsonvalues import load_json, read_time, string_of
from protocols.feeds.limits import MAX_ENTRIES
from protocols.feeds.repair import repair_encoding, repair_json
from protocols.languages import language_tag
from protocols.model import Feed, Link
from protocols.protocol_errors import InvalidDocument, MalformedDocument
from protocols.text import collapse
from protocols.urls import host_name, is_web_url, resolve

LARGEST_MENDED: Final = 512 * 1024
"""Bytes. Repairing a larger document may take long, and others wait for the thread."""
_NOWHERE: Final = ParseContext(url="", now=datetime(1970, 1, 1, tzinfo=UTC))


def load_loosely(body: bytes) -> Json:
    """Decode JSON in any encoding, with repairs of common mistakes.

    Raises a `FeedError`: `NotAFeed` for a page or anything else that is not JSON,
    `MalformedDocument` if it cannot be repaired or is too large for that.
    """
    document = open_document(body, _NOWHERE)
    if document.kind != DocumentKind.JSON:
        raise InvalidDocument("", "expected JSON")
    try:
        return load_json(document.body)
    except MalformedDocument as error:
        if len(document.body) > LARGEST_MENDED:
            raise document.locate(error) from None
        mended = repair_json(repair_encoding(document))
        if mended is document:
            raise document.locate(error) from None
    return load_json(mended.body)


class DiscoveryDocument(Struct, frozen=True, kw_only=True, gc=False):
    """``/.well-known/openfeeder.json`` (2.1). URLs are absolute."""

    endpoint: str
    site_url: str
    name: str = ""
    language: str = ""
    description: str = ""


class ListedItem(Struct, frozen=True, kw_only=True, gc=False):
    """An item of an index, or of a differential answer.

    ``reference`` is its URL as the site gives it, which is sent as ``?url=``; ``url``
    is the absolute one. ``digest`` is a hash of the whole item.
    """

    reference: str
    url: str
    digest: int
    title: str = ""
    summary: str = ""
    author: str = ""
    published: datetime | None = None
    updated: datetime | None = None


class ListedIndex(Struct, frozen=True, kw_only=True, gc=False):
    """One page of the index (3.3). ``is_whole``: no item had to be left out.

    ``total_pages`` is 0 if it is missing or invalid.
    """

    items: tuple[ListedItem, ...]
    total_pages: int
    is_whole: bool
    problems: tuple[str, ...] = ()


class ListedTombstone(Struct, frozen=True, kw_only=True, gc=False):
    reference: str
    url: str
    at: datetime | None


class ListedChanges(Struct, frozen=True, kw_only=True, gc=False):
    """A differential answer (3.4): ``changed`` are the items added and updated.

    ``cursor`` is the value for the next request's ``since``; "" if there is none.
    """

    changed: tuple[ListedItem, ...]
    deleted: tuple[ListedTombstone, ...]
    cursor: str
    tracks_deletions: bool
    is_whole: bool
    problems: tuple[str, ...] = ()


class ContentChunk(Struct, frozen=True, kw_only=True, gc=False):
    text: str
    type: str


class ContentPage(Struct, frozen=True, kw_only=True, gc=False):
    """The content of one page (3.2). ``missing`` is the number of chunks not sent."""

    url: str
    chunks: tuple[ContentChunk, ...]
    missing: int
    title: str = ""
    author: str = ""
    language: str = ""
    summary: str = ""
    published: datetime | None = None
    updated: datetime | None = None


Members = dict[str, Json]

MOST_CHUNKS: Final = 1_000
MOST_PROBLEMS: Final = 10
_VERSION: Final = re.compile(r"1(?:\.\d+){1,2}\Z", re.ASCII)
_LARGEST: Final = 1_000_000


def is_discovery(document: Members) -> bool:
    """Whether the document is meant to be a discovery document, valid or not."""
    return (
        isinstance(document.get("version"), str)
        and "site" in document
        and "feed" in document
        and not isinstance(document["feed"], list)
    )


def is_content(document: Members) -> bool:
    """Whether the document is an answer of the content endpoint."""
    schema = document.get("schema")
    is_schema = isinstance(schema, str) and schema.startswith("openfeeder/")
    return is_schema or "openfeeder_version" in document


def read_front(body: bytes, url: str) -> DiscoveryDocument:
    """Read the document that a site was registered by: discovery document or endpoint.

    Raises a `FeedError`.
    """
    document = _load(body)
    if is_content(document):
        return DiscoveryDocument(endpoint=url, site_url=resolve("/", url))
    return read_discovery(document, url)


def read_discovery(document: Members, url: str) -> DiscoveryDocument:
    """Read a discovery document from ``url``. Raises `InvalidDocument`.

    The endpoint is relative to ``url``, not to the URL that the site gives for itself,
    which may differ.
    """
    version = document.get("version")
    if not isinstance(version, str) or not _VERSION.match(version):
        raise InvalidDocument("/version", 'expected "1.0"')
    site, feed = document.get("site"), document.get("feed")
    if not isinstance(site, dict):
        raise InvalidDocument("/site", "expected an object")
    if not isinstance(feed, dict):
        raise InvalidDocument("/feed", "expected an object")
    endpoint = feed.get("endpoint")
    if not isinstance(endpoint, str) or not endpoint.strip():
        raise InvalidDocument("/feed/endpoint", "expected a URL")
    absolute = resolve(endpoint.strip(), url).partition("#")[0]
    if not _is_address(absolute):
        raise InvalidDocument("/feed/endpoint", "expected an http or https URL")
    address = site.get("url")
    named = resolve(address.strip(), url) if isinstance(address, str) else ""
    return DiscoveryDocument(
        endpoint=absolute,
        site_url=named if _is_address(named) else resolve("/", url),
        name=collapse(string_of(site.get("name"))),
        language=language_tag(string_of(site.get("language"))),
        description=collapse(string_of(site.get("description"))),
    )


def read_listing(body: bytes, site_url: str) -> ListedIndex | ListedChanges:
    """Read the answer to a request with or without ``since``. Raises a `FeedError`.

    Servers without differential answers always send an index.
    """
    document = _load(body)
    if isinstance(document.get("sync"), dict):
        return _read_changes(document, site_url)
    return _read_index(document, site_url)


def read_page(body: bytes, site_url: str) -> ContentPage:
    """Read the content of one page. Raises a `FeedError`."""
    document = _load(body)
    chunks = document.get("chunks")
    if not isinstance(chunks, list):
        raise InvalidDocument("/chunks", "expected an array")
    read = tuple(
        ContentChunk(text=text, type=string_of(each.get("type")))
        for each in chunks[:MOST_CHUNKS]
        if isinstance(each, dict) and (text := string_of(each.get("text")))
    )
    meta = document.get("meta")
    total = _number(meta.get("total_chunks")) if isinstance(meta, dict) else 0
    reference = string_of(document.get("url"))
    return ContentPage(
        url=_url(reference, site_url),
        chunks=read,
        missing=max(0, max(total, len(chunks)) - min(len(chunks), MOST_CHUNKS)),
        title=collapse(string_of(document.get("title"))),
        author=collapse(string_of(document.get("author"))),
        language=language_tag(string_of(document.get("language"))),
        summary=collapse(string_of(document.get("summary"))),
        published=read_time(document.get("published"))[0],
        updated=read_time(document.get("updated"))[0],
    )


def _load(body: bytes) -> Members:
    document = load_loosely(body)
    if not isinstance(document, dict):
        raise InvalidDocument("", "expected an object")
    return document


def _read_index(document: Members, site_url: str) -> ListedIndex:
    items = document.get("items")
    if not isinstance(items, list):
        raise InvalidDocument("/items", "expected an array")
    problems: list[str] = []
    read = _read_items("/items", items, site_url, problems)
    return ListedIndex(
        items=read,
        total_pages=_number(document.get("total_pages")),
        is_whole=not problems,
        problems=tuple(problems[:MOST_PROBLEMS]),
    )


def _read_changes(document: Members, site_url: str) -> ListedChanges:
    sync = document["sync"]
    assert isinstance(sync, dict)  # noqa: S101 - the caller has looked
    problems: list[str] = []
    changed: dict[str, ListedItem] = {}
    for name in ("added", "updated"):
        items = document.get(name, [])
        if not isinstance(items, list):
            raise InvalidDocument(f"/{name}", "expected an array")
        for item in _read_items(f"/{name}", items, site_url, problems):
            changed[item.url] = item
    deleted = document.get("deleted", [])
    if not isinstance(deleted, list):
        raise InvalidDocument("/deleted", "expected an array")
    return ListedChanges(
        changed=tuple(changed.values()),
        deleted=_read_tombstones(deleted, site_url, problems),
        cursor=cursor_after(
            string_of(sync.get("sync_token")), string_of(sync.get("as_of"))
        ),
        tracks_deletions=sync.get("deleted_tracking") is not False,
        is_whole=not problems,
        problems=tuple(problems[:MOST_PROBLEMS]),
    )


def _read_items(
    place: str, items: list[Json], site_url: str, problems: list[str]
) -> tuple[ListedItem, ...]:
    read = []
    if len(items) > MAX_ENTRIES:
        problems.append(f"{place}: {len(items)} items: the first {MAX_ENTRIES} count")
    for number, item in enumerate(items[:MAX_ENTRIES]):
        if not isinstance(item, dict):
            problems.append(f"{place}/{number}: expected an object")
            continue
        reference = item.get("url")
        url = _url(reference, site_url)
        if not isinstance(reference, str) or not url:
            problems.append(f"{place}/{number}/url: expected a URL")
            continue
        read.append(_listed(item, reference.strip(), url))
    return tuple(read)


def _listed(item: Members, reference: str, url: str) -> ListedItem:
    return ListedItem(
        reference=reference,
        url=url,
        digest=_digest(item),
        title=collapse(string_of(item.get("title"))),
        summary=collapse(string_of(item.get("summary"))),
        author=collapse(string_of(item.get("author"))),
        published=read_time(item.get("published"))[0],
        updated=read_time(item.get("updated"))[0],
    )


def _read_tombstones(
    deleted: list[Json], site_url: str, problems: list[str]
) -> tuple[ListedTombstone, ...]:
    """Read the deleted items. Some servers send bare URLs."""
    read = []
    for number, each in enumerate(deleted[:MAX_ENTRIES]):
        reference = each.get("url") if isinstance(each, dict) else each
        url = _url(reference, site_url)
        if not isinstance(reference, str) or not url:
            problems.append(f"/deleted/{number}/url: expected a URL")
            continue
        at = read_time(each.get("deleted_at"))[0] if isinstance(each, dict) else None
        read.append(ListedTombstone(reference=reference.strip(), url=url, at=at))
    return tuple(read)


def _url(reference: Json, site_url: str) -> str:
    """The absolute web URL of a reference; "" if there is none.

    A fragment is part of it: on some sites the entries are places in one page.
    """
    if not isinstance(reference, str) or not reference.strip():
        return ""
    url = resolve(reference.strip(), site_url)
    return url if _is_address(url) else ""


def _is_address(url: str) -> bool:
    return is_web_url(url) and bool(host_name(url))


def _number(value: Json) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(max(0, value), _LARGEST) if is_number else 0  # type: ignore[type-var,return-value]


def _digest(item: Members) -> int:
    """A hash of 63 bits of all of an item's members, in any order; 0 if nested too
    deeply.
    """
    try:
        written = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # nested too deeply to be encoded
        return 0
    digest = blake2b(written, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


OVERLAP: Final = timedelta(seconds=5)
LONGEST_CURSOR: Final = 2_000
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + OVERLAP


def cursor_after(token: str, as_of: str) -> str:
    """The ``since`` of the next request; "" if neither token nor time is usable.

    ``sync_token = base64( JSON.stringify({ "t": "<as_of ISO timestamp>" }) )``: the
    time in a token of this form is moved back; any other token is returned unchanged.
    """
    named = _time_of_token(token)
    if named is not None:
        return token_of(_earlier(named))
    if token and len(token) <= LONGEST_CURSOR:
        return token
    moment, has_zone = read_time(as_of)
    return time_of(_earlier(moment)) if moment and has_zone else ""


def _earlier(moment: datetime) -> datetime:
    """Move a time back.

    Servers without a time send the year 1, before which none exists.
    """
    return max(moment, _FIRST) - OVERLAP


def token_of(moment: datetime) -> str:
    return base64.b64encode(orjson.dumps({"t": time_of(moment)})).decode()


def time_of(moment: datetime) -> str:
    """A time with ``Z``: careless servers lose a ``+`` in a query, and take a time
    without a zone for local time.
    """
    return f"{moment.isoformat('T', 'milliseconds')[:23]}Z"


def _time_of_token(token: str) -> datetime | None:
    """The time in a token, in standard or URL-safe Base64, padded or not; None if
    none.
    """
    plain = token.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        padded = plain + "=" * (-len(plain) % 4)
        document = orjson.loads(base64.b64decode(padded, validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(document, dict) or set(document) != {"t"}:
        return None
    moment, has_zone = read_time(document["t"])
    return moment if has_zone else None


def head_of(discovery: DiscoveryDocument) -> Feed:
    return Feed(
        title=discovery.name,
        subtitle=discovery.description,
        language=discovery.language,
        links=(Link(href=discovery.site_url),),
    )
