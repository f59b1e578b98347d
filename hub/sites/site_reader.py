"""Visits to sites: carries out the steps that a walk asks for.

Each step is committed as it comes. If the hub dies between two steps, it continues from
the last one: nothing is lost, and nothing is sent twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.news.decision import Decision
from hub.core.news.seen_set import day_of
from hub.core.sites.format_changes import news_since_feed
from hub.core.sites.site_bounds import SiteBounds, VisitUsage
from hub.core.sites.site_commits import end_commit, step_commit
from hub.core.sites.site_state import SiteState, begin_anew, read_state
from hub.core.sites.walk_steps import (
    CommitPages,
    Count,
    Download,
    Downloaded,
    FindUnlisted,
    Get,
    LoadPages,
    Parse,
    ReadCollection,
    SiteVisit,
    VisitExhausted,
    Walk,
    WalkEnded,
    WalkOf,
    WalkReply,
    Want,
)
from hub.ingest.committer import AppliedCommit
from hub.ingest.document_parser import Parser
from hub.ingest.fetcher import FetchRequest
from hub.ingest.visit_slots import SiteSlots
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.sites.collection_spool import Spool, Spools, spooling_request, unroll, verify
from protocols.feeds import ParseContext
from protocols.model import SITE_FORMATS, Entry, ParsedFeed
from protocols.protocol_errors import FeedError
from protocols.scp.read.unpacking import ChecksumRule
from protocols.topic_pages import TopicFormat, TopicPage, render_topic_page
from storage.contract import SiteStore, Storage
from storage.errors import BodyRequired
from storage.packing import unpack, unpack_head
from storage.records import (
    DocumentWrite,
    FeedId,
    FetchCommit,
    FetchTarget,
    RecordKind,
    StoredFeed,
    StoredSitePage,
    Validators,
)
from storage.subscription_filter import DOCUMENT_KINDS

MOST_ENTRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteDocuments:
    """Atom documents of a site's newest pages, for as-is subscribers.

    A site itself has no document that says what is new.
    """

    storage: Storage
    hub_url: str

    async def add(self, target: FetchTarget, commit: FetchCommit) -> FetchCommit:
        """Return the commit with the site's document as it is after the commit.

        Without news the commit is returned as it is. Raises `StorageError`.
        """
        if not any(record.kind in DOCUMENT_KINDS for record in commit.records):
            return commit
        feed_id = target.feed.id
        head = None
        if commit.head is None:
            head = await self.storage.log.feed_head(feed_id)
        stored = await self.storage.entries.newest([feed_id], limit=MOST_ENTRIES)
        written = {each.key for each in commit.entries}
        written |= {each.key for each in commit.deletions}
        packed = [each.body for each in stored if each.key not in written]
        document = await run_in_thread(
            lambda: self._render(target, commit, head, packed)
        )
        body = DocumentWrite(content_type=TopicFormat.ATOM.media_type, body=document)
        return replace(commit, body=body)

    def _render(
        self,
        target: FetchTarget,
        commit: FetchCommit,
        head: bytes | None,
        packed: list[bytes],
    ) -> bytes:
        """Return the document, with the entries that the commit writes first.

        ``head`` and ``packed`` are the head and the entries that are stored.
        """
        entries = commit.entries[:MOST_ENTRIES]
        further = packed[: MOST_ENTRIES - len(entries)]
        entries += tuple(unpack(body, Entry) for body in further)
        page = TopicPage(
            url=target.feed.url,
            hub=self.hub_url,
            source=target.feed.url,
            feed=commit.head or unpack_head(head),
            entries=entries,
            dates=(commit.at,) * len(entries),
            undated=commit.at,
        )
        return render_topic_page(page, TopicFormat.ATOM)


@dataclass(slots=True)
class SiteReading:
    """A visit to a site under way: how far it has come, and what it may still spend.

    ``decision`` starts from the state that was committed last.
    """

    decision: Decision
    state: SiteState
    spent: VisitUsage
    request: FetchRequest  # the request for the front document
    is_news: Callable[[Entry], bool]
    new: int = 0
    spool: Spool | None = None  # the last collection, if any

    @property
    def feed_id(self) -> FeedId:
        return self.decision.target.feed.id

    def request_for(self, want: Get | Download) -> FetchRequest:
        """Return the request for a document; credentials go only to the feed's
        origin."""
        validators = None
        if want.etag or want.last_modified:
            validators = Validators(
                url=want.url, etag=want.etag, last_modified=want.last_modified
            )
        return replace(self.request, url=want.url, validators=validators)

    def count_step(self, applied: AppliedCommit, state: SiteState) -> None:
        """Count a committed step, and go on from the state it has written."""
        new = state.entries_of_day - self.spent.entries_of_day
        self.spent.entries += max(0, new)
        self.spent.entries_of_day = state.entries_of_day
        self.new += _notified_count(applied.commit)
        self.state = state
        target = _after(self.decision.target, applied)
        self.decision = replace(self.decision, target=target)


def entries_of_day(state: SiteState, decision: Decision) -> int:
    """Return how many entries of the site were announced today so far."""
    is_today = state.day == day_of(decision.fetched.at)
    return state.entries_of_day if is_today else 0


def _notified_count(commit: FetchCommit) -> int:
    records = (each for each in commit.records if each.kind is RecordKind.ENTRIES)
    return sum(len(each.entries) for each in records)


def _after(target: FetchTarget, applied: AppliedCommit) -> FetchTarget:
    """Return the target in the state that a step has left it in."""
    commit = applied.commit
    feed = replace(
        target.feed,
        polling=commit.polling,
        next_fetch=commit.next_fetch,
        format=commit.format or target.feed.format,
        title=target.feed.title if commit.title is None else commit.title,
    )
    return replace(target, feed=feed, version=applied.version)


Apply = Callable[[FetchTarget, FetchCommit], Awaitable[AppliedCommit]]
"""Commits, after all that any commit needs; returns what was committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReader:
    """Visits sites.

    ``walks`` has the walk for each format. ``wait`` waits for the turn of a URL's host,
    ``fetch`` makes a request. ``checksum`` is the rule for collections.
    """

    store: SiteStore
    clock: Clock
    walks: Mapping[str, WalkOf]
    fetch: Callable[[FetchRequest], Awaitable[Fetched]]
    wait: Callable[[str], Awaitable[None]]
    documents: SiteDocuments
    parser: Parser
    bounds: SiteBounds = field(default_factory=SiteBounds)
    checksum: ChecksumRule = ChecksumRule.LENIENT
    spools: Spools = field(default_factory=Spools)
    slots: SiteSlots

    async def visit(
        self, decision: Decision, format: str, request: FetchRequest, apply: Apply
    ) -> FetchCommit:
        """Walk from the front document, fetched already; return the last commit.

        Raises `StorageError`; earlier commits of the visit stay. Raises `NoSiteSlot`
        before anything is read, if too many sites are being read.
        """
        with self.slots.read(decision.target.feed):
            return await self._visit(decision, format, request, apply)

    async def _visit(
        self, decision: Decision, format: str, request: FetchRequest, apply: Apply
    ) -> FetchCommit:
        reading = await self._begin(decision, format, request)
        try:
            ended = await self._walk(self._walk_of(reading, format), reading, apply)
        finally:
            self._close(reading)
        commit = end_commit(
            reading.decision,
            ended or WalkEnded(),
            at=self.clock.now(),
            new=reading.new,
            is_unfinished=ended is None and reading.spent.has_day_left,
        )
        return (await apply(reading.decision.target, commit)).commit

    async def _begin(
        self, decision: Decision, format: str, request: FetchRequest
    ) -> SiteReading:
        target = decision.target
        state = read_state(await self.store.state(target.feed.id), format)
        if target.feed.format != format:
            state = begin_anew(state, format, _feed_until(target.feed))
        bounds = self.bounds.of(format)
        return SiteReading(
            decision=decision,
            state=state,
            spent=VisitUsage(
                bounds,
                until=self.clock.monotonic() + bounds.seconds,
                entries_of_day=entries_of_day(state, decision),
            ),
            request=request,
            is_news=news_since_feed(target.seen, state.feed_until),
        )

    def _walk_of(self, reading: SiteReading, format: str) -> Walk:
        return self.walks[format](
            SiteVisit(
                url=reading.decision.target.feed.url,
                front=reading.decision.fetched,
                state=reading.state.walk,
                now=self.clock.now(),
                is_read=reading.state.is_read,
                walk_every=self.bounds.walk_every,
                reread_every=self.bounds.reread_every,
                checksum=self.checksum,
            )
        )

    async def _walk(
        self, walk: Walk, reading: SiteReading, apply: Apply
    ) -> WalkEnded | None:
        """Take the steps of a walk; None if the visit has used up what it may spend."""
        reply: WalkReply | None = None
        while True:
            try:
                want = await run_in_thread(partial(_advance, walk, reply))
            except VisitExhausted:
                return None
            if isinstance(want, WalkEnded):
                return want
            reply = await self._serve(want, reading, apply)

    async def _serve(self, want: Want, reading: SiteReading, apply: Apply) -> WalkReply:
        feed_id = reading.feed_id
        match want:
            case Get():
                return await self._ask(want, reading)
            case Download():
                return await self._download(want, reading)
            case ReadCollection():
                return await unroll(reading.spool, want.after, reading.spent)
            case Parse():
                return await self._parse(want.fetched)
            case LoadPages():
                return await self._known(want.keys, reading)
            case FindUnlisted():
                return await self.store.unlisted(
                    feed_id, want.walk, after=want.after, limit=want.limit
                )
            case Count():
                return await self.store.tally(feed_id, want.walk)
            case CommitPages():
                return await self._save(want, reading, apply)

    async def _ask(self, want: Get, reading: SiteReading) -> Fetched | bool:
        """Fetch a document; return False if the visit may make no more requests."""
        if not reading.spent.may_ask(self.clock.monotonic()):
            return False
        fetched = await self._fetch(want, reading.request_for(want), reading)
        reading.spent.bytes += len(fetched.body)
        return fetched

    async def _fetch(
        self, want: Get | Download, request: FetchRequest, reading: SiteReading
    ) -> Fetched:
        await self.wait(want.url)
        fetched = await self.fetch(request)
        reading.spent.requests += 1
        return fetched

    async def _download(
        self, want: Download, reading: SiteReading
    ) -> Downloaded | bool:
        """Download a file to disk, not into memory.

        Returns False if the visit may make no more requests, or no spool is free in
        time.
        """
        self._close(reading)
        spent, now = reading.spent, self.clock.monotonic
        if not spent.may_ask(now()):
            return False
        spool = await self.spools.open(want.rules, lambda: now() >= spent.until)
        if spool is None:
            return False
        reading.spool = spool
        request = spooling_request(reading.request_for(want), spool)
        fetched = await self._fetch(want, request, reading)
        spent.bytes += spool.size
        return await verify(spool, fetched, spent)

    def _close(self, reading: SiteReading) -> None:
        if reading.spool is not None:
            self.spools.close(reading.spool)
            reading.spool = None

    async def _parse(self, fetched: Fetched) -> ParsedFeed | FeedError:
        context = ParseContext(
            url=fetched.url, content_type=fetched.content_type, now=self.clock.now()
        )
        try:
            return await self.parser.parse(fetched.body, context)
        except FeedError as error:
            return error

    async def _known(
        self, keys: Sequence[str], reading: SiteReading
    ) -> Mapping[str, StoredSitePage]:
        found = await self.store.known(reading.feed_id, keys)
        return {page.key: page for page in found}

    async def _commit(
        self, target: FetchTarget, commit: FetchCommit, apply: Apply
    ) -> AppliedCommit:
        """Commit, with the site's document if an as-is subscription needs it."""
        if target.keeps_body:
            return await apply(target, await self.documents.add(target, commit))
        try:
            return await apply(target, commit)
        except BodyRequired:  # the first as-is subscription came meanwhile
            return await apply(target, await self.documents.add(target, commit))

    async def _save(
        self, step: CommitPages, reading: SiteReading, apply: Apply
    ) -> bool:
        """Commit a step; returns whether more may be saved in this visit."""
        keys = [each.entry.key for each in step.pages]
        keys += [each.key for each in step.deletions]
        known = await self._known(keys, reading)
        decision = reading.decision
        commit, state = await run_in_thread(
            partial(
                step_commit,
                decision,
                step,
                known,
                reading.state,
                self.clock.now(),
                reading.is_news,
            )
        )
        applied = await self._commit(decision.target, commit, apply)
        reading.count_step(applied, state)
        return reading.spent.may_tell()


def _feed_until(feed: StoredFeed) -> float:
    """Return the Unix time when the site was last read while it was a feed, or 0."""
    read = feed.polling.last_success
    was_feed = bool(feed.format) and feed.format not in SITE_FORMATS
    return read.timestamp() if read and was_feed else 0.0


def _advance(walk: Walk, reply: WalkReply | None) -> Want | WalkEnded:
    """Advance a walk to its next step, or to its end. Raises `VisitExhausted`."""
    try:
        return next(walk) if reply is None else walk.send(reply)
    except StopIteration as stop:
        ended: WalkEnded = stop.value
        return ended
