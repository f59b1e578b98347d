"""``/api/feeds``: the feeds that the hub polls, and lists of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hub.core.status.findings import FindingKind
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.services import (
    FeedReportService,
    FeedService,
    PushHubReportService,
    SelectedFeedService,
)
from hub.services.feed_exports import FeedExportService
from hub.services.feed_requests import (
    LONGEST_WAIT,
    AddFeed,
    EditFeed,
    ImportedFeed,
    ImportOutcome,
    read_credentials,
)
from hub.services.service_errors import SeveralFeeds
from hub.sites.feed_finder import LookupKind
from hub.web.api.feed_json import (
    AddedFeedJson,
    EditedFeedJson,
    FeedChoicesJson,
    FeedFindingsJson,
    FeedHistoryJson,
    FeedJson,
    FeedLinkJson,
    FeedPlanJson,
    FeedReportJson,
    FeedsJson,
    FetchedFeedJson,
    FoundFeedJson,
    ImportedFeedJson,
    ImportedFeedsJson,
    LookupResultJson,
    PushHubJson,
    PushHubsJson,
    SubscriptionsEndedJson,
)
from hub.web.api.selection_input import (
    FEED_LIST,
    HISTORY_SPAN,
    query_feeds,
    query_history_span,
    query_order,
)
from hub.web.audited_requests import name_target, note_detail, said_changes
from hub.web.json_output import former_name, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    DEFAULT_PAGE,
    LARGEST_PAGE,
    RequestBody,
    path_id,
    query_choice,
    query_limit,
    query_number,
    query_page,
    read_body,
)
from protocols.opml import OPML_TYPE
from protocols.protocol_errors import InvalidValue
from storage.packing import unpack_bytes, unpacked_size
from storage.records import (
    AuditTarget,
    Credentials,
    FeedId,
    FeedSort,
    TokenScope,
)

MOST_AT_ONCE = 500
"""The most feeds that one request may add."""


class FeedTerms(RequestBody, kw_only=True):
    """How feeds are added; ``basic`` is ``user:password``."""

    category: str = ""
    section: Annotated[str, former_name("category")] = ""
    private: bool = False
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    basic: str = ""
    publish_secret: str = ""
    subscription_callback: str | None = None
    discover: bool = False
    kind: LookupKind = LookupKind.ANY


class FeedToAdd(FeedTerms, kw_only=True):
    """The body of ``POST /api/feeds``."""

    url: str
    title: str = ""
    description: str = ""


class FeedOfMany(RequestBody):
    """One of many feeds; its own ``category`` precedes that of all."""

    url: str
    category: str = ""
    section: Annotated[str, former_name("category")] = ""
    title: str = ""
    description: str = ""


class FeedsToAdd(FeedTerms, kw_only=True):
    """The body of ``POST /api/imports``."""

    feeds: list[FeedOfMany]
    dry_run: bool = False
    keeps_known: bool = False


class FeedToEdit(RequestBody):
    """The body of ``PATCH /api/feeds/{id}``: what is not named stays as it is.

    ``basic`` and ``headers`` are the credentials; naming either replaces both.
    """

    url: str | None = None
    own_period: float | None = None
    private: bool | None = None
    category: str | None = None
    section: Annotated[str | None, former_name("category")] = None
    headers: dict[str, str] | None = None
    basic: str | None = None
    publish_secret: str | None = None
    subscription_callback: str | None = None


class PageToLookAt(RequestBody):
    """The body of ``POST /api/discover``."""

    url: str
    kind: LookupKind = LookupKind.ANY


def _wait(help: str, default: int) -> Parameter:
    return Parameter(
        name="wait",
        help=help,
        kind="integer",
        default=default,
        least=0,
        largest=int(LONGEST_WAIT),
    )


class FeedRoutes(Routes):
    tag = "feeds"

    def __init__(
        self,
        feeds: FeedService,
        reports: FeedReportService,
        exports: FeedExportService,
        selected: SelectedFeedService,
        push_hubs: PushHubReportService,
        clock: Clock,
    ) -> None:
        self._push_hubs = push_hubs
        self._selected = selected
        self._clock = clock
        self._feeds = feeds
        self._reports = reports
        self._exports = exports

    @ApiOperation(
        method="GET",
        path="/feeds",
        id="list_feeds",
        scope=TokenScope.ADMIN,
        summary="List feeds, by page",
        description="Filtered and sorted; or with `url` one feed, in whatever"
        " spelling.",
        answers={200: FeedsJson},
        query=(
            *FEED_LIST,
            Parameter(name="url", help="only the feed of this topic"),
        ),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        url = request.query_params.get("url")
        if url is not None:
            page = await self._selected.of_url(url)
            return json_response(FeedsJson.of_page(page))
        wanted = query_feeds(request).filter(self._clock.now())
        sort, after = query_order(request, FeedSort.ID)
        page = await self._selected.page(
            wanted, sort, after=after, limit=query_limit(request)
        )
        return json_response(FeedsJson.of_page(page))

    @ApiOperation(
        method="GET",
        path="/feeds.opml",
        id="export_feeds",
        scope=TokenScope.ADMIN,
        summary="The feeds that a filter finds, private ones too, as OPML 2.0",
        description="Categories are folders.",
        answers={200: {"text/x-opml": str}},
        query=FEED_LIST,
        problems=(422,),
    )
    async def export(self, request: Request) -> Response:
        wanted = query_feeds(request).filter(self._clock.now())
        headers = {"Content-Type": OPML_TYPE}
        return Response(await self._exports.render(wanted), headers=headers)

    @ApiOperation(
        method="POST",
        path="/feeds",
        id="add_feed",
        scope=TokenScope.ADMIN,
        summary="Add a feed, and report its first fetch",
        description="The body has the `url`, and optionally `category` (at most 200"
        " printable characters), `title` and `description` (until the feed has its"
        " own), `private`, `headers` (an object), `basic` (`user:password`),"
        " `publish_secret` (the secret its publisher signs pings with content with),"
        " `subscription_callback` (where its publisher is asked who may subscribe),"
        " `discover` (if the URL is a page: add the feed it names, or the site),"
        " `kind` (only `feed`, `openfeeder` or `scp`). If a page names several feeds"
        " without a clear choice, nothing is added and the answer is 300. 201 if"
        " added, 200 if it exists, in whatever spelling; `added` says which. Adding"
        " never changes an existing feed: 409 if its `private`, `category`,"
        " credentials, `publish_secret` or `subscription_callback` differ from the"
        " request; use `PATCH`. The answer is the feed with the result of that fetch,"
        " `next_fetch`, and `next_fetch_reason`, why it is polled then.",
        answers={201: AddedFeedJson, 200: AddedFeedJson, 300: FeedChoicesJson},
        query=(_wait("seconds to wait for the first fetch", int(LONGEST_WAIT)),),
        body=FeedToAdd(url="https://example.org/feed.xml", category="news"),
        problems=(409,),
    )
    async def add(self, request: Request) -> Response:
        wait = query_number(request, "wait", int(LONGEST_WAIT), int(LONGEST_WAIT))
        body = await read_body(request, FeedToAdd)
        try:
            added = await self._feeds.add(_request(body, body, wait))
        except SeveralFeeds as several:
            feeds = FeedLinkJson.of_all(several.feeds)
            return json_response(
                FeedChoicesJson(url=several.url, feeds=feeds),
                HTTPStatus.MULTIPLE_CHOICES,
            )
        name_target(request, AuditTarget.FEED, added.feed.id)
        status = HTTPStatus.CREATED if added.is_new else HTTPStatus.OK
        reason = await self._reports.reason(added.feed)
        return json_response(
            AddedFeedJson.of_feed(
                added.feed, added=added.is_new, next_fetch_reason=reason
            ),
            status,
        )

    @ApiOperation(
        method="POST",
        path="/imports",
        id="import_feeds",
        scope=TokenScope.ADMIN,
        summary="Add many feeds, and report the outcome of each",
        description="The body has `feeds`, 1 to 500 objects with `url`, `category`,"
        " `title` and `description`; the other members of `POST /api/feeds` apply to"
        " all of them. `dry_run`: add none. `keeps_known`: leave existing feeds as"
        " they are whatever their category and credentials (otherwise a difference is"
        " refused; another `private` always is). The answer is in the order of the"
        " request; an `outcome` is `added`, `known`, `addable` (in a dry run),"
        " `undecided` (a page that names several `feeds`) or `refused` with a"
        " `reason`. A refused feed does not stop the others.",
        answers={200: ImportedFeedsJson},
        query=(_wait("seconds to wait for each first fetch", 0),),
        body=FeedsToAdd(
            feeds=[FeedOfMany(url="https://example.org/feed.xml")], category="news"
        ),
    )
    async def add_all(self, request: Request) -> Response:
        wait = query_number(request, "wait", 0, int(LONGEST_WAIT))
        body = await read_body(request, FeedsToAdd)
        if not 1 <= len(body.feeds) <= MOST_AT_ONCE:
            raise InvalidValue("feeds", f"1 to {MOST_AT_ONCE} of them")
        wanted = [_request(each, body, wait) for each in body.feeds]
        imported = await self._feeds.add_all(
            wanted, is_dry=body.dry_run, keeps_known=body.keeps_known
        )
        note_detail(request, _said_import(imported, is_dry=body.dry_run))
        feeds = [ImportedFeedJson.of_import(each) for each in imported]
        return json_response(ImportedFeedsJson(feeds=feeds))

    @ApiOperation(
        method="GET",
        path="/findings",
        id="list_findings",
        scope=TokenScope.ADMIN,
        summary="List feeds that need attention, by page of all feeds",
        description="A page may be empty without being the last.",
        answers={200: FeedFindingsJson},
        query=(
            *PAGE,
            Parameter(name="kind", help="only this kind", choices=tuple(FindingKind)),
        ),
        problems=(422,),
    )
    async def findings(self, request: Request) -> Response:
        after, limit = query_page(request)
        kind = query_choice(request, "kind", FindingKind)
        page = await self._reports.findings(after=FeedId(after), limit=limit, kind=kind)
        found = [FoundFeedJson.of_found(each) for each in page.feeds]
        return json_response(FeedFindingsJson(feeds=found, next=page.next))

    @ApiOperation(
        method="GET",
        path="/hubs",
        id="list_push_hubs",
        scope=TokenScope.ADMIN,
        summary="List other hubs that push feeds, with counts",
        description="Those with the most subscriptions first. The first item, with the"
        ' hub `""`, has the sums over all. The counts are those of the metrics. Hubs'
        " that `FANFARE_UNUSED_HUBS` names are not `used`.",
        answers={200: PushHubsJson},
        query=(
            Parameter(
                name="limit",
                help="the number of hubs, those with the most subscriptions first",
                kind="integer",
                default=DEFAULT_PAGE,
                least=0,
                largest=LARGEST_PAGE,
            ),
        ),
        problems=(422,),
    )
    async def hubs(self, request: Request) -> Response:
        limit = query_number(request, "limit", DEFAULT_PAGE, LARGEST_PAGE)
        found = await self._push_hubs.most_subscribed(limit)
        shown = (*filter(None, [found.sums]), *found.hubs)
        return json_response(
            PushHubsJson(hubs=[PushHubJson.of_report(each) for each in shown])
        )

    @ApiOperation(
        method="POST",
        path="/discover",
        id="discover_feeds",
        scope=TokenScope.ADMIN,
        summary="Show which feed is at a URL, or which feeds a page names",
        description="At the `url`; if `kind` is given, for this kind only (`feed`,"
        " `openfeeder`, `scp`). The answer has `is_feed` with `format`, `title` and"
        " `entries`; or the `feeds` that a page names, the `best` of them (null"
        " without a clear choice) and the `reason`; or the `error`. Adds nothing.",
        only_reads=True,
        answers={200: LookupResultJson},
        body=PageToLookAt(url="https://example.org/"),
    )
    async def discover(self, request: Request) -> Response:
        body = await read_body(request, PageToLookAt)
        found = await self._feeds.discover(body.url, kind=body.kind)
        return json_response(LookupResultJson.of_result(found))

    @ApiOperation(
        method="GET",
        path="/feeds/{id}",
        id="get_feed",
        scope=TokenScope.ADMIN,
        summary="Show one feed, and why it is polled when it is",
        description="`site` is null unless it is read by many requests; its `cursor`"
        " says from where changes are requested, `is_read` whether it was complete"
        " once. `rekeyed`: known entries that came under new ids; `gap_at`: when no"
        " entry was known; `waiting`: new and changed entries over the daily limit,"
        " after `told_of_day` new ones and `bytes_of_day` bytes; of the last document"
        " `dropped` (entries left out) and the first five `problems`. Its `state` is"
        " `active`, `paused`, `gone` (it answered 410 twice), `dead` (nothing but 404"
        " for days), `removed` or `track`; only active feeds are polled.",
        answers={200: FeedReportJson},
        problems=(404,),
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(_feed_id(request))
        return json_response(FeedReportJson.of_report(report))

    @ApiOperation(
        method="GET",
        path="/feeds/{id}/raw",
        id="get_feed_document",
        scope=TokenScope.ADMIN,
        summary="The last valid document of a feed in the creator format, unchanged",
        description="Byte for byte, including what the hub does not interpret; 404 for"
        " other formats.",
        answers={200: dict},
        problems=(404,),
    )
    async def raw(self, request: Request) -> Response:
        document = await self._reports.raw(_feed_id(request))
        return Response(
            await run_in_thread(
                partial(unpack_bytes, document.body), unpacked_size(document.body)
            ),
            media_type=document.content_type,
            headers={"X-Content-Type-Options": "nosniff"},
        )

    @ApiOperation(
        method="GET",
        path="/feeds/{id}/plan",
        id="explain_feed",
        scope=TokenScope.ADMIN,
        summary="Explain when a feed is polled next, with every term",
        description="The answer has the `sentence`; `rate` and `rate_now` (entries a"
        " day), `price` (entry-seconds); `hints` and which of them are in force; the"
        " factors of the 168 `hours` of a week from Monday 0:00 UTC, and of the twelve"
        " five `minutes` of an hour; all `terms`, in order; and `site` as of the feed.",
        answers={200: FeedPlanJson},
        problems=(404,),
    )
    async def explain(self, request: Request) -> Response:
        explained = await self._reports.explain(_feed_id(request))
        return json_response(FeedPlanJson.of_explained(explained))

    @ApiOperation(
        method="GET",
        path="/feeds/{id}/history",
        id="get_feed_history",
        scope=TokenScope.ADMIN,
        summary="List the last polls of a feed, with reason and outcome",
        description="Kept are the polls of the 24 hours up to the last one, at most"
        " 1,440, and the last 64 however old they are. `code` is 0 without an answer,"
        " `asked_by` says who asked for a poll, where the audit trail knows it."
        " `before` and `after` are the polls next to the span, `pauses` tells when the"
        " feed was paused in it, and by whom: so that a gap is explained.",
        answers={200: FeedHistoryJson},
        query=HISTORY_SPAN,
        problems=(404, 422),
    )
    async def history(self, request: Request) -> Response:
        span = query_history_span(request, self._clock.now())
        history = await self._reports.history(_feed_id(request), *span)
        return json_response(FeedHistoryJson.of_history(history))

    @ApiOperation(
        method="PATCH",
        path="/feeds/{id}",
        id="edit_feed",
        scope=TokenScope.ADMIN,
        summary="Change a feed, and report the consequences",
        description="The body has `url` (its new address: its entries, subscriptions"
        " and what was learned of it stay, it is fetched there at once, and the former"
        " URL still leads to it; for a feed with credentials a URL of the same origin,"
        " or new credentials with it; not for a site; 409 if another feed has that"
        " URL), `own_period` (seconds between polls, 1 to 604800, at least"
        " `FANFARE_MIN_PERIOD`; what its server asks for still counts; 0: as planned),"
        ' `private`, `category`, `basic` and `headers` (either one replaces both; `""`'
        ' and `{}` remove them), `publish_secret`, `subscription_callback` (`""`'
        " removes each). The answer is the feed with `follows` (the consequences, in"
        " sentences) and `subscriptions_ended`. 409 for a removed feed.",
        answers={200: EditedFeedJson},
        body=FeedToEdit(private=True, category="news"),
        problems=(404, 409),
    )
    async def edit(self, request: Request) -> Response:
        body = await read_body(request, FeedToEdit)
        credentials = None
        if body.basic is not None or body.headers is not None:
            given = read_credentials(body.basic or "", body.headers or {})
            credentials = given or Credentials()
        change = EditFeed(
            url=body.url,
            own_period=body.own_period,
            private=body.private,
            category=body.section if body.category is None else body.category,
            credentials=credentials,
            publish_secret=body.publish_secret,
            subscription_callback=body.subscription_callback,
        )
        note_detail(request, said_edit(change))
        edited = await self._feeds.edit(_feed_id(request), change)
        return json_response(
            EditedFeedJson.of_feed(
                edited.feed,
                follows=edited.follows,
                subscriptions_ended=edited.ended,
            )
        )

    @ApiOperation(
        method="DELETE",
        path="/feeds/{id}",
        id="remove_feed",
        scope=TokenScope.ADMIN,
        summary="Remove a feed and end its subscriptions",
        answers={200: SubscriptionsEndedJson},
        problems=(404,),
    )
    async def remove(self, request: Request) -> Response:
        ended = await self._feeds.remove(_feed_id(request))
        return json_response(SubscriptionsEndedJson(subscriptions_ended=ended))

    @ApiOperation(
        method="POST",
        path="/feeds/{id}/fetch",
        id="fetch_feed",
        scope=TokenScope.ADMIN,
        summary="Fetch a feed now",
        description="The answer is the feed afterwards, with `next_fetch_reason` and"
        " `fetched`: false if its server asked for no request before `retry_after`, or"
        " has not answered.",
        answers={200: FetchedFeedJson},
        problems=(404, 409),
    )
    async def fetch(self, request: Request) -> Response:
        result = await self._feeds.fetch(_feed_id(request))
        reason = await self._reports.reason(result.feed)
        return json_response(
            FetchedFeedJson.of_feed(
                result.feed, fetched=result.is_fetched, next_fetch_reason=reason
            )
        )

    @ApiOperation(
        method="POST",
        path="/feeds/{id}/pause",
        id="pause_feed",
        scope=TokenScope.ADMIN,
        summary="Pause a feed: it is not polled until it is resumed",
        answers={200: FeedJson},
        problems=(404, 409),
    )
    async def pause(self, request: Request) -> Response:
        return json_response(
            FeedJson.of_feed(await self._feeds.pause(_feed_id(request)))
        )

    @ApiOperation(
        method="POST",
        path="/feeds/{id}/resume",
        id="resume_feed",
        scope=TokenScope.ADMIN,
        summary="Resume a feed: it is polled again",
        description="Also one that is `gone` or `dead`.",
        answers={200: FeedJson},
        problems=(404, 409),
    )
    async def resume(self, request: Request) -> Response:
        return json_response(
            FeedJson.of_feed(await self._feeds.resume(_feed_id(request)))
        )


def said_edit(change: EditFeed) -> str:
    """What an edit changes, for the audit trail; a secret's value is not told."""
    return said_changes(
        url=change.url,
        own_period=change.own_period,
        private=change.private,
        category=change.category,
        subscription_callback=change.subscription_callback,
        new_credentials=None if change.credentials is None else True,
        new_publish_secret=None if change.publish_secret is None else True,
    )


def _said_import(feeds: Sequence[ImportedFeed], *, is_dry: bool) -> str:
    added = sum(each.outcome is ImportOutcome.ADDED for each in feeds)
    return f"{len(feeds):,} feeds, {'only looked at' if is_dry else f'{added:,} added'}"


def _feed_id(request: Request) -> FeedId:
    return FeedId(path_id(request, "feed"))


def _request(feed: FeedToAdd | FeedOfMany, terms: FeedTerms, wait: float) -> AddFeed:
    return AddFeed(
        url=feed.url,
        private=terms.private,
        category=feed.category or feed.section or terms.category or terms.section,
        title=feed.title,
        description=feed.description,
        credentials=read_credentials(terms.basic, terms.headers),
        publish_secret=terms.publish_secret,
        subscription_callback=terms.subscription_callback,
        wait=wait,
        discover=terms.discover,
        kind=terms.kind,
    )
