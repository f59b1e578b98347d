"""Keeps the pages up with entries and feeds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hub.collections.judging import judge_entry, origin_ending, origin_of
from hub.runtime.clock import Clock
from storage.contract import PageStore
from storage.records import JudgedEntry, PageNews

BATCH = 200
"""Entries judged in one transaction, so that nothing else waits long."""


class PageKeeper:
    """Judges what has changed since; to be used by one at a time."""

    def __init__(
        self, pages: PageStore, clock: Clock, public_url: str, language: str = "en"
    ) -> None:
        """``language``: of pages whose entry and feed name none."""
        self._language = language
        self._has_begun = False
        self._pages = pages
        self._clock = clock
        self._public_url = public_url

    async def catch_up(self) -> int:
        """Judge all there is; how many entries. Raises `StorageError`."""
        if not self._has_begun:
            await self._pages.note_former(origin_ending(self._language))
            self._has_begun = True
        await self._judge_feeds()
        judged = 0
        while news := await self._pages.news(BATCH):
            verdicts = await asyncio.to_thread(self._verdicts, news)
            await self._pages.judge(verdicts, self._clock.now())
            judged += len(news)
            if len(news) < BATCH:
                break
        return judged

    async def _judge_feeds(self) -> None:
        while news := await self._pages.feed_news(BATCH):
            for each in news:
                await self._pages.judge_feed(each, origin_of(each, self._language))
            if len(news) < BATCH:
                break

    def _verdicts(self, news: Sequence[PageNews]) -> list[JudgedEntry]:
        now = self._clock.now()
        return [
            judge_entry(each, self._public_url, now, self._language) for each in news
        ]
