"""Feeds as the API shows them, and candidates that may become feeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from hub.core.push.hub_subscription import PushFacts, PushState
from hub.core.schedule.poll_period import Term
from hub.core.status.feed_health import health_of
from hub.core.status.feed_pauses import FeedPause
from hub.services.feed_reports import (
    ExplainedFeed,
    FeedFindings,
    FeedReport,
    PollHistory,
)
from hub.services.feed_requests import ImportedFeed, ImportOutcome
from hub.services.push_hub_reports import PushHubReport
from hub.services.selected_feeds import SelectedFeedPage
from hub.sites.feed_finder import LookupResult
from hub.web.api.selection_input import cursor_of, id_of
from hub.web.json_output import (
    DelayJson,
    FeedFreshnessJson,
    JsonObject,
    Time,
    former_name,
    named_schema,
)
from protocols.model import Hints
from protocols.opml import OutlineWalk
from protocols.protocol_errors import FeedLink
from storage.records import (
    FeedHealth,
    FeedState,
    Poll,
    PollOutcome,
    PollReason,
    PushWay,
    StoredFeed,
    Validators,
)

DocumentFormat = Annotated[str, named_schema("DocumentFormat")]


class FeedHealthReportJson(JsonObject):
    """How a feed is, since when, and why it is not well."""

    state: FeedHealth
    since: Time
    reason: str


class FeedJson(JsonObject):
    """A feed, and how its last fetch went."""

    id: int
    url: str
    state: FeedState
    health: FeedHealthReportJson
    private: bool
    category: str
    section: Annotated[str, former_name("category")]
    title: str
    format: DocumentFormat
    next_fetch: Time
    created_at: Time
    has_credentials: bool
    code: int | None
    message: str
    error: str
    failures: int
    failing_since: Time | None
    last_fetch: Time | None
    retry_after: Time | None
    last_success: Time | None
    last_parse: Time | None
    period: float
    own_period: float
    velocity: float
    entries: int
    entries_since_maintenance: int
    generated_ids: bool
    bozo_rank: float

    @classmethod
    def of_feed(cls, feed: StoredFeed, *records: object, **more: Any) -> Self:
        polling = feed.polling
        return cls.of(
            feed,
            polling,
            *records,
            health=FeedHealthReportJson.of(health_of(feed)),
            section=feed.category,
            entries=polling.entry_count,
            **more,
        )


class PlannedFeedJson(FeedJson):
    """A feed, and why it is fetched next when it is, or why it is not."""

    next_fetch_reason: str


class AddedFeedJson(PlannedFeedJson):
    """A feed that was to be added. ``added``: the hub did not have it before."""

    added: bool


class EditedFeedJson(FeedJson):
    """An edited feed. ``follows``: what comes of the change, a sentence each."""

    follows: Sequence[str]
    subscriptions_ended: int


class FetchedFeedJson(PlannedFeedJson):
    """A feed that is fetched. ``fetched``: that has ended already."""

    fetched: bool


class FailedPollJson(JsonObject):
    """A poll that failed. ``code``: the HTTP status, 0 without an answer."""

    at: Time
    outcome: PollOutcome
    code: int


class SelectedFeedJson(FeedJson):
    """A feed of a list. ``last_failure``: of the polls that are kept the last that
    failed; null if none did."""

    last_failure: FailedPollJson | None


class FeedsJson(JsonObject):
    """A page of feeds.

    ``cursor``: that of the following page, null after the last. ``next``: the ``after``
    of that page, in a list by id. ``total``: how many the filter finds; null if they
    are too many to be counted.
    """

    feeds: list[SelectedFeedJson]
    cursor: str | None
    next: int | None
    total: int | None

    @classmethod
    def of_page(cls, page: SelectedFeedPage) -> Self:
        return cls(
            feeds=[
                SelectedFeedJson.of_feed(
                    each.feed, last_failure=FailedPollJson.of_any(each.last_failure)
                )
                for each in page.feeds
            ],
            cursor=cursor_of(page.next),
            next=id_of(page.next),
            total=page.total,
        )


class FeedLinkJson(JsonObject):
    """A feed that a page names."""

    url: str
    title: str
    type: str

    @classmethod
    def of_all(cls, links: Sequence[FeedLink]) -> list[Self]:
        return [cls.of(each, url=each.href) for each in links]


class FeedChoicesJson(JsonObject):
    """A page that names several feeds, one of which is to be added."""

    url: str
    feeds: list[FeedLinkJson]


class ImportedFeedJson(JsonObject):
    """What became of one feed of many."""

    url: str
    outcome: ImportOutcome
    reason: str
    feed: FeedJson | None
    feeds: list[FeedLinkJson]

    @classmethod
    def of_import(cls, imported: ImportedFeed) -> Self:
        feed = imported.feed
        return cls.of(
            imported,
            feed=None if feed is None else FeedJson.of_feed(feed),
            feeds=FeedLinkJson.of_all(imported.feeds),
        )


class ImportedFeedsJson(JsonObject):
    feeds: list[ImportedFeedJson]


class WalkedListJson(JsonObject):
    """A list that was asked for; ``error`` says why it was not read."""

    url: str
    feeds: int
    error: str
    trouble: Annotated[str, former_name("error")]


class ListedFeedJson(JsonObject):
    """A feed of a list; ``category``: its folders' names with slashes between them."""

    url: str
    title: str
    description: str
    category: str
    section: Annotated[str, former_name("category")]


class WalkedListsJson(JsonObject):
    """A part of the feeds that lists name; ``next``: the ``skip`` of the next part."""

    feeds: list[ListedFeedJson]
    total: int
    next: int | None
    lists: list[WalkedListJson]
    notes: list[str]

    @classmethod
    def of_walk(cls, walk: OutlineWalk, *, skip: int, length: int) -> Self:
        end = skip + length
        return cls(
            feeds=[
                ListedFeedJson.of(each, section=each.category)
                for each in walk.feeds[skip:end]
            ],
            total=len(walk.feeds),
            next=end if end < len(walk.feeds) else None,
            notes=walk.notes,
            lists=[WalkedListJson.of(each, trouble=each.error) for each in walk.lists],
        )


class LookupResultJson(JsonObject):
    """What is at a URL: a feed, or the feeds that are named there."""

    is_feed: bool
    format: DocumentFormat
    title: str
    entries: int
    error: str
    feeds: list[FeedLinkJson]
    best: str | None
    reason: str
    trouble: Annotated[str, former_name("error")]

    @classmethod
    def of_result(cls, found: LookupResult) -> Self:
        best = found.choice.best
        return cls(
            is_feed=found.feed is not None,
            format=found.feed.format if found.feed else "",
            title=found.feed.feed.title if found.feed else "",
            entries=found.feed.entry_count if found.feed else 0,
            error=found.error,
            feeds=FeedLinkJson.of_all(found.choice.feeds),
            best=best.href if best else None,
            reason="" if found.feed else found.choice.reason,
            trouble=found.error,
        )


class RedirectJson(JsonObject):
    """A permanent redirect that is watched before it is believed."""

    target: str
    sightings: int
    first_seen: Time


class SiteFactsJson(JsonObject):
    """How far the reading of a site is, which takes many requests."""

    kind: str
    pages: int
    is_read: bool
    entries_of_day: int
    phase: str
    cursor: str
    walked_at: Time | None
    reread_at: Time | None


class PushFactsJson(JsonObject):
    """How another hub pushes a feed."""

    way: PushWay
    hub: str
    topic: str
    state: PushState
    is_trusted: bool
    until: Time | None
    asked_at: Time | None
    retry_at: Time | None
    error: str
    pushed_at: Time | None
    brought: int
    late: int
    missed: int
    foreign: int
    is_hinted: bool
    trouble: Annotated[str, former_name("error")]

    @classmethod
    def of_facts(cls, facts: PushFacts | None) -> Self | None:
        return None if facts is None else cls.of(facts, trouble=facts.error)


class FeedReportJson(PlannedFeedJson):
    """A feed, and all that explains how it is and when it is polled."""

    subscribers: int
    fetch_url: str
    redirect: RedirectJson | None
    validators: Validators | None
    answers_304: bool
    fresh_until: Time | None
    unchanged: int
    hints: Hints
    rekeyed: int
    rekeyed_at: Time | None
    gap_at: Time | None
    waiting: int
    told_of_day: int
    bytes_of_day: int
    dropped: int
    problems: Sequence[str]
    period_terms: Sequence[Term]
    maintained_at: Time | None
    popularity: float | None
    porn_rank: float | None
    is_stale: bool
    related: Sequence[int]
    site: SiteFactsJson | None
    push: PushFactsJson | None
    freshness: FeedFreshnessJson

    @classmethod
    def of_report(cls, report: FeedReport) -> Self:
        polling, statistics = report.feed.polling, report.statistics
        return cls.of_feed(
            report.feed,
            report,
            next_fetch_reason=report.reason,
            subscribers=report.subscribers,
            fetch_url=polling.fetch_url or report.feed.url,
            redirect=RedirectJson.of_any(polling.redirect),
            period_terms=report.plan.terms,
            maintained_at=statistics.maintained_at if statistics else None,
            popularity=statistics.popularity if statistics else None,
            porn_rank=statistics.porn_rank if statistics else None,
            is_stale=statistics is not None and statistics.is_stale,
            site=SiteFactsJson.of_any(report.site),
            push=PushFactsJson.of_facts(report.push),
            freshness=FeedFreshnessJson(
                publication_to_commit=DelayJson.of(report.to_commit),
                commit_to_delivery=DelayJson.of(report.to_delivery),
            ),
        )


class FeedPlanJson(JsonObject):
    """When a feed is polled next, and why."""

    id: int
    url: str
    state: FeedState
    next_fetch: Time
    sentence: str
    period: float
    rate: float
    rate_now: float
    price: float
    hints: Hints
    hints_in_force: Sequence[str]
    hours: Sequence[float]
    minutes: Sequence[float]
    terms: Sequence[Term]
    site: SiteFactsJson | None
    push: PushFactsJson | None

    @classmethod
    def of_explained(cls, explained: ExplainedFeed) -> Self:
        feed, explanation = explained.feed, explained.explanation
        return cls.of(
            feed,
            explanation,
            period=feed.polling.period,
            hints=feed.polling.hints,
            hints_in_force=explanation.in_force,
            site=SiteFactsJson.of_any(explained.site),
            push=PushFactsJson.of_facts(explained.push),
        )


class PollJson(JsonObject):
    """One poll. ``code``: the HTTP status, 0 without an answer.

    ``entries``: how many entries the outcome is about. ``asked_by``: who asked for it,
    and by what means; null if nobody did, or that is not known.
    """

    at: Time
    reason: PollReason
    outcome: PollOutcome
    code: int
    milliseconds: int
    entries: int
    asked_by: str | None


class FeedPauseJson(JsonObject):
    """A time in which a feed was paused. ``resumed_at``: null while it is;
    ``paused_by``, ``resumed_by``: who, and by what means; null if that is not known."""

    paused_at: Time
    paused_by: str | None
    resumed_at: Time | None
    resumed_by: str | None

    @classmethod
    def of_pause(cls, pause: FeedPause) -> Self:
        return cls.of(
            pause,
            paused_by=pause.paused_by or None,
            resumed_by=pause.resumed_by or None,
        )


class FeedHistoryJson(JsonObject):
    """A feed's last polls, the latest first.

    ``before`` and ``after``: the polls next to the span that was asked for; null if
    none is kept. ``pauses``: when it was paused in it, the earliest first.
    """

    id: int
    url: str
    polls: list[PollJson]
    before: PollJson | None
    after: PollJson | None
    pauses: list[FeedPauseJson]

    @classmethod
    def of_history(cls, history: PollHistory) -> Self:
        def poll(each: Poll) -> PollJson:
            return PollJson.of(each, asked_by=history.asked_by.get(each.at))

        return cls.of(
            history.feed,
            polls=[poll(each) for each in history.polls],
            before=poll(history.before) if history.before else None,
            after=poll(history.after) if history.after else None,
            pauses=[FeedPauseJson.of_pause(each) for each in history.pauses],
        )


class FindingJson(JsonObject):
    """Something odd about a feed, and what may be done about it."""

    kind: str
    what: str
    suggestion: str


class FoundFeedJson(JsonObject):
    """A feed that something may be done about."""

    id: int
    url: str
    title: str
    state: FeedState
    polls_per_entry: float | None
    findings: list[FindingJson]

    @classmethod
    def of_found(cls, found: FeedFindings) -> Self:
        findings = [FindingJson.of(each) for each in found.findings]
        per_entry = found.polls_per_entry
        return cls.of(found.feed, polls_per_entry=per_entry, findings=findings)


class FeedFindingsJson(JsonObject):
    """What was found on a page of the feeds."""

    feeds: list[FoundFeedJson]
    next: int | None


class PushCountsJson(JsonObject):
    """Counts of the requests to one hub, and of what it pushed."""

    requested: int
    confirmed: int
    refused: int
    unanswered: int
    lapsed: int
    delivered: int
    forged: int
    rejected: int
    brought: int
    late: int
    foreign: int
    missed: int


class PushHubJson(JsonObject):
    """A hub of other people. ``used`` false: feeds are not subscribed there, because
    its host is among those that are not used, or no hub is used."""

    hub: str
    used: bool
    counts: PushCountsJson

    @classmethod
    def of_report(cls, report: PushHubReport) -> Self:
        counts = PushCountsJson(**report.counts)
        return cls(hub=report.hub, used=report.is_used, counts=counts)


class PushHubsJson(JsonObject):
    """Other people's hubs that push feeds."""

    hubs: list[PushHubJson]


class SubscriptionsEndedJson(JsonObject):
    subscriptions_ended: int
