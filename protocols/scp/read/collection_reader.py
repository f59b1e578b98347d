"""Read a collection as a stream: bytes in pieces of any size, pages out.

Memory does not grow with the file, and lines have a bounded length. An error that makes
the file unusable is raised where it is found, so a file is read to its end once before
any of it is used. An error that costs a page, or less, is noted and reading continues
(SCP, "Error Handling").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from protocols.protocol_errors import (
    EmptyDocument,
    InvalidDocument,
    LimitExceeded,
    MalformedDocument,
)
from protocols.scp.read.collection_heads import (
    HeadRules,
    SiteHead,
    read_head,
    read_moment,
)
from protocols.scp.read.unpacking import Checksums, SizeLimits, Unpacker
from protocols.urls import is_web_url, resolve

BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Splits pieces into lines: `feed` pieces, then take the `last` line.

    Lines come without their line feed, which the last one may lack. A line of more than
    ``limit`` bytes is ``None``, and is never held in memory.
    """

    __slots__ = ("_is_too_long", "_limit", "_rest")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""
        self._is_too_long = False

    def feed(self, piece: bytes) -> Iterator[bytes | None]:
        lines = piece.split(b"\n")
        lines[0] = self._rest + lines[0]
        self._rest = lines.pop()
        for line in lines:
            if self._is_too_long or len(line) > self._limit:
                self._is_too_long = False
                yield None
            else:
                yield line
        if len(self._rest) > self._limit:
            self._is_too_long = True
            self._rest = b""

    def last(self) -> bytes | None:
        """The rest after the last line feed; ``b""`` if the file ends with one."""
        return None if self._is_too_long else self._rest


MOST_BLOCKS: Final = 1_000
"""SCP, "Resource Limits": "1000 blocks per page maximum"; a larger page is left out."""
_PLAIN: Final = re.compile(
    "https?://[A-Za-z0-9][A-Za-z0-9.-]{0,255}(?:[/?#][!-~]{0,2000})?"
)
_MOST_KEPT: Final = 20
_TEXTS: Final = ("url", "title", "description", "modified", "language")


class CollectionPage(NamedTuple):
    """A page with all required members; ``members`` are as in the file.

    ``line`` counts from 1, the collection's own line.
    """

    line: int
    url: str
    modified: datetime
    members: dict[str, Any]


@dataclass(slots=True)
class Warnings:
    """Errors that did not stop the reading: their number, and the first of them."""

    count: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, line: int, place: str, rule: str) -> None:
        self.count += 1
        if len(self.lines) < _MOST_KEPT:
            self.lines.append(f"line {line}: {place}: {rule}")


class CollectionReader:
    """Reads one file: `feed` it piece by piece, then `finish`; both yield pages.

    The result depends only on the bytes. ``lines`` is the number of pages' lines, read
    or not; ``unknown`` is the number of those whose URL could not be read. Raises only
    a `FeedError`, and must not be used afterwards.
    """

    def __init__(self, rules: HeadRules, limits: SizeLimits | None = None) -> None:
        limits = limits or SizeLimits()
        self.head: SiteHead | None = None
        self.warnings = Warnings()
        self.lines = 0
        self.unknown = 0
        self._rules = rules
        self._limits = limits
        self._number = 0  # of the last line, blank ones included
        self._unpacker = Unpacker(limits)
        self._splitter = LineSplitter(limits.line)
        self._beginning = b""  # until the first line is whole
        self._checksums: Checksums | None = None

    @property
    def wire(self) -> int:
        """The bytes of the file that were read."""
        return self._unpacker.wire

    @property
    def output(self) -> int:
        """The bytes of its lines."""
        return self._unpacker.output

    def feed(self, piece: bytes) -> Iterator[CollectionPage]:
        for unpacked in self._unpacker.feed(piece):
            yield from self._take(unpacked)

    def finish(self) -> Iterator[CollectionPage]:
        """Yield the last pages; then verify the checksum."""
        for unpacked in self._unpacker.finish():
            yield from self._take(unpacked)
        checksums = self._checksums
        if checksums is None:
            if not self._beginning:
                raise EmptyDocument
            checksums, _ = self._begin(self._beginning)  # it is the only line
        if (page := self._read(self._splitter.last())) is not None:
            yield page
        checksums.verify()

    def _take(self, unpacked: bytes) -> Iterator[CollectionPage]:
        checksums = self._checksums
        if checksums is None:
            unpacked = self._beginning + unpacked
            if b"\n" not in unpacked and len(unpacked) <= self._limits.line:
                self._beginning = unpacked
                return
            checksums, unpacked = self._begin(unpacked)
        checksums.update(unpacked)
        yield from self._split(unpacked)

    def _split(self, unpacked: bytes) -> Iterator[CollectionPage]:
        for line in self._splitter.feed(unpacked):
            if (page := self._read(line)) is not None:
                yield page

    def _begin(self, unpacked: bytes) -> tuple[Checksums, bytes]:
        """Read the first line. Returns what came after it."""
        self._beginning = b""
        end = unpacked.find(b"\n") + 1 or len(unpacked)
        first = unpacked[:end]
        if len(first) > self._limits.line:
            raise LimitExceeded("the first line's size in bytes", self._limits.line)
        line = first.removeprefix(BOM).strip()
        if not line:
            raise InvalidDocument("line 1", "expected the collection")
        self._number = 1
        self.head = read_head(line, self._rules)
        self._checksums = Checksums(self.head.checksum, first, self._rules.checksum)
        return self._checksums, unpacked[end:]

    def _read(self, line: bytes | None) -> CollectionPage | None:
        self._number += 1
        if line is None:
            self.lines += 1
            self.unknown += 1
            self.warnings.add(
                self._number, "/", f"longer than {self._limits.line} bytes; left out"
            )
            return None
        try:
            members = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if not line.strip():
                return None
            raise MalformedDocument(error.msg, self._number, error.colno) from None
        self.lines += 1
        return self._check(members)

    def _check(self, members: Any) -> CollectionPage | None:
        """Check a page. SCP, "Fatal Errors": "Missing required fields in page
        object".
        """
        if type(members) is not dict:
            raise InvalidDocument(f"line {self._number}", "expected an object")
        for name in _TEXTS:
            if type(members.get(name)) is not str:
                raise self._missing(name, "a text")
        content = members.get("content")
        if type(content) is not list:
            raise self._missing("content", "an array")
        url = page_url(members["url"])
        if not url:
            # SCP, "Non-Fatal Errors": "Invalid URL format (log warning, skip page)"
            self._leave_out("/url", "expected an http or https URL")
            return None
        modified = read_moment(members["modified"])
        if modified is None:
            self._leave_out("/modified", "expected an ISO 8601 time")
            return None
        if len(content) > MOST_BLOCKS:
            self._leave_out("/content", f"more than {MOST_BLOCKS} blocks")
            return None
        return CollectionPage(self._number, url, modified, members)

    def _missing(self, name: str, expected: str) -> InvalidDocument:
        return InvalidDocument(f"line {self._number}: /{name}", f"expected {expected}")

    def _leave_out(self, place: str, rule: str) -> None:
        self.warnings.add(self._number, place, f"{rule}; left out")


def page_url(text: str) -> str:
    """A web URL with a host, with blanks escaped; "" for other texts."""
    if _PLAIN.fullmatch(text):
        return text
    url = resolve(text, "")
    if not is_web_url(url):
        return ""
    host_begins = url.index("//") + 2
    return url if url[host_begins : host_begins + 1] not in ("", "/", "?", "#") else ""
