"""Pages made of entries, cached (OpenFeeder 6).

A page is cached under the state of its entry and of its feed's head. So "Cache MUST be
invalidated when content is updated" holds without further measures.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from hub.publishing.page_visibility import in_language, read_head
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry
from protocols.openfeeder.write.content_queries import AuthorDisplay
from protocols.openfeeder.write.page_chunks import EntryPage, PageSetting, page_of
from storage.packing import unpack
from storage.records import ListedPage, PageId

MOST_KEPT = 2_000
LARGEST_KEPT = 1024 * 1024
"""Characters of a page's chunks up to which it is cached; larger pages are made anew
each time. They cost the most to make, and anybody may request them."""
MOST_CHARACTERS = 16 * 1024 * 1024
"""Characters of all cached pages."""
BATCH = 25
"""Pages made at a time, so that other work in threads gets its turn."""

_State = tuple[int, int, datetime, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePage:
    """A page from the cache. ``kept_for``: seconds since it was made; None: just
    now."""

    page: EntryPage
    kept_for: int | None


class PageCache:
    def __init__(
        self,
        clock: Clock,
        language: str,
        authors: AuthorDisplay,
        capacity: int = MOST_KEPT,
    ) -> None:
        self._clock = clock
        self._language = language
        self._authors = authors
        self._capacity = capacity
        self._kept: OrderedDict[PageId, tuple[_State, float, EntryPage]] = OrderedDict()
        self._characters = 0

    async def make(self, listed: Sequence[ListedPage]) -> list[MadePage]:
        """The pages of these entries, in the same order."""
        made: dict[PageId, MadePage] = {}
        missing = []
        for each in listed:
            found = self._find(each)
            if found is None:
                missing.append(each)
            else:
                made[each.page.id] = found
        for begin in range(0, len(missing), BATCH):
            batch = missing[begin : begin + BATCH]
            pages = await run_in_thread(partial(self._make_all, batch))
            for each, page in zip(batch, pages, strict=True):
                self._keep(each, page)
                made[each.page.id] = MadePage(page=page, kept_for=None)
        return [made[each.page.id] for each in listed]

    def _find(self, listed: ListedPage) -> MadePage | None:
        known = self._kept.get(listed.page.id)
        if known is None or known[0] != _state(listed):
            return None
        self._kept.move_to_end(listed.page.id)
        age = max(0, int(self._clock.monotonic() - known[1]))
        return MadePage(page=known[2], kept_for=age)

    def _keep(self, listed: ListedPage, page: EntryPage) -> None:
        self._forget(listed.page.id)
        size = _size(page)
        if size > LARGEST_KEPT:
            return
        self._kept[listed.page.id] = (_state(listed), self._clock.monotonic(), page)
        self._characters += size
        while len(self._kept) > self._capacity or self._characters > MOST_CHARACTERS:
            self._forget(next(iter(self._kept)))

    def _forget(self, page_id: PageId) -> None:
        known = self._kept.pop(page_id, None)
        if known is not None:
            self._characters -= _size(known[2])

    def _make_all(self, listed: Sequence[ListedPage]) -> list[EntryPage]:
        return [self._make(each) for each in listed]

    def _make(self, listed: ListedPage) -> EntryPage:
        setting = PageSetting(
            url=listed.page.url,
            updated=listed.page.modified,
            feed=read_head(listed.page.head),
            language=self._language,
            authors=self._authors,
        )
        entry = in_language(unpack(listed.page.entry.body, Entry), listed.page)
        return page_of(entry, setting)


def _state(listed: ListedPage) -> _State:
    page = listed.page
    return page.entry.id, page.entry.revision, page.modified, page.head


def _size(page: EntryPage) -> int:
    return sum(len(each.text) for each in page.chunks)
