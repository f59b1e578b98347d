"""Feeds that a filter finds, as an OPML list that other programs can import."""

from __future__ import annotations

from functools import partial
from typing import Final

from hub.runtime.offloading import run_in_thread
from protocols.opml import FeedOutline, render_opml
from storage.contract import FeedSelectionStore
from storage.records import FeedFilter, FeedSort, ListPlace, StoredFeed

PAGE: Final = 500
"""Feeds read at a time."""


class FeedExportService:
    """Exports lists of feeds for operators; private feeds are included."""

    def __init__(self, selections: FeedSelectionStore, public_url: str) -> None:
        self._selections = selections
        self._host = public_url.partition("://")[2]

    async def render(self, wanted: FeedFilter) -> bytes:
        """The list as OPML. Its folders are the categories, with feeds in the order of
        their ids."""
        outlines: list[FeedOutline] = []
        after: ListPlace | None = None
        while True:
            page = await self._selections.page(
                wanted, FeedSort.ID, after=after, limit=PAGE, has_total=False
            )
            outlines += map(_outline, page.feeds)
            after = page.next
            if after is None:
                break
        title = f"Feeds at {self._host}" if self._host else "Feeds"
        return await run_in_thread(partial(render_opml, title, outlines, None))


def _outline(feed: StoredFeed) -> FeedOutline:
    return FeedOutline(
        title=feed.title, description="", xml_url=feed.url, category=feed.category
    )
