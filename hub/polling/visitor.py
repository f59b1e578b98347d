"""One visit to one feed: fetch, understand, decide, commit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from hub.clock import Clock
from hub.core.cadence import PollingRules
from hub.core.decide import body_hash, decide
from hub.core.fetched import Fetched, Occasion, Understood
from hub.core.outlook import Outlook
from hub.core.trouble import is_known_body
from hub.failpoints import failpoint
from hub.metrics import Metrics
from hub.parsing import Parser
from hub.polling.fetcher import FetchRequest
from protocols.errors import FeedError
from protocols.feeds import ParseContext
from protocols.http import user_agent
from storage.errors import DocumentWanted
from storage.interface import LogStore
from storage.records import FetchCommit, FetchTarget

INLINE_BYTES = 256 * 1024
"""Decisions on larger documents are made beside the event loop, not in it."""

log = structlog.get_logger()
_random = random.Random()  # noqa: S311 - spreads load, hides nothing, and is cheap


def draw_jitter() -> float:
    return _random.uniform(-1.0, 1.0)


class FeedFetcher(Protocol):
    """What a visit needs of `hub.polling.fetcher.Fetcher`."""

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Failures are values."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who publishers are told is asking; what is "" is left out."""

    product: str = "Fanfare"  # with its version: Fanfare/1.0
    url: str = ""
    contact: str = ""  # a URL or mail address

    def user_agent(self, target: FetchTarget) -> str:
        return user_agent(
            self.product,
            url=self.url,
            contact=self.contact,
            subscribers=target.subscribers,
            feed_id=target.feed.id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What came of a visit, committed."""

    fetched: Fetched
    commit: FetchCommit


class Visitor:
    """Visits feeds; knows nothing of when, or of how many at once."""

    def __init__(
        self,
        feed_log: LogStore,
        fetcher: FeedFetcher,
        parser: Parser,
        clock: Clock,
        rules: PollingRules,
        identity: Identity,
        metrics: Metrics,
        outlook: Callable[[], Outlook],
        jitter: Callable[[], float] = draw_jitter,
    ) -> None:
        self._log = feed_log
        self._fetcher = fetcher
        self._parser = parser
        self._clock = clock
        self._rules = rules
        self._identity = identity
        self._metrics = metrics
        self._outlook = outlook
        self._jitter = jitter

    async def visit(self, target: FetchTarget, occasion: Occasion) -> Visit:
        """Fetch a feed and commit what that changes; validators are always sent.

        Raises `StorageError`: then nothing is stored and the fetch never happened.
        """
        fetched = await self._fetcher.fetch(self._request(target))
        understood = await self._understand(target, fetched)
        try:
            return await self._conclude(target, fetched, understood, occasion)
        except DocumentWanted:  # the first as-is subscription came during the fetch
            target = replace(target, keeps_body=True)
            return await self._conclude(target, fetched, understood, occasion)

    def _request(self, target: FetchTarget) -> FetchRequest:
        polling = target.feed.polling
        return FetchRequest(
            url=polling.fetch_url or target.feed.url,
            validators=polling.validators,
            credentials=target.credentials,
            user_agent=self._identity.user_agent(target),
            credentials_origin=target.feed.url,
            subscribers=target.subscribers,
        )

    async def _understand(self, target: FetchTarget, fetched: Fetched) -> Understood:
        """Parse a whole 200, unless its bytes are known to be a feed."""
        if fetched.error or fetched.status != 200:
            return Understood()
        if is_known_body(target.feed.polling, body_hash(fetched.body)):
            return Understood()
        context = ParseContext(
            url=fetched.url, content_type=fetched.content_type, now=self._clock.now()
        )
        try:
            return Understood(feed=await self._parser.parse(fetched.body, context))
        except FeedError as error:
            return Understood(error=error)

    async def _conclude(
        self,
        target: FetchTarget,
        fetched: Fetched,
        understood: Understood,
        occasion: Occasion,
    ) -> Visit:
        commit = await self._decide(target, fetched, understood, occasion)
        if await self._store(commit):
            _tell(target, commit)
        return Visit(fetched=fetched, commit=commit)

    async def _decide(
        self,
        target: FetchTarget,
        fetched: Fetched,
        understood: Understood,
        occasion: Occasion,
    ) -> FetchCommit:
        def decision() -> FetchCommit:
            return decide(
                target,
                fetched,
                understood,
                rules=self._rules,
                jitter=self._jitter(),
                occasion=occasion,
                outlook=outlook,
            )

        outlook = self._outlook()
        if len(fetched.body) > INLINE_BYTES and understood.feed is not None:
            return await asyncio.to_thread(decision)
        return decision()

    async def _store(self, commit: FetchCommit) -> bool:
        """Commit; whether it was, for the feed may have been removed meanwhile."""
        if commit.records:
            failpoint("before-commit")
        started = self._clock.monotonic()
        positions = await self._log.commit(commit)
        self._metrics.count_poll(commit, self._clock.monotonic() - started)
        if commit.records:
            failpoint("after-commit")
        return positions is not None


def _tell(target: FetchTarget, commit: FetchCommit) -> None:
    """A line for what readers of the log learn of, and for a feed that is given up."""
    for record in commit.records:
        log.info(
            "feed_fetched",
            feed=target.feed.id,
            status=commit.polling.code,
            kind=record.kind.value,
            entries=len(record.entries),
            error=commit.polling.error,
        )
    if commit.state is not None and commit.state.is_stopped:
        log.warning("feed_stopped", feed=target.feed.id, state=commit.state.value)
