"""``/admin/subscriptions`` and ``/account/subscriptions``: who is sent what.

They also show how deliveries go, and what can be done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.core.delivery.receiver_code import BODY_FILE, LONGEST_BODY, VERIFIERS, as_curl
from hub.housekeeping import ATTEMPTS_KEPT, ENDED_SUBSCRIPTIONS_KEPT
from hub.runtime.clock import Clock
from hub.services import SubscriptionService
from hub.services.account_subscriptions import SubscriptionRequest
from hub.services.callback_trials import CallbackTrialService
from hub.services.delivery_reports import DeliveryReportService
from hub.services.selected_subscriptions import MOST_LAG, SelectedSubscriptionService
from hub.services.token_authentication import TokenService
from hub.services.undelivered_records import UndeliveredService
from hub.web.admin.attempt_sparkline import draw_attempts
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    area_of,
    in_both_areas,
    own_account,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.admin.plan_pages import filter_of
from hub.web.api.selection_input import (
    ATTEMPT_LIST,
    OVER,
    SUBSCRIPTION_LIST,
    cursor_of,
    place_of,
    query_attempts,
    query_order,
    query_subscriptions,
    read_start,
)
from hub.web.audited_requests import name_target, note_detail
from hub.web.operation import HTML
from hub.web.page_rendering import render_page
from hub.web.request_input import (
    LARGEST_PAGE,
    form_choice,
    form_id,
    path_id,
    query_number,
)
from protocols.http.request_stage import STAGE_WORDS
from storage.records import (
    ANONYMOUS,
    LISTED_SUBSCRIPTIONS,
    AttemptRange,
    AuditTarget,
    Format,
    Position,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionSort,
    SubscriptionState,
    TokenScope,
    Updates,
)

_STATES: Final = (
    *((each.value, each.value) for each in LISTED_SUBSCRIPTIONS),
    (OVER, "over: gone or ended"),
    (SubscriptionHealth.GONE.value, "gone: its callback answered 410"),
    (SubscriptionHealth.ENDED.value, "ended otherwise"),
)
"""The states that the filter offers, each in words."""
ROWS: Final = 50
"""Subscriptions on a page, unless another number is requested."""
SHOWN_ATTEMPTS: Final = 30


class SubscriptionPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        subscriptions: SubscriptionService,
        deliveries: DeliveryReportService,
        trials: CallbackTrialService,
        undelivered: UndeliveredService,
        tokens: TokenService,
        selected: SelectedSubscriptionService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._subscriptions = subscriptions
        self._deliveries = deliveries
        self._trials = trials
        self._undelivered = undelivered
        self._tokens = tokens
        self._selected = selected
        self._clock = clock

    @in_both_areas(
        method="GET",
        path="/subscriptions",
        id="get_subscriptions_page",
        summary="The subscriptions, filtered and sorted",
        answers={200: {HTML: str}, 303: None},
        query=SUBSCRIPTION_LIST,
        problems=(403, 404, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """The parameters are those of ``GET /api/subscriptions``; empty ones do not
        count."""
        asked = without_blanks(request)
        now = self._clock.now()
        selection = query_subscriptions(asked)
        account = own_account(request, TokenScope.LIST)
        if selection.account and account is None:
            account = (await self._tokens.account("account", selection.account)).id
        sort, after = query_order(asked, SubscriptionSort.ID)
        page = await self._selected.page(
            selection.filter(now, account),
            sort,
            after=after,
            limit=query_number(asked, "limit", ROWS, LARGEST_PAGE, least=1),
        )
        return render_page(
            "subscriptions.html",
            section="Subscriptions",
            viewer=viewer_of(request),
            now=now,
            rows=await self._selected.activities(page.subscriptions),
            most_lag=MOST_LAG,
            anonymous=ANONYMOUS,
            total=page.total,
            next=cursor_of(page.next),
            is_first=after is None,
            sort=sort,
            query={
                name: value
                for name, value in asked.query_params.items()
                if name not in ("cursor", "after")
            },
            states=_STATES,
            over=OVER,
            leaves_out_over=not selection.state and not selection.failing,
            days_kept=ENDED_SUBSCRIPTIONS_KEPT.days,
            formats=tuple(Format),
            filter=filter_of(asked),
        )

    @in_both_areas(
        method="POST",
        path="/subscriptions",
        id="subscribe_of_page",
        summary="Subscribe a callback, or change its subscription",
        answers={303: None},
        problems=(403, 422, 429, 503),
    )
    async def add(self, request: Request) -> Response:
        own_account(request, TokenScope.SUBSCRIBE)
        viewer = viewer_of(request)
        account, form = viewer.principal.account.id, viewer.form
        topic, callback = (form.get(each, "").strip() for each in ("topic", "callback"))
        wanted = f"{callback} to {topic}" if callback or topic else ""
        name_target(request, AuditTarget.SUBSCRIPTION, None, wanted)
        secret = form.get("secret", "")
        if not secret:
            secret = await self._subscriptions.present_secret(account, topic, callback)
        made = await self._subscriptions.add(
            SubscriptionRequest(
                callback=callback,
                topic=topic,
                account=account,
                secret=secret,
                format=form_choice(form, "format", Format, Format.JSON),
                updates=Updates.ALL if form.get("updates") else Updates.FRESH,
            )
        )
        name_target(request, AuditTarget.SUBSCRIPTION, made.subscription.id)
        done = "subscribed" if made.is_new else "changed"
        return _back(request, made.subscription.id, done)

    @in_both_areas(
        method="GET",
        path="/subscriptions/{id}",
        id="get_subscription_page",
        summary="One subscription: how it is, what waits, its last requests",
        answers={200: {HTML: str}, 303: None},
        query=ATTEMPT_LIST,
        problems=(403, 404, 422, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        """The parameters are those of ``GET /api/subscriptions/{id}/attempts``."""
        asked = without_blanks(request)
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.LIST)
        wanted = query_attempts(asked, self._clock.now())
        report = await self._subscriptions.get(
            subscription_id, account=account, most_attempts=SHOWN_ATTEMPTS
        )
        if wanted == AttemptRange():
            attempts = await self._deliveries.attempts_of(
                report.subscription, report.attempts, account=account
            )
        else:
            attempts = await self._deliveries.attempts(
                subscription_id, wanted, SHOWN_ATTEMPTS, account=account
            )
        kept_from = None
        if wanted != AttemptRange() and len(attempts) < SHOWN_ATTEMPTS:
            kept_from = await self._deliveries.kept_from(subscription_id)
        last = attempts[-1].attempt if len(attempts) == SHOWN_ATTEMPTS else None
        return render_page(
            "subscription.html",
            section="Subscriptions",
            viewer=viewer_of(request),
            now=self._clock.now(),
            report=report,
            attempts=attempts,
            lost=await self._deliveries.lost_entries(
                report.dead_letters, account=account
            ),
            kept_from=kept_from,
            sparkline=draw_attempts(report.attempts) if report.attempts else None,
            stages=STAGE_WORDS,
            wanted=wanted,
            next=place_of(last.at, last.position) if last else None,
            around=_around(wanted),
            query={
                name: value
                for name, value in asked.query_params.items()
                if name not in ("before", "done")
            },
            days_kept=ENDED_SUBSCRIPTIONS_KEPT.days,
            requests_kept=ATTEMPTS_KEPT.days,
            is_active=report.subscription.state is SubscriptionState.ACTIVE,
            is_paused=report.condition.health is SubscriptionHealth.PAUSED,
            done=_DONE.get(request.query_params.get("done", ""), ""),
        )

    @in_both_areas(
        method="GET",
        path="/subscriptions/{id}/records/{record}",
        id="get_told_record_page",
        summary="The requests that told a callback of a record, and what is kept",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def record(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        position = Position(path_id(request, "record", "record"))
        account = own_account(request, TokenScope.LIST)
        wanted = AttemptRange(position=position)
        return render_page(
            "callback_record.html",
            section="Subscriptions",
            viewer=viewer_of(request),
            now=self._clock.now(),
            number=subscription_id,
            position=position,
            told=await self._deliveries.told_of(
                subscription_id, position, account=account
            ),
            attempts=await self._deliveries.attempts(
                subscription_id, wanted, SHOWN_ATTEMPTS, account=account
            ),
        )

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/test",
        id="test_subscription_of_page",
        summary="Send one notification marked as a test, and show the answer",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def test(self, request: Request) -> Response:
        trial = await self._trials.try_subscription(
            _subscription_id(request),
            account=own_account(request, TokenScope.SUBSCRIBE),
        )
        return render_page(
            "test_delivery.html",
            section="Subscriptions",
            viewer=viewer_of(request),
            now=self._clock.now(),
            trial=trial,
            body=trial.request.body.decode(errors="replace"),
        )

    @in_both_areas(
        method="GET",
        path="/subscriptions/{id}/request",
        id="get_request_page",
        summary="The request that a callback is sent, as curl, and code to check it",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def preview(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        shown = await self._trials.preview(
            subscription_id, account=own_account(request, TokenScope.SUBSCRIBE)
        )
        return render_page(
            "callback_request.html",
            section="Subscriptions",
            viewer=viewer_of(request),
            now=self._clock.now(),
            number=subscription_id,
            request=shown,
            body=shown.body.decode(errors="replace"),
            curl=as_curl(shown.method, shown.url, shown.headers, shown.body),
            body_file=BODY_FILE if len(shown.body) > LONGEST_BODY else "",
            is_signed="webhook-signature" in shown.headers,
            verifiers=VERIFIERS,
        )

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/pause",
        id="pause_subscription_of_page",
        summary="Have nothing sent to a callback",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def pause(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.UNSUBSCRIBE)
        await self._subscriptions.pause(subscription_id, account=account)
        return _back(request, subscription_id, "paused")

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/resume",
        id="resume_subscription_of_page",
        summary="Have a callback sent what it lacks, and what comes",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def resume(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.SUBSCRIBE)
        await self._subscriptions.resume(subscription_id, account=account)
        return _back(request, subscription_id, "resumed")

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/resubscribe",
        id="resubscribe_of_page",
        summary="Have a subscription that has ended begin anew",
        answers={303: None},
        problems=(403, 404, 409, 422, 429, 503),
    )
    async def resubscribe(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.SUBSCRIBE)
        await self._subscriptions.subscribe_again(subscription_id, account=account)
        return _back(request, subscription_id, "subscribed")

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/retry",
        id="retry_subscription_of_page",
        summary="Try a retrying subscription now",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def retry(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.SUBSCRIBE)
        await self._undelivered.retry(subscription_id, account=account)
        return _back(request, subscription_id, "due")

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/replay",
        id="replay_subscription_of_page",
        summary="Send a callback once more what the log has from there on",
        answers={303: None},
        problems=(403, 404, 409, 422, 429, 503),
    )
    async def replay(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.RETRIEVE)
        form = viewer_of(request).form
        since, record = form.get("since", ""), form.get("record", "").strip()
        note_detail(request, f"from record {record}" if record else f"from {since}")
        start = read_start(since, form_id(form, "record"), self._clock.now())
        await self._subscriptions.replay(subscription_id, start, account=account)
        return _back(request, subscription_id, "replayed")

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/secret",
        id="rotate_secret_of_page",
        summary="Sign with another secret; only this page shows it",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 409, 422, 429, 503),
    )
    async def rotate(self, request: Request) -> Response:
        viewer = viewer_of(request)
        rotated = await self._subscriptions.rotate_secret(
            _subscription_id(request),
            viewer.form.get("secret", ""),
            account=own_account(request, TokenScope.SUBSCRIBE),
        )
        if not rotated.new_secret:
            return _back(request, rotated.subscription.id, "rotated")
        return render_page(
            "new_secret.html",
            section="Subscriptions",
            viewer=viewer,
            now=self._clock.now(),
            rotated=rotated,
        )

    @in_both_areas(
        method="POST",
        path="/subscriptions/{id}/end",
        id="end_subscription_of_page",
        summary="End a subscription, and tell its callback",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def end(self, request: Request) -> Response:
        subscription_id = _subscription_id(request)
        account = own_account(request, TokenScope.UNSUBSCRIBE)
        await self._subscriptions.remove(subscription_id, tell=True, account=account)
        return _back(request, subscription_id, "ended")


_DONE: Final[Mapping[str, str]] = {
    "subscribed": "The callback is subscribed: it is sent what comes from now on.",
    "changed": "It was subscribed already; its subscription has changed.",
    "paused": "Nothing is sent until the subscription is resumed.",
    "resumed": "The subscription is sent what it lacks, in order, and what comes.",
    "due": "The retry is due now, and its result is listed below. If it fails, it"
    " has used up none of its tries.",
    "replayed": "What the log has from there on is sent once more, in order; reload the"
    " page to see how much waits still.",
    "rotated": "Deliveries are signed with the new secret from now on.",
    "ended": "The subscription has ended.",
    "sent-again": "The dead letter is sent now: the newest request below says what came"
    " of it. It is listed here again if it is given up again.",
    "busy": "The callback is being sent something else at this moment, so the dead"
    " letter is still here. Send it again in a second.",
    "discarded": "The dead letter was discarded: it is not sent any more.",
}


def _around(wanted: AttemptRange) -> tuple[str, str] | None:
    """The span that begins half an hour before the wanted one and ends half an hour
    after it, as parameters of a query; None if the wanted one is open."""
    if wanted.since is None or wanted.until is None:
        return None
    half = timedelta(minutes=30)
    begin, end = wanted.since - half, wanted.until + half
    return f"{begin:%Y-%m-%dT%H:%M:%SZ}", f"{end:%Y-%m-%dT%H:%M:%SZ}"


def _subscription_id(request: Request) -> SubscriptionId:
    return SubscriptionId(path_id(request, "subscription"))


def _back(request: Request, subscription_id: SubscriptionId, done: str) -> Response:
    """Redirect to the subscription's page, which says what was done."""
    area = area_of(request)
    return redirect(f"{area}/subscriptions/{subscription_id}?done={done}")
