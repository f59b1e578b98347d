"""What each reader of bytes from outside promises, whatever these bytes are.

It gives its value, or raises errors of its own; and whatever it gives can be written
again: to the database, to subscribers in both formats, to the next process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zlib import crc32

import orjson
from lxml import etree
from msgspec import structs

from hub.core.news.part_changes import resource_hash
from hub.http.network_errors import BadAnswer, NetworkError
from hub.http.response_parser import ResponseParser
from hub.ingest.parse_worker import read_document
from hub.ingest.worker_frames import Task
from protocols.feeds import ParseContext, parse
from protocols.feeds.feed_links import discover, discover_in_header
from protocols.feeds.known_entries import KnownSlice, pack_known
from protocols.feeds.parse_explanation import explain
from protocols.html import disarm, sanitize
from protocols.http import parse_link_header, read_robots
from protocols.http.headers import header_value, parse_reset
from protocols.identity import fingerprint
from protocols.legacy_pings import Fault, read_call, read_ping, render_fault
from protocols.live.message_decoding import read_client_message, read_server_message
from protocols.model import Feed, FeedFormat, Notification, ParsedFeed, Status
from protocols.openfeeder.read.site_answers import read_front, read_listing, read_page
from protocols.openfeeder.read.site_entries import content_of as openfeeder_content
from protocols.openfeeder.read.site_entries import entry_of, is_of
from protocols.openfeeder.read.site_urls import discovery_urls, urls_in_llms
from protocols.opml import read_outlines
from protocols.protocol_errors import FeedError, InvalidValue
from protocols.scp.read.collection_entries import entry_of_page
from protocols.scp.read.collection_heads import HeadRules
from protocols.scp.read.collection_reader import CollectionReader
from protocols.scp.read.sitemap_reader import read_sitemap, sitemaps_of_robots
from protocols.scp.read.unpacking import SizeLimits
from protocols.superfeedr.atom_notifications import render_atom
from protocols.superfeedr.json_notifications import render_json
from protocols.superfeedr.parameters import read_body, read_query
from protocols.track import parse_query, subject_of
from protocols.websub.subscribing import read_question
from protocols.websub.websub_parameters import read_form, read_request
from protocols.xml_syntax import SAFE

DATA: Final = Path(__file__).parent.parent / "data"
KEPT: Final = DATA / "fuzzing"
URL: Final = "https://site.example/feeds/main.xml"
NOW: Final = datetime(2026, 5, 1, tzinfo=UTC)
_CONTENT_TYPES: Final = (
    "",
    "text/xml; charset=utf-8",
    "application/rss+xml; charset=utf-16",
    "text/html; charset=windows-1251",
    "application/json",
)
_SITE: Final = "https://site.example/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """``read`` gives what can be compared and stored, or raises one of ``errors``.

    ``sources`` are patterns of documents under ``tests/data`` to begin with, beside
    those that are kept for it.
    """

    name: str
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = ()
    sources: tuple[str, ...] = ()

    def documents(self) -> dict[str, bytes]:
        """By their place under ``tests/data``."""
        patterns = (*self.sources, f"fuzzing/{self.name}/*")
        paths = (path for each in patterns for path in sorted(DATA.glob(each)))
        return {str(path.relative_to(DATA)): path.read_bytes() for path in paths}


def _feed(body: bytes) -> object:
    """As a worker reads it, in any claimed type; then as it is told, and once more
    when all its entries are known."""
    type = _CONTENT_TYPES[crc32(body) % len(_CONTENT_TYPES)]
    context = ParseContext(url=URL, content_type=type, now=NOW, known=b"")
    parsed = read_document(Task(body, context))
    return (
        _told(parsed),
        resource_hash(body),
        explain(body, type, parsed),
        _told_again(parsed, body, context),
    )


def _told_again(parsed: ParsedFeed, body: bytes, context: ParseContext) -> object:
    outline = parsed.outline
    if outline is None or len(outline.slices) != len(parsed.entries):
        return None
    pairs = zip(outline.slices, parsed.entries, strict=True)
    known = [KnownSlice(each, fingerprint(entry.key), False) for each, entry in pairs]
    packed = pack_known(outline.setting, known, region=outline.region, count=len(known))
    try:
        return _told(parse(body, replace(context, known=packed)))
    except FeedError as error:
        return str(error)


def _told(parsed: ParsedFeed) -> object:
    """Raises `ValueError` or `lxml.etree.XMLSyntaxError` for what nobody could read."""
    told = Notification(
        topic=URL,
        hub=_SITE,
        status=Status(title=parsed.feed.title),
        feed=parsed.feed,
        entries=parsed.entries,
        deletions=parsed.deletions,
    )
    as_json, as_atom = render_json(told), render_atom(told)
    orjson.loads(as_json)
    etree.fromstring(as_atom, etree.XMLParser(**SAFE | {"huge_tree": True}))
    for entry in parsed.entries:
        subject_of(entry, parsed.feed, feed_url=URL)
    return parsed, as_json, as_atom


def _cleaned(body: bytes) -> object:
    parsed = read_document(Task(body, ParseContext(url=URL, now=NOW)))
    return _told(
        structs.replace(
            parsed, entries=tuple(map(sanitize, parsed.entries)), outline=None
        )
    ), tuple(map(disarm, parsed.entries))


def _part(body: bytes) -> object:
    """The path is the first line."""
    path, _, document = body.partition(b"\n")
    selector = path.decode("utf-8", "replace")[:500] or "$"
    return _told(parse(document, ParseContext(url=URL, now=NOW, selector=selector)))


def _page(body: bytes) -> object:
    named = discovery_urls(_SITE, "", body + b"<!-- openfeeder -->")
    return discover(body, _SITE), named


def _header(body: bytes) -> object:
    """Of no more bytes than one may have."""
    value = header_value(body[:8_000].decode("utf-8", "surrogateescape"))
    found = discover_in_header(value, _SITE), discovery_urls(_SITE, value, b"")
    return found, parse_link_header(value, _SITE), parse_reset(value, body, NOW)


def _outlines(body: bytes) -> object:
    return read_outlines(body, _SITE)


def _sitemap(body: bytes) -> object:
    return read_sitemap(body, _SITE, largest=1 << 20)


def _robots(body: bytes) -> object:
    rules = read_robots(body, "Fanfare")
    paths = ("/", "/a/b.xml?c=d", "/" + "a" * 1_000, "/%2f%zz/é", "")
    return [rules.allows(path) for path in paths], sitemaps_of_robots(body, _SITE)


def _llms(body: bytes) -> object:
    return urls_in_llms(body, _SITE)


def _collection(body: bytes) -> object:
    """What comes of it does not depend on the pieces in which it comes."""
    whole, pieces = _collected([body]), _collected(_cut(body))
    assert whole == pieces
    return whole


def _collected(pieces: Sequence[bytes]) -> object:
    reader = CollectionReader(HeadRules(now=NOW), SizeLimits(output=1 << 22))
    try:
        pages = [page for piece in pieces for page in reader.feed(piece)]
        pages += reader.finish()
    except FeedError as error:
        return str(error)
    entries = tuple(entry_of_page(page, reader.warnings) for page in pages)
    told = ParsedFeed(format=FeedFormat.SCP, feed=Feed(), entries=entries)
    return reader.head, reader.warnings.lines, reader.lines, _told(told)


def _cut(body: bytes) -> list[bytes]:
    step = 1 + crc32(body) % 5_000
    return [body[start : start + step] for start in range(0, len(body), step)]


def _front(body: bytes) -> object:
    return read_front(body, URL)


def _listing(body: bytes) -> object:
    return read_listing(body, _SITE)


def _openfeeder_page(body: bytes) -> object:
    """As an entry, with itself for the page that it lists."""
    page = read_page(body, _SITE)
    listed = read_listing(b'{"items":[{"url":"/a","title":"A"}]}', _SITE)
    (each,) = listed.items  # type: ignore[union-attr]
    entry = entry_of(each, page, "en")
    return page, is_of(page, each), openfeeder_content(entry, page), entry


def _call(body: bytes) -> object:
    try:
        return read_ping(read_call(body))
    except Fault as fault:
        etree.fromstring(render_fault(fault))
        raise


def _form(body: bytes) -> object:
    """As the open hub reads it, and a subscriber, and Superfeedr's door."""
    head, _, rest = body.partition(b"\n")
    type = head.decode("latin-1")[:200]
    readings: list[object] = [str(crc32(body))]
    for read in (
        lambda: read_request(read_form(body)),
        lambda: read_question(read_form(body)),
        lambda: read_body(type, rest),
        lambda: read_query(body.decode("utf-8", "replace")),
    ):
        try:
            readings.append(read())
        except InvalidValue as error:
            readings.append(str(error))
    return readings


def _message(body: bytes) -> object:
    readings: list[object] = []
    for read in (read_client_message, read_server_message):
        try:
            readings.append(read(body))
        except InvalidValue as error:
            readings.append(str(error))
    return readings


def _query(body: bytes) -> object:
    return str(parse_query(body.decode("utf-8", "replace")[:1_000]))


def _answer(body: bytes) -> object:
    """An answer of a server, whole and in pieces; over when the connection is. How much
    of a damaged body could be seen before it broke is a matter of pieces."""
    whole, pieces = _received([body]), _received(_cut(body))
    assert whole == pieces or BadAnswer.__name__ in (whole[0], pieces[0])
    return whole


def _received(pieces: Sequence[bytes]) -> tuple[object, ...]:
    reception = ResponseParser()
    reception.expect(cut=1_000, limit=1 << 20)
    try:
        if not any(map(reception.feed, pieces)):
            reception.end()
    except NetworkError as error:
        return type(error).__name__, error.reason, error.status
    headers = [
        (name, value.encode("utf-8", "surrogateescape"))
        for name, value in reception.headers.items()
    ]
    return reception.status, headers, reception.body


CONTRACTS: Final[Sequence[Contract]] = (
    Contract(
        name="feed",
        read=_feed,
        errors=(FeedError,),
        sources=(
            "rss/*.xml",
            "rdf/*.xml",
            "atom/*.xml",
            "jsonfeed/*.feed.json",
            "creator/*.feed.json",
            "openfeeder/discovery.document.json",
            "scp/complete.sitemap.xml",
        ),
    ),
    Contract(
        name="cleaned",
        read=_cleaned,
        errors=(FeedError,),
        sources=("rss/markup.xml", "atom/complete.xml", "fuzzing/page/*"),
    ),
    Contract(name="part", read=_part, errors=(FeedError,)),
    Contract(name="page", read=_page),
    Contract(name="header", read=_header),
    Contract(
        name="outlines", read=_outlines, errors=(FeedError,), sources=("opml/*.opml",)
    ),
    Contract(
        name="sitemap",
        read=_sitemap,
        errors=(FeedError,),
        sources=("scp/complete.sitemap.xml",),
    ),
    Contract(name="robots", read=_robots),
    Contract(name="llms", read=_llms),
    Contract(name="collection", read=_collection, sources=("scp/complete.scp",)),
    Contract(
        name="front",
        read=_front,
        errors=(FeedError,),
        sources=("openfeeder/discovery.document.json",),
    ),
    Contract(
        name="listing",
        read=_listing,
        errors=(FeedError,),
        sources=("openfeeder/index.document.json", "openfeeder/changes.document.json"),
    ),
    Contract(
        name="openfeeder-page",
        read=_openfeeder_page,
        errors=(FeedError,),
        sources=("openfeeder/page.document.json",),
    ),
    Contract(name="call", read=_call, errors=(Fault,)),
    Contract(name="form", read=_form),
    Contract(name="message", read=_message),
    Contract(name="query", read=_query, errors=(InvalidValue,)),
    Contract(name="answer", read=_answer),
)


def contracts_named(names: Sequence[str]) -> Iterator[Contract]:
    """All of them for no name. Raises `KeyError`."""
    by_name = {each.name: each for each in CONTRACTS}
    return (by_name[name] for name in names or by_name)
