"""Fat pings: content that a publisher brings along, signed, instead of being asked.

What is brought is taken for the feed's answer: read, compared and told like one that
was fetched, but that it may hold the new entries alone.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from contextlib import AbstractContextManager
from weakref import WeakValueDictionary

from hub.clock import Clock
from hub.core.fetched import Fetched
from hub.services.errors import NotSigned, TooManyWaiting
from hub.services.feeds import FeedPoller
from protocols.errors import InvalidValue
from protocols.websub.signatures import ALGORITHMS, verify
from storage.interface import FeedStore
from storage.records import FeedId, FeedState, StoredFeed

TAKEN_SECONDS = 20.0
"""How long the answer waits for the content to be committed; a fetch may come first."""
TRIES = 3
_LENGTHS = {hmac.new(b"", b"", name).digest_size * 2: name for name in ALGORITHMS}

Bring = Callable[[str, Fetched], AbstractContextManager[Callable[[], bool]]]
"""Have the next fetch of a URL answered with this; tells whether it was."""


class PublishingService:
    def __init__(
        self, feeds: FeedStore, poller: FeedPoller, bring: Bring, clock: Clock
    ) -> None:
        self._feeds = feeds
        self._poller = poller
        self._bring = bring
        self._clock = clock
        self._locks: WeakValueDictionary[FeedId, asyncio.Lock] = WeakValueDictionary()

    async def take(self, topic: str, content: bytes, signature: str) -> None:
        """Commit what a publisher says is new of a topic.

        Raises `NotSigned`, alike for what is unknown and what has no secret, and
        `TooManyWaiting` if the content is not taken in time.
        """
        feed = await self._signed_by(topic, content, signature)
        lock = self._locks.setdefault(feed.id, asyncio.Lock())
        try:
            async with asyncio.timeout(TAKEN_SECONDS), lock:
                is_taken = await self._commit(feed, content)
        except TimeoutError:
            is_taken = False
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

    async def _commit(self, feed: StoredFeed, content: bytes) -> bool:
        """A fetch that was under way may end first: it brings something else."""
        now = self._clock.now()
        url = feed.polling.fetch_url or feed.url
        fetched = Fetched(
            at=now, started=now, url=url, status=200, body=content, is_partial=True
        )
        with self._bring(url, fetched) as is_taken:
            for _ in range(TRIES):
                await self._poller.fetch_now(feed.id)
                if is_taken():
                    return True
        return False


def _with_algorithm(signature: str) -> str:
    """``sha1=…`` as it is; of bare hexadecimal the length tells the algorithm."""
    written = signature.strip()
    if "=" in written:
        return written
    return f"{_LENGTHS.get(len(written), 'sha1')}={written}"
