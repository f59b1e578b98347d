"""Lists of feeds, found and read: OPML files that may include others.

A list of any length is returned in parts. A reading is kept for a while, so that all
parts come from one reading, and its servers are asked once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final, TypeAlias

from hub.core.fetched import Fetched
from hub.http import ResponseLimits
from hub.ingest.fetcher import FeedFetcher, FetchRequest
from hub.runtime.caching import BoundedDict
from hub.runtime.offloading import run_in_thread
from hub.services.topic_addresses import AddressCheck, read_topic
from protocols.opml import MOST_BYTES, OutlineWalk, read_outlines
from protocols.protocol_errors import FeedError
from storage.records import Validators

LIMITS: Final = ResponseLimits(body_bytes=MOST_BYTES)
SECONDS: Final = 50.0
"""Seconds for a list and all lists that it leads to."""
KEPT_SECONDS: Final = 600.0
"""Seconds after which a reading whose parts nobody has asked for is done again."""
MOST_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class ReadList:
    """A list that was read. ``walk`` has no list if the ``fetched`` one has not
    changed."""

    fetched: Fetched
    walk: OutlineWalk


_Reading: TypeAlias = tuple[tuple[str, ...], int]
"""What was asked for: the URLs of lists, and how deep they are."""


class FeedListService:
    """Reads lists through a fetcher that keeps their hosts' pace; stores nothing."""

    def __init__(
        self,
        fetcher: FeedFetcher,
        addresses: AddressCheck,
        user_agent: str,
        seconds: float = SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetcher = fetcher
        self._addresses = addresses
        self._user_agent = user_agent
        self._seconds = seconds
        self._monotonic = monotonic
        self._kept: BoundedDict[_Reading, tuple[float, OutlineWalk]]
        self._kept = BoundedDict(MOST_KEPT)

    async def part(
        self, urls: Sequence[str], *, depth: int = 0, skip: int = 0
    ) -> OutlineWalk:
        """Like `read`, from position ``skip`` on. Further parts of a list come from the
        same reading, while it is kept."""
        key = tuple(urls), depth
        at, walk = self._kept.pop(key, (0.0, None))
        if walk is None or not skip or self._monotonic() - at > KEPT_SECONDS:
            walk = await self.read(urls, depth=depth)
        self._kept[key] = self._monotonic(), walk
        return walk

    async def read(self, urls: Sequence[str], *, depth: int = 0) -> OutlineWalk:
        """Read lists with all that they include. Lists that cannot be read are in the
        result.

        Raises `InvalidValue` and `AddressRefused`, which name the field ``urls``.
        """
        walk = OutlineWalk()
        walk.begin([await self.check("urls", url) for url in urls], depth=depth)
        await self._go_on(walk)
        return walk

    async def check(self, field: str, url: str) -> str:
        """The URL of a list, if it may be read.

        Raises `InvalidValue` and `AddressRefused`, which name the ``field``.
        """
        address = read_topic(field, url).url
        await self._addresses.check_topic(field, address)
        return address

    async def read_again(self, url: str, validators: Validators | None) -> ReadList:
        """A list with all that it includes; nothing is read if it has not changed."""
        walk = OutlineWalk()
        walk.begin([url])
        walk.next_url()
        fetched = await self._fetch(url, validators)
        if fetched.status != HTTPStatus.NOT_MODIFIED or fetched.error:
            await self._take(walk, fetched)
            await self._go_on(walk)
        return ReadList(fetched, walk)

    async def _go_on(self, walk: OutlineWalk) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                while (url := walk.next_url()) is not None:
                    await self._take(walk, await self._fetch(url))
        except TimeoutError:
            walk.stop(f"reading the lists took over {self._seconds:g} s")

    async def _fetch(self, url: str, validators: Validators | None = None) -> Fetched:
        request = FetchRequest(
            url=url,
            user_agent=self._user_agent,
            validators=validators,
            limits=LIMITS,
        )
        return await self._fetcher.fetch(request)

    async def _take(self, walk: OutlineWalk, fetched: Fetched) -> None:
        if fetched.error:
            walk.give_up(fetched.error)
            return
        try:
            found = await asyncio.to_thread(
                read_outlines, fetched.body, fetched.url, fetched.content_type
            )
        except FeedError as error:
            walk.give_up(_reason(error))
        else:
            taking = partial(walk.take, fetched.url, found)
            await run_in_thread(taking, len(fetched.body))


def _reason(error: FeedError) -> str:
    return str(error).replace(", not a feed", ", not a list of feeds")
