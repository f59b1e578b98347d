"""``/api/deliveries``: failed deliveries, retrying subscriptions, dead letters."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.account_subscriptions import SubscriptionRequest
from hub.services.callback_trials import CallbackTrialService
from hub.services.delivery_lists import DeliveryListService, SentReport
from hub.services.delivery_reports import (
    DeliveryReportService,
    LostEntries,
    SlowCallback,
)
from hub.services.undelivered_records import UndeliveredService
from hub.web.api.attempt_json import (
    DeliveryReportJson,
    FailedDeliveryJson,
    TrialDeliveryJson,
)
from hub.web.api.selection_input import (
    DELIVERY_LIST,
    SENT_LIST,
    Id,
    place_of,
    query_deliveries,
    query_sent,
    read_place,
)
from hub.web.audited_requests import name_target
from hub.web.authentication import own_account
from hub.web.json_output import JsonObject, Time, former_name, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    LARGEST_ID,
    RequestBody,
    path_id,
    query_limit,
    query_number,
    read_body,
)
from protocols.protocol_errors import InvalidValue
from storage.records import (
    AttemptFilter,
    AuditTarget,
    DeadLetter,
    Format,
    RetryingSubscription,
    SubscriptionId,
    TokenScope,
)

MOST_COUNTED = 10_000
"""The highest total that is counted: to count a million takes too long."""


class Undelivered(RequestBody):
    """What a callback did not get: a retrying subscription, or a dead letter.

    The body of ``POST /api/deliveries/discard``.
    """

    subscription: Id | None = None
    dead_letter: Id | None = None

    def named(self) -> tuple[bool, int]:
        """Whether it is a dead letter, and the id. Raises `InvalidValue`."""
        match self.subscription, self.dead_letter:
            case int(id), None:
                return False, id
            case None, int(id):
                return True, id
        raise InvalidValue("subscription", "either subscription or dead_letter")


class Retry(Undelivered):
    """The body of ``POST /api/deliveries/retry``: one of its members."""

    dead: Annotated[Id | None, former_name("dead_letter")] = None

    def named(self) -> tuple[bool, int]:
        if self.dead is None:
            return super().named()
        if self.subscription is None and self.dead_letter is None:
            return True, self.dead
        raise InvalidValue("dead", "nothing beside it")


class CallbackToTest(RequestBody):
    """The body of ``POST /api/deliveries/test``."""

    callback: str
    topic: str
    secret: str = ""
    algorithm: str = "sha256"
    format: Format = Format.JSON


class RetryingSubscriptionJson(JsonObject):
    """A subscription that lacks notifications, and is sent them unless it is paused."""

    subscription: int
    topic: str
    callback: str
    position: int
    attempts: int
    next_try: Time
    under_way: bool
    paused: bool
    failing_since: Time
    last_status: int
    last_error: str

    @classmethod
    def of_retrying(cls, retrying: RetryingSubscription) -> Self:
        return cls.of(
            retrying,
            retrying.subscription,
            subscription=retrying.subscription.id,
            under_way=retrying.lease_id != 0,
            paused=retrying.is_paused,
        )


class DeadLetterJson(JsonObject):
    """Records ``first`` to ``last``, which a subscription did not get, and why.

    ``entries``: how many they have, with the ``titles`` of the first; ``has_more``: at
    least so many, since only the first 20 records are read. ``entries`` null: the log
    no longer has them, or the dead letter is not among the first 100 of the answer.
    """

    id: int
    subscription: int
    topic: str
    callback: str
    first: int
    last: int
    reason: str
    at: Time
    entries: int | None
    titles: list[str]
    has_more: bool

    @classmethod
    def of_dead_letter(cls, dead: DeadLetter, lost: LostEntries | None) -> Self:
        return cls.of(
            dead,
            subscription=dead.subscription_id,
            entries=lost.entries if lost else None,
            titles=list(lost.titles) if lost else [],
            has_more=lost is not None and lost.has_more,
        )


class DeliveriesJson(JsonObject):
    retrying: list[RetryingSubscriptionJson]
    dead_letters: list[DeadLetterJson]
    stragglers: Annotated[list[RetryingSubscriptionJson], former_name("retrying")]
    dead: Annotated[list[DeadLetterJson], former_name("dead_letters")]


class FailedDeliveriesJson(JsonObject):
    """A page of requests that callbacks did not take, newest first.

    ``next`` is the ``before`` of the following page. ``total`` is exact up to 10,000;
    ``has_more``: there are more than that.
    """

    failed: list[FailedDeliveryJson]
    next: str | None
    total: int
    has_more: bool


class SentChunkJson(JsonObject):
    """Up to 500 ``callbacks`` that a record was sent to together.

    ``delivered``: how many of them took it at the first try. ``topic``: the URL of its
    feed, "" if that was purged. The milliseconds are of the callbacks that took it.
    """

    id: int
    feed_id: int
    topic: str
    position: int
    at: Time
    callbacks: int
    delivered: int
    median_milliseconds: int
    slowest_milliseconds: int

    @classmethod
    def of_sent(cls, sent: SentReport) -> Self:
        return cls.of(sent.chunk, topic=sent.feed.url if sent.feed else "")


class SentDeliveriesJson(JsonObject):
    """A page of first tries, latest first; ``next`` is the ``before`` of the next
    page."""

    sent: list[SentChunkJson]
    next: int | None


class SlowCallbackJson(JsonObject):
    """A subscription and its last ``requests``, so many of which ``failed``.

    ``last``: when the latest of them was over.
    """

    subscription: int
    topic: str
    callback: str
    requests: int
    failed: int
    median_milliseconds: int
    slowest_milliseconds: int
    last: Time

    @classmethod
    def of_slow(cls, slow: SlowCallback) -> Self:
        return cls.of(
            slow.subscription, slow.duration, subscription=slow.subscription.id
        )


class SlowestCallbacksJson(JsonObject):
    """``since``: they were found by the requests since then that are remembered."""

    callbacks: list[SlowCallbackJson]
    since: Time


class RetriedJson(JsonObject):
    """``due``: when the delivery is tried."""

    due: str


class DiscardedJson(JsonObject):
    discarded: bool


def _former(name: str, *, of: str) -> Parameter:
    return replace(
        PAGE[0], name=name, help=f"former name of `{of}`", is_deprecated=True
    )


def _after(request: Request, name: str, former: str) -> int:
    """The id after which the page begins, by either name of the parameter."""
    before = query_number(request, former, 0, LARGEST_ID)
    return query_number(request, name, before, LARGEST_ID)


class DeliveryRoutes(Routes):
    tag = "deliveries"

    def __init__(
        self,
        lists: DeliveryListService,
        reports: DeliveryReportService,
        trials: CallbackTrialService,
        undelivered: UndeliveredService,
        clock: Clock,
    ) -> None:
        self._lists = lists
        self._reports = reports
        self._undelivered = undelivered
        self._trials = trials
        self._clock = clock

    @ApiOperation(
        method="GET",
        path="/deliveries",
        id="list_deliveries",
        scope=TokenScope.ADMIN,
        summary="List retrying subscriptions and dead letters",
        description="With a filter: those that a matching failed request was to"
        " deliver. `retrying_after` is the id of a subscription, `dead_letters_after`"
        " that of a dead letter. Each of the first 100 dead letters has the number of"
        " its `entries`, and the `titles` of the first three.",
        answers={200: DeliveriesJson},
        query=(
            replace(PAGE[0], name="retrying_after", help="a subscription's id"),
            replace(PAGE[0], name="dead_letters_after", help="a dead letter's id"),
            PAGE[1],
            *DELIVERY_LIST,
            _former("stragglers_after", of="retrying_after"),
            _former("dead_after", of="dead_letters_after"),
        ),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        after = _after(request, "retrying_after", "stragglers_after")
        dead_after = _after(request, "dead_letters_after", "dead_after")
        limit = query_limit(request)
        wanted = query_deliveries(request).filter(self._clock.now())
        found = await self._lists.undelivered(
            wanted,
            retrying_after=after,
            dead_letters_after=dead_after,
            limit=limit,
        )
        retrying = [RetryingSubscriptionJson.of_retrying(it) for it in found.retrying]
        dead_letters = [
            DeadLetterJson.of_dead_letter(each, found.lost.get(each.id))
            for each in found.dead_letters
        ]
        return json_response(
            DeliveriesJson(
                retrying=retrying,
                dead_letters=dead_letters,
                stragglers=retrying,
                dead=dead_letters,
            )
        )

    @ApiOperation(
        method="GET",
        path="/deliveries/failed",
        id="list_failed_deliveries",
        scope=TokenScope.ADMIN,
        summary="List failed requests of all subscriptions",
        description="Newest first. They are kept for 7 days, at most the last 2,000 of"
        " each subscription, and 1,000,000 in all. `status` is `404`, `5xx`,"
        " or `none` for no answer.",
        answers={200: FailedDeliveriesJson},
        query=(
            *DELIVERY_LIST,
            Parameter(name="before", help="next of the page before"),
            PAGE[1],
        ),
        problems=(422,),
    )
    async def failed(self, request: Request) -> Response:
        limit = query_limit(request)
        wanted = query_deliveries(request).filter(self._clock.now())
        before = read_place(request.query_params.get("before", ""))
        found = await self._lists.failed(
            wanted, before=before, limit=limit, most_counted=MOST_COUNTED
        )
        return json_response(
            FailedDeliveriesJson(
                failed=[FailedDeliveryJson.of_failed(each) for each in found.requests],
                next=place_of(*found.next) if found.next else None,
                total=found.total,
                has_more=found.has_more,
            )
        )

    @ApiOperation(
        method="GET",
        path="/deliveries/sent",
        id="list_sent_deliveries",
        scope=TokenScope.ADMIN,
        summary="List what went to callbacks at the first try",
        description="The latest first, by groups of up to 500 callbacks that a record"
        " was sent to together, of the last 7 days; `delivered` of the `callbacks`"
        " took it. What one callback got is in its subscription's attempts.",
        answers={200: SentDeliveriesJson},
        query=(*SENT_LIST, PAGE[1]),
        problems=(422,),
    )
    async def sent(self, request: Request) -> Response:
        asked, before = query_sent(request, self._clock.now())
        found = await self._lists.sent(
            AttemptFilter(topic=asked.topic, since=asked.since, until=asked.until),
            before=before,
            limit=query_limit(request),
        )
        sent = [SentChunkJson.of_sent(each) for each in found.sent]
        return json_response(SentDeliveriesJson(sent=sent, next=found.next))

    @ApiOperation(
        method="GET",
        path="/deliveries/slowest",
        id="list_slowest_callbacks",
        scope=TokenScope.ADMIN,
        summary="List the callbacks that take longest to answer",
        description="By the median of their last 16 requests, failed ones included:"
        " those that this hub, or the node that answers, has made since it started,"
        " and before that, what the database keeps of the last 200 groups of first"
        " tries and of 2,000 others. `since`: when the first of all these was over, at"
        " most 7 days before. A callback that has answered each of the 16 within 100 ms"
        " is left out, and at most 2,000 are remembered, the slowest ones.",
        answers={200: SlowestCallbacksJson},
        query=(PAGE[1],),
        problems=(422,),
    )
    async def slowest(self, request: Request) -> Response:
        found = await self._reports.slowest(query_limit(request))
        return json_response(
            SlowestCallbacksJson(
                callbacks=[SlowCallbackJson.of_slow(each) for each in found.callbacks],
                since=found.since,
            )
        )

    @ApiOperation(
        method="GET",
        path="/deliveries/failed/{id}",
        id="get_failed_delivery",
        scope=TokenScope.LIST,
        summary="Show a failed request in full, with where it failed and the answer",
        description="With the scope `list` one of the account's own.",
        answers={200: DeliveryReportJson},
        problems=(404,),
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(
            path_id(request, "failed delivery"), account=own_account(request)
        )
        return json_response(DeliveryReportJson.of_report(report))

    @ApiOperation(
        method="POST",
        path="/deliveries/test",
        id="test_callback",
        scope=TokenScope.ADMIN,
        summary="Send any callback one notification of a topic, marked as a test",
        description="As a subscription would be sent it; none is made. The answer says"
        " what the callback answered.",
        answers={200: TrialDeliveryJson},
        body=CallbackToTest(
            callback="https://you.example/hook", topic="https://example.org/feed.xml"
        ),
        problems=(503,),
    )
    async def test(self, request: Request) -> Response:
        body = await read_body(request, CallbackToTest)
        name_target(request, AuditTarget.CALLBACK, None, body.callback)
        trial = await self._trials.try_callback(
            SubscriptionRequest(
                callback=body.callback,
                topic=body.topic,
                secret=body.secret,
                algorithm=body.algorithm,
                format=body.format,
            )
        )
        return json_response(TrialDeliveryJson.of_trial(trial))

    @ApiOperation(
        method="POST",
        path="/deliveries/retry",
        id="retry_delivery",
        scope=TokenScope.SUBSCRIBE,
        summary="Try a retrying subscription or a dead letter now",
        description='`{"subscription": id}` or `{"dead_letter": id}`. The try of a'
        " retrying subscription is ahead of its schedule, and uses up none of its"
        " tries. 409 while the subscription is paused.",
        answers={202: RetriedJson},
        body=Retry(subscription=7),
        problems=(404, 409),
    )
    async def retry(self, request: Request) -> Response:
        is_dead, number = (await read_body(request, Retry)).named()
        kind = AuditTarget.DEAD_LETTER if is_dead else AuditTarget.SUBSCRIPTION
        name_target(request, kind, number)
        account = own_account(request)
        if is_dead:
            await self._undelivered.retry_dead_letter(number, account=account)
        else:
            await self._undelivered.retry(SubscriptionId(number), account=account)
        return json_response(RetriedJson(due="now"), HTTPStatus.ACCEPTED)

    @ApiOperation(
        method="POST",
        path="/deliveries/discard",
        id="discard_delivery",
        scope=TokenScope.UNSUBSCRIBE,
        summary="Discard a dead letter, or what a retrying subscription lacks",
        description='`{"subscription": id}` or `{"dead_letter": id}`. It is not sent'
        " any more. A retrying subscription receives new records from now on.",
        answers={200: DiscardedJson},
        body=Undelivered(dead_letter=7),
        problems=(404,),
    )
    async def discard(self, request: Request) -> Response:
        is_dead, number = (await read_body(request, Undelivered)).named()
        kind = AuditTarget.DEAD_LETTER if is_dead else AuditTarget.SUBSCRIPTION
        name_target(request, kind, number)
        account = own_account(request)
        if is_dead:
            await self._undelivered.discard_dead_letter(number, account=account)
        else:
            await self._undelivered.discard(SubscriptionId(number), account=account)
        return json_response(DiscardedJson(discarded=True))
