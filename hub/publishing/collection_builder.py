"""Builds collections: what has changed since the last delta, or everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from hub.publishing.collection_files import CollectionFile, WrittenFile
from hub.publishing.collection_store import (
    Chain,
    CollectionStore,
    Generation,
    StoredCollection,
    later,
    next_generation,
    withdrawn_of,
    without_lost,
    without_withdrawn,
)
from hub.publishing.delta_planning import (
    CollectionPlan,
    DeltaPages,
    SnapshotPages,
    plan_collections,
)
from hub.publishing.page_visibility import PageUpdater, in_language, read_head
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from protocols.model import Entry
from protocols.scp.collection import ALL, CollectionHead, CollectionType, Encoding
from protocols.scp.write.page import PageContext, page_line
from storage.contract import Storage
from storage.errors import StorageError
from storage.packing import unpack
from storage.records import PageSection, PublishedPage

MOST_SECONDS_AHEAD = 10.0
"""Seconds that a build waits for the clock at most, so that no time in it is in the
future."""
_SECOND = timedelta(seconds=1)
_START = datetime(1970, 1, 1, tzinfo=UTC)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How collections are built. ``delta_seconds`` and ``snapshot_seconds``: how often
    a delta and a snapshot are due."""

    delta_seconds: float = 3_600
    snapshot_seconds: float = 86_400
    encoding: Encoding = Encoding.GZIP
    language: str = "en"

    @property
    def lifetime(self) -> float:
        """Seconds for which a collection is listed at most: the time of two
        snapshots."""
        return 2 * self.snapshot_seconds

    @property
    def grace(self) -> float:
        """Seconds for which it is served after that."""
        return self.snapshot_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOutcome:
    """The result of a build: how many ``files`` and ``pages`` it wrote, or why it
    failed (``error``), and how many ``seconds`` it took."""

    begun: datetime
    seconds: float
    files: int = 0
    pages: int = 0
    error: str = ""


class CollectionBuilder:
    """Builds collections, one build at a time; further builds wait for their turn."""

    def __init__(
        self,
        storage: Storage,
        updater: PageUpdater,
        store: CollectionStore,
        clock: Clock,
        options: BuildOptions,
        metrics: Metrics | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._storage = storage
        self._sleep = sleep
        self._updater = updater
        self._store = store
        self._clock = clock
        self.options = options
        self._metrics = metrics or Metrics()
        self._building = asyncio.Lock()
        self.pages_written: int | None = None
        """Pages that the current build has written; None if no build is under way."""
        self.last_build: BuildOutcome | None = None

    async def catch_up(self) -> int:
        """Decide which changed entries are pages; may be called at any time. Raises
        `StorageError`."""
        async with self._building:
            return await self._updater.catch_up()

    async def withdrawn(self) -> frozenset[str]:
        """Names of collections that may not be served although their files exist: they
        may contain text that was withdrawn since. Raises `StorageError`."""
        sections = await self._storage.pages.sections()
        epoch = (await self._storage.log.end()).epoch
        return withdrawn_of(self._store.generation, sections, epoch)

    async def withdraw(self) -> bool:
        """Remove the files and names of withdrawn collections; returns whether there
        were any.

        Raises `StorageError`, OSError.
        """
        async with self._building:
            return await self._withdraw()

    async def needs_snapshot(self) -> bool:
        """Whether a collection was withdrawn, or a section has no snapshot.

        Raises `StorageError`.
        """
        generation = self._store.generation
        return bool(await self.withdrawn()) or any(
            generation.snapshot(section.name or ALL) is None
            for section in await self._storage.pages.sections()
        )

    async def build(self, *, snapshots: bool = False) -> tuple[StoredCollection, ...]:
        """Build a delta of each section that has changed, and the snapshots that are
        due.

        ``snapshots``: treat all snapshots as due. Returns what was built; raises
        `StorageError` and OSError.
        """
        async with self._building:
            self.pages_written = 0
            begun, started = self._clock.now(), self._clock.monotonic()
            outcome = partial(BuildOutcome, begun=begun)
            try:
                built = await self._build_all(snapshots=snapshots)
            except Exception as error:
                seconds = self._clock.monotonic() - started
                self.last_build = outcome(seconds=seconds, error=_reason(error))
                raise
            finally:
                self.pages_written = None
            self.last_build = outcome(
                seconds=self._clock.monotonic() - started,
                files=len(built),
                pages=sum(each.pages for each in built),
            )
            return built

    async def _build_all(self, *, snapshots: bool) -> tuple[StoredCollection, ...]:
        await self._updater.catch_up()
        self._store.directory.mkdir(exist_ok=True)
        await self._withdraw()
        generation = await self._known()
        # What is withdrawn from here on is found by the withdrawals that the sections
        # count.
        sections = await self._storage.pages.sections()
        position = await self._storage.pages.position()
        chains = dict(generation.chains)
        added: list[StoredCollection] = []
        for section in sections:
            plan = self._plan(section, generation, position, snapshots=snapshots)
            built = await self._build_section(plan, position)
            added += built
            if built:
                moment = built[-1].generated
                chains[plan.name] = Chain(position=position, generated=moment)
            elif plan.chain is not None:
                # Nothing in it has changed: the next delta starts from here.
                chains[plan.name] = replace(plan.chain, position=position)
        await self._publish(generation, added, chains)
        return tuple(added)

    async def _withdraw(self) -> bool:
        """Remove collections that may contain withdrawn text from the list; returns
        whether there were any.

        A collection whose time is further ahead than any is listed for is removed as
        well: its readers would ignore everything that comes later as older.
        """
        before, now = self._store.generation, self._clock.now()
        latest = later(now, self.options.lifetime)
        names = await self.withdrawn() | {
            each.name for each in before.collections if each.generated > latest
        }
        chains = {
            name: chain
            for name, chain in before.chains.items()
            if chain.generated <= latest
        }
        if not names and chains == before.chains:
            return False
        kept = without_withdrawn(before, names, now)
        after = next_generation(kept, (), chains, before.epoch, now)
        self._store.directory.mkdir(exist_ok=True)
        await asyncio.to_thread(self._store.publish, after)
        log.info("collections_withdrawn", count=len(names))
        return True

    def _plan(
        self,
        section: PageSection,
        generation: Generation,
        position: int,
        *,
        snapshots: bool = False,
    ) -> CollectionPlan:
        is_due = snapshots or self._is_due(generation.snapshot(section.name or ALL))
        return plan_collections(section, generation, position, is_snapshot_due=is_due)

    async def _build_section(
        self, plan: CollectionPlan, position: int
    ) -> list[StoredCollection]:
        pages, name = self._storage.pages, plan.section.name
        directory = self._store.directory
        async with AsyncExitStack() as stack:
            gathered: list[tuple[CollectionFile, datetime | None]] = []
            newest = _START
            if plan.is_delta_due and plan.chain is not None:
                delta = stack.enter_context(CollectionFile(directory, "delta"))
                changes = DeltaPages(
                    pages, name, after=plan.chain.position, through=position
                )
                newest = await self._gather(delta, changes)
                if delta.count or plan.is_snapshot_due:
                    gathered.append((delta, plan.chain.generated))
            if plan.is_snapshot_due:
                snapshot = stack.enter_context(CollectionFile(directory, "snapshot"))
                everything = SnapshotPages(pages, name)
                newest = max(newest, await self._gather(snapshot, everything))
                gathered.append((snapshot, None))
            generated = await self._moment(plan.name, newest)
            return [
                await self._finish(file, plan, generated, since)
                for file, since in gathered
            ]

    async def _gather(
        self, file: CollectionFile, source: SnapshotPages | DeltaPages
    ) -> datetime:
        """Put all pages into the file; returns when the last of them was modified."""
        newest = _START
        while pages := await self._fresh(source):
            newest = max(newest, max(map(self._modified, pages)))
            await asyncio.to_thread(self._put, file, pages)
            source.pass_by(pages)
            self.pages_written = (self.pages_written or 0) + len(pages)
        return newest

    async def _moment(self, section: str, newest: datetime) -> datetime:
        """When the collection is generated: after every change in it and every earlier
        collection of the section, and not after now.

        If these times are a few seconds ahead, for instance because a page changed
        twice within a second, the build waits for them. It does not wait if the clock
        was set back.
        """
        last = self._store.generation.latest(section)
        after_last = _START if last is None else last + _SECOND
        now = self._clock.now()
        moment = max(now.replace(microsecond=0), newest, after_last)
        ahead = (moment - now).total_seconds()
        if 0 < ahead <= MOST_SECONDS_AHEAD:
            await self._sleep(ahead)
        return moment

    async def _finish(
        self,
        file: CollectionFile,
        plan: CollectionPlan,
        generated: datetime,
        since: datetime | None,
    ) -> StoredCollection:
        is_snapshot = since is None
        head = CollectionHead(
            section=plan.name,
            type=CollectionType.SNAPSHOT if is_snapshot else CollectionType.DELTA,
            generated=generated,
            since=since,
        )
        done = await asyncio.to_thread(file.finish, head, self.options.encoding)
        return self._stored(head, done, file.count, plan.section.withdrawals)

    async def _publish(
        self,
        before: Generation,
        added: Sequence[StoredCollection],
        chains: dict[str, Chain],
    ) -> None:
        now = self._clock.now()
        epoch = (await self._storage.log.end()).epoch
        is_due = any(each.expires <= now and each.is_listed for each in before.listed)
        is_gone = any(each.gone <= now for each in before.collections)
        if added or is_due or is_gone or chains != before.chains:
            after = next_generation(before, added, chains, epoch, now)
            await asyncio.to_thread(self._store.publish, after)
        for each in added:
            self._metrics.collections.add(each.type.value)
            log.debug(
                "collection_built", name=each.name, pages=each.pages, bytes=each.size
            )

    async def _known(self) -> Generation:
        """What is published and still exists, without positions of another database."""
        lost = await asyncio.to_thread(self._store.lost)
        generation = without_lost(self._store.generation, lost)
        epoch = (await self._storage.log.end()).epoch
        if generation.epoch == epoch:
            return generation
        return replace(
            generation,
            epoch=epoch,
            collections=tuple(
                replace(each, is_listed=False, withdrawals=0)
                for each in generation.collections
            ),
            chains={},
        )

    def _is_due(self, last: StoredCollection | None) -> bool:
        """Whether a snapshot is due. It is due somewhat early, so that it is not late
        by a whole delta."""
        if last is None:
            return True
        slack = min(self.options.delta_seconds, self.options.snapshot_seconds) / 2
        age = (self._clock.now() - last.generated).total_seconds()
        return age >= self.options.snapshot_seconds - slack

    async def _fresh(
        self, source: SnapshotPages | DeltaPages
    ) -> Sequence[PublishedPage]:
        """The next pages. Those that changed after they were decided on are decided on
        again first, so that no content is published under an earlier date."""
        pages = await source.next()
        while any(each.is_stale for each in pages):
            await self._updater.catch_up()
            pages = await source.next()
        return pages

    def _put(self, file: CollectionFile, pages: Sequence[PublishedPage]) -> None:
        file.put([self._line(each) for each in pages])

    def _line(self, page: PublishedPage) -> bytes:
        context = PageContext(
            feed=read_head(page.head),
            url=page.url,
            modified=self._modified(page),
            language=self.options.language,
        )
        entry = in_language(unpack(page.entry.body, Entry), page)
        return page_line(entry, context)

    def _modified(self, page: PublishedPage) -> datetime:
        """When the page was modified; now, if the clock was far ahead at that time."""
        now = self._clock.now()
        is_credible = page.modified <= later(now, self.options.lifetime)
        return page.modified if is_credible else now.replace(microsecond=0)

    def _stored(
        self, head: CollectionHead, done: WrittenFile, pages: int, withdrawals: int
    ) -> StoredCollection:
        expires = later(head.generated, self.options.lifetime)
        return StoredCollection(
            name=done.path.name,
            section=head.section,
            type=head.type,
            generated=head.generated,
            since=head.since,
            expires=expires,
            gone=later(expires, self.options.grace),
            encoding=done.encoding,
            digest=done.digest,
            pages=pages,
            size=done.size,
            withdrawals=withdrawals,
        )


def _reason(error: Exception) -> str:
    """What operators are told of a failure; for a fault of the hub, where to look."""
    if isinstance(error, (StorageError, OSError)):
        return str(error)
    return "an internal error; the log has details"
