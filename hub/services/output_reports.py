"""What the hub publishes: how much of each output there is, who reads it, and how the
building of collections goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub.publishing.collection_builder import BuildOutcome
from hub.publishing.collection_store import StoredCollection
from hub.publishing.output_readers import OutputReaders, ReaderCount
from hub.runtime.clock import Clock
from hub.services.openfeeder_documents import OpenFeederOptions
from hub.services.public_pages import PublicService
from hub.services.served_collections import CollectionService
from protocols.scp.collection import CollectionType
from storage.contract import Storage
from storage.records import PagesState

MOST_MEASURED: Final = 250
"""Public feeds up to which their list is made just to measure it; if there are more,
its size is that of the list last made for a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionReport:
    """The collections. ``listed``: the files that the sitemap names, newest first,
    snapshots before deltas; ``kept``: those that are served besides. ``made``: when the
    current generation was published, None before the first.

    ``next_delta`` and ``next_snapshot``: about when each is built next; None until one
    was built. ``is_wanted``: a build has been asked for. ``pages_written``: how far the
    current build is.
    """

    listed: Sequence[StoredCollection]
    kept: int
    size: int  # bytes of all listed files
    sitemap_size: int
    made: datetime | None
    next_delta: datetime | None
    next_snapshot: datetime | None
    last_build: BuildOutcome | None
    is_wanted: bool
    pages_written: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReport:
    """The outputs. ``topics``: how many public feeds are listed; ``opml_size``: bytes
    of their list, None if it is long and nobody has requested it yet. ``collections``
    None: there are none.

    ``readers`` were counted since ``counted_since``, for a day at most.
    """

    topics: int
    opml_size: int | None
    pages: PagesState
    collections: CollectionReport | None
    has_openfeeder: bool
    is_openfeeder_keyed: bool
    readers: Sequence[ReaderCount]
    counted_since: datetime


class OutputReportService:
    def __init__(
        self,
        storage: Storage,
        public: PublicService,
        collections: CollectionService,
        openfeeder: OpenFeederOptions,
        readers: OutputReaders,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._public = public
        self._collections = collections
        self._openfeeder = openfeeder
        self._readers = readers
        self._clock = clock

    async def get(self) -> OutputReport:
        """What the hub publishes. Raises `StorageError`."""
        topics = await self._storage.public.count()
        return OutputReport(
            topics=topics,
            opml_size=await self._opml_size(topics),
            pages=await self._storage.page_list.state(),
            collections=await self._collection_report(),
            has_openfeeder=self._openfeeder.is_on,
            is_openfeeder_keyed=bool(self._openfeeder.gatekeeper.key),
            readers=self._readers.counts(),
            counted_since=self._readers.since,
        )

    async def _opml_size(self, topics: int) -> int | None:
        if topics <= MOST_MEASURED:
            return len((await self._public.list_feeds()).body)
        return self._public.list_size

    async def _collection_report(self) -> CollectionReport | None:
        service = self._collections
        if not service.is_on:
            return None
        sitemap = await service.sitemap()
        generation, options = service.generation, service.options
        last = service.last_build
        snapshots = [
            each.generated
            for each in generation.listed
            if each.type is CollectionType.SNAPSHOT
        ]
        delta, snapshot = options.delta_seconds, options.snapshot_seconds
        return CollectionReport(
            listed=sorted(generation.listed, key=_order),
            kept=len(generation.collections) - len(generation.listed),
            size=sum(each.size for each in generation.listed),
            sitemap_size=len(sitemap.body),
            made=generation.made if generation.epoch else None,
            next_delta=last.begun + timedelta(seconds=delta) if last else None,
            next_snapshot=min(snapshots) + timedelta(seconds=snapshot)
            if snapshots
            else None,
            last_build=last,
            is_wanted=service.is_wanted,
            pages_written=service.pages_written,
        )


def _order(each: StoredCollection) -> tuple[bool, float, str]:
    is_delta = each.type is CollectionType.DELTA
    return is_delta, -each.generated.timestamp(), each.name
