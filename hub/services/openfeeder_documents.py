"""The documents of OpenFeeder: an index, pages, search results, changes.

Pages that match a search are found by their words, and ordered by a ranker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from hub.publishing.openfeeder_gatekeeper import Gatekeeper
from hub.publishing.openfeeder_sync import PageChanges
from hub.publishing.page_cache import MadePage, PageCache
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from protocols.openfeeder.write.content_queries import (
    ErrorCode,
    IndexQuery,
    OpenFeederError,
    PageQuery,
    PageSearchQuery,
    Request,
    SyncQuery,
    invalid_parameter,
)
from protocols.openfeeder.write.page_chunks import (
    Candidate,
    EntryPage,
    Ranker,
    WordRanker,
    query_words,
)
from protocols.openfeeder.write.served_documents import (
    Cached,
    PublisherFacts,
    Scored,
    render_discovery,
    render_index,
    render_page,
    render_sync,
)
from protocols.scp.collection import page_address
from protocols.urls import resolve
from storage.contract import Storage
from storage.records import NOBODY, Both, Either, EntryId, ListedPage, Phrase, Term

MOST_RANKED = 100
"""The newest pages with every word are ranked, at most so many. If they are fewer, the
newest pages with any of the words fill up the number."""
MOST_WORDS = 12


@dataclass(frozen=True, slots=True)
class PageSearch:
    storage: Storage
    cache: PageCache
    ranker: Ranker

    async def find(self, query: str) -> list[Scored]:
        """The pages found, the best first; of equally good ones, the latest first."""
        words = list(dict.fromkeys(query_words(query)))[:MOST_WORDS]
        if not words:
            return []
        listed = await self._candidates(words)
        pages = [each.page for each in await self.cache.make(listed)]
        texts = [_candidate(page) for page in pages]
        scores = await run_in_thread(lambda: self.ranker.rank(query, texts))
        found = zip(pages, scores, listed, strict=True)
        ordered = sorted(found, key=lambda each: (-each[1], -each[2].page.id))
        return [Scored(facts=page.facts, relevance=score) for page, score, _ in ordered]

    async def _candidates(self, words: Sequence[str]) -> Sequence[ListedPage]:
        terms = tuple(Phrase((word,)) for word in words)
        ids = await self._matching(Both(terms) if len(terms) > 1 else terms[0])
        if len(ids) < MOST_RANKED and len(terms) > 1:
            ids += await self._matching(Either(terms))
        chosen = list(dict.fromkeys(ids))[:MOST_RANKED]
        return await self.storage.page_list.of_entries(chosen)

    async def _matching(self, term: Term) -> list[EntryId]:
        found = await self.storage.search.find(
            term, viewer=NOBODY, limit=MOST_RANKED * 2
        )
        return [each.id for each in found.entries]


def _candidate(page: EntryPage) -> Candidate:
    text = "\n".join(each.text for each in page.chunks)
    return Candidate(title=page.facts.title, text=text)


SEARCH = "search"
DIFF_SYNC = "diff-sync"
"""A capability that is not in the specification's list, but that its own clients ask
for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFeederOptions:
    """What OpenFeeder serves. ``is_on`` False: nothing. ``has_search``: pages can be
    searched. ``name`` "": derived from the host."""

    is_on: bool = True
    has_search: bool = True
    name: str = ""
    language: str = "en"
    contact: str = ""
    tombstone_seconds: float = 90 * 86_400.0
    gatekeeper: Gatekeeper = field(default_factory=Gatekeeper)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDocument:
    """A document.

    ``etag`` has no quotes, and covers all but the document's age. ``results`` counts
    items or chunks. ``is_cached``: none of them had to be made from its entry.
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
        self._changes = PageChanges(
            storage,
            self._cache,
            clock,
            self.options.gatekeeper,
            self.options.tombstone_seconds,
        )

    @property
    def endpoint(self) -> str:
        return f"{self._public_url}/openfeeder"

    def discovery(self) -> ServedDocument:
        """The discovery document (OpenFeeder 2): "MUST be publicly accessible (no auth
        required)"."""
        options = self.options
        host = self._public_url.partition("://")[2]
        site = PublisherFacts(
            name=options.name or f"Feeds at {host}",
            url=self._public_url,
            language=options.language,
            description=f"The public feeds of the hub at {host}",
            contact=options.contact,
        )
        search = (SEARCH,) if options.has_search else ()
        auth = ("auth",) if options.gatekeeper.key else ()
        capabilities = (*search, DIFF_SYNC, *auth)
        return _served(render_discovery(site, self.endpoint, capabilities))

    async def answer(self, request: Request) -> ServedDocument:
        """The document that a request asks for. Raises `OpenFeederError` for a page
        that does not exist, and `StorageError`."""
        match request:
            case IndexQuery():
                return await self._index(request)
            case PageQuery():
                return await self._page(request)
            case PageSearchQuery():
                return await self._found(request)
            case SyncQuery():
                return await self._sync(request)

    async def _index(self, request: IndexQuery) -> ServedDocument:
        state = await self._storage.page_list.state()
        listed = await self._storage.page_list.page(
            skip=(request.page - 1) * request.limit, limit=request.limit
        )
        made = await self._shown(listed)
        body = render_index(
            [Scored(facts=each.page.facts) for each in made],
            page=request.page,
            total_pages=_pages(state.count, request.limit),
        )
        return _served(body, results=len(made), is_cached=_all_kept(made))

    async def _page(self, request: PageQuery) -> ServedDocument:
        listed = await self._find(request.url)
        made = await self._shown([listed] if listed else [])
        if not made:
            raise OpenFeederError(
                ErrorCode.NOT_FOUND,
                "no such page; the index lists all pages",
            )
        (found,) = made
        scores = await self._scores(request.query, found.page)
        chunks = found.page.chunks
        if request.query:
            chosen = [each for each in chunks if scores[each.id] >= request.min_score]
            chunks = tuple(sorted(chosen, key=lambda each: -scores[each.id]))
        returned = chunks[: request.limit]
        # The tag depends on the state alone, not on the age of the document.
        stable = render_page(found.page, returned, scores, Cached())
        cached = Cached(seconds=found.kept_for)
        return ServedDocument(
            body=render_page(found.page, returned, scores, cached),
            etag=_digest(stable),
            results=len(returned),
            is_cached=found.kept_for is not None,
        )

    async def _found(self, request: PageSearchQuery) -> ServedDocument:
        if not self.options.has_search:
            raise invalid_parameter("q", "a url beside it: this site has no search")
        gatekeeper = self.options.gatekeeper
        found = await self._search.find(request.query)
        answers = [
            each
            for each in found
            if each.relevance
            and each.relevance >= request.min_score
            and gatekeeper.shows(each.facts)
        ]
        begin = (request.page - 1) * request.limit
        items = answers[begin : begin + request.limit]
        body = render_index(
            items, page=request.page, total_pages=_pages(len(answers), request.limit)
        )
        return _served(body, results=len(items))

    async def _sync(self, request: SyncQuery) -> ServedDocument:
        result = await self._changes.read(request)
        count = len(result.added) + len(result.updated) + len(result.deleted)
        return _served(render_sync(result), results=count)

    async def _find(self, url: str) -> ListedPage | None:
        """The page of a URL, compared with the stored addresses. Nothing is fetched; a
        path without a host is one of this hub."""
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

    async def _scores(self, query: str, page: EntryPage) -> dict[str, float]:
        if not query:
            return {}
        texts = [Candidate(text=each.text) for each in page.chunks]
        scores = await run_in_thread(lambda: self._ranker.rank(query, texts))
        return dict(zip((each.id for each in page.chunks), scores, strict=True))


def _pages(count: int, limit: int) -> int:
    return max(1, -(-count // limit))


def _all_kept(made: Sequence[MadePage]) -> bool:
    return bool(made) and all(each.kept_for is not None for each in made)


def _served(
    body: bytes, *, results: int = 0, is_cached: bool = False
) -> ServedDocument:
    return ServedDocument(
        body=body, etag=_digest(body), results=results, is_cached=is_cached
    )


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
