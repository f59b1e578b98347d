"""Which entries were committed in a span of time, and the way of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.core.status.feed_pauses import FeedPause
from hub.runtime.clock import Clock
from hub.services import FeedReportService
from hub.services.committed_entries import (
    CommittedEntry,
    CommittedEntryService,
    EntryOrder,
)
from hub.services.entry_reports import EntryDelivery, EntryReport, EntryReportService
from hub.web.api.attempt_json import AttemptJson
from hub.web.api.delivery_routes import RetryingSubscriptionJson
from hub.web.api.feed_json import FeedPauseJson, PollJson
from hub.web.api.selection_input import (
    COMMITTED,
    SPAN,
    entry_cursor_text,
    query_committed,
    query_entry_cursor,
    query_span,
)
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import path_id, query_choice, query_limit
from storage.records import (
    DeadLetter,
    EntryId,
    FeedId,
    Position,
    RecordKind,
    SubscriptionState,
    TokenScope,
)


class CommittedEntryJson(JsonObject):
    """An entry that was committed, and how late it was.

    ``position`` and ``kind``: those of the record that tells of it.
    ``publication_to_commit``: in seconds; null without a believable date.
    ``commit_to_delivery``: seconds until the first callback answered with 2xx, or if
    not ``exact`` at most so many; null if none has, or only after a retry.
    """

    id: EntryId
    title: str
    feed: FeedId
    feed_title: str
    url: str
    kind: RecordKind
    position: Position
    published_at: Time | None
    committed_at: Time
    publication_to_commit: float | None
    commit_to_delivery: float | None
    exact: bool

    @classmethod
    def of_entry(cls, entry: CommittedEntry) -> Self:
        return cls(
            id=entry.id,
            title=entry.title,
            feed=entry.feed.id,
            feed_title=entry.feed.title,
            url=entry.feed.url,
            kind=entry.record.kind,
            position=entry.record.position,
            published_at=entry.published,
            committed_at=entry.record.at,
            publication_to_commit=entry.delay,
            commit_to_delivery=entry.first_delivery,
            exact=entry.is_exact,
        )


class CommittedEntriesJson(JsonObject):
    """A page of entries. ``next``: the ``cursor`` of the next page, null after the
    last. ``reached``: the time up to which the words of `search` were looked for;
    null: to the end.

    ``examined``: in the order of their delay, these are of so many, of which the
    ``undated`` have no believable date and are left out; ``has_more``: there
    may be others; ``others_within``: so many seconds after their publication these were
    committed, as the hub counted them, null if that is not known. Otherwise null and
    false.
    """

    entries: list[CommittedEntryJson]
    next: str | None
    reached: Time | None
    examined: int | None
    undated: int | None
    has_more: bool
    others_within: float | None


class TellingRecordJson(JsonObject):
    """A record of the log that tells of an entry."""

    position: Position
    kind: RecordKind
    at: Time


class EntryDeliveryJson(AttemptJson):
    """A request to a callback that told of an entry; ``state``: that of the
    subscription now; ``over_since``: when it ended, null if it has not."""

    subscription: int
    callback: str
    state: SubscriptionState
    over_since: Time | None

    @classmethod
    def of_delivery(cls, delivery: EntryDelivery) -> Self:
        subscription = delivery.subscription
        return cls.of(
            AttemptJson.of_attempt(delivery.attempt),
            subscription=subscription.id,
            callback=subscription.callback,
            state=subscription.state,
            over_since=delivery.over_since,
        )


class GivenUpJson(JsonObject):
    """Records ``first`` to ``last``, which a subscription did not get, and why; ``id``:
    that of the dead letter."""

    id: int
    subscription: int
    callback: str
    first: int
    last: int
    reason: str
    at: Time

    @classmethod
    def of_dead_letter(cls, dead: DeadLetter) -> Self:
        return cls.of(dead, subscription=dead.subscription_id)


class EntryWayJson(JsonObject):
    """An entry, and its way through the hub.

    ``published``: the date in the feed; ``believed``: null if the hub does not believe
    it. ``pauses``: when its feed was paused between then and the commit. ``poll``: the
    one that saw it, null if it is not kept; before it so many ``polls_without`` were
    answered since ``believed`` and did not have it, the last at ``last_poll_without``:
    its publisher showed it later. ``records``: those that tell of it, none if
    the log no longer has them. ``deliveries``, ``given_up`` and ``waiting`` are about
    the first ten subscribers of the feed (``more_subscribers``: it has others), and the
    last ten whose subscriptions are over (``more_ended``).
    """

    id: EntryId
    guid: str
    title: str
    revision: int
    deleted: bool
    feed: FeedId
    feed_title: str
    url: str
    published: Time | None
    believed: Time | None
    pauses: list[FeedPauseJson]
    poll: PollJson | None
    polls_without: int
    last_poll_without: Time | None
    records: list[TellingRecordJson]
    deliveries: list[EntryDeliveryJson]
    given_up: list[GivenUpJson]
    waiting: list[RetryingSubscriptionJson]
    more_subscribers: bool
    more_ended: bool

    @classmethod
    def of_report(cls, report: EntryReport, pauses: Sequence[FeedPause]) -> Self:
        poll, without = report.poll, report.polls_without
        return cls(
            id=report.id,
            guid=report.entry.id,
            title=report.entry.title,
            revision=report.revision,
            deleted=report.is_deleted,
            feed=report.feed.id,
            feed_title=report.feed.title,
            url=report.feed.url,
            published=report.published,
            believed=report.believed,
            pauses=[FeedPauseJson.of_pause(each) for each in pauses],
            poll=PollJson.of(poll, asked_by=None) if poll else None,
            polls_without=len(without),
            last_poll_without=without[0].at if without else None,
            records=[TellingRecordJson.of(each) for each in report.records],
            deliveries=[EntryDeliveryJson.of_delivery(e) for e in report.deliveries],
            given_up=[GivenUpJson.of_dead_letter(each) for each in report.given_up],
            waiting=[RetryingSubscriptionJson.of_retrying(e) for e in report.waiting],
            more_subscribers=report.has_more_subscribers,
            more_ended=report.has_more_ended,
        )


class EntryRoutes(Routes):
    tag = "operator"

    def __init__(
        self,
        committed: CommittedEntryService,
        reports: EntryReportService,
        feeds: FeedReportService,
        clock: Clock,
    ) -> None:
        self._committed = committed
        self._reports = reports
        self._feeds = feeds
        self._clock = clock

    @ApiOperation(
        method="GET",
        path="/entries",
        id="list_committed_entries",
        scope=TokenScope.ADMIN,
        summary="List the entries that were committed in a span of time, with their"
        " delays",
        description="New and updated ones of all feeds that were committed from"
        " `since` on and before `until` (times or ages; by default the last ten"
        " minutes), the earliest first, or the latest (`order=latest`), or the longest"
        " after their publication (`order=delay`, one page), with `title`,"
        " `feed`, `kind` and `position` of the record, `published_at`, `committed_at`,"
        " `publication_to_commit` (seconds; null without a believable date), and"
        " `commit_to_delivery`, until the first callback answered with 2xx: at most so"
        " long unless `exact`, null if none has or that took a retry. `feed` and"
        " `search` (words of the title) name which are wanted. `cursor` is the"
        " `next` of the page before. A page that is not the last may be short. By their"
        " delay some hundreds are `examined` at most, with `search` some thousands;"
        " those without a believable date (`undated`: how many) are left out. If"
        " there are others (`has_more`), those examined are of the times with the"
        " longest delays, and the other new ones were committed `others_within` so many"
        " seconds after their publication, as the hub counted them (0: it counted no"
        " others). If that is not known, it is null; with `feed` or `search` those"
        " examined are the last ones then.",
        answers={200: CommittedEntriesJson},
        query=(
            *SPAN,
            Parameter(
                name="order",
                help="which come first: the earliest, unless the latest are, or the"
                " longest after their publication",
                choices=tuple(EntryOrder),
            ),
            *COMMITTED,
            Parameter(name="cursor", help="next of the page before, in the same order"),
            PAGE[1],
        ),
        problems=(422,),
    )
    async def entries(self, request: Request) -> Response:
        since, until = query_span(request, self._clock.now())
        page = await self._committed.page(
            since,
            until,
            limit=query_limit(request),
            cursor=query_entry_cursor(request),
            order=query_choice(request, "order", EntryOrder) or EntryOrder.EARLIEST,
            wanted=query_committed(request),
        )
        return json_response(
            CommittedEntriesJson(
                entries=[CommittedEntryJson.of_entry(each) for each in page.entries],
                next=entry_cursor_text(page.next),
                reached=page.reached,
                examined=page.examined,
                undated=page.undated,
                has_more=page.has_more,
                others_within=page.others_within,
            )
        )

    @ApiOperation(
        method="GET",
        path="/entries/{id}",
        id="get_entry",
        scope=TokenScope.ADMIN,
        summary="The way of an entry: published, seen, committed, delivered",
        description="The answer has when the entry was published (`published` by its"
        " feed, `believed` by the hub), the `pauses` of its feed since, the `poll` that"
        " saw it, how many that were answered before did not have it (`polls_without`),"
        " the `records` that tell of it, `deliveries` to callbacks, what was"
        " `given_up`, and which callbacks are still `waiting`.",
        answers={200: EntryWayJson},
        problems=(404,),
    )
    async def entry(self, request: Request) -> Response:
        report = await self._reports.get(EntryId(path_id(request, "entry")))
        pauses = await self._feeds.pauses_before(report)
        return json_response(EntryWayJson.of_report(report, pauses))
