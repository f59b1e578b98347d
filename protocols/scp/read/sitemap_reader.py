"""Read sitemaps, SCP's extensions of them (SCP, Appendix A), and robots.txt.

An invalid attribute is noted by its name; its element is left out only if it is
meaningless without it. A site is registered by a sitemap with SCP's elements.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from itertools import islice
from typing import Any, Final
from urllib.parse import urljoin

from lxml import etree

from protocols.model import Feed, FeedFormat, Link, ParsedFeed
from protocols.protocol_errors import LimitExceeded, MalformedDocument, NotAFeed
from protocols.scp.collection import EXTENSION, CollectionType
from protocols.scp.read.collection_heads import read_moment
from protocols.scp.read.unpacking import GZIP, SizeLimits, Unpacker
from protocols.text import whole_number
from protocols.urls import host_name, is_web_url, resolve
from protocols.xml_syntax import SAFE

_BEGINNING = 4_096
_EXTENSION = EXTENSION.encode()


def site_of_sitemap(body: bytes, url: str) -> ParsedFeed | None:
    """A feed without entries for a sitemap with SCP's elements; None for other
    documents.

    Raises a `FeedError` if such a sitemap cannot be read.
    """
    is_packed = body.startswith(GZIP)
    beginning = _unpacked_beginning(body) if is_packed else body[:_BEGINNING]
    if b"urlset" not in beginning or _EXTENSION not in beginning:
        return None
    sitemap = read_sitemap(body, url)
    if is_packed and not sitemap.files:
        return None
    return ParsedFeed(format=FeedFormat.SCP, feed=head_of_site(url))


def _unpacked_beginning(body: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(body, _BEGINNING)
    except zlib.error:
        return b""


def head_of_site(url: str) -> Feed:
    """The head of the feed that a site is. A sitemap tells only the site's address."""
    home = urljoin(url, "/")
    return Feed(title=host_name(url), links=(Link(href=home),))


MOST_SITEMAPS: Final = 50
_MOST_LOOKED_AT: Final = 500
LARGEST_ROBOTS: Final = 512 * 1024
"""RFC 9309, 2.5: crawlers read at least 500 kibibytes."""
_SITEMAP = re.compile(r"[ \t]*sitemap[ \t]*:[ \t]*([^\s#]\S*)", re.IGNORECASE)


def sitemaps_of_robots(body: bytes, url: str) -> tuple[str, ...]:
    """The URLs of ``Sitemap:`` lines, each once, in order; ``url`` is the
    robots.txt's.
    """
    text = body[:LARGEST_ROBOTS].decode("utf-8-sig", "replace")
    matches = filter(None, map(_SITEMAP.match, text.splitlines()))
    named = (resolve(match[1], url) for match in islice(matches, _MOST_LOOKED_AT))
    return tuple(dict.fromkeys(filter(is_web_url, named)))[:MOST_SITEMAPS]


LARGEST: Final = 16 * 1024 * 1024
"""Bytes when unpacked, about the limit of other documents; sitemaps.org allows 50
MB.
"""
MOST_ELEMENTS: Final = 500_000
"""Of any kind; sitemaps.org: "no more than 50,000 URLs", of five elements each."""
MOST_EXTENSIONS: Final = 5_000
"""SCP's elements, valid or not."""
MOST_FILES: Final = 1_000
MOST_SECTIONS: Final = 200
MOST_CHILDREN: Final = 1_000
_MOST_PROBLEMS: Final = 50
_SECTION = re.compile("[a-zA-Z0-9_-]{1,200}")
_FREQUENCIES: Final = frozenset({"hourly", "daily", "weekly", "monthly"})
_SCP = f"{{{EXTENSION}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSection:
    """``pages`` is their approximate number, None if it is not given."""

    name: str
    frequency: str = ""
    pages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFile:
    """A collection that a sitemap names: a snapshot, or a delta, which has ``since``.

    ``size`` is in bytes as sent. None stands for a missing or invalid value.
    """

    section: str
    url: str
    generated: datetime
    since: datetime | None = None
    expires: datetime | None = None
    pages: int | None = None
    size: int | None = None

    @property
    def type(self) -> CollectionType:
        is_snapshot = self.since is None
        return CollectionType.SNAPSHOT if is_snapshot else CollectionType.DELTA


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteMap:
    """What one sitemap says about SCP, or which other sitemaps an index names."""

    version: str = ""
    sections: tuple[SiteSection, ...] = ()
    files: tuple[SiteFile, ...] = ()
    children: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read_sitemap(body: bytes, url: str, *, largest: int = LARGEST) -> SiteMap:
    """Read a sitemap or an index of sitemaps, packed or not.

    ``url`` is its own, ``largest`` the most bytes it may have when unpacked. Raises
    `MalformedDocument`, `NotAFeed` for other documents, and `LimitExceeded`.
    """
    reading = _Reading(url)
    root = ""
    try:
        for element in _elements(_unpacked(body, largest)):
            reading.read(element)
            root = element.tag  # the root element ends last
    except etree.XMLSyntaxError as error:
        raise MalformedDocument(error.msg or "no XML", error.lineno) from None
    if _local_name(root) not in ("urlset", "sitemapindex"):
        raise NotAFeed(f"<{_local_name(root)[:40]}>")
    return reading.finish()


def _local_name(tag: str) -> str:
    """Needed because `lxml.etree.QName` raises for a namespace with braces."""
    return tag.rpartition("}")[2]


def _unpacked(body: bytes, largest: int) -> bytes:
    unpacker = Unpacker(SizeLimits(wire=largest, output=largest))
    parts = [*unpacker.feed(body), *unpacker.finish()]
    unpacked = b"".join(parts)
    # sitemaps.org: "must be UTF-8 encoded"; another encoding could hide a document
    # type.
    if b"\0" in unpacked:
        raise MalformedDocument("is not encoded in UTF-8")
    if b"<!DOCTYPE" in unpacked or b"<!ENTITY" in unpacked:
        raise MalformedDocument("has a document type")
    return unpacked


def _elements(body: bytes) -> Iterator[Any]:
    """Yield each element when it ends, then free it, so that a long list takes no
    memory.
    """
    events = etree.iterparse(BytesIO(body), events=("end",), **SAFE)
    for number, (_, element) in enumerate(events):
        if number >= MOST_ELEMENTS:
            raise LimitExceeded("the number of elements", MOST_ELEMENTS)
        yield element
        parent = element.getparent()
        if parent is None or _local_name(parent.tag) in ("url", "sitemap"):
            continue
        element.clear()
        while element.getprevious() is not None:
            del parent[0]


@dataclass(slots=True)
class _Reading:
    url: str
    version: str = ""
    sections: dict[str, SiteSection] = field(default_factory=dict)
    files: list[SiteFile] = field(default_factory=list)
    children: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    extensions: int = 0  # elements of SCP
    met: int = 0  # collections and deltas among them

    def read(self, element: Any) -> None:
        if element.tag.startswith(_SCP):
            self.extensions += 1
            if self.extensions > MOST_EXTENSIONS:
                raise LimitExceeded("the number of SCP's elements", MOST_EXTENSIONS)
            self._read_extension(element, element.tag[len(_SCP) :])
        elif element.tag.endswith("}sitemap") or element.tag == "sitemap":
            self._read_child(element)

    def finish(self) -> SiteMap:
        return SiteMap(
            version=self.version,
            sections=tuple(self.sections.values()),
            files=tuple(self.files),
            children=tuple(self.children),
            problems=tuple(self.problems),
        )

    def _read_child(self, element: Any) -> None:
        for part in element:
            if _local_name(part.tag) != "loc":
                continue
            address = resolve(part.text, self.url)
            if is_web_url(address) and len(self.children) < MOST_CHILDREN:
                self.children[address] = None

    def _read_extension(self, element: Any, name: str) -> None:
        if name == "version":
            self.version = (element.text or "").strip()[:20]
        elif name == "section":
            self._read_section(element)
        elif name in ("collection", "delta"):
            if len(self.files) >= MOST_FILES:
                raise LimitExceeded("the number of collections", MOST_FILES)
            self.met += 1
            self._read_file(_Attributes(element, f"{name} {self.met}", self))

    def _read_section(self, element: Any) -> None:
        if len(self.sections) >= MOST_SECTIONS:
            raise LimitExceeded("the number of sections", MOST_SECTIONS)
        found = _Attributes(element, f"section {len(self.sections) + 1}", self)
        if not (name := found.section("name")):
            return
        frequency = found.text("updateFreq")
        if frequency not in _FREQUENCIES:
            found.note("updateFreq", "hourly, daily, weekly or monthly")
            frequency = ""
        pages = found.number("pages", prefix="~")
        self.sections[name] = SiteSection(name=name, frequency=frequency, pages=pages)

    def _read_file(self, found: _Attributes) -> None:
        is_delta = found.place.startswith("delta")
        if not is_delta and found.text("type") != "snapshot":
            found.note("type", "snapshot")
            return
        section, url = found.section("section"), found.address("url")
        generated = found.moment("generated")
        since = found.moment("since") if is_delta else None
        expires = found.moment("expires")
        pages, size = found.number("pages"), found.number("size")
        if not section or not url or generated is None:
            return
        if is_delta and (since is None or since > generated):
            if since is not None:
                found.note("since", "a time before that of generated")
            return
        self.files.append(
            SiteFile(
                section=section,
                url=url,
                generated=generated,
                since=since,
                expires=expires,
                pages=pages,
                size=size,
            )
        )


class _Attributes:
    """The attributes of one element; invalid values are noted."""

    __slots__ = ("_element", "_reading", "place")

    def __init__(self, element: Any, place: str, reading: _Reading) -> None:
        self._element = element
        self._reading = reading
        self.place = place

    def text(self, name: str) -> str:
        return str(self._element.get(name, "")).strip()

    def note(self, name: str, expected: str) -> None:
        if len(self._reading.problems) >= _MOST_PROBLEMS:
            return
        found = self.text(name)
        shown = f", not {found[:80]!r}" if found else ""
        self._reading.problems.append(
            f"{self.place}: {name}: expected {expected}{shown}"
        )

    def section(self, name: str) -> str:
        value = self.text(name)
        if _SECTION.fullmatch(value):
            return value
        self.note(name, "letters, digits, - and _")
        return ""

    def address(self, name: str) -> str:
        value = resolve(self.text(name), self._reading.url)
        if is_web_url(value):
            return value
        self.note(name, "an http or https URL")
        return ""

    def moment(self, name: str) -> datetime | None:
        """An xs:dateTime, which requires a time of day; None if it is not one."""
        value = read_moment(self.text(name), allows_days=False)
        if value is None:
            self.note(name, "a time such as 2026-01-02T03:04:05Z")
        return value

    def number(self, name: str, prefix: str = "") -> int | None:
        value = whole_number(self.text(name).removeprefix(prefix))
        if value is None:
            self.note(name, "a whole number")
        return value
