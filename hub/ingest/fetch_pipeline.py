"""One visit to one feed: fetch, parse, decide, commit."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.fetch_commit import fetch_error
from hub.core.schedule.next_request import comes_from_elsewhere
from hub.core.schedule.poll_period import PlanningContext, PollingRules
from hub.core.sites.format_changes import page_keys, seen_as_pages
from hub.http import BodyAllowance
from hub.ingest.committer import Committer, StaleTarget
from hub.ingest.document_parser import DocumentReader
from hub.ingest.fetcher import FeedFetcher, FetcherIdentity, FetchRequest
from hub.runtime.failpoints import failpoint
from hub.runtime.offloading import run_by_size
from hub.sites.site_reader import SiteReader
from protocols.feeds.creator import older_url
from protocols.model import SITE_FORMATS, ParsedFeed
from protocols.protocol_errors import UnsupportedVersion
from storage.contract import FeedStore
from storage.errors import BodyRequired
from storage.records import FetchCommit, FetchTarget, PollReason

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

_random = random.Random()  # noqa: S311 - spreads load, hides nothing, and is cheap

_AT_LEISURE: AbstractAsyncContextManager[None] = nullcontext()

MOST_DECISIONS = 5
"""Decisions in one visit to a feed that is edited again before each commit."""


def draw_jitter() -> float:
    return _random.uniform(-1.0, 1.0)


class CommittedFetch(Struct, frozen=True, kw_only=True):
    """What a visit fetched, and what was committed of it."""

    fetched: Fetched
    commit: FetchCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPipeline:
    """Visits feeds. It does not decide when a feed is fetched, or how many at once.

    Without ``sites`` the documents of sites are treated like other feeds. The host's
    turn for the first request of a visit has come before; ``wait_for_host`` waits for
    the turn of one more request, by its URL.
    """

    feeds: FeedStore
    fetcher: FeedFetcher
    reader: DocumentReader
    committer: Committer
    rules: PollingRules
    identity: FetcherIdentity
    planning_context: Callable[[], PlanningContext]
    jitter: Callable[[], float] = draw_jitter
    sites: SiteReader | None = None
    wait_for_host: Callable[[str], Awaitable[None]]
    traces: Traces | None = None

    async def run(
        self,
        target: FetchTarget,
        reason: PollReason,
        asking: AbstractAsyncContextManager[None] = _AT_LEISURE,
        allowance: BodyAllowance | None = None,
    ) -> CommittedFetch:
        """Fetch a feed and commit what that changes; validators are always sent.

        ``asking`` surrounds the first request; an exception from it ends the visit
        before anything is changed. The memory of the feed's document is taken from the
        ``allowance``. If the feed is edited meanwhile, the fetch is decided anew; if
        the edit changes the request, the feed is fetched anew as well. Raises
        `StorageError`, and `StaleTarget` if the feed is edited again and again: then
        nothing is stored, as if it had not been fetched.
        """
        async with asking:
            request = self._request(target, allowance)
            causes = self.traces.take_causes(target.feed.id) if self.traces else ()
            fetched = await self.fetcher.fetch(request)
        is_lost = True
        try:
            visit = await self._commit_fetched(
                target, request, fetched, reason, allowance
            )
            fetched, is_lost = visit.fetched, False
            return visit
        finally:
            if self.traces:
                self.traces.tell_fetch(
                    target.feed.id, reason, fetched, causes, is_lost=is_lost
                )

    async def _commit_fetched(
        self,
        target: FetchTarget,
        request: FetchRequest,
        fetched: Fetched,
        reason: PollReason,
        allowance: BodyAllowance | None,
    ) -> CommittedFetch:
        """Commit what was fetched, anew if the feed is edited meanwhile."""
        for _ in range(MOST_DECISIONS - 1):
            try:
                return await self._finish(target, fetched, reason, allowance)
            except StaleTarget:
                for edited in await self.feeds.targets([target.feed.id]):
                    target = edited  # none if it was removed, as the commit finds
            former, request = request, self._request(target, allowance)
            if _origin(request) != _origin(former):
                await self.wait_for_host(request.url)
                fetched = await self.fetcher.fetch(request)
        return await self._finish(target, fetched, reason, allowance)

    async def _finish(
        self,
        target: FetchTarget,
        fetched: Fetched,
        reason: PollReason,
        allowance: BodyAllowance | None,
    ) -> CommittedFetch:
        failpoint("after-fetch")
        understood = await self.reader.read(target, fetched)
        failpoint("after-parse")
        if isinstance(understood.error, UnsupportedVersion) and not fetched.is_pushed:
            request = self._request(target, allowance)
            older = replace(request, url=older_url(fetched.url))
            fetched, understood = await self._older(older, target, fetched, understood)
        decision = Decision(
            target=target,
            fetched=fetched,
            understood=understood,
            rules=self.rules,
            jitter=self.jitter(),
            reason=reason,
            reader=self.reader.name,
            planning_context=self.planning_context(),
        )
        return CommittedFetch(fetched=fetched, commit=await self._conclude(decision))

    def _request(
        self, target: FetchTarget, allowance: BodyAllowance | None = None
    ) -> FetchRequest:
        polling = target.feed.polling
        return FetchRequest(
            url=polling.fetch_url or target.feed.url,
            # A topic that is to be sent as it is needs its whole document once, even if
            # an earlier fetch only looked at it.
            validators=None
            if target.keeps_body and not target.feed.format and not polling.is_resource
            else polling.validators,
            credentials=target.credentials,
            user_agent=self.identity.user_agent(target),
            credentials_origin=target.feed.url,
            subscribers=target.subscribers,
            allowance=allowance,
        )

    async def _older(
        self,
        request: FetchRequest,
        target: FetchTarget,
        fetched: Fetched,
        understood: ParseOutcome,
    ) -> tuple[Fetched, ParseOutcome]:
        """An older version of a document that cannot be read, if its publisher offers
        one; otherwise what was found."""
        if request.url == fetched.url:
            return fetched, understood
        await self.wait_for_host(request.url)
        older = replace(await self.fetcher.fetch(request), instead_of=fetched.url)
        if older.error:
            return fetched, understood
        read = await self.reader.read(target, older)
        return (fetched, understood) if read.error else (older, read)

    async def _conclude(self, decision: Decision) -> FetchCommit:
        site = _site_format(decision)
        if site and self.sites is not None:
            request = self._request(decision.target)
            at = decision.fetched.at
            apply = partial(self.committer.commit, fetched_at=at)
            return await self.sites.visit(decision, site, request, apply)
        decision = await self._with_what_is_known(decision)
        try:
            return await self._commit(decision)
        except BodyRequired:  # the first as-is subscription came meanwhile
            target = replace(decision.target, keeps_body=True)
            return await self._commit(replace(decision, target=target))

    async def _commit(self, decision: Decision) -> FetchCommit:
        feed = decision.understood.feed
        size, entries = len(decision.fetched.body), len(feed.entries) if feed else 0
        deciding = partial(decide, decision)
        commit = await run_by_size(deciding, size, entries)  # it hashes both
        applied = await self.committer.commit(
            decision.target, commit, decision.fetched.at
        )
        return applied.commit

    async def _with_what_is_known(self, decision: Decision) -> Decision:
        """The decision, with what is known of the feed from before: as a site that it
        was, or as the feed that it is redirected to."""
        target, fetched = decision.target, decision.fetched
        feed = decision.understood.feed
        if feed is None:
            return decision
        if target.feed.format in SITE_FORMATS:
            target = await self._no_longer_site(target, fetched, feed)
            decision = replace(decision, target=target)
        if comes_from_elsewhere(target.feed, fetched):
            elsewhere = await self._seen_elsewhere(target, fetched)
            decision = replace(decision, elsewhere=elsewhere)
        return decision

    async def _no_longer_site(
        self, target: FetchTarget, fetched: Fetched, feed: ParsedFeed
    ) -> FetchTarget:
        """The target of a feed that was a site, with the entries known from that
        time."""
        if self.sites is None:
            return target
        pages = await self.sites.store.known(target.feed.id, page_keys(feed))
        return replace(target, seen=seen_as_pages(target.seen, pages, fetched.at))

    async def _seen_elsewhere(self, target: FetchTarget, fetched: Fetched) -> bytes:
        """The seen-set of the feed that this one has just been redirected to; empty if
        there is none."""
        other = await self.feeds.find(fetched.url)
        if other is None or other.id == target.feed.id:
            return b""
        return b"".join(each.seen for each in await self.feeds.targets([other.id]))


def _origin(request: FetchRequest) -> tuple[object, ...]:
    """The parts of two requests that must be equal for them to get the same
    document."""
    return request.url, request.credentials, request.credentials_origin


def _site_format(decision: Decision) -> str:
    """The format of a site, whose document says where to read on; "" for a feed."""
    known, understood = decision.target.feed.format, decision.understood
    if decision.fetched.is_pushed:  # pushed content never says where to read on
        return ""
    if understood.feed is not None:
        found = understood.feed.format
        return found if found.is_site else ""
    if fetch_error(decision.polling, decision.fetched, understood):
        return ""
    return known if known in SITE_FORMATS else ""
