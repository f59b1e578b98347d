"""How the hub reads a feed's document, and the entries that it has of the feed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Final

from hub.core.fetched import Fetched
from hub.ingest.document_parser import Parser
from hub.ingest.fetcher import FeedFetcher, FetcherIdentity, FetchRequest
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.services.feed_registration import existing_feed
from hub.services.service_errors import Conflict
from protocols.feeds import ParseContext
from protocols.feeds.parse_explanation import (
    EncodingExplanation,
    ParseExplanation,
    explain,
    explain_encoding,
)
from protocols.model import SITE_FORMATS, Entry
from protocols.protocol_errors import FeedError
from protocols.urls import selector_of
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack
from storage.records import (
    EntryId,
    EntryPlace,
    FeedId,
    FeedState,
    FetchTarget,
    StoredEntry,
    StoredFeed,
)

SECONDS: Final = 30.0
"""Seconds for a fetch, including the wait for the turn of its host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedDocument:
    """A document that was fetched just now, and is not kept.

    ``error``: why it is not a feed, or could not be fetched. Without an answer
    ``status`` is 0 and ``encoding`` None; ``explanation`` None: it is not a feed.
    """

    feed: StoredFeed
    url: str  # the final URL, after redirects
    at: datetime
    status: int
    content_type: str
    size: int  # bytes
    error: str
    encoding: EncodingExplanation | None
    explanation: ParseExplanation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """An entry in its current state; ``revision`` 1: it was never changed."""

    id: EntryId
    entry: Entry
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntries:
    """Entries of a feed, newest first; ``next``: the last one, None if no more
    follow."""

    feed: StoredFeed
    entries: tuple[FeedEntry, ...]
    next: EntryId | None


class FeedDocumentService:
    """Explains documents and lists entries. Its ``fetcher`` keeps the pace of hosts."""

    def __init__(
        self,
        storage: Storage,
        fetcher: FeedFetcher,
        parser: Parser,
        clock: Clock,
        identity: FetcherIdentity,
    ) -> None:
        self._storage = storage
        self._fetcher = fetcher
        self._parser = parser
        self._clock = clock
        self._identity = identity

    async def explain(self, feed_id: FeedId) -> ExplainedDocument:
        """Fetch a feed's document, and say how it is read. The feed is not changed.

        Raises `NotFound`, and `Conflict` for a feed without such a document.
        """
        target = await self._target(feed_id)
        fetched = await self._fetch(target)
        if fetched.error or fetched.status != HTTPStatus.OK:
            status = fetched.status
            error = fetched.error or f"answered {status}"
            return self._explained(target.feed, fetched, error, None, None)
        context = ParseContext(
            url=fetched.url,
            content_type=fetched.content_type,
            now=self._clock.now(),
            selector=selector_of(target.feed.url),
        )
        body, type = fetched.body, fetched.content_type
        try:
            parsed = await self._parser.parse(body, context)
        except FeedError as error:
            encoding = await run_in_thread(
                partial(explain_encoding, body, type), len(body)
            )
            return self._explained(target.feed, fetched, str(error), encoding, None)
        found = await run_in_thread(partial(explain, body, type, parsed), len(body))
        return self._explained(target.feed, fetched, "", found.encoding, found)

    async def entries(
        self, feed_id: FeedId, limit: int, before: EntryId | None = None
    ) -> FeedEntries:
        """The newest of the entries older than ``before``. Raises `NotFound`."""
        feed = await existing_feed(self._storage.feeds, feed_id)
        return await self.entries_of(feed, limit, before)

    async def entries_of(
        self, feed: StoredFeed, limit: int, before: EntryId | None = None
    ) -> FeedEntries:
        """Like `entries`."""
        place: EntryPlace | None = None
        if before is not None:
            place = await self._storage.entries.place_of(before)
            if place is None:
                raise NotFound("entry", before)
        found = await self._storage.entries.newest(
            [feed.id], limit=limit + 1, before=place
        )
        shown = found[:limit]
        has_more = len(found) > limit
        return FeedEntries(
            feed=feed,
            entries=tuple(_entries(shown)),
            next=shown[-1].id if has_more else None,
        )

    async def _target(self, feed_id: FeedId) -> FetchTarget:
        feed = await existing_feed(self._storage.feeds, feed_id)
        if feed.format in SITE_FORMATS:
            raise Conflict("it is a site, which is read by many requests")
        found = []
        if feed.state not in _NEVER_FETCHED:
            found = await self._storage.feeds.targets([feed_id])
        if not found:
            raise Conflict("it is not fetched, so there is no document")
        return found[0]

    async def _fetch(self, target: FetchTarget) -> Fetched:
        url = target.feed.polling.fetch_url or target.feed.url
        request = FetchRequest(
            url=url,
            user_agent=self._identity.user_agent(target),
            credentials=target.credentials,
            credentials_origin=target.feed.url,
            subscribers=target.subscribers,
        )
        try:
            async with asyncio.timeout(SECONDS):
                return await self._fetcher.fetch(request)
        except TimeoutError:
            now = self._clock.now()
            error = f"it took over {SECONDS:g} s"
            return Fetched(at=now, started=now, url=url, status=0, error=error)

    def _explained(
        self,
        feed: StoredFeed,
        fetched: Fetched,
        error: str,
        encoding: EncodingExplanation | None,
        explanation: ParseExplanation | None,
    ) -> ExplainedDocument:
        return ExplainedDocument(
            feed=feed,
            url=fetched.url,
            at=fetched.at,
            status=fetched.status,
            content_type=fetched.content_type,
            size=len(fetched.body),
            error=error,
            encoding=encoding,
            explanation=explanation,
        )


_NEVER_FETCHED: Final = frozenset(
    {FeedState.REMOVED, FeedState.TRACK, FeedState.EVENTS}
)


def _entries(found: Sequence[StoredEntry]) -> list[FeedEntry]:
    return [
        FeedEntry(id=each.id, entry=unpack(each.body, Entry), revision=each.revision)
        for each in found
    ]
