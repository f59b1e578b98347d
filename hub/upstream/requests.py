"""What hubs of others are asked: to push a feed, and to stop.

Each request has a deadline, goes where the address guard lets it, which for hubs that
publishers name is not where callbacks may be, and follows no redirect but those that
WebSub allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from hub.core.push.hub_subscription import LEASE
from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError, OptedOut
from hub.ingest.fetcher import BlockedHosts
from hub.limits.host_limiter import HostLimiter, RequestKind, host_of
from hub.runtime.clock import Clock
from protocols.http import parse_retry_after
from protocols.legacy_pings import LEASE_SECONDS, is_registered, registration_form
from protocols.protocol_errors import InvalidValue
from protocols.urls import resolve
from protocols.websub.callbacks import read_web_url
from protocols.websub.subscribing import subscription_form
from storage.records import NewPushCallback, PushCallback, PushCount, PushWay

LIMITS: Final = ResponseLimits(seconds=20.0, idle_seconds=20.0)
MOST_READ: Final = 4_096
"""Bytes of an answer; only a cloud's says anything."""
MOST_REDIRECTS: Final = 3
DOWN_TO_HTTP: Final = "the hub redirects from https to http"
"""What is asked for carries the secret, and the callback, which nobody else knows."""
FORM: Final = "application/x-www-form-urlencoded"
_REDIRECTS: Final = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubReply:
    """What a hub answered. ``lease`` is set where that is all it will say;
    ``trouble`` is "" if it took the request."""

    trouble: str = ""
    counted: PushCount = PushCount.REFUSED
    lease: timedelta | None = None
    patience: timedelta | None = None  # how long it wants to be left alone


class HubRequests:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        public_url: str,
        user_agent: str,
        blocked: BlockedHosts,
        limiter: HostLimiter,
    ) -> None:
        """``limiter``: of publishers, some of whom have their hub on their own host."""
        self._network = network
        self._clock = clock
        self._public_url = public_url
        self._user_agent = user_agent
        self._blocked = blocked
        self._limiter = limiter

    async def subscribe(self, callback: NewPushCallback) -> HubReply:
        """Failures are values."""
        if callback.way is PushWay.CLOUD:
            return await self._register(callback)
        body = subscription_form(
            mode="subscribe",
            topic=callback.topic,
            callback=self._url(callback.token),
            secret=callback.secret,
            lease_seconds=int(LEASE.total_seconds()),
        )
        reply, _answer = await self._post(callback.hub, body)
        return reply

    async def unsubscribe(self, callback: PushCallback) -> HubReply:
        """Of WebSub. Once, whatever comes of it: what is pushed all the same is
        refused."""
        body = subscription_form(
            mode="unsubscribe",
            topic=callback.topic,
            callback=self._url(callback.token),
        )
        reply, _answer = await self._post(callback.hub, body)
        return reply

    async def _register(self, callback: NewPushCallback) -> HubReply:
        form = registration_form(
            callback=self._url(callback.token), topic=callback.topic
        )
        reply, answer = await self._post(callback.hub, form)
        if answer is None or reply.trouble:
            return reply
        if not is_registered(answer.body):
            return HubReply(trouble="the cloud did not take the registration")
        return HubReply(lease=timedelta(seconds=LEASE_SECONDS))

    def _url(self, token: str) -> str:
        return f"{self._public_url}/upstream/{token}"

    async def _post(self, hub: str, body: bytes) -> tuple[HubReply, Answer | None]:
        """The hub "MAY" redirect "with HTTP status code 307 or 308" (WebSub 5.1)."""
        url = hub
        for _ in range(MOST_REDIRECTS):
            try:
                answer = await self._send(url, body)
            except NetworkError as error:
                is_there = error.status or url != hub  # it has answered somehow
                counted = PushCount.REFUSED if is_there else PushCount.UNANSWERED
                return HubReply(trouble=error.reason, counted=counted), None
            if answer.status not in _REDIRECTS:
                return self._judge(answer), answer
            try:
                target = read_web_url(
                    resolve(answer.headers.get("Location", ""), url), "Location"
                )
            except InvalidValue:
                return HubReply(trouble="the hub redirects to nowhere"), None
            if _scheme(url) == "https" != _scheme(target):
                return HubReply(trouble=DOWN_TO_HTTP), None
            url = target
        return HubReply(trouble="the hub redirects too often"), None

    async def _send(self, url: str, body: bytes) -> Answer:
        if self._blocked.cover(url):
            raise OptedOut
        host = host_of(url)
        if not self._network.is_exempt(host, Purpose.HUB):
            await self._limiter.wait(host, RequestKind.HUB)
        return await self._network.send(
            Request(
                method="POST",
                url=url,
                purpose=Purpose.HUB,
                headers={"User-Agent": self._user_agent, "Content-Type": FORM},
                body=body,
                limits=LIMITS,
                cuts_body=True,
                cut=MOST_READ,
            )
        )

    def _judge(self, answer: Answer) -> HubReply:
        if 200 <= answer.status < 300:
            return HubReply()
        return HubReply(
            trouble=f"the hub answered {answer.status}",
            patience=_patience(answer, self._clock.now()),
        )


def _scheme(url: str) -> str:
    return urlsplit(url).scheme  # in lower case


def _patience(answer: Answer, now: datetime) -> timedelta | None:
    seconds = parse_retry_after(answer.headers.get("Retry-After", ""), now)
    return timedelta(seconds=seconds) if seconds else None
