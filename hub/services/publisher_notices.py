"""Announcements of publishers: hints that pages have changed, and delivered content.

A hint is not relied on: the feeds are fetched, as after a ping. Unknown pages are not
looked for. Content (a fat ping) is signed by the publisher and treated like the feed's
answer: parsed, compared and sent like a fetched document, except that it may contain
only the new entries.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from hub.core.fetched import Fetched
from hub.core.status.feed_stats import site_at
from hub.ingest.prefetched_responses import PushedContent
from hub.runtime.clock import Clock
from hub.services.open_hub_requests import PublishedUrl, WebSubService
from hub.services.service_errors import NotSigned, TooManyWaiting
from protocols.protocol_errors import InvalidValue
from protocols.scp.collection import page_address
from protocols.websub.signatures import ALGORITHMS, verify
from protocols.websub.websub_parameters import PublishRequest
from storage.contract import FeedStore, Storage
from storage.records import FeedState, StoredFeed

MOST_URLS = 100
MOST_FEEDS_OF_SITE = 10


class HintAction(StrEnum):
    """The action of a hint. All have the same effect: the feed is fetched."""

    UPSERT = "upsert"
    DELETE = "delete"


class Hint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of ``POST /openfeeder/update``, as OpenFeeder's programs send it."""

    action: HintAction = HintAction.UPSERT
    urls: list[str]


class HintService:
    def __init__(self, storage: Storage, websub: WebSubService) -> None:
        self._storage = storage
        self._websub = websub

    async def take(self, urls: Sequence[str]) -> list[PublishedUrl]:
        """Have these feeds, or those of these pages and sites, fetched soon.

        Hints are combined and paced like pings. Raises `TooManyWaiting`.
        """
        found = [feed for url in urls for feed in await self._feeds_of(url)]
        feeds = tuple(dict.fromkeys(found))
        return await self._websub.publish(PublishRequest(topics=feeds))

    async def _feeds_of(self, url: str) -> Sequence[str]:
        """The URLs to fetch: that of the feed with this page, or those of public feeds
        of its site. A URL that is itself a feed, or a page of which parts are followed,
        is among them."""
        listed = await self._storage.page_list.find(page_address(url) or url)
        if listed is not None:
            ids = [listed.page.entry.feed_id]
        elif await self._storage.feeds.find(url) is not None:
            return [url]
        else:
            site = site_at(url)
            ids = await self._storage.feed_statistics.of_site(site, MOST_FEEDS_OF_SITE)
        feeds = [await self._storage.feeds.get(each) for each in ids]
        found = [feed.url for feed in feeds if feed is not None]
        has_parts = bool(await self._storage.feeds.parts(url, 1))
        return [*found, url] if has_parts or not found else found


_LENGTHS = {hmac.new(b"", b"", name).digest_size * 2: name for name in ALGORITHMS}


class PublishingService:
    def __init__(self, feeds: FeedStore, content: PushedContent, clock: Clock) -> None:
        self._feeds = feeds
        self._content = content
        self._clock = clock

    async def take(self, topic: str, content: bytes, signature: str) -> None:
        """Commit the content that a publisher says is new.

        Raises `NotSigned`, both for an unknown topic and for one without a secret, and
        `TooManyWaiting` if the content is not committed in time.
        """
        feed = await self._signed_by(topic, content, signature)
        now = self._clock.now()
        url = feed.polling.fetch_url or feed.url
        is_taken = await self._content.take(
            feed,
            Fetched(
                at=now, started=now, url=url, status=200, body=content, is_partial=True
            ),
        )
        if not is_taken:
            raise TooManyWaiting("the content could not be stored yet; send it again")

    async def _signed_by(
        self, topic: str, content: bytes, signature: str
    ) -> StoredFeed:
        if not signature:
            raise InvalidValue(
                "hub.signature", "the HMAC of hub.content; it is missing"
            )
        feed = await self._feeds.find(topic)
        if feed is None or feed.state is FeedState.REMOVED:
            raise NotSigned
        secret = await self._feeds.publish_secret(feed.id)
        if not secret or not verify(_with_algorithm(signature), secret, content):
            raise NotSigned
        return feed


def _with_algorithm(signature: str) -> str:
    """The signature as ``sha1=…``; the length of a bare digest tells its algorithm."""
    written = signature.strip()
    if "=" in written:
        return written
    return f"{_LENGTHS.get(len(written), 'sha1')}={written}"
