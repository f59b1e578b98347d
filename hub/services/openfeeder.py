"""What readers are given by OpenFeeder: an index, pages, answers, what has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hub.beside import run_beside
from hub.clock import Clock
from hub.openfeeder.gatekeeper import Gatekeeper
from hub.openfeeder.page_cache import MadePage, PageCache
from hub.openfeeder.search import PageSearch
from protocols.openfeeder.serving.documents import (
    Cached,
    Scored,
    Site,
    SyncResult,
    Tombstone,
    render_discovery,
    render_index,
    render_page,
    render_sync,
)
from protocols.openfeeder.serving.errors import ErrorCode, OpenFeederError
from protocols.openfeeder.serving.pages import Page, PageFacts
from protocols.openfeeder.serving.parameters import (
    IndexAsked,
    PageAsked,
    Request,
    SearchAsked,
    SyncAsked,
)
from protocols.openfeeder.serving.relevance import Candidate, Ranker, WordRanker
from protocols.openfeeder.serving.times import SyncPoint
from protocols.scp.addresses import page_address
from protocols.urls import resolve
from storage.interface import Storage
from storage.records import ListedPage, PageChange, PagesState

MILLISECOND = timedelta(milliseconds=1)
"""Between two moments that are told apart; both bounds are inclusive."""
MOST_CHANGES = 500
"""Told at once; more than are ever judged together, so that each answer leads on."""
CAPABILITIES = ("search", "diff-sync")
"""The second is not in the specification's list, but what its own clients ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFeederOptions:
    """``is_on`` False: nothing is served. ``name`` "": made of the host."""

    is_on: bool = True
    name: str = ""
    language: str = "en"
    contact: str = ""
    tombstone_seconds: float = 90 * 86_400.0
    gatekeeper: Gatekeeper = field(default_factory=Gatekeeper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A document. ``etag`` without quotes, of all but how long ago it was made;

    ``results``: items or chunks; ``is_cached``: none had to be made of its entry.
    """

    body: bytes
    etag: str
    results: int = 0
    is_cached: bool = False


class OpenFeederService:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        public_url: str,
        options: OpenFeederOptions | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self.options = options or OpenFeederOptions()
        self._storage = storage
        self._clock = clock
        self._public_url = public_url
        self._ranker = ranker or WordRanker()
        self._cache = PageCache(
            clock, self.options.language, self.options.gatekeeper.authors
        )
        self._search = PageSearch(storage, self._cache, self._ranker)

    @property
    def endpoint(self) -> str:
        return f"{self._public_url}/openfeeder"

    def discovery(self) -> Served:
        """2; "MUST be publicly accessible (no auth required)"."""
        options = self.options
        host = self._public_url.partition("://")[2]
        site = Site(
            name=options.name or f"Feeds at {host}",
            url=self._public_url,
            language=options.language,
            description=f"The public feeds that the hub at {host} holds",
            contact=options.contact,
        )
        auth = ("auth",) if options.gatekeeper.key else ()
        return _served(render_discovery(site, self.endpoint, (*CAPABILITIES, *auth)))

    async def answer(self, asked: Request) -> Served:
        """Raises `OpenFeederError` for a page that there is not, and `StorageError`."""
        match asked:
            case IndexAsked():
                return await self._index(asked)
            case PageAsked():
                return await self._page(asked)
            case SearchAsked():
                return await self._found(asked)
            case SyncAsked():
                return await self._sync(asked)

    async def _index(self, asked: IndexAsked) -> Served:
        state = await self._storage.page_list.state()
        listed = await self._storage.page_list.page(
            skip=(asked.page - 1) * asked.limit, limit=asked.limit
        )
        made = await self._shown(listed)
        body = render_index(
            [Scored(facts=each.page.facts) for each in made],
            page=asked.page,
            total_pages=_pages(state.count, asked.limit),
        )
        return _served(body, results=len(made), is_cached=_all_kept(made))

    async def _page(self, asked: PageAsked) -> Served:
        listed = await self._find(asked.url)
        made = await self._shown([listed] if listed else [])
        if not made:
            raise OpenFeederError(
                ErrorCode.NOT_FOUND,
                "no such page; the index lists all there are",
            )
        (found,) = made
        scores = await self._scores(asked.query, found.page)
        chunks = found.page.chunks
        if asked.query:
            chosen = [each for each in chunks if scores[each.id] >= asked.min_score]
            chunks = tuple(sorted(chosen, key=lambda each: -scores[each.id]))
        returned = chunks[: asked.limit]
        # The same state has the same tag, however old what was made of it is.
        stable = render_page(found.page, returned, scores, Cached())
        cached = Cached(seconds=found.kept_for)
        return Served(
            body=render_page(found.page, returned, scores, cached),
            etag=_digest(stable),
            results=len(returned),
            is_cached=found.kept_for is not None,
        )

    async def _found(self, asked: SearchAsked) -> Served:
        gatekeeper = self.options.gatekeeper
        found = await self._search.find(asked.query)
        answers = [
            each
            for each in found
            if each.relevance
            and each.relevance >= asked.min_score
            and gatekeeper.shows(each.facts)
        ]
        begin = (asked.page - 1) * asked.limit
        items = answers[begin : begin + asked.limit]
        body = render_index(
            items, page=asked.page, total_pages=_pages(len(answers), asked.limit)
        )
        return _served(body, results=len(items))

    async def _sync(self, asked: SyncAsked) -> Served:
        """What is read is not later than ``as_of``: that was known before."""
        epoch = (await self._storage.log.head()).epoch
        state = await self._storage.page_list.state()
        after = await self._begin(asked.since, epoch, state)
        changes = await self._storage.page_list.changes(
            after=after,
            through=await self._end(asked.until, state),
            limit=MOST_CHANGES + 1,
        )
        is_truncated = len(changes) > MOST_CHANGES
        del changes[MOST_CHANGES:]
        last = changes[-1] if is_truncated else state
        as_of = SyncPoint(moment=last.changed_at, epoch=epoch, change=last.change)
        result = await self._result(asked, changes, as_of, is_truncated)
        count = len(result.added) + len(result.updated) + len(result.deleted)
        return _served(render_sync(result), results=count)

    async def _begin(
        self, since: SyncPoint | None, epoch: str, state: PagesState
    ) -> int:
        """The change that a reader has already: a token of this database names it."""
        if since is None:
            return 0
        if since.epoch == epoch and 0 < since.change <= state.change:
            return since.change
        return await self._storage.page_list.last_before(since.moment)

    async def _end(self, until: datetime | None, state: PagesState) -> int:
        """The last change that is told of: none is from after what ``as_of`` says."""
        if until is None or until >= state.changed_at:
            return state.change
        return await self._storage.page_list.last_before(until + MILLISECOND)

    async def _result(
        self,
        asked: SyncAsked,
        changes: Sequence[PageChange],
        as_of: SyncPoint,
        is_truncated: bool,
    ) -> SyncResult:
        added: list[PageFacts] = []
        updated: list[PageFacts] = []
        shown = [each.page for each in changes if each.page is not None]
        made = iter(await self._cache.make(shown))
        for each in changes:
            if each.page is None:
                continue
            facts = next(made).page.facts
            if self.options.gatekeeper.shows(facts):
                is_new = _is_new(each.page.shown_at, each.changed_at, asked.since)
                (added if is_new else updated).append(facts)
        deleted, is_complete = self._tombstones(changes if asked.since else ())
        return SyncResult(
            since=asked.since.moment if asked.since else None,
            until=asked.until,
            as_of=as_of,
            added=added,
            updated=updated,
            deleted=deleted,
            tracks_deletions=is_complete,
            is_truncated=is_truncated,
        )

    def _tombstones(
        self, changes: Sequence[PageChange]
    ) -> tuple[list[Tombstone], bool]:
        """Those that are not too old, and whether these are all."""
        gone = [each for each in changes if each.page is None]
        seconds = min(self.options.tombstone_seconds, 3_650 * 86_400.0)
        horizon = self._clock.now() - timedelta(seconds=seconds)
        told = [
            Tombstone(url=each.url, deleted_at=each.changed_at)
            for each in gone
            if each.changed_at >= horizon
            and self.options.gatekeeper.shows_url(each.url)
        ]
        return told, all(each.changed_at >= horizon for each in gone)

    async def _find(self, url: str) -> ListedPage | None:
        """A key of ours, never fetched; a path is one of this hub's own."""
        address = page_address(url)
        own = page_address(resolve(url, f"{self._public_url}/"))
        for each in dict.fromkeys(filter(None, (url, address, own))):
            if found := await self._storage.page_list.find(each):
                return found
        return None

    async def _shown(self, listed: Sequence[ListedPage]) -> list[MadePage]:
        made = await self._cache.make(listed)
        gatekeeper = self.options.gatekeeper
        return [each for each in made if gatekeeper.shows(each.page.facts)]

    async def _scores(self, query: str, page: Page) -> dict[str, float]:
        if not query:
            return {}
        texts = [Candidate(text=each.text) for each in page.chunks]
        scores = await run_beside(lambda: self._ranker.rank(query, texts))
        return dict(zip((each.id for each in page.chunks), scores, strict=True))


def _is_new(shown_at: datetime, changed_at: datetime, since: SyncPoint | None) -> bool:
    """Whether the page was not there at that point. Until alone, nothing is new.

    At the very moment of a token, what appeared and has changed since was told before.
    """
    if since is None:
        return False
    if since.change and shown_at == since.moment:
        return shown_at == changed_at
    return shown_at >= since.moment


def _pages(count: int, limit: int) -> int:
    return max(1, -(-count // limit))


def _all_kept(made: Sequence[MadePage]) -> bool:
    return bool(made) and all(each.kept_for is not None for each in made)


def _served(body: bytes, *, results: int = 0, is_cached: bool = False) -> Served:
    return Served(body=body, etag=_digest(body), results=results, is_cached=is_cached)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
