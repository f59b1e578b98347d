"""One visit to one feed: fetch, understand, decide, commit."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import structlog

from hub.beside import LARGE_BYTES, MANY_ENTRIES, run_beside
from hub.clock import Clock
from hub.core.bodies import body_hash
from hub.core.cadence import PollingRules
from hub.core.decide import decide
from hub.core.decision import Decision
from hub.core.fetched import NOT_PARSED, Fetched, Occasion, Understood
from hub.core.outlook import Outlook
from hub.core.redirects import lands_elsewhere
from hub.core.remembered import known_slices
from hub.core.sites.reformatting import page_keys, seen_as_pages
from hub.core.trouble import diagnose, is_known_body
from hub.failpoints import failpoint
from hub.metrics import Metrics, Reading
from hub.parsing import Parser, reader_name
from hub.parsing.sanitizing import Sanitizer
from hub.polling.fetcher import FetchRequest
from hub.polling.languages import Detector, name_languages
from hub.polling.sanitizing import sanitize_news
from hub.polling.sites import SiteReader
from hub.polling.tracker import Tracker
from protocols.errors import FeedError, UnsupportedVersion
from protocols.feeds import ParseContext
from protocols.feeds.creator import older_url
from protocols.http import user_agent
from protocols.model import SITE_FORMATS, ParsedFeed
from protocols.quick import quick_init
from protocols.selectors import selector_of
from storage.errors import DocumentWanted, QueriesWanted
from storage.interface import FeedStore, LogStore
from storage.records import FetchCommit, FetchTarget

MOST_MATCHINGS = 10
"""Of one commit with track queries; then it is as if it could not be stored."""

_LARGE_SLICES = 16 * 1024  # of six hundred entries

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

    @property
    def of_hub(self) -> str:
        """For a request that is made for no feed yet."""
        return user_agent(self.product, url=self.url, contact=self.contact)

    def user_agent(self, target: FetchTarget) -> str:
        return user_agent(
            self.product,
            url=self.url,
            contact=self.contact,
            subscribers=target.subscribers,
            feed_id=target.feed.id,
        )


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What came of a visit, committed."""

    fetched: Fetched
    commit: FetchCommit


class _Found(NamedTuple):
    fetched: Fetched
    understood: Understood
    elsewhere: bytes  # the seen-set of the feed whose URL answered


class Visitor:
    """Visits feeds; knows nothing of when, or of how many at once."""

    def __init__(
        self,
        feeds: FeedStore,
        feed_log: LogStore,
        fetcher: FeedFetcher,
        parser: Parser,
        clock: Clock,
        rules: PollingRules,
        identity: Identity,
        metrics: Metrics,
        outlook: Callable[[], Outlook],
        jitter: Callable[[], float] = draw_jitter,
        sanitizer: Sanitizer | None = None,
        tracker: Tracker | None = None,
        detector: Detector | None = None,
        sites: SiteReader | None = None,
    ) -> None:
        self._feeds = feeds
        self._log = feed_log
        self._fetcher = fetcher
        self._parser = parser
        self._clock = clock
        self._rules = rules
        self._identity = identity
        self._metrics = metrics
        self._outlook = outlook
        self._jitter = jitter
        self._sanitizer = sanitizer
        self._tracker = tracker
        self._detector = detector
        self._sites = sites
        self._reader = reader_name()

    async def visit(self, target: FetchTarget, occasion: Occasion) -> Visit:
        """Fetch a feed and commit what that changes; validators are always sent.

        Raises `StorageError`: then nothing is stored and the fetch never happened.
        """
        fetched = await self._fetcher.fetch(self._request(target))
        understood = await self._understand(target, fetched)
        if isinstance(understood.error, UnsupportedVersion):
            fetched, understood = await self._older(target, fetched, understood)
        site = self._site_format(target, fetched, understood)
        if site and self._sites is not None:
            return await self._visit_site(
                self._sites, site, target, fetched, understood, occasion
            )
        if understood.feed is not None and target.feed.format in SITE_FORMATS:
            target = await self._no_longer_site(target, fetched, understood.feed)
        elsewhere = await self._seen_elsewhere(target, fetched, understood)
        found = _Found(fetched, understood, elsewhere)
        try:
            return await self._conclude(target, found, occasion)
        except DocumentWanted:  # the first as-is subscription came during the fetch
            target = replace(target, keeps_body=True)
            return await self._conclude(target, found, occasion)

    def _site_format(
        self, target: FetchTarget, fetched: Fetched, understood: Understood
    ) -> str:
        """Of a site, whose document says where to read on; "" for any other feed."""
        if understood.feed is not None:
            found = understood.feed.format
            return found if found.is_site else ""
        if diagnose(target.feed.polling, fetched, understood):
            return ""
        return target.feed.format if target.feed.format in SITE_FORMATS else ""

    async def _no_longer_site(
        self, target: FetchTarget, fetched: Fetched, feed: ParsedFeed
    ) -> FetchTarget:
        """A feed now: it knows what it had as a site."""
        if self._sites is None:
            return target
        pages = await self._sites.store.known(target.feed.id, page_keys(feed))
        return replace(target, seen=seen_as_pages(target.seen, pages, fetched.at))

    async def _visit_site(
        self,
        sites: SiteReader,
        format: str,
        target: FetchTarget,
        fetched: Fetched,
        understood: Understood,
        occasion: Occasion,
    ) -> Visit:
        found = _Found(fetched, understood, elsewhere=b"")
        decision = self._decision(target, found, occasion)
        request = self._request(target)
        commit = await sites.visit(decision, format, request, self._apply)
        return Visit(fetched=fetched, commit=commit)

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
            return NOT_PARSED
        if is_known_body(target.feed.polling, await _body_hash(fetched.body)):
            self._count(Reading.UNCHANGED)
            return NOT_PARSED
        context = ParseContext(
            url=fetched.url,
            content_type=fetched.content_type,
            now=self._clock.now(),
            known=await self._known(target),
            selector=selector_of(target.feed.url),
        )
        try:
            feed = await self._parser.parse(fetched.body, context)
        except FeedError as error:
            self._count(Reading.UNREADABLE)
            return Understood(error=error)
        self._count(Reading.INCREMENTAL if feed.is_partial else Reading.FULL)
        return Understood(feed=feed)

    async def _older(
        self, target: FetchTarget, fetched: Fetched, understood: Understood
    ) -> tuple[Fetched, Understood]:
        """The form of a document that is published for those who do not read the
        newest one, if there is one; else what was found."""
        url = older_url(fetched.url)
        if url == fetched.url:
            return fetched, understood
        request = replace(self._request(target), url=url)
        older = replace(await self._fetcher.fetch(request), instead_of=fetched.url)
        if older.error:
            return fetched, understood
        read = await self._understand(target, older)
        return (fetched, understood) if read.error else (older, read)

    async def _known(self, target: FetchTarget) -> bytes:
        known = partial(known_slices, target.slices, target.seen, self._reader)
        is_large = len(target.slices) > _LARGE_SLICES
        return await run_beside(known) if is_large else known()

    def _count(self, reading: Reading) -> None:
        self._metrics.documents.add(reading.value)

    async def _seen_elsewhere(
        self, target: FetchTarget, fetched: Fetched, understood: Understood
    ) -> bytes:
        """What the feed knows that this one has just been redirected to, if any."""
        if understood.feed is None or not lands_elsewhere(target.feed, fetched):
            return b""
        other = await self._feeds.find(fetched.url)
        if other is None or other.id == target.feed.id:
            return b""
        return b"".join(each.seen for each in await self._feeds.targets([other.id]))

    async def _conclude(
        self, target: FetchTarget, found: _Found, occasion: Occasion
    ) -> Visit:
        commit = await self._decide(target, found, occasion)
        commit = await self._apply(target, commit)
        return Visit(fetched=found.fetched, commit=commit)

    async def _apply(self, target: FetchTarget, commit: FetchCommit) -> FetchCommit:
        """Commit, with what is done to the entries of any fetch before."""
        if self._sanitizer is not None:
            commit = await sanitize_news(commit, self._sanitizer)
        if self._detector is not None:
            commit = await name_languages(commit, self._detector)
        if await self._match_and_store(target, commit):
            _tell(target, commit)
        return commit

    async def _match_and_store(self, target: FetchTarget, commit: FetchCommit) -> bool:
        """Once more for queries that came while the entries were being matched."""
        if self._tracker is None:
            return await self._store(commit)
        for _ in range(MOST_MATCHINGS - 1):
            with suppress(QueriesWanted):
                return await self._store(await self._tracker.match(target, commit))
        return await self._store(await self._tracker.match(target, commit))

    async def _decide(
        self, target: FetchTarget, found: _Found, occasion: Occasion
    ) -> FetchCommit:
        decision = partial(decide, self._decision(target, found, occasion))
        if _is_large(found.fetched, found.understood):
            return await run_beside(decision)
        return decision()

    def _decision(
        self, target: FetchTarget, found: _Found, occasion: Occasion
    ) -> Decision:
        return Decision(
            target=target,
            fetched=found.fetched,
            understood=found.understood,
            rules=self._rules,
            jitter=self._jitter(),
            occasion=occasion,
            reader=self._reader,
            elsewhere=found.elsewhere,
            outlook=self._outlook(),
        )

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


async def _body_hash(body: bytes) -> str:
    if len(body) > LARGE_BYTES:
        return await run_beside(partial(body_hash, body))
    return body_hash(body)


def _is_large(fetched: Fetched, understood: Understood) -> bool:
    """Whether the decision takes long: it hashes bodies, and compresses entries."""
    entries = len(understood.feed.entries) if understood.feed else 0
    return len(fetched.body) > LARGE_BYTES or entries > MANY_ENTRIES


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
