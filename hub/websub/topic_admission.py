"""Which topics strangers may subscribe to, fetched and ready for it.

A topic that is known and public is admitted. Any other topic is fetched as a stranger
would fetch it, and may have to name this hub (WebSub 4) in its header, or else in its
document. A feed with credentials of the hub is not used: without them the topic becomes
another feed. So a private topic, a topic that only the operator may read, and an
unknown one look alike from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from hub.core.fetched import Fetched
from hub.core.push.hub_offers import hubs_of_feed, hubs_of_header
from hub.http.network_errors import Blocked
from hub.ingest.document_parser import Parser
from hub.ingest.fetcher import FetchRequest
from hub.ingest.prefetched_responses import PrefetchedResponses
from hub.limits.host_limiter import HostLimiter, HostQuota, RequestKind
from hub.publishing.local_topics import LocalTopics
from hub.runtime.caching import BoundedDict, KeyedLock
from hub.runtime.clock import Clock
from protocols.feeds import ParseContext
from protocols.feeds.feed_links import discover
from protocols.model import Feed
from protocols.protocol_errors import FeedError, NotAFeed
from protocols.urls import host_name, normal_url, requested_url, resource_url
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack_head
from storage.records import FeedId, FeedState, NewFeed, Polling, StoredFeed


class NamedHubs:
    def __init__(self, parser: Parser, hub_url: str) -> None:
        self._parser = parser
        self._hub_url = normal_url(hub_url)

    async def is_named(self, fetched: Fetched) -> bool:
        """Whether a document names this hub. Subscribers "MUST first check for HTTP
        Link headers", and so does the hub."""
        hubs = hubs_of_header(fetched) or await self._hubs_of_document(fetched)
        return self._is_among(hubs)

    def is_named_by(self, polling: Polling, head: Feed) -> bool:
        """Whether a known feed names this hub: in its last document, or in the header
        of that."""
        return self._is_among(polling.hubs or hubs_of_feed(head))

    def _is_among(self, hubs: Sequence[str]) -> bool:
        return self._hub_url in map(normal_url, hubs)

    async def _hubs_of_document(self, fetched: Fetched) -> Sequence[str]:
        context = ParseContext(
            url=fetched.url, content_type=fetched.content_type, now=fetched.at
        )
        try:
            document = await self._parser.parse(fetched.body, context)
        except NotAFeed:
            page = await asyncio.to_thread(discover, fetched.body, fetched.url)
            return page.hubs
        except FeedError:
            return ()
        return hubs_of_feed(document.feed)


FETCH_SECONDS = 30.0
"""Seconds to wait for the first fetch of a new topic, or of one that was given up."""
LOOKED_AT_SECONDS = 3_600.0
"""Seconds for which the result of examining a topic is relied on."""
MOST_REMEMBERED = 10_000
MOST_OF_A_HOST = 4
"""Topics of one host that are examined, or wait for that; any more come back later."""
MOST_OF_A_ZONE = 16
"""The same for all hosts of one owner: any number of them may be names of one
address."""

NOT_NAMED = "the topic does not name this hub"


class OpenHub(StrEnum):
    """Which topics strangers may subscribe to: ``FANFARE_OPEN_HUB``."""

    OFF = "off"
    KNOWN = "known"  # public here, or naming this hub
    ANY = "any"  # any topic that can be fetched


class TopicRefused(Exception):
    """Nobody may subscribe to this topic here; the subscriber is told the
    ``reason``."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class TopicUnready(Exception):
    """The topic could not be fetched now; later that may succeed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class TopicBusy(Exception):
    """Too many topics of the host are being examined; nothing was tried."""


class BaselinePoller(Protocol):
    """The part of `hub.ingest.poller.Poller` that is needed here."""

    async def fetch_now(
        self, feed_id: FeedId, *, only_first: bool = False
    ) -> StoredFeed: ...

    def wake(self) -> None: ...


class TopicAdmission:
    def __init__(
        self,
        storage: Storage,
        poller: BaselinePoller,
        fetcher: PrefetchedResponses,
        discovery: NamedHubs,
        limiter: HostLimiter,
        clock: Clock,
        policy: OpenHub,
        user_agent: str,
        local_topics: LocalTopics | None = None,
    ) -> None:
        self._feeds = storage.feeds
        self._log = storage.log
        self._poller = poller
        self._fetcher = fetcher
        self._discovery = discovery
        self._limiter = limiter
        self._clock = clock
        self._takes_any = policy is OpenHub.ANY
        self._user_agent = user_agent
        self._local_topics = local_topics or LocalTopics()
        self._quota = HostQuota(of_host=MOST_OF_A_HOST, of_zone=MOST_OF_A_ZONE)
        self._looked_at: BoundedDict[str, float] = BoundedDict(MOST_REMEMBERED)
        self._locks: KeyedLock[str] = KeyedLock()

    async def admit(self, topic: str) -> FeedId:
        """The topic's feed, of which the first document is stored.

        Raises `TopicRefused`, `TopicUnready`, `TopicBusy` and `StorageError`.
        """
        if self._local_topics.owns(topic):
            return await self._admit_own(topic)
        async with self._locks.of(resource_url(topic)):
            feed = await self._feeds.find_open(topic)
            is_there = feed is not None and feed.state is not FeedState.REMOVED
            if feed is not None and is_there and not feed.private:
                return await self._ready(feed)
            first = await self._look_at(topic, feed if is_there else None)
            with self._fetcher.provide(topic, first):
                if feed is None or not is_there:
                    feed = await self._add(topic)
                return await self._ready(feed)

    async def _admit_own(self, topic: str) -> FeedId:
        """The feed behind a page of this hub, which is never fetched; raises
        `TopicRefused`."""
        feed = await self._local_topics.find_public(self._feeds, topic)
        if feed is None:
            raise TopicRefused(NOT_NAMED)
        return await self._ready(feed)

    async def _add(self, topic: str) -> StoredFeed:
        new = NewFeed(url=requested_url(topic), private=True, as_anybody=True)
        feed, _ = await self._feeds.add(new, self._clock.now())
        self._poller.wake()
        return feed

    async def _ready(self, feed: StoredFeed) -> FeedId:
        """Make sure that the feed's present entries are known, so that subscribers are
        told only of new ones.

        A feed that was given up returns if it answers now.
        """
        if feed.state.is_stopped:
            feed = await self._fetch_now(feed)
        if feed.state.is_stopped:
            raise TopicRefused(_unfetchable(feed.polling.error))
        if feed.polling.last_fetch is None:
            feed = await self._fetch_now(feed, only_first=True)
        if feed.polling.last_fetch is None:
            raise TopicUnready("the topic's server asks for no requests now")
        return feed.id

    async def _fetch_now(
        self, feed: StoredFeed, *, only_first: bool = False
    ) -> StoredFeed:
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                return await self._poller.fetch_now(feed.id, only_first=only_first)
        except (TimeoutError, NotFound):
            raise TopicUnready("fetching the topic takes too long") from None

    async def _look_at(self, topic: str, feed: StoredFeed | None) -> Fetched | None:
        """Examine a topic as anybody gets it; raises if nobody may subscribe to it.

        Returns what was fetched for that, or None.
        """
        key, now = resource_url(topic), self._clock.monotonic()
        if now - self._looked_at.get(key, float("-inf")) < LOOKED_AT_SECONDS:
            return None
        if feed is not None and feed.format:
            fetched = None
            is_named = await self._is_named_by_known(feed)
        else:
            fetched = await self._fetch(topic)
            _check_usable(fetched.status, fetched.error)
            is_named = self._takes_any or await self._discovery.is_named(fetched)
        if not is_named and not self._takes_any:
            raise TopicRefused(NOT_NAMED)
        self._looked_at[key] = now
        return fetched

    async def _is_named_by_known(self, feed: StoredFeed) -> bool:
        """Whether a feed names this hub. Like in a poll, its server is asked only if it
        changed.

        A document that is not a feed says nothing; then the last one that was a feed
        counts.
        """
        polling = (await self._fetch_now(feed)).polling
        if polling.code not in (200, 304):
            _check_usable(polling.code or 0, polling.error)
        head = unpack_head(await self._log.feed_head(feed.id))
        return self._discovery.is_named_by(polling, head)

    async def _fetch(self, topic: str) -> Fetched:
        request = FetchRequest(url=topic, user_agent=self._user_agent)
        host = host_name(topic)
        if self._limiter.is_exempt(host):
            return await self._fetcher.fetch(request)
        if self._quota.is_full(host):
            raise TopicBusy
        with self._quota.enter(host):
            await self._limiter.wait(host, RequestKind.TOPIC)
            return await self._fetcher.fetch(request)


def _check_usable(status: int, error: str) -> None:
    if not error:
        return
    reason = _unfetchable(error)
    is_passing = status in (0, 429) or status >= 500
    if is_passing and error != Blocked().reason:
        raise TopicUnready(reason)
    raise TopicRefused(reason)


def _unfetchable(error: str) -> str:
    return f"the topic cannot be fetched: {error}"
