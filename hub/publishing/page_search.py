"""Pages that answer a query: found by their words, ordered by a ranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hub.publishing.page_cache import PageCache
from hub.runtime.offloading import run_in_thread
from protocols.openfeeder.write.page_chunks import EntryPage
from protocols.openfeeder.write.relevance import Candidate, Ranker, query_words
from protocols.openfeeder.write.served_documents import Scored
from storage.contract import Storage
from storage.records import NOBODY, Both, Either, EntryId, ListedPage, Phrase, Term

MOST_RANKED = 100
"""The newest pages that have the words; of those that have any, not before all that
have every one."""
MOST_WORDS = 12


@dataclass(frozen=True, slots=True)
class PageSearch:
    storage: Storage
    cache: PageCache
    ranker: Ranker

    async def find(self, query: str) -> list[Scored]:
        """The best first; of those that are as good, the latest to come."""
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
