"""``/api/subscriptions``: callbacks and the topics they subscribe to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Self

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.account_subscriptions import (
    SHOWN_LAG,
    SubscriptionChange,
    SubscriptionReport,
    SubscriptionRequest,
    SubscriptionService,
)
from hub.services.callback_trials import CallbackTrialService
from hub.services.delivery_reports import DeliveryReportService, LostEntries
from hub.services.event_subscriptions import EventSubscriptionService
from hub.services.feed_reports import FeedReportService
from hub.services.selected_subscriptions import SelectedSubscriptionService
from hub.services.token_authentication import TokenService
from hub.web.api.attempt_json import (
    AttemptJson,
    AttemptsJson,
    ListedAttemptJson,
    PreviewedRequestJson,
    ToldEntryJson,
    TrialDeliveryJson,
)
from hub.web.api.delivery_routes import (
    DeadLetterJson,
    RetryingSubscriptionJson,
)
from hub.web.api.feed_json import PlannedFeedJson
from hub.web.api.selection_input import (
    ATTEMPT_LIST,
    SUBSCRIPTION_LIST,
    Id,
    account_named,
    cursor_of,
    id_of,
    listed_account,
    place_of,
    query_attempts,
    query_order,
    query_subscriptions,
    read_start,
)
from hub.web.audited_requests import name_target, note_detail, said_changes
from hub.web.authentication import own_account
from hub.web.json_output import (
    JsonObject,
    Time,
    former_name,
    json_response,
    named_schema,
)
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    RequestBody,
    path_id,
    query_flag,
    query_limit,
    read_body,
)
from protocols.operational_events import EVERY_TYPE, types_of_topic
from storage.records import (
    AuditTarget,
    DeliveryLag,
    Format,
    SelectedSubscription,
    Subscription,
    SubscriptionCondition,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionPage,
    SubscriptionSort,
    SubscriptionState,
    TokenScope,
    Updates,
)


class SubscriptionToAdd(RequestBody):
    """The body of ``POST /api/subscriptions``.

    ``account`` "": the caller's own. Without a ``secret``, a subscription that exists
    keeps its secret.
    """

    callback: str
    topic: str
    account: str = ""
    secret: str | None = None
    algorithm: str = "sha256"
    format: Format = Format.JSON
    updates: Updates = Updates.FRESH
    batch: bool = False


class SubscriptionToEdit(RequestBody):
    """The body of ``PATCH /api/subscriptions/{id}``: what is not named stays as it is.

    ``secret`` "": it is removed.
    """

    secret: str | None = None
    algorithm: str | None = None
    format: Format | None = None
    updates: Updates | None = None
    batch: bool | None = None


class EventsToSubscribe(RequestBody):
    """The body of ``POST /api/events/subscriptions``.

    ``types``: types of events, groups of them such as ``feed.*``, or ``*`` for all.
    Without a ``secret`` the hub makes one.
    """

    callback: str
    types: list[str] = msgspec.field(default_factory=lambda: [EVERY_TYPE])
    secret: str = ""


class Replay(RequestBody):
    """The body of ``POST /api/subscriptions/{id}/replay``: one of its members.

    ``since``: a time or an age; ``record``: the number of the first record.
    """

    since: str = ""
    record: Id | None = None


class SecretToRotate(RequestBody):
    """The body of ``POST /api/subscriptions/{id}/secret``.

    ``secret`` "": the hub makes one.
    """

    secret: str = ""


class SubscriptionJson(JsonObject):
    """What a callback is told of, and how.

    ``events``: the types of events, if it is subscribed to these and not to a topic.
    """

    id: int
    callback: str
    topic: str
    events: list[str]
    feed: int
    state: SubscriptionState
    format: Format
    updates: Updates
    batch: bool
    algorithm: Annotated[str, named_schema("Algorithm")]
    has_secret: bool
    former_secret_until: Time | None
    created_at: Time
    lease_end: Time | None
    from_position: int
    exhausted: bool
    ended_reason: str

    @classmethod
    def of_subscription(cls, subscription: Subscription, **more: Any) -> Self:
        return cls.of(
            subscription,
            feed=subscription.feed_id,
            events=list(types_of_topic(subscription.topic)),
            has_secret=bool(subscription.secret),
            former_secret_until=subscription.former_until,
            **more,
        )


class SubscriptionHealthReportJson(JsonObject):
    """How a subscription is, since when, and why it is not well.

    ``last_milliseconds``: of one that is slow or fails, how long its last request took;
    null if that is not known.
    """

    state: SubscriptionHealth
    since: Time
    reason: str
    last_milliseconds: int | None

    @classmethod
    def of_condition(cls, condition: SubscriptionCondition) -> Self:
        return cls.of(condition, state=condition.health)


class SubscribedJson(SubscriptionJson):
    """A subscription, its state, and its topic's feed, with when that is fetched next.

    ``added``: the subscription did not exist before.
    """

    added: bool
    health: SubscriptionHealthReportJson
    feed_status: PlannedFeedJson


class SubscribedToEventsJson(SubscriptionJson):
    """A subscription to events.

    ``secret``: the one that the hub has made, which is shown this once; "": it made
    none.
    """

    secret: str


class RotatedSecretJson(SubscriptionJson):
    """A subscription with another secret.

    ``secret``: the one that the hub has made, which is shown this once; "": it made
    none.
    """

    secret: str


class ListedSubscriptionJson(SubscriptionJson):
    """A subscription, and its state."""

    health: SubscriptionHealthReportJson

    @classmethod
    def of_selected(cls, found: SelectedSubscription) -> Self:
        health = SubscriptionHealthReportJson.of_condition(found.condition)
        return cls.of_subscription(found.subscription, health=health)


class DeliveryLagJson(JsonObject):
    """Records that a subscription wants and was not sent yet.

    ``seconds``: for how long the first of them has waited; ``has_more``: there are more
    records than these.
    """

    records: int
    has_more: bool
    seconds: float

    @classmethod
    def of_lag(cls, lag: DeliveryLag, now: datetime) -> Self:
        waited = now - lag.oldest if lag.oldest else timedelta()
        return cls(
            records=lag.records,
            has_more=lag.records == SHOWN_LAG,
            seconds=max(0.0, waited.total_seconds()),
        )


class SubscriptionReportJson(ListedSubscriptionJson):
    """A subscription with its last attempts, and what is done about it."""

    explanation: str
    advice: list[str]
    lag: DeliveryLagJson
    dead_letters: list[DeadLetterJson]
    retrying: RetryingSubscriptionJson | None
    attempts: list[AttemptJson]
    straggler: Annotated[RetryingSubscriptionJson | None, former_name("retrying")]

    @classmethod
    def of_report(
        cls,
        report: SubscriptionReport,
        lost: Mapping[int, LostEntries],
        now: datetime,
    ) -> Self:
        found = report.retrying
        retrying = found and RetryingSubscriptionJson.of_retrying(found)
        return cls.of_subscription(
            report.subscription,
            health=SubscriptionHealthReportJson.of_condition(report.condition),
            explanation=report.explanation,
            advice=list(report.advice),
            lag=DeliveryLagJson.of_lag(report.lag, now),
            dead_letters=[
                DeadLetterJson.of_dead_letter(each, lost.get(each.id))
                for each in report.dead_letters
            ],
            retrying=retrying,
            straggler=retrying,
            attempts=[AttemptJson.of_attempt(each) for each in report.attempts],
        )


class SubscriptionsJson(JsonObject):
    """A page of subscriptions.

    ``cursor``: that of the following page, null after the last. ``next``: the ``after``
    of that page, in a list by id. ``total``: how many the filter finds; null if they
    are too many to be counted. With ``search`` a page that is short, or empty, need not
    be the last one.
    """

    subscriptions: list[ListedSubscriptionJson]
    cursor: str | None
    next: int | None
    total: int | None

    @classmethod
    def of_page(cls, page: SubscriptionPage) -> Self:
        return cls(
            subscriptions=[
                ListedSubscriptionJson.of_selected(each) for each in page.subscriptions
            ],
            cursor=cursor_of(page.next),
            next=id_of(page.next),
            total=page.total,
        )


class SubscriptionRoutes(Routes):
    tag = "subscriptions"

    def __init__(
        self,
        subscriptions: SubscriptionService,
        events: EventSubscriptionService,
        reports: FeedReportService,
        deliveries: DeliveryReportService,
        trials: CallbackTrialService,
        tokens: TokenService,
        selected: SelectedSubscriptionService,
        clock: Clock,
    ) -> None:
        self._selected = selected
        self._reports = reports
        self._clock = clock
        self._subscriptions = subscriptions
        self._events = events
        self._deliveries = deliveries
        self._trials = trials
        self._tokens = tokens

    @ApiOperation(
        method="GET",
        path="/subscriptions",
        id="list_subscriptions",
        scope=TokenScope.LIST,
        summary="List the account's subscriptions, by page",
        description="Filtered and sorted.",
        answers={200: SubscriptionsJson},
        query=SUBSCRIPTION_LIST,
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        selection = query_subscriptions(request)
        account = await listed_account(request, self._tokens, selection.account)
        wanted = selection.filter(self._clock.now(), account)
        sort, after = query_order(request, SubscriptionSort.ID)
        page = await self._selected.page(
            wanted, sort, after=after, limit=query_limit(request)
        )
        return json_response(SubscriptionsJson.of_page(page))

    @ApiOperation(
        method="POST",
        path="/subscriptions",
        id="subscribe",
        scope=TokenScope.SUBSCRIBE,
        summary="Subscribe a callback, or change its subscription",
        description="The body has `callback`, `topic`, and optionally `account`"
        " (another than one's own requires the `admin` scope), `secret`, `algorithm`"
        " (`sha256`; `sha1`, `sha384`, `sha512`, `sha1+sha256`: `sha1` in"
        " `X-Hub-Signature`, `sha256` in `X-Hub-Signature-256`), `format` (`json`,"
        " `atom`, `as-is`, or `by-topic`: feeds as Atom, anything else as-is),"
        " `updates` (`fresh`, `all`, `none`), `batch`. 201, or 200 if it exists and"
        ' was changed, but for its secret if none is given (`""` removes it). The'
        " answer has `added`, `health`, and `feed_status`: its feed, with"
        " `next_fetch_reason`. A new secret replaces the former one, and"
        " `former_secret_until` says how long that one signs as well.",
        answers={201: SubscribedJson, 200: SubscribedJson},
        body=SubscriptionToAdd(
            callback="https://you.example/hook", topic="https://example.org/feed.xml"
        ),
    )
    async def add(self, request: Request) -> Response:
        body = await read_body(request, SubscriptionToAdd)
        wanted = f"{body.callback} to {body.topic}"
        name_target(request, AuditTarget.SUBSCRIPTION, None, wanted)
        account = await account_named(request, self._tokens, body.account)
        secret = body.secret
        if secret is None:
            secret = await self._subscriptions.present_secret(
                account, body.topic, body.callback
            )
        result = await self._subscriptions.add(
            SubscriptionRequest(
                callback=body.callback,
                topic=body.topic,
                account=account,
                secret=secret,
                algorithm=body.algorithm,
                format=body.format,
                updates=body.updates,
                batch=body.batch,
            )
        )
        name_target(request, AuditTarget.SUBSCRIPTION, result.subscription.id)
        status = PlannedFeedJson.of_feed(
            result.feed, next_fetch_reason=await self._reports.reason(result.feed)
        )
        number = result.subscription.id
        condition = (await self._selected.conditions([number]))[number]
        return json_response(
            SubscribedJson.of_subscription(
                result.subscription,
                added=result.is_new,
                health=SubscriptionHealthReportJson.of_condition(condition),
                feed_status=status,
            ),
            HTTPStatus.CREATED if result.is_new else HTTPStatus.OK,
        )

    @ApiOperation(
        method="POST",
        path="/events/subscriptions",
        id="subscribe_to_events",
        scope=TokenScope.ADMIN,
        summary="Tell a callback of operational events, as Standard Webhooks",
        description='The body has `callback`, and optionally `types` (`["*"]`) and'
        " `secret`. 201, or 200 if it exists; `secret` is the one that the hub made,"
        ' only in this answer, else `""`. The messages are listed under webhooks, and'
        " delivered as notifications are.",
        answers={201: SubscribedToEventsJson, 200: SubscribedToEventsJson},
        body=EventsToSubscribe(
            callback="https://you.example/hook", types=["feed.*", "hub.disk"]
        ),
    )
    async def add_to_events(self, request: Request) -> Response:
        body = await read_body(request, EventsToSubscribe)
        made = await self._events.add(body.callback, body.types, body.secret)
        name_target(request, AuditTarget.SUBSCRIPTION, made.subscription.id)
        note_detail(request, ", ".join(body.types))
        return json_response(
            SubscribedToEventsJson.of_subscription(
                made.subscription, secret=made.new_secret
            ),
            HTTPStatus.CREATED if made.is_new else HTTPStatus.OK,
            is_secret=True,
        )

    @ApiOperation(
        method="GET",
        path="/subscriptions/{id}",
        id="get_subscription",
        scope=TokenScope.LIST,
        summary="Show one subscription with its last attempts",
        description="The answer has its `health`; `explanation`, what the hub is doing"
        " about it, and `advice`, commands that may help; `lag`, the `records` that it"
        " has not been sent (at most 10,000 are counted; `has_more`), and the age of"
        " the oldest in `seconds`; its last `attempts`; `retrying`, null unless it is"
        " retrying, and its first 100 `dead_letters`, with what each is of.",
        answers={200: SubscriptionReportJson},
        problems=(404,),
    )
    async def show(self, request: Request) -> Response:
        account = own_account(request)
        report = await self._subscriptions.get(
            _subscription_id(request), account=account
        )
        lost = await self._deliveries.lost_entries(report.dead_letters, account=account)
        return json_response(
            SubscriptionReportJson.of_report(report, lost, self._clock.now())
        )

    @ApiOperation(
        method="GET",
        path="/subscriptions/{id}/attempts",
        id="list_attempts",
        scope=TokenScope.LIST,
        summary="List the requests to a callback, by outcome and time",
        description="Newest first. All are kept for 7 days, but of failures and of what"
        " was caught up with at most the last 2,000: `kept_from`. Each has its"
        " `reason` (`new_record`; `retry`, by the schedule; `news`, ahead of it because"
        " of a new record; `probe`, once all tries are used up; `catch_up`, as it was"
        " behind or paused, or the hub restarted; `sent_again`, in a replay or of a"
        " dead letter; `asked`; `unknown`), and the `title` of the first of the"
        " `entries` that it told of (0: the log no longer has them). `told` names all"
        " entries of the `record` that is asked for.",
        answers={200: AttemptsJson},
        query=(*ATTEMPT_LIST, PAGE[1]),
        problems=(404, 422),
    )
    async def attempts(self, request: Request) -> Response:
        limit, subscription_id = query_limit(request), _subscription_id(request)
        wanted = query_attempts(request, self._clock.now())
        account, told = own_account(request), None
        found = await self._deliveries.attempts(
            subscription_id, wanted, limit, account=account
        )
        last = found[-1].attempt if len(found) == limit else None
        if wanted.position is not None:
            told = await self._deliveries.told_of(
                subscription_id, wanted.position, account=account
            )
        return json_response(
            AttemptsJson(
                attempts=[ListedAttemptJson.of_listed(each) for each in found],
                next=place_of(last.at, last.position) if last else None,
                kept_from=await self._deliveries.kept_from(subscription_id),
                told=None if told is None else ToldEntryJson.all_of(told),
                told_total=None if told is None else told.total,
            )
        )

    @ApiOperation(
        method="PATCH",
        path="/subscriptions/{id}",
        id="edit_subscription",
        scope=TokenScope.SUBSCRIBE,
        summary="Change a subscription; its place in the log stays",
        description='The body has `secret` (`""` for none), `algorithm`, `format`,'
        " `updates`, `batch`; of a subscription to events only the first two. Other"
        " members stay as they are. 409 if it has ended.",
        answers={200: SubscriptionJson},
        body=SubscriptionToEdit(format=Format.ATOM),
        problems=(404, 409),
    )
    async def edit(self, request: Request) -> Response:
        body = await read_body(request, SubscriptionToEdit)
        report = await self._subscriptions.get(
            _subscription_id(request), account=own_account(request)
        )
        change = SubscriptionChange(
            secret=body.secret,
            algorithm=body.algorithm,
            format=body.format,
            updates=body.updates,
            batch=body.batch,
        )
        note_detail(
            request,
            said_changes(
                new_secret=None if body.secret is None else True,
                algorithm=body.algorithm,
                format=body.format,
                updates=body.updates,
                batch=body.batch,
            ),
        )
        edited = await self._subscriptions.edit(report.subscription, change)
        return json_response(SubscriptionJson.of_subscription(edited))

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/pause",
        id="pause_subscription",
        scope=TokenScope.UNSUBSCRIBE,
        summary="Have nothing sent to a callback; its place in the log stays",
        description="Until it is resumed; what comes meanwhile is kept for it. The"
        " answer includes its `health`. 409 if it has ended.",
        answers={200: ListedSubscriptionJson},
        problems=(404, 409),
    )
    async def pause(self, request: Request) -> Response:
        paused = await self._subscriptions.pause(
            _subscription_id(request), account=own_account(request)
        )
        return json_response(ListedSubscriptionJson.of_selected(paused))

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/resume",
        id="resume_subscription",
        scope=TokenScope.SUBSCRIBE,
        summary="Have a paused callback sent what it lacks, and what comes",
        description="In order. 409 if it has ended.",
        answers={200: ListedSubscriptionJson},
        problems=(404, 409),
    )
    async def resume(self, request: Request) -> Response:
        resumed = await self._subscriptions.resume(
            _subscription_id(request), account=own_account(request)
        )
        return json_response(ListedSubscriptionJson.of_selected(resumed))

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/resubscribe",
        id="resubscribe",
        scope=TokenScope.SUBSCRIBE,
        summary="Have a subscription that has ended begin anew",
        description="From now on and without end, with its callback, topic, format and"
        " secret; the callback is not asked. 409 if it has not ended, was made without"
        " an account, or is of events; 422 if its callback or topic is refused now, for"
        " example by the publisher.",
        answers={200: ListedSubscriptionJson},
        problems=(404, 409, 422),
    )
    async def resubscribe(self, request: Request) -> Response:
        made = await self._subscriptions.subscribe_again(
            _subscription_id(request), account=own_account(request)
        )
        return json_response(ListedSubscriptionJson.of_selected(made))

    @ApiOperation(
        method="GET",
        path="/subscriptions/{id}/request",
        id="preview_request",
        scope=TokenScope.SUBSCRIBE,
        summary="Show the request of a test delivery, also as `curl`; it is not sent",
        description="As `request` of failed deliveries, and as `curl`, where a body"
        " over 16 KiB is to be in a file `body.txt`. It is signed now: receivers take"
        " it for five minutes. 409 if the subscription has ended.",
        answers={200: PreviewedRequestJson},
        problems=(404, 409),
    )
    async def preview(self, request: Request) -> Response:
        shown = await self._trials.preview(
            _subscription_id(request), account=own_account(request)
        )
        return json_response(PreviewedRequestJson.of_preview(shown))

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/replay",
        id="replay_subscription",
        scope=TokenScope.RETRIEVE,
        summary="Send a callback once more what the log has from there on, in order",
        description="From `since` (a time, or an age such as `2h`) or `record` (the"
        " number of the first) on. By the rules of deliveries: retried, and given up"
        " in the end. The notifications have the ids that they had: a receiver that"
        " still knows them drops them. 202 with the `lag` that it has now: `records`,"
        " `has_more`, `seconds`. 409 if it has ended, is paused, or is being sent"
        " something.",
        answers={202: DeliveryLagJson},
        body=Replay(since="2h"),
        problems=(404, 409),
    )
    async def replay(self, request: Request) -> Response:
        body, now = await read_body(request, Replay), self._clock.now()
        record = None if body.record is None else f"record {body.record:,}"
        note_detail(request, f"from {record or body.since}")
        lag = await self._subscriptions.replay(
            _subscription_id(request),
            read_start(body.since, body.record, now),
            account=own_account(request),
        )
        return json_response(DeliveryLagJson.of_lag(lag, now), HTTPStatus.ACCEPTED)

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/secret",
        id="rotate_secret",
        scope=TokenScope.SUBSCRIBE,
        summary="Sign with another secret; only this answer shows the one made",
        description="The given `secret`, or one that the hub makes (`secret` of the"
        ' answer, else `""`). The former one signs as well until'
        " `former_secret_until`. 409 if it has ended.",
        answers={200: RotatedSecretJson},
        body=SecretToRotate(),
        problems=(404, 409),
    )
    async def rotate(self, request: Request) -> Response:
        body = await read_body(request, SecretToRotate)
        rotated = await self._subscriptions.rotate_secret(
            _subscription_id(request), body.secret, account=own_account(request)
        )
        return json_response(
            RotatedSecretJson.of_subscription(
                rotated.subscription, secret=rotated.new_secret
            ),
            is_secret=True,
        )

    @ApiOperation(
        method="POST",
        path="/subscriptions/{id}/test",
        id="test_subscription",
        scope=TokenScope.SUBSCRIBE,
        summary="Send its callback one notification, marked as a test",
        description="The answer says what the callback answered. The subscription stays"
        " as it is, whatever that was.",
        answers={200: TrialDeliveryJson},
        problems=(404, 409, 422, 503),
    )
    async def test(self, request: Request) -> Response:
        trial = await self._trials.try_subscription(
            _subscription_id(request), account=own_account(request)
        )
        return json_response(TrialDeliveryJson.of_trial(trial))

    @ApiOperation(
        method="DELETE",
        path="/subscriptions/{id}",
        id="unsubscribe",
        scope=TokenScope.UNSUBSCRIBE,
        summary="End a subscription",
        description="With `tell=false` the callback is sent no denial.",
        answers={200: SubscriptionJson},
        query=(
            Parameter(
                name="tell",
                help="whether to send the callback a denial",
                kind="boolean",
                default=True,
            ),
        ),
        problems=(404, 422),
    )
    async def remove(self, request: Request) -> Response:
        ended = await self._subscriptions.remove(
            _subscription_id(request),
            tell=query_flag(request, "tell", True),
            account=own_account(request),
        )
        return json_response(SubscriptionJson.of_subscription(ended))


def _subscription_id(request: Request) -> SubscriptionId:
    return SubscriptionId(path_id(request, "subscription"))
