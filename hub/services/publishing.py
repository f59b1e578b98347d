"""Fat pings: content that a publisher brings along, signed, instead of being asked.

What is brought is taken for the feed's answer: read, compared and told like one that
was fetched, but that it may hold the new entries alone.
"""

from __future__ import annotations

import hmac

from hub.core.fetched import Fetched
from hub.ingest.prefetched_responses import PushedContent
from hub.runtime.clock import Clock
from hub.services.errors import NotSigned, TooManyWaiting
from protocols.errors import InvalidValue
from protocols.websub.signatures import ALGORITHMS, verify
from storage.contract import FeedStore
from storage.records import FeedState, StoredFeed

_LENGTHS = {hmac.new(b"", b"", name).digest_size * 2: name for name in ALGORITHMS}


class PublishingService:
    def __init__(self, feeds: FeedStore, bringing: PushedContent, clock: Clock) -> None:
        self._feeds = feeds
        self._bringing = bringing
        self._clock = clock

    async def take(self, topic: str, content: bytes, signature: str) -> None:
        """Commit what a publisher says is new of a topic.

        Raises `NotSigned`, alike for what is unknown and what has no secret, and
        `TooManyWaiting` if the content is not taken in time.
        """
        feed = await self._signed_by(topic, content, signature)
        now = self._clock.now()
        url = feed.polling.fetch_url or feed.url
        is_taken = await self._bringing.take(
            feed,
            Fetched(
                at=now, started=now, url=url, status=200, body=content, is_partial=True
            ),
        )
        if not is_taken:
            raise TooManyWaiting("the content could not be taken yet; send it again")

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
    """``sha1=…`` as it is; of bare hexadecimal the length tells the algorithm."""
    written = signature.strip()
    if "=" in written:
        return written
    return f"{_LENGTHS.get(len(written), 'sha1')}={written}"
