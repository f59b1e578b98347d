"""From an answer to the content of its document, which is parsed only if necessary.

What another version of the program has read is not relied upon, so each version has a
name (`reader_name`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from lxml import etree

from hub.core.fetched import NOT_PARSED, Fetched, ParseOutcome
from hub.core.news.document_bodies import body_hash
from hub.core.news.fetch_commit import is_known_body
from hub.core.news.known_slices import READER_BYTES, known_slices
from hub.ingest.document_parser import Parser
from hub.runtime.clock import Clock
from hub.runtime.metrics import DocumentReading, Metrics
from hub.runtime.offloading import run_by_size, run_in_thread
from protocols.feeds import ParseContext
from protocols.protocol_errors import FeedError
from protocols.urls import selector_of
from storage.records import FetchTarget


@cache
def reader_name() -> bytes:
    """The name of this version of the program as a reader of documents. It differs
    after an upgrade, so that each feed is then read whole once."""
    return name_of(files("protocols"), files("hub.core"))


def name_of(*code: Traversable) -> bytes:
    """A name that changes with the code, and with the versions of Python and
    libxml2."""
    versions = (sys.version_info[:2], etree.LXML_VERSION, etree.LIBXML_VERSION)
    name = blake2b(repr(versions).encode(), digest_size=READER_BYTES)
    for folder in code:
        _add(name, folder)
    return name.digest()


def _add(name: blake2b, folder: Traversable) -> None:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            _add(name, each)
        elif each.name.endswith(".py"):
            source = each.read_bytes()
            name.update(f"{each.name} {len(source)} ".encode() + source)


_LARGE_SLICES = 16 * 1024  # about six hundred entries


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReader:
    """Parses documents. ``name`` is the program's, for `hub.core.news.known_slices`."""

    parser: Parser
    clock: Clock
    metrics: Metrics
    name: bytes = field(default_factory=reader_name)

    async def read(self, target: FetchTarget, fetched: Fetched) -> ParseOutcome:
        """Parse a whole document (status 200), unless its bytes are those of a known
        feed."""
        if fetched.error or fetched.status != 200:
            return NOT_PARSED
        hashing = partial(body_hash, fetched.body)
        count = self.metrics.documents.add
        digest = await run_by_size(hashing, len(fetched.body))
        if is_known_body(target.feed.polling, digest):
            count(DocumentReading.UNCHANGED)
            return NOT_PARSED
        context = ParseContext(
            url=fetched.url,
            content_type=fetched.content_type,
            now=self.clock.now(),
            known=await self._known(target),
            selector=selector_of(target.feed.url),
        )
        try:
            feed = await self.parser.parse(fetched.body, context)
        except FeedError as error:
            count(DocumentReading.UNREADABLE)
            return ParseOutcome(error=error, body_hash=digest)
        count(DocumentReading.INCREMENTAL if feed.is_partial else DocumentReading.FULL)
        return ParseOutcome(feed=feed, body_hash=digest)

    async def _known(self, target: FetchTarget) -> bytes:
        known = partial(known_slices, target.slices, target.seen, self.name)
        is_large = len(target.slices) > _LARGE_SLICES
        return await run_in_thread(known) if is_large else known()
