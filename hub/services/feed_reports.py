"""Reports on feeds: their state, and why they are polled when they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from hub.core.push.hub_subscription import PushFacts, push_facts
from hub.core.schedule.poll_period import Plan
from hub.core.sites.site_formats import SiteFacts, site_facts
from hub.core.status.feed_pauses import (
    FeedPause,
    PauseChange,
    change_of_plan,
    pauses_of,
)
from hub.core.status.feed_timeline import (
    FeedTimeline,
    PollRun,
    SeenPost,
    runs_of,
    timeline,
)
from hub.core.status.findings import (
    FeedFinding,
    FindingKind,
    findings,
    polls_per_entry,
)
from hub.core.status.freshness import DelayDigest, DelaySummary
from hub.core.status.plan_explanation import (
    PlanExplanation,
    explain_plan,
    reason_of,
)
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.services.audit_trail import AuditTrail
from hub.services.entry_reports import EntryReport
from hub.services.feed_registration import FeedPoller, existing_feed
from protocols.model import SITE_FORMATS, Entry
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack
from storage.records import (
    AuditFilter,
    AuditOutcome,
    AuditRecord,
    AuditTarget,
    BulkPlan,
    FeedFilter,
    FeedId,
    FeedState,
    FeedStatistics,
    PlanAction,
    Poll,
    PollReason,
    RecordKind,
    StoredBody,
    StoredEntry,
    StoredFeed,
)

SHOWN_RELATED = 10
SHOWN_RECORDS = 200
"""Records of a timeline, from its first poll on."""
SHOWN_POSTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReport:
    """A feed with what explains its state. ``related``: ids of public feeds of its
    site."""

    feed: StoredFeed
    subscribers: int
    plan: Plan
    reason: str  # why it is fetched next at that time
    statistics: FeedStatistics | None = None  # None before the first maintenance
    related: tuple[FeedId, ...] = ()
    site: SiteFacts | None = None  # None unless it is read by many requests
    push: PushFacts | None = None  # None if it names no hub
    to_commit: DelaySummary  # of new entries, since their publication
    to_delivery: DelaySummary  # since publication, from the hub's start on


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedFeed:
    """Why a feed is polled when it is; for a site also how much of it was read."""

    feed: StoredFeed
    explanation: PlanExplanation
    site: SiteFacts | None
    push: PushFacts | None


ASKED_WITHIN: Final = timedelta(seconds=60)
"""The longest time between a request to fetch a feed and the answer to its poll."""
_FETCH, _PAUSE, _RESUME = "fetch_feed", "pause_feed", "resume_feed"
_CONFIRM: Final = "confirm_plan"
READ_CHANGES: Final = 100
"""Records of the audit trail that are read to find the pauses of a feed, and who
confirmed plans."""
READ_PLANS: Final = 50
"""Plans that are read to find who had a feed fetched, or paused it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollHistory:
    """A feed and its last polls, the latest first.

    ``asked_by`` says of the times of some of them who asked for the poll. ``before``
    and ``after`` are the polls next to the span that was asked for, as far as they are
    kept; ``pauses`` those that reach into that span, the earliest first.
    """

    feed: StoredFeed
    polls: tuple[Poll, ...]
    asked_by: Mapping[datetime, str] = field(default_factory=dict)
    before: Poll | None = None
    after: Poll | None = None
    pauses: tuple[FeedPause, ...] = ()

    def runs(self) -> list[PollRun]:
        """The polls, those that are alike together."""
        asked_by = self.asked_by
        return [*runs_of([(each, asked_by.get(each.at, "")) for each in self.polls])]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFindings:
    """A feed, and what its operator may want to do something about."""

    feed: StoredFeed
    polls_per_entry: float | None
    findings: tuple[FeedFinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsPage:
    """``next`` is the ``after`` of the following page, None after the last."""

    feeds: tuple[FeedFindings, ...]
    next: FeedId | None


class _NamedPlan(NamedTuple):
    """``name``: who confirmed it, as far as the audit trail knows, and its number."""

    plan: BulkPlan
    name: str


class FeedReportService:
    def __init__(
        self,
        storage: Storage,
        poller: FeedPoller,
        audit: AuditTrail,
        clock: Clock,
        metrics: Metrics | None = None,
    ) -> None:
        self._freshness = (metrics or Metrics()).freshness
        self._storage = storage
        self._poller = poller
        self._audit = audit
        self._clock = clock

    async def get(self, feed_id: FeedId, *, is_whole: bool = True) -> FeedReport:
        """A report on a feed; ``is_whole`` False: without statistics and related feeds.

        Raises `NotFound`.
        """
        feed = await existing_feed(self._storage.feeds, feed_id)
        push = await self._push(feed_id)
        plan = self._plan(feed, push)
        is_hinted = push is not None and push.is_hinted
        statistics, related = None, list[FeedId]()
        if is_whole:
            stored = self._storage.feed_statistics
            statistics = await stored.get(feed_id)
            related = await stored.related(feed_id, SHOWN_RELATED)
        return FeedReport(
            feed=feed,
            subscribers=await self._storage.subscriptions.count(feed_id),
            plan=plan,
            reason=reason_of(feed, plan, is_hinted=is_hinted),
            statistics=statistics,
            related=tuple(related),
            site=await self._site(feed),
            push=push,
            to_commit=DelayDigest.unpack(feed.polling.delays).summary(),
            to_delivery=self._freshness.to_delivery_of(feed_id),
        )

    async def raw(self, feed_id: FeedId) -> StoredBody:
        """The last valid document, packed, if its format is one that is kept as it
        came.

        Raises `NotFound` for an unknown feed, and for one without such a document.
        """
        await existing_feed(self._storage.feeds, feed_id)
        document = await self._storage.log.raw(feed_id)
        if document is None:
            raise NotFound("raw document of feed", feed_id)
        return document

    async def reason(self, feed: StoredFeed) -> str:
        """Why a feed is fetched next at that time, or why it is not fetched."""
        push = await self._push(feed.id)
        is_hinted = push is not None and push.is_hinted
        return reason_of(feed, self._plan(feed, push), is_hinted=is_hinted)

    async def history(
        self,
        feed_id: FeedId,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        limit: int | None = None,
    ) -> PollHistory:
        """The last polls of a feed, even of a removed one, from ``since`` on and before
        ``until``, and what explains the gaps. Raises `NotFound`."""
        feed = await existing_feed(self._storage.feeds, feed_id)
        return await self.history_of(feed, since, until, limit=limit)

    async def history_of(
        self,
        feed: StoredFeed,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        limit: int | None = None,
        has_pauses: bool = True,
    ) -> PollHistory:
        """Like `history`. Unless ``has_pauses``, these are not looked for."""
        kept = await self._storage.feeds.polls(feed.id)
        earlier = [each for each in kept if since is not None and each.at < since]
        later = [each for each in kept if until is not None and each.at >= until]
        beside = {each.at for each in (*earlier, *later)}
        polls = [each for each in kept if each.at not in beside][:limit]
        told = [*later[-1:], *polls, *earlier[:1]]
        is_of_plan = any(each.reason is PollReason.BY_PLAN for each in told)
        plans = await self._last_plans() if has_pauses or is_of_plan else []
        pauses = await self._pauses(feed, kept, plans) if has_pauses else ()
        return PollHistory(
            feed=feed,
            polls=tuple(polls),
            asked_by={
                **await self._asked_alone(feed.id, told),
                **_asked_by_plans(feed.id, told, plans),
            },
            before=earlier[0] if earlier else None,
            after=later[-1] if later else None,
            pauses=tuple(each for each in pauses if each.overlaps(since, until)),
        )

    async def pauses_before(self, report: EntryReport) -> tuple[FeedPause, ...]:
        """When the feed was paused between the publication of an entry and its commit,
        as far as these and the pauses are known."""
        feed, since = report.feed, report.believed
        if since is None or not report.records:
            return ()
        found = await self._pauses_since(feed, report.polls, since)
        committed = report.records[0].at
        return tuple(each for each in found if each.overlaps(since, committed))

    async def _pauses_since(
        self, feed: StoredFeed, polls: Sequence[Poll], since: datetime
    ) -> tuple[FeedPause, ...]:
        """The pauses of a feed that reach beyond a time, as far as they are known."""
        turned = feed.turned_at or feed.created_at
        if feed.state is not FeedState.PAUSED and turned <= since:
            return ()
        found = await self._pauses(feed, polls, await self._last_plans())
        return tuple(each for each in found if each.overlaps(since, None))

    async def _pauses(
        self, feed: StoredFeed, polls: Sequence[Poll], plans: Sequence[_NamedPlan]
    ) -> list[FeedPause]:
        """When a feed was paused, by whom, and who resumed it: as far as the audit
        trail, the last plans and its polls know it."""
        wanted = AuditFilter(
            target=AuditTarget.FEED,
            target_id=feed.id,
            without=_FETCH,
            outcome=AuditOutcome.DONE,
        )
        page = await self._audit.page(wanted, before=None, limit=READ_CHANGES)
        changes = [
            PauseChange(
                at=each.at, is_pause=each.operation == _PAUSE, by=_doer_of(each)
            )
            for each in page.records
            if each.operation in (_PAUSE, _RESUME)
        ]
        of_plans = (change_of_plan(each.plan, feed, each.name) for each in plans)
        changes += [each for each in of_plans if each is not None]
        polled = [each.at for each in polls if each.reason.is_by_schedule]
        return pauses_of(feed, changes, polled)

    async def _asked_alone(
        self, feed_id: FeedId, polls: Sequence[Poll]
    ) -> dict[datetime, str]:
        """Who asked for polls of this feed alone, as far as the audit trail knows:
        whoever subscribes asks for one, too."""
        asked = [each.at for each in polls if each.reason is PollReason.ASKED_FOR]
        if not asked:
            return {}
        wanted = AuditFilter(
            operation=_FETCH,
            target=AuditTarget.FEED,
            target_id=feed_id,
            since=asked[-1] - ASKED_WITHIN,
            until=asked[0] + ASKED_WITHIN,
        )
        page = await self._audit.page(wanted, before=None, limit=len(asked) + 10)
        found = {}
        for at in asked:
            near = min(page.records, key=lambda it: abs(it.at - at), default=None)
            if near is not None and abs(near.at - at) <= ASKED_WITHIN:
                found[at] = _doer_of(near)
        return found

    async def _last_plans(self) -> list[_NamedPlan]:
        plans = await self._storage.plans.latest(READ_PLANS)
        if not plans:
            return []
        wanted = AuditFilter(operation=_CONFIRM, outcome=AuditOutcome.DONE)
        page = await self._audit.page(wanted, before=None, limit=READ_CHANGES)
        confirmed = {each.target_id: f"{_doer_of(each)}, " for each in page.records}
        return [
            _NamedPlan(each, f"{confirmed.get(each.id, '')}plan {each.id}")
            for each in plans
        ]

    async def timeline(self, history: PollHistory) -> FeedTimeline:
        """The polls of a history, what was new since the first of them, and when the
        feed was paused since then."""
        polls = history.polls
        if not polls:
            return timeline((), (), self._clock.now())
        feed, log = history.feed, self._storage.log
        feed_id, since = feed.id, polls[-1].at
        pauses = await self._pauses_since(feed, polls, since)
        after = await log.last_before(feed_id, since)
        records = await log.records(after=after, limit=SHOWN_RECORDS, feed_id=feed_id)
        committed = {
            ref.entry_id: record.at
            for record in records
            for ref in record.entries
            if record.kind is RecordKind.ENTRIES
        }
        entries = await log.entries(list(committed)[-SHOWN_POSTS:])
        posts = [_seen(each, committed[each.id]) for each in entries]
        return timeline(polls, posts, self._clock.now(), pauses)

    async def explain(self, feed_id: FeedId) -> ExplainedFeed:
        """A feed, and why it is polled when it is. Raises `NotFound`."""
        feed = await existing_feed(self._storage.feeds, feed_id)
        push = await self._push(feed_id)
        is_hinted = push is not None and push.is_hinted
        plan = self._plan(feed, push)
        return ExplainedFeed(
            feed=feed,
            explanation=explain_plan(feed, plan, is_hinted=is_hinted),
            site=await self._site(feed),
            push=push,
        )

    def explanation(self, report: FeedReport) -> PlanExplanation:
        """Why the feed is polled when it is, without the factors of hours."""
        is_hinted = report.push is not None and report.push.is_hinted
        return explain_plan(
            report.feed, report.plan, is_hinted=is_hinted, is_whole=False
        )

    async def findings(
        self, *, after: FeedId, limit: int, kind: FindingKind | None = None
    ) -> FindingsPage:
        """The feeds of a page that have findings."""
        now = self._clock.now()
        page = await self._storage.feeds.page(after=after, limit=limit)
        pushes = {
            each.feed_id: push_facts(each, now)
            for each in await self._storage.pushes.of([feed.id for feed in page])
        }
        found = (
            FeedFindings(
                feed=feed,
                polls_per_entry=polls_per_entry(feed, now),
                findings=tuple(
                    each
                    for each in findings(feed, now, pushes.get(feed.id))
                    if kind in (None, each.kind)
                ),
            )
            for feed in page
        )
        return FindingsPage(
            feeds=tuple(each for each in found if each.findings),
            next=page[-1].id if len(page) == limit else None,
        )

    def _plan(self, feed: StoredFeed, push: PushFacts | None) -> Plan:
        is_pushed = push is not None and push.is_trusted
        return self._poller.explain(feed, is_pushed=is_pushed)

    async def _push(self, feed_id: FeedId) -> PushFacts | None:
        return push_facts(await self._storage.pushes.get(feed_id), self._clock.now())

    async def _site(self, feed: StoredFeed) -> SiteFacts | None:
        if feed.format not in SITE_FORMATS:
            return None
        state = await self._storage.sites.state(feed.id)
        return site_facts(state, feed.format)


def _seen(stored: StoredEntry, committed: datetime) -> SeenPost:
    entry = unpack(stored.body, Entry)
    return SeenPost(
        entry_id=stored.id,
        title=entry.title,
        published=entry.published or entry.updated,
        committed=committed,
    )


def _doer_of(record: AuditRecord) -> str:
    """Who did it, and by what means."""
    return f"{record.account.name} by {record.source}"


def _asked_by_plans(
    feed_id: FeedId, polls: Sequence[Poll], plans: Sequence[_NamedPlan]
) -> dict[datetime, str]:
    """The plans that were carried out when a feed was polled by a plan."""
    fetches = [
        each
        for each in plans
        if each.plan.action is PlanAction.FETCH and _may_have_found(each.plan, feed_id)
    ]
    found = dict[datetime, str]()
    for poll in polls:
        if poll.reason is PollReason.BY_PLAN:
            under_way = (each for each in fetches if _is_under_way(each.plan, poll.at))
            if (named := next(under_way, None)) is not None:
                found[poll.at] = named.name
    return found


def _may_have_found(plan: BulkPlan, feed_id: FeedId) -> bool:
    named = plan.wanted.ids if isinstance(plan.wanted, FeedFilter) else ()
    return not named or feed_id in named


def _is_under_way(plan: BulkPlan, at: datetime) -> bool:
    begun, over = plan.confirmed_at, plan.finished_at
    if begun is None or at < begun:
        return False
    return over is None or at <= over + ASKED_WITHIN
