"""Search: stored entries that match a query, in the language of track queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hub.beside import run_beside
from hub.core.searching import searched_subject, term_of
from hub.delivery.notifications import Document
from hub.services.collected import Collected, render
from hub.services.tokens import Principal
from protocols.live.messages import BodyFormat
from protocols.model import Entry, Feed
from protocols.track import Query, parse_query
from storage.interface import Storage
from storage.packing import unpack
from storage.records import EntrySource, FeedId, StoredEntry

PAGE = 100
MOST_LOOKED_AT = 2_000
"""Entries that have a query's words and may yet not match it, or not be seen."""


class SearchService:
    def __init__(
        self, storage: Storage, public_url: str, *, tells_unlisted: bool = True
    ) -> None:
        """``tells_unlisted``: subscribers, of entries that are not to be found."""
        self._storage = storage
        self._public_url = public_url
        self._tells_unlisted = tells_unlisted

    async def find(self, principal: Principal, query: str, count: int) -> Collected:
        """The newest entries that match and that the account may see.

        Raises `InvalidValue`: a `QueryError` that says where and what was expected.
        """
        read = parse_query(query)
        found: list[StoredEntry] = []
        sources: dict[FeedId, EntrySource] = {}
        below: int | None = None
        for _ in range(MOST_LOOKED_AT // PAGE):
            page = await self._storage.search.find(
                term_of(read),
                viewer=None if principal.is_admin else principal.account.id,
                limit=PAGE,
                below=below,
                listed_only=not self._tells_unlisted,
            )
            await self._learn(sources, page.entries)
            choosing = partial(_matching, read, page.entries, sources)
            found += await run_beside(choosing)
            below = page.next
            if below is None or len(found) >= count:
                break
        del found[count:]
        named = dict.fromkeys(each.feed_id for each in found)
        return Collected(
            topic=f"{self._public_url}/?hub.mode=search",
            entries=found,
            sources=[sources[feed_id] for feed_id in named],
            is_merged=True,
            title=f"Search: {read}",
            line=f"{len(found)} entries found",
            topics={},
        )

    async def _learn(
        self, sources: dict[FeedId, EntrySource], entries: Sequence[StoredEntry]
    ) -> None:
        """Add what is not known yet of where entries come from."""
        unknown = {each.feed_id for each in entries} - sources.keys()
        for source in await self._storage.entries.sources(sorted(unknown)):
            sources[source.feed.id] = source

    async def render(self, collected: Collected, format: BodyFormat) -> Document:
        return await render(collected, format, f"{self._public_url}/hub")


def _matching(
    query: Query,
    entries: Sequence[StoredEntry],
    sources: Mapping[FeedId, EntrySource],
) -> list[StoredEntry]:
    """The index knows words and places; what else is asked, the entries say."""
    heads = {
        feed_id: unpack(source.head, Feed) if source.head else Feed()
        for feed_id, source in sources.items()
    }
    return [
        stored
        for stored in entries
        if stored.feed_id in heads
        and query.matches(
            searched_subject(
                unpack(stored.body, Entry),
                heads[stored.feed_id],
                sources[stored.feed_id].feed,
            )
        )
    ]
