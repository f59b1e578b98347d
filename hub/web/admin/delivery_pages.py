"""``/admin/deliveries``: what callbacks did not take, and what was given up.

An account sees those of its own subscriptions below ``/account``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from hub.core.delivery.receiver_code import as_curl
from hub.core.delivery.retry_schedule import FAILURES_ALLOWED, NEWS_PAUSE
from hub.runtime.clock import Clock
from hub.services.delivery_lists import (
    DeliveryListService,
    FailedRequests,
    FirstTries,
    UndeliveredRecords,
)
from hub.services.delivery_reports import DeliveryReportService
from hub.services.selected_subscriptions import SelectedSubscriptionService
from hub.services.undelivered_records import (
    DeadLetterWaits,
    Resending,
    UndeliveredService,
)
from hub.web.admin.page_access import (
    Area,
    OperatorPages,
    PageAccess,
    area_of,
    in_both_areas,
    own_account,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.admin.plan_pages import OF_NOTICES, filter_of
from hub.web.api.selection_input import (
    DELIVERY_LIST,
    place_of,
    query_deliveries,
    query_sent,
    read_place,
)
from hub.web.operation import HTML, Operation, Parameter
from hub.web.page_rendering import render_page
from hub.web.request_input import LARGEST_ID, path_id, query_choice, query_number
from protocols.http.request_stage import STAGE_WORDS
from storage.records import (
    DeadLetter,
    Position,
    SubscriptionId,
    TokenScope,
    UndeliveredOutcome,
)

ROWS: Final = 50
"""Rows on a page of one outcome."""
FEW_ROWS: Final = 10
"""Rows of each outcome on the page of all outcomes."""
MOST_COUNTED: Final = 1_000
"""Failed requests that are counted; the page says whether there are more."""


class ShownOutcome(StrEnum):
    GIVEN_UP = "given-up"
    RETRIED = "retried"
    FAILED = "failed"
    DELIVERED = "delivered"


_UNDELIVERED: Final[Mapping[ShownOutcome, UndeliveredOutcome]] = {
    ShownOutcome.GIVEN_UP: UndeliveredOutcome.GIVEN_UP,
    ShownOutcome.RETRIED: UndeliveredOutcome.RETRIED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterNotice:
    """What was ``done`` to a dead letter, and what came of it."""

    done: str
    resending: Resending


class DeliveryPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        lists: DeliveryListService,
        subscriptions: SelectedSubscriptionService,
        reports: DeliveryReportService,
        undelivered: UndeliveredService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._subscriptions = subscriptions
        self._lists = lists
        self._reports = reports
        self._undelivered = undelivered
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/deliveries",
        id="get_deliveries_page",
        summary="All deliveries by outcome: given up, retried, failed, delivered",
        answers={200: {HTML: str}, 303: None},
        query=(
            Parameter(name="outcome", help="only these", choices=tuple(ShownOutcome)),
            *DELIVERY_LIST,
            Parameter(name="before", help="next of the page before"),
        ),
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        """Show a list of each outcome, or of one.

        The parameters are those of ``GET /api/deliveries/failed``, and an outcome.
        Deliveries at the first try are found by topic and time alone.
        """
        asked = without_blanks(request)
        now = self._clock.now()
        outcome = query_choice(asked, "outcome", ShownOutcome)
        wanted = query_deliveries(asked).filter(now)
        before = asked.query_params.get("before", "")

        def shows(which: ShownOutcome) -> bool:
            return outcome in (None, which)

        rows = ROWS if outcome else FEW_ROWS
        failed = FailedRequests()
        if shows(ShownOutcome.FAILED):
            failed = await self._lists.failed(
                wanted, before=read_place(before), limit=rows, most_counted=MOST_COUNTED
            )
        undelivered = UndeliveredRecords()
        if outcome is None or outcome in _UNDELIVERED:
            undelivered = await self._lists.undelivered(
                replace(wanted, outcome=outcome and _UNDELIVERED[outcome]), limit=rows
            )
        return render_page(
            "deliveries.html",
            section="Deliveries",
            viewer=viewer_of(request),
            now=now,
            outcome=outcome,
            outcomes=tuple(ShownOutcome),
            wanted=wanted,
            shows=shows,
            failed=failed,
            next=place_of(*failed.next) if failed.next else None,
            is_first=not before,
            dead_letters=undelivered.dead_letters,
            lost=undelivered.lost,
            retrying=undelivered.retrying,
            failures_allowed=FAILURES_ALLOWED,
            news_pause=NEWS_PAUSE,
            conditions=await self._subscriptions.conditions(
                [each.subscription.id for each in undelivered.retrying]
            ),
            rows=rows,
            taken=await self._taken(asked, now, outcome),
            query={
                name: value
                for name, value in asked.query_params.items()
                if name != "before" and name not in OF_NOTICES
            },
            filter=filter_of(asked),
            notice=await self._notice(asked),
        )

    async def _notice(self, asked: Request) -> DeadLetterNotice | None:
        """What was done to a dead letter, and what came of it."""
        done = asked.query_params.get("done", "")
        whose = query_number(asked, "of", 0, LARGEST_ID)
        if done not in ("due", "busy", "discarded") or not whose:
            return None
        resending = await self._undelivered.resending(
            SubscriptionId(whose),
            _moment(asked.query_params.get("at", "")),
            Position(query_number(asked, "first", 0, LARGEST_ID)),
            Position(query_number(asked, "last", 0, LARGEST_ID)),
        )
        if resending is None:
            return None
        return DeadLetterNotice(done=done, resending=resending)

    async def _taken(
        self, asked: Request, now: datetime, outcome: ShownOutcome | None
    ) -> FirstTries:
        is_alone = outcome is ShownOutcome.DELIVERED
        if outcome is not None and not is_alone:
            return FirstTries()
        if not is_alone:  # ``before`` is a place among failed requests
            asked = _without_place(asked)
        wanted, before = query_sent(asked, now)
        rows = ROWS if is_alone else FEW_ROWS
        return await self._lists.sent(wanted, before=before, limit=rows)

    @Operation(
        method="GET",
        path="/admin/deliveries/slowest",
        id="get_slowest_callbacks_page",
        summary="The callbacks that take longest to answer",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def slowest(self, request: Request) -> Response:
        return render_page(
            "slowest_callbacks.html",
            section="Slowest",
            viewer=viewer_of(request),
            now=self._clock.now(),
            found=await self._reports.slowest(ROWS),
        )

    @in_both_areas(
        method="GET",
        path="/deliveries/{id}",
        id="get_delivery_page",
        summary="A failed request in full, with where it failed and the answer",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 404, 429, 503),
    )
    async def show(self, request: Request) -> Response:
        report = await self._reports.get(
            path_id(request, "failed delivery"),
            account=own_account(request, TokenScope.LIST),
        )
        sent, details = report.request, report.failed.attempt.details
        return render_page(
            "delivery.html",
            section=_section(request),
            viewer=viewer_of(request),
            now=self._clock.now(),
            report=report,
            stage=STAGE_WORDS[details.stage] if details else "not kept",
            body=sent.body.decode(errors="replace") if sent else "",
            curl=as_curl(sent.method, sent.url, sent.headers, sent.body)
            if sent
            else "",
        )

    @in_both_areas(
        method="POST",
        path="/dead-letters/{id}/retry",
        id="retry_dead_letter_of_page",
        summary="Send what was given up after all",
        answers={303: None},
        problems=(403, 404, 409, 429, 503),
    )
    async def retry(self, request: Request) -> Response:
        number = path_id(request, "dead letter")
        account = own_account(request, TokenScope.SUBSCRIBE)
        done = "due"
        try:
            dead_letter = await self._undelivered.retry_dead_letter(
                number, account=account
            )
        except DeadLetterWaits as busy:
            dead_letter, done = busy.dead_letter, "busy"
        return _back(request, dead_letter, done, self._clock.now())

    @in_both_areas(
        method="POST",
        path="/dead-letters/{id}/discard",
        id="discard_dead_letter_of_page",
        summary="Discard what was given up",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def discard(self, request: Request) -> Response:
        dead_letter = await self._undelivered.discard_dead_letter(
            path_id(request, "dead letter"),
            account=own_account(request, TokenScope.UNSUBSCRIBE),
        )
        return _back(request, dead_letter, "discarded", self._clock.now())


def _moment(unix: str) -> datetime | None:
    """A time of `_back`; None for anything else."""
    try:
        return datetime.fromtimestamp(float(unix), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _without_place(asked: Request) -> Request:
    """The same request without ``before``, that is, for the first page."""
    given = [each for each in asked.query_params.multi_items() if each[0] != "before"]
    return Request({**asked.scope, "query_string": urlencode(given).encode()})


def _section(request: Request) -> str:
    """The section of the menu.

    An account has no list of deliveries: they are on the pages of its subscriptions.
    """
    return "Deliveries" if area_of(request) is Area.OPERATOR else "Subscriptions"


def _back(
    request: Request, dead_letter: DeadLetter, done: str, now: datetime
) -> Response:
    """Redirect to the list of dead letters, which says what came of it.

    An account has that list on the page of the subscription, which lists its requests.
    """
    whose = dead_letter.subscription_id
    if area_of(request) is Area.OPERATOR:
        what = {"done": done, "of": whose}
        if done == "due":
            what |= {"at": f"{now.timestamp():.3f}"}
            what |= {"first": dead_letter.first, "last": dead_letter.last}
        return redirect(f"/admin/deliveries?{urlencode(what)}")
    done = _ON_PAGES_OF_SUBSCRIPTIONS.get(done, done)
    return redirect(f"/account/subscriptions/{whose}?done={done}")


_ON_PAGES_OF_SUBSCRIPTIONS: Final[Mapping[str, str]] = {"due": "sent-again"}
