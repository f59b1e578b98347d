"""Posting a notification to a callback: the request, the answer, and its outcome.

A request that has no answer after a second is slow, and no longer counts against the
limit of requests under way. A bounded number of slow requests may stay open until their
own deadlines. Beyond it a slow request is cut short. If its callback has not failed
before, a slow request to a callback that has failed is cut short in its place: so a
hundred dead callbacks do not shorten the time of a slow one that answers. All requests
share one sweep; none has a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import structlog
from msgspec import Struct
from msgspec.structs import replace

from hub import PRODUCT
from hub.core.delivery.delivery_outcome import (
    STRAINED_STATUSES,
    CallbackResponse,
    Verdict,
    verdict,
)
from hub.core.fetch_traces import FetchTrace
from hub.delivery.failed_attempts import details_of, stage_of
from hub.delivery.notification_counter import NotificationCounter, lease_end
from hub.delivery.notifications import NotificationBody
from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from hub.http.exchange import RequestProgress
from hub.http.network_errors import NetworkError, TimedOut
from hub.limits.callback_origin_limiter import OriginLimiter
from hub.runtime.callback_durations import CallbackDurations
from hub.runtime.clock import Clock
from hub.runtime.failpoints import failpoint
from hub.runtime.offloading import LARGE_BYTES, run_in_thread
from protocols.http import RequestStage, parse_retry_after
from protocols.websub.delivery import WebhookDelivery, delivery_headers, notification_id
from storage.records import AttemptDetails, Position, Subscription, SubscriptionId

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

SLOW_SECONDS = 1.0


class _Waiting(Struct, eq=False):
    """A request that has no answer yet."""

    task: asyncio.Task[object]
    since: float
    on_slow: Callable[[], None]
    is_doubtful: bool
    is_cut: bool = False

    def cut(self) -> None:
        self.is_cut = True
        self.task.cancel()


class SlowRequests:
    """Sends requests, and notices in `sweep` which of them take long.

    ``slow_limit`` is how many slow requests may wait at once.
    """

    def __init__(self, network: Network, clock: Clock, *, slow_limit: int) -> None:
        self._network = network
        self._clock = clock
        self._slow_limit = slow_limit
        self._swept_at = clock.monotonic()
        self._fresh: dict[_Waiting, None] = {}  # in order of their start
        self._slow: dict[_Waiting, None] = {}  # in the order in which they became slow

    async def send(
        self,
        request: Request,
        on_slow: Callable[[], None],
        *,
        is_doubtful: bool = False,
    ) -> Answer:
        """Send a request; ``on_slow`` is called if there is no answer within a second.

        ``is_doubtful``: its callback failed before. Raises a `NetworkError`: also
        `TimedOut` if the request was cut short because too many hang, before or after
        ``on_slow`` was called.
        """
        task = cast("asyncio.Task[object]", asyncio.current_task())
        since = self._clock.monotonic()
        waiting = _Waiting(task, since, on_slow, is_doubtful)
        self._fresh[waiting] = None
        try:
            return await self._network.send(request)
        except asyncio.CancelledError:
            if waiting.is_cut and not task.uncancel():
                raise TimedOut(
                    "no answer in time, and too many other requests hang"
                ) from None
            raise
        finally:
            self._fresh.pop(waiting, None)
            self._slow.pop(waiting, None)

    def sweep(self) -> None:
        """Report requests that had waited for a second at the former sweep, or cut
        them short.

        Answers that came since then have been read: a process that stood still, or
        that gets little time, takes nobody for slow whose answer is there.
        """
        latest = self._swept_at - SLOW_SECONDS
        self._swept_at = self._clock.monotonic()
        for waiting in list(self._fresh):
            if waiting.since > latest:
                return
            del self._fresh[waiting]
            if self._has_room_for(waiting):
                self._slow[waiting] = None
                waiting.on_slow()
            else:
                waiting.cut()

    def _has_room_for(self, waiting: _Waiting) -> bool:
        """Make room for a slow request by cutting a doubtful one, unless it is doubtful
        itself; returns whether there is room."""
        if len(self._slow) < self._slow_limit:
            return True
        if waiting.is_doubtful:
            return False
        doubtful = next((each for each in self._slow if each.is_doubtful), None)
        if doubtful is None:
            return False
        del self._slow[doubtful]
        doubtful.cut()
        return True


LIMITS: Final = ResponseLimits(seconds=20.0, idle_seconds=20.0)


def delivery_of(
    subscription: Subscription,
    document: NotificationBody,
    credits: int | None,
    *,
    id: str,
    at: int,
    hub_url: str,
    retries: int = 0,
    missed: tuple[Position, Position] | None = None,
    is_test: bool = False,
) -> WebhookDelivery:
    """A document addressed to one subscriber.

    ``at`` is in Unix seconds. ``credits``: what is left to its account, None if it has
    no credits. The former secret signs as well until its end: one that ends within the
    second of ``at`` has ended.
    """
    until = subscription.former_until
    is_over = until is None or until.timestamp() < at + 1
    former_secret = "" if is_over else subscription.former_secret
    return WebhookDelivery(
        topic=subscription.topic,
        callback=subscription.callback,
        hub=hub_url,
        content_type=document.content_type,
        body=document.body,
        id=id,
        timestamp=at,
        secret=subscription.secret,
        former_secret=former_secret,
        algorithm=subscription.algorithm,
        retries=retries,
        missed=missed,
        credits=credits,
        expires=None if credits is None else lease_end(subscription, at),
        user_agent=f"{PRODUCT} (+{hub_url})",
        is_test=is_test,
    )


async def request_of(
    delivery: WebhookDelivery, progress: RequestProgress | None = None
) -> Request:
    """The request of a delivery, signed if the subscription has a secret."""
    size = len(delivery.body) if delivery.secret else 0
    if size > LARGE_BYTES:
        headers = await run_in_thread(partial(delivery_headers, delivery), size)
    else:
        headers = delivery_headers(delivery)
    return Request(
        method="POST",
        url=delivery.callback,
        purpose=Purpose.CALLBACK,
        headers=headers,
        body=delivery.body,
        limits=LIMITS,
        cuts_body=True,
        progress=progress,
    )


LONGEST_ERROR = 200

log = structlog.get_logger()


class _Visit(Struct, eq=False):
    """A request and its place at its origin, given back when it is slow or ends.

    ``records`` are the positions that it tells of; ``stage`` is how far it has come.
    """

    origins: OriginLimiter
    origin: str
    clock: Clock
    on_slow: Callable[[], None]
    delivery: WebhookDelivery
    records: tuple[Position, ...]
    is_over: bool = False
    stage: RequestStage = RequestStage.QUEUED

    def take_long(self) -> None:
        self.leave()
        self.origins.strained(self.origin, self.clock.monotonic())
        self.on_slow()

    def end(self, reply: CallbackResponse) -> None:
        was_slow = self.is_over
        self.leave()
        if reply.verdict is Verdict.DELIVERED:
            failpoint("after-2xx")
            self.origins.succeeded(self.origin)
        elif reply.status in STRAINED_STATUSES and not was_slow:
            self.origins.strained(self.origin, self.clock.monotonic())

    def details(
        self, stage: RequestStage, answer: Answer | None = None
    ) -> AttemptDetails:
        return details_of(self.delivery, self.records, stage, answer)

    def leave(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.origins.leave(self.origin)


class Poster:
    """POSTs notifications, within what each callback's origin can take."""

    def __init__(
        self,
        slow_requests: SlowRequests,
        origins: OriginLimiter,
        clock: Clock,
        hub_url: str,
        counter: NotificationCounter | None = None,
        traces: Traces | None = None,
        durations: CallbackDurations | None = None,
    ) -> None:
        self._traces = traces
        self._durations = durations or CallbackDurations()
        self._slow_requests = slow_requests
        self._origins = origins
        self._clock = clock
        self._hub_url = hub_url
        self._counter = counter or NotificationCounter()
        self.epoch = ""
        """The epoch of the log; to be set before the first `post`."""

    def admits(self, origin: str) -> bool:
        """Take a place at the origin for one `post`, which gives it back; False if
        full."""
        return self._origins.enter(origin, self._clock.monotonic())

    def has_room(self, origin: str) -> bool:
        """Whether `admits` would return True."""
        return self._origins.has_room(origin, self._clock.monotonic())

    def postponement(self, origin: str) -> float:
        """Seconds until a delivery that was not admitted should ask again."""
        return self._origins.postponement(origin, self._clock.monotonic())

    async def post(
        self,
        subscription: Subscription,
        document: NotificationBody,
        position: Position,
        *,
        origin: str,
        on_slow: Callable[[], None],
        failures: int = 0,
        missed: tuple[Position, Position] | None = None,
        records: tuple[Position, ...] = (),
        fetches: tuple[FetchTrace, ...] = (),
    ) -> CallbackResponse:
        """POST a document, signed with this subscription's secret if it has one.

        ``records``: the positions that it tells of, unless it is only ``position``;
        ``fetches``: the traces of the fetches that these come from, if there are
        traces. The origin must have admitted the request. ``on_slow`` is called if
        there is no answer within a second. WebSub 7: "the response body MUST be
        ignored". A fault of the hub itself counts as a failure like the callback's, and
        affects no other delivery.
        """
        begun = self._clock.unix()
        delivery = delivery_of(
            subscription,
            document,
            self._counter.take(subscription.account),
            id=notification_id(self.epoch, position, subscription.id),
            at=int(begun),
            hub_url=self._hub_url,
            retries=failures,
            missed=missed,
        )
        told = records or (position,)
        span = None
        if self._traces is not None and fetches:
            span = self._traces.begin_delivery(
                fetches, subscription, told, retries=failures
            )
            delivery = replace(delivery, traceparent=span.traceparent)
        visit = _Visit(self._origins, origin, self._clock, on_slow, delivery, told)
        is_doubtful = failures > 0 or subscription.exhausted
        started = self._clock.monotonic()
        try:
            request = await request_of(delivery, visit)
            failpoint("mid-post")
            answer = await self._slow_requests.send(
                request, visit.take_long, is_doubtful=is_doubtful
            )
            reply = self._reply(answer, visit, begun)
            self._note_duration(subscription.id, reply, begun)
        except NetworkError as error:
            reply = _unusable(error, self._milliseconds(started), visit, begun)
            self._note_duration(subscription.id, reply, begun)
        except Exception:  # it says nothing of the callback
            log.exception("delivery_broke", subscription=subscription.id)
            visit.leave()
            reply = CallbackResponse(
                status=0,
                milliseconds=self._milliseconds(started),
                error="an internal error of the hub",
            )
        visit.end(reply)
        if span is not None:
            span.end(reply)
        return reply

    def _milliseconds(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1_000)

    def _note_duration(
        self, subscription_id: SubscriptionId, reply: CallbackResponse, begun: float
    ) -> None:
        self._durations.note(
            subscription_id,
            reply.milliseconds,
            at=begun + reply.milliseconds / 1_000,
            is_delivered=reply.verdict is Verdict.DELIVERED,
        )

    def _reply(self, answer: Answer, visit: _Visit, begun: float) -> CallbackResponse:
        status, milliseconds = answer.status, answer.milliseconds
        if verdict(status) is Verdict.DELIVERED:
            return _taken(status, milliseconds, begun)
        retry_after = None
        if status in (429, 503):
            header = answer.headers.get("Retry-After", "")
            retry_after = parse_retry_after(header, self._clock.now())
        return CallbackResponse(
            status=status,
            milliseconds=milliseconds,
            error=f"answered {status}",
            retry_after=retry_after,
            details=visit.details(stage_of(answer), answer),
        )


def _taken(status: int, milliseconds: int, begun: float) -> CallbackResponse:
    """The response of a callback that took a delivery ``begun`` then, in Unix seconds:
    to read the clock once more would cost more than all else that is kept of it."""
    return CallbackResponse(
        status=status,
        milliseconds=milliseconds,
        at=int(begun * 1_000) + milliseconds,
    )


def _unusable(
    error: NetworkError, milliseconds: int, visit: _Visit, begun: float
) -> CallbackResponse:
    """The response to an answer that broke off: it is a success if its status came and
    is one."""
    if verdict(error.status) is Verdict.DELIVERED:
        return _taken(error.status, milliseconds, begun)
    reason = error.reason[:LONGEST_ERROR]
    return CallbackResponse(
        status=error.status,
        milliseconds=milliseconds,
        error=reason,
        details=visit.details(visit.stage),
    )
