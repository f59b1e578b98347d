"""The pages that a collection is built of, read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from storage.contract import PageStore
from storage.records import PageId, PublishedPage

BATCH = 50
"""Pages rendered at a time, beside the event loop."""


class Everything:
    """All pages of a section, batch by batch."""

    def __init__(self, pages: PageStore, section: str) -> None:
        self._pages = pages
        self._section = section
        self._after = PageId(0)

    async def next(self) -> Sequence[PublishedPage]:
        return await self._pages.pages(self._section, after=self._after, limit=BATCH)

    def pass_by(self, pages: Sequence[PublishedPage]) -> None:
        self._after = pages[-1].id


class Changes:
    """Those changed up to a position: what changes meanwhile comes with the next."""

    def __init__(
        self, pages: PageStore, section: str, *, after: int, through: int
    ) -> None:
        self._pages = pages
        self._section = section
        self._after = after
        self._through = through

    async def next(self) -> Sequence[PublishedPage]:
        found = await self._pages.changed(self._section, after=self._after, limit=BATCH)
        return [each for each in found if each.change <= self._through]

    def pass_by(self, pages: Sequence[PublishedPage]) -> None:
        self._after = pages[-1].change
