"""Rate limits: by token if there is a valid one, by address otherwise.

The number of buckets is bounded: the least recently used one is forgotten, and is full
again when it is next needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import structlog
from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from hub.limits.token_bucket import Rate, TokenBuckets
from hub.runtime.clock import Clock, SystemClock
from hub.runtime.metrics import Metrics
from hub.runtime.setting_readers import Addresses
from hub.web.problems import Problem

MOST_KNOWN = 20_000
_OF_PROXIES = frozenset((b"x-forwarded-for", b"forwarded"))

log = structlog.get_logger()


LimitHeaders = tuple[tuple[bytes, bytes], ...]
"""Rate-limit headers of an answer; () if there is no limit."""


def with_headers(send: Send, headers: LimitHeaders) -> Send:
    """A ``send`` that adds these headers to the answer."""
    if not headers:
        return send

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return send_with_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The request rates that are allowed; None: any rate."""

    of_token: Rate | None = None
    of_address: Rate | None = None
    trusted_proxies: tuple[Addresses, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAllowance:
    """What a client may still request: ``remaining`` of ``limit`` requests at once.

    ``reset_at``: when all requests are available again or, if this request was refused,
    when the next is allowed, in ``wait`` seconds.
    """

    limit: int
    remaining: int
    reset_at: datetime
    wait: float


class RateLimits:
    """Counts requests, and refuses those over the limit. The hub has one instance."""

    def __init__(
        self,
        limits: RequestLimits | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        capacity: int = MOST_KNOWN,
    ) -> None:
        self._limits = limits or RequestLimits()
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._buckets: TokenBuckets[str] = TokenBuckets(capacity)
        self._has_warned = bool(self._limits.trusted_proxies)

    def check_token(self, token_id: int, requests: int = 1) -> LimitHeaders:
        """Count a request with that token as ``requests`` requests. Raises `Problem`
        429."""
        key = f"token {token_id}"
        return self._count("token", key, self._limits.of_token, requests)

    def client(self, connection: HTTPConnection) -> str:
        """The name under which a client's requests are counted."""
        if not self._has_warned:
            self._look_for_proxy(connection)
        return client_address(connection, self._limits.trusted_proxies)

    def _look_for_proxy(self, connection: HTTPConnection) -> None:
        """Warn once if all clients are probably counted as one.

        Anybody can send these headers: they are only a hint, and change nothing.
        """
        if any(name in _OF_PROXIES for name, _ in connection.scope["headers"]):
            self._has_warned = True
            log.warning(
                "proxy_not_trusted",
                peer=client_address(connection, ()),
                hint="if this is your proxy, name it in FANFARE_TRUSTED_PROXIES;"
                " otherwise all its clients count as one",
            )

    def check_address(
        self, connection: HTTPConnection, requests: int = 1
    ) -> LimitHeaders:
        """Count a request without a token as ``requests`` requests. Raises `Problem`
        429."""
        address = self.client(connection)
        return self._count("address", address, self._limits.of_address, requests)

    def count_address(self, connection: HTTPConnection) -> RequestAllowance | None:
        """Count a request without a token, and return what is left; None: no limit."""
        address, rate = self.client(connection), self._limits.of_address
        if rate is None:
            return None
        wait = self._take("address", address, rate)
        now = self._clock.monotonic()
        left = self._buckets.of(address, rate, now).left(now)
        reset = wait or (rate.burst - left) / rate.per_second
        return RequestAllowance(
            limit=int(rate.burst),
            remaining=int(left),
            reset_at=self._clock.now() + timedelta(seconds=reset),
            wait=wait,
        )

    def _count(
        self, limit: str, key: str, rate: Rate | None, requests: int
    ) -> LimitHeaders:
        if rate is None:
            return ()
        wait = self._take(limit, key, rate, requests)
        headers = self._headers(limit, key, rate)
        if wait:
            seconds = math.ceil(wait)
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many requests with this {limit}; try again in {seconds} s",
                headers={
                    **{name.decode(): value.decode() for name, value in headers},
                    "Retry-After": str(seconds),
                },
            )
        return headers

    def _headers(self, limit: str, key: str, rate: Rate) -> LimitHeaders:
        """The headers of draft-ietf-httpapi-ratelimit-headers-10.

        A policy has the name of what is counted: "q" requests in "w" seconds. Of these
        "r" are left, and all are available again in "t" seconds.
        """
        now = self._clock.monotonic()
        left = self._buckets.of(key, rate, now).left(now)
        full = math.ceil((rate.burst - left) / rate.per_second)
        window = math.ceil(rate.burst / rate.per_second)
        policy = f'"{limit}";q={int(rate.burst)};w={window}'
        state = f'"{limit}";r={max(0, int(left))};t={full}'
        return (
            (b"ratelimit-policy", policy.encode()),
            (b"ratelimit", state.encode()),
        )

    def _take(self, limit: str, key: str, rate: Rate, requests: int = 1) -> float:
        """Count ``requests``; return the seconds until they are allowed, or 0.0."""
        now = self._clock.monotonic()
        wait = self._buckets.of(key, rate, now).take(now, requests)
        if wait:
            self._metrics.limited.add(limit)
        return wait


def client_address(connection: HTTPConnection, trusted: tuple[Addresses, ...]) -> str:
    """The client's address: the peer, or the last address that trusted proxies name.

    An IPv6 /64, which one customer commonly has, counts as one client.
    """
    peer = connection.client
    address = peer.host if peer else ""
    if not _is_within(address, trusted):
        return _as_client(address)
    forwarded = ",".join(connection.headers.getlist("x-forwarded-for"))
    hops = [hop.strip() for hop in forwarded.split(",") if hop.strip()]
    while hops and _is_within(address, trusted):
        address = hops.pop()
    return _as_client(address)


def _is_within(address: str, networks: tuple[Addresses, ...]) -> bool:
    parsed = _parsed(address) if networks else None
    return parsed is not None and any(parsed in network for network in networks)


@lru_cache(4096)
def _as_client(address: str) -> str:
    parsed = _parsed(address)
    if parsed is None:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        return str(IPv6Network((parsed, 64), strict=False))
    return str(parsed)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    """None if it is no address. An IPv4-mapped one is the IPv4 address it stands for:
    a socket that takes both names its peers so."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
