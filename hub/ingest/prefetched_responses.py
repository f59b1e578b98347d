"""Responses that are there before a feed is fetched, and taken in place of a fetch.

Whether strangers may subscribe to a topic depends on its document, which then counts as
the first fetch: "exactly one unconditional request per feed URL". Content that a
publisher or a hub pushes is committed like the answer to a poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FeedFetcher, FetchRequest, bare_url
from hub.runtime.caching import KeyedLock
from hub.runtime.clock import Clock
from storage.records import FeedId, StoredFeed

TAKEN_SECONDS = 20.0
"""Seconds that pushed content may wait to be committed; a fetch may come first."""
TRIES = 3

ProvidePushed = Callable[[str, Fetched], AbstractContextManager[Callable[[], bool]]]
"""While entered, the next fetch of a URL is answered with this response; the function
tells whether that has happened."""


class FetchingPoller(Protocol):
    """The part of `hub.ingest.poller.Poller` that is needed here."""

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed: ...


class PushedContent:
    """Commits content that publishers and hubs push as if it had been fetched, one push
    of a feed at a time."""

    def __init__(
        self, poller: FetchingPoller, provide: ProvidePushed, clock: Clock
    ) -> None:
        self._poller = poller
        self._provide = provide
        self._clock = clock
        self._locks: KeyedLock[FeedId] = KeyedLock()

    async def take(self, feed: StoredFeed, fetched: Fetched) -> bool:
        """Commit pushed content as what the feed answers now; returns whether that was
        done in time.

        Raises `StorageError`, and `NotFound` if the feed was removed.
        """
        try:
            async with asyncio.timeout(TAKEN_SECONDS), self._locks.of(feed.id):
                return await self._commit(feed, fetched)
        except TimeoutError:
            return False

    async def _commit(self, feed: StoredFeed, fetched: Fetched) -> bool:
        """Fetch the feed until the content is taken: a fetch under way may have to end
        first, and brings other content."""
        now = self._clock.now()
        fetched = replace(fetched, at=now, started=now)
        with self._provide(fetched.url, fetched) as is_taken:
            for _ in range(TRIES):
                await self._poller.fetch_now(feed.id)
                if is_taken():
                    return True
        return False


MOST_BYTES = 32 * 1024 * 1024
"""Bytes of all responses that wait to be taken. A response that would exceed them is
not kept, and the feed is asked again."""


class PrefetchedResponses:
    """Fetches through another fetcher, unless the answer is here already."""

    def __init__(self, fetcher: FeedFetcher) -> None:
        self._fetcher = fetcher
        self._answers: dict[str, Fetched] = {}
        self._pushed: dict[str, Fetched] = {}
        self._bytes = 0

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Return the response that is here, or make a fetch.

        Pushed content answers fetches of the poller only: these are the requests with a
        number of subscribers. Other responses answer an unconditional fetch without
        credentials.
        """
        if request.subscribers is not None:
            pushed = self._pushed.pop(bare_url(request.url), None)
            if pushed is not None:
                return pushed
        if request.validators is None and request.credentials is None:
            fetched = self._answers.pop(bare_url(request.url), None)
            if fetched is not None:
                return fetched
        return await self._fetcher.fetch(request)

    @contextmanager
    def provide(self, url: str, fetched: Fetched | None) -> Iterator[None]:
        """While entered, the next fetch of the URL is answered with this response,
        once."""
        size = 0 if fetched is None else len(fetched.body)
        if fetched is None or self._bytes + size > MOST_BYTES:
            yield
            return
        key = bare_url(url)
        self._answers[key] = fetched
        self._bytes += size
        try:
            yield
        finally:
            if self._answers.get(key) is fetched:
                del self._answers[key]
            self._bytes -= size

    def is_pushed(self, url: str) -> bool:
        """Whether pushed content waits for the poller's next fetch of a URL."""
        return bare_url(url) in self._pushed

    @contextmanager
    def provide_pushed(
        self, url: str, fetched: Fetched
    ) -> Iterator[Callable[[], bool]]:
        """While entered, the poller's next fetch of the URL is answered with this
        response.

        The function tells whether that has happened; it never does if there is no
        memory for more. There may be one such response for a URL at a time.
        """
        key, size = bare_url(url), len(fetched.body)
        if self._bytes + size > MOST_BYTES:
            yield lambda: False
            return
        self._pushed[key] = fetched
        self._bytes += size
        try:
            yield lambda: key not in self._pushed
        finally:
            self._pushed.pop(key, None)
            self._bytes -= size
