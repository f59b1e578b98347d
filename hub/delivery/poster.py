"""One notification to one callback, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from hub.core.delivery.delivery_outcome import (
    STRAINED_STATUSES,
    CallbackResponse,
    Verdict,
    verdict,
)
from hub.delivery.notification_counter import NotificationCounter
from hub.delivery.notifications import Document
from hub.delivery.requests import delivery_of, request_of
from hub.delivery.slow_requests import SlowRequests
from hub.http import Answer, Request
from hub.http.network_errors import NetworkError
from hub.limits.origin_limiter import OriginLimiter
from hub.runtime.clock import Clock
from hub.runtime.failpoints import failpoint
from protocols.http import parse_retry_after
from protocols.websub.delivery import WebhookDelivery, notification_id
from storage.records import Position, Subscription

LONGEST_ERROR = 200

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What callbacks are told of this hub; the epoch is that of its log."""

    hub_url: str
    epoch: str
    user_agent: str


@dataclass(slots=True, eq=False)
class _Visit:
    """A request's place at its origin, given back when it moves aside or ends."""

    origins: OriginLimiter
    origin: str
    clock: Clock
    move_aside: Callable[[], None]
    is_over: bool = False

    def take_long(self) -> None:
        self.leave()
        self.origins.strained(self.origin, self.clock.monotonic())
        self.move_aside()

    def end(self, status: int) -> None:
        was_slow = self.is_over
        self.leave()
        if verdict(status) is Verdict.DELIVERED:
            self.origins.succeeded(self.origin)
        elif status in STRAINED_STATUSES and not was_slow:
            self.origins.strained(self.origin, self.clock.monotonic())

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
        sender: Sender,
        credits: NotificationCounter | None = None,
    ) -> None:
        self._slow_requests = slow_requests
        self._origins = origins
        self._clock = clock
        self._sender = sender
        self._credits = credits or NotificationCounter()

    def admits(self, origin: str) -> bool:
        """Take a place at the origin for one `post`, which gives it back."""
        return self._origins.enter(origin, self._clock.monotonic())

    def has_room(self, origin: str) -> bool:
        """Whether `admits` would."""
        return self._origins.has_room(origin, self._clock.monotonic())

    def postponement(self, origin: str) -> float:
        """Seconds after which one that was not admitted should ask again."""
        return self._origins.postponement(origin, self._clock.monotonic())

    async def post(
        self,
        subscription: Subscription,
        document: Document,
        position: Position,
        *,
        origin: str,
        move_aside: Callable[[], None],
        failures: int = 0,
        missed: tuple[Position, Position] | None = None,
    ) -> CallbackResponse:
        """POST a document, signed with this subscription's secret if it has one.

        The origin must have admitted it. ``move_aside`` is called if there is no
        answer within a second. WebSub 7: "the response body MUST be ignored".
        A fault of the hub itself is a failure like the callback's: it harms no other.
        """
        visit = _Visit(self._origins, origin, self._clock, move_aside)
        delivery = self._delivery(subscription, document, position, failures, missed)
        is_doubtful = failures > 0 or subscription.exhausted
        try:
            request = await request_of(delivery)
            reply = await self._send(request, visit, is_doubtful)
        except Exception:
            log.exception("delivery_broke", subscription=subscription.id)
            visit.leave()
            return CallbackResponse(
                status=0, milliseconds=0, error="a fault of the hub itself"
            )
        visit.end(reply.status)
        return reply

    def _delivery(
        self,
        subscription: Subscription,
        document: Document,
        position: Position,
        failures: int,
        missed: tuple[Position, Position] | None,
    ) -> WebhookDelivery:
        return delivery_of(
            subscription,
            document,
            self._credits.take(subscription.account),
            id=notification_id(self._sender.epoch, position, subscription.id),
            at=int(self._clock.now().timestamp()),
            hub_url=self._sender.hub_url,
            user_agent=self._sender.user_agent,
            retries=failures,
            missed=missed,
        )

    async def _send(
        self, request: Request, visit: _Visit, is_doubtful: bool
    ) -> CallbackResponse:
        started = self._clock.monotonic()
        failpoint("mid-post")
        try:
            answer = await self._slow_requests.send(
                request, visit.take_long, is_doubtful=is_doubtful
            )
        except NetworkError as error:
            elapsed = self._clock.monotonic() - started
            reply = _unusable(error, round(elapsed * 1000))
        else:
            reply = self._reply(answer)
        if reply.verdict is Verdict.DELIVERED:
            failpoint("after-2xx")
        return reply

    def _reply(self, answer: Answer) -> CallbackResponse:
        status, milliseconds = answer.status, answer.milliseconds
        if verdict(status) is Verdict.DELIVERED:
            return CallbackResponse(status=status, milliseconds=milliseconds)
        retry_after = None
        if status in (429, 503):
            header = answer.headers.get("Retry-After", "")
            retry_after = parse_retry_after(header, self._clock.now())
        return CallbackResponse(
            status=status,
            milliseconds=milliseconds,
            error=f"answered {status}",
            retry_after=retry_after,
        )


def _unusable(error: NetworkError, milliseconds: int) -> CallbackResponse:
    """Of an answer that broke off only the status counts, if it had come so far."""
    if verdict(error.status) is Verdict.DELIVERED:
        return CallbackResponse(status=error.status, milliseconds=milliseconds)
    reason = error.reason[:LONGEST_ERROR]
    return CallbackResponse(
        status=error.status, milliseconds=milliseconds, error=reason
    )
