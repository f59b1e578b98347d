"""Lists of feeds, found and read: OPML files that may include others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from hub.polling.fetcher import FeedFetcher, FetchRequest
from hub.services.addresses import AddressCheck
from hub.services.topics import read_topic
from protocols.errors import FeedError
from protocols.outline_walk import OutlineWalk
from protocols.outlines import read_outlines

SECONDS: Final = 50.0
"""For all lists that one of them leads to."""


class ListService:
    """Reads lists through a fetcher that bounds their size and keeps their hosts'
    pace; stores nothing."""

    def __init__(
        self,
        fetcher: FeedFetcher,
        addresses: AddressCheck,
        user_agent: str,
        seconds: float = SECONDS,
    ) -> None:
        self._fetcher = fetcher
        self._addresses = addresses
        self._user_agent = user_agent
        self._seconds = seconds

    async def read(self, urls: Sequence[str], *, depth: int = 0) -> OutlineWalk:
        """Lists with all that they include. What cannot be read is in the result.

        Raises `InvalidValue` and `AddressRefused`, which name the field ``urls``.
        """
        addresses = [read_topic("urls", url).url for url in urls]
        for address in addresses:
            await self._addresses.check_topic("urls", address)
        walk = OutlineWalk()
        walk.begin(addresses, depth=depth)
        try:
            async with asyncio.timeout(self._seconds):
                while (url := walk.next_url()) is not None:
                    await self._step(walk, url)
        except TimeoutError:
            walk.stop(f"reading the lists took over {self._seconds:g} s")
        return walk

    async def _step(self, walk: OutlineWalk, url: str) -> None:
        request = FetchRequest(url=url, user_agent=self._user_agent)
        fetched = await self._fetcher.fetch(request)
        if fetched.error:
            walk.give_up(fetched.error)
            return
        try:
            found = await asyncio.to_thread(
                read_outlines, fetched.body, fetched.url, fetched.content_type
            )
        except FeedError as error:
            walk.give_up(_trouble(error))
        else:
            walk.take(fetched.url, found)


def _trouble(error: FeedError) -> str:
    return str(error).replace(", not a feed", ", not a list of feeds")
