"""Fetching one feed politely: conditional, within limits, along redirects, with a name.

Every failure is a value: `Fetched.error`, in words. This module judges only the URL of
a redirect; the guard decides whether its address may be reached.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from hub.core.fetched import Fetched, FollowedRedirect
from hub.core.host_set import HostSet
from hub.http import (
    Answer,
    BodyAllowance,
    BodySink,
    Network,
    Purpose,
    Request,
    ResponseLimits,
)
from hub.http.network_errors import Blocked, HostBlocked, NetworkError
from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import Clock
from protocols.http import ACCEPT, ACCEPT_ENCODING, conditional_headers, user_agent
from protocols.urls import host_name, requested_url
from storage.records import Credentials, FetchTarget, Validators

MOST_REDIRECTS = 5

_USER_INFORMATION = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int | None]
"""Scheme, host in lower case, port."""


class RedirectRefused(Exception):
    """A redirect that is not followed; its message is meant for people."""


def bare_url(url: str) -> str:
    """The URL as it is requested: without fragment, user information and spaces.

    Different spellings of scheme, host and port become one; the rest stays as it is.
    """
    bare = url.strip()
    if "@" in bare:
        bare = _USER_INFORMATION.sub(r"\1", bare)
    return requested_url(bare.replace(" ", "%20"))


def origin(url: str) -> Origin:
    """The origin (RFC 6454, 4) that credentials belong to; raises ValueError."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port


def redirect_target(url: str, location: str, visited: Collection[str]) -> str:
    """The URL that a redirect of ``url`` leads to; ``visited`` were requested before.

    Raises RedirectRefused for more than five redirects, a loop, a step from https to
    http, and a target that is not an http or https URL.
    """
    if not location:
        raise RedirectRefused("the redirect names no target")
    try:
        target = bare_url(urljoin(url, _printable(location)))
        scheme, host, _ = origin(target)
    except ValueError:
        raise RedirectRefused("the redirect's target is not a valid URL") from None
    if scheme not in _DEFAULT_PORTS or not host:
        raise RedirectRefused("the redirect's target is not an http or https URL")
    if scheme == "http" and url.startswith("https:"):
        raise RedirectRefused("a redirect from https to http is not followed")
    if target in visited:
        raise RedirectRefused("the redirects form a loop")
    if len(visited) > MOST_REDIRECTS:
        raise RedirectRefused(f"more than {MOST_REDIRECTS} redirects")
    return target


def _printable(location: str) -> str:
    """The location; raises ValueError for tabs and line breaks, which `urljoin`
    drops."""
    if not location.isprintable():
        raise ValueError
    return location


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherIdentity:
    """The User-Agent by which publishers know the hub. Empty parts are left out."""

    product: str = "Fanfare"  # with its version: Fanfare/1.0
    url: str = ""
    contact: str = ""  # a URL or mail address

    @property
    def of_hub(self) -> str:
        """The User-Agent of a request that is made for no feed yet."""
        return user_agent(self.product, url=self.url, contact=self.contact)

    def user_agent(self, target: FetchTarget) -> str:
        return user_agent(
            self.product,
            url=self.url,
            contact=self.contact,
            subscribers=target.subscribers,
            feed_id=target.feed.id,
        )


_NEVER_ASKED = (Blocked, HostBlocked)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchRequest(Struct, frozen=True, kw_only=True):
    """What to fetch.

    Validators are sent to their own URL only, and credentials only to the origin of
    ``credentials_origin``, which is a URL (empty: ``url``). The request names the
    number of ``subscribers`` unless that is None. With a ``sink``, the body of a 200
    goes there as it came over the wire. ``limits`` replace the fetcher's own. The
    memory of the body is taken from the ``allowance``.
    """

    url: str
    user_agent: str
    validators: Validators | None = None
    credentials: Credentials | None = None
    credentials_origin: str = ""
    subscribers: int | None = None
    sink: BodySink | None = None
    limits: ResponseLimits | None = None
    allowance: BodyAllowance | None = None


class FeedFetcher(Protocol):
    """A `Fetcher`, or a fetcher in front of one."""

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch a feed. Failures are returned as values, not raised."""
        ...


class _Journey(Struct, frozen=True, kw_only=True):
    """How far one fetch has come: the current request, and the redirects before it."""

    started: datetime
    url: str
    headers: Mapping[str, str]
    conditional: bool
    redirects: tuple[FollowedRedirect, ...] = ()


class Fetcher:
    """Fetches through a network; follows at most five redirects.

    ``limits`` hold for each request, and ``limits.seconds`` for the whole fetch.
    ``blocked`` hosts are never asked, even if a redirect leads there. The caller has
    waited for the host's turn. The target of a redirect is asked at once, and the
    ``limiter`` counts that request.
    """

    def __init__(
        self,
        network: Network,
        clock: Clock,
        limits: ResponseLimits,
        blocked: HostSet | None = None,
        limiter: HostLimiter | None = None,
    ) -> None:
        self._network = network
        self._clock = clock
        self._limits = limits
        self._blocked = blocked or HostSet()
        self._limiter = limiter or HostLimiter(clock)

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Make one fetch, redirects included. Raises nothing but cancellation."""
        journey = _depart(request, bare_url(request.url), self._clock.now())
        limits = request.limits or self._limits
        deadline = self._clock.monotonic() + limits.seconds
        while True:
            try:
                answer = await self._ask(request, journey, limits, deadline)
                if answer.status not in _REDIRECTS:
                    return self._arrive(journey, answer, _error_of(journey, answer))
                journey = _follow(request, journey, answer)
            except RedirectRefused as refusal:
                return self._arrive(journey, answer, str(refusal))
            except NetworkError as error:
                return self._fail(journey, error)

    async def _ask(
        self,
        request: FetchRequest,
        journey: _Journey,
        limits: ResponseLimits,
        deadline: float,
    ) -> Answer:
        if self._blocked.covers(journey.url):
            raise HostBlocked
        if journey.redirects:
            self._limiter.count(host_name(journey.url))
            left = math.ceil(deadline - self._clock.monotonic())
            limits = replace(limits, seconds=max(1, left))
        return await self._network.send(
            Request(
                method="GET",
                url=journey.url,
                purpose=Purpose.TOPIC,
                headers=journey.headers,
                limits=limits,
                sink=request.sink,
                allowance=request.allowance,
            )
        )

    def _arrive(self, journey: _Journey, answer: Answer, error: str) -> Fetched:
        return Fetched(
            at=self._clock.now(),
            started=journey.started,
            url=journey.url,
            status=answer.status,
            error=error,
            redirects=journey.redirects,
            body=answer.body if answer.status == 200 else b"",
            conditional=journey.conditional,
            etag=_header(answer, "ETag"),
            last_modified=_header(answer, "Last-Modified"),
            content_type=_text(answer, "Content-Type"),
            cache_control=_header(answer, "Cache-Control"),
            expires=_header(answer, "Expires"),
            date=_header(answer, "Date"),
            age=_header(answer, "Age"),
            retry_after=_header(answer, "Retry-After"),
            rate_limit_reset=_header(answer, "X-RateLimit-Reset"),
            refusal=answer.body if answer.status == 429 else b"",
            link=_header(answer, "Link"),
            speaks_openfeeder=bool(answer.headers.get("X-OpenFeeder")),
        )

    def _fail(self, journey: _Journey, error: NetworkError) -> Fetched:
        return Fetched(
            at=self._clock.now(),
            started=journey.started,
            url=journey.url,
            status=error.status,
            error=error.reason,
            is_lasting=error.is_lasting,
            is_unanswered=not error.status and not isinstance(error, _NEVER_ASKED),
            redirects=journey.redirects,
            conditional=journey.conditional,
        )


def _depart(
    request: FetchRequest,
    url: str,
    started: datetime,
    redirects: tuple[FollowedRedirect, ...] = (),
) -> _Journey:
    validators = request.validators
    if validators is not None and validators.url != url != bare_url(validators.url):
        validators = None  # validators say nothing about another URL
    headers = {
        "User-Agent": request.user_agent,
        "Accept": ACCEPT,
        "Accept-Encoding": ACCEPT_ENCODING,
    }
    if request.subscribers is not None:
        headers["X-Hub-Subscribers"] = str(request.subscribers)
    conditions = {}
    if validators is not None:
        conditions = conditional_headers(validators.etag, validators.last_modified)
        headers |= conditions
    if request.credentials is not None and _is_entitled(request, url):
        headers = _with_credentials(headers, request.credentials)
    return _Journey(
        started=started,
        url=url,
        headers=headers,
        conditional=bool(conditions),
        redirects=redirects,
    )


def _follow(request: FetchRequest, journey: _Journey, answer: Answer) -> _Journey:
    source = journey.url
    visited = [*(followed.source for followed in journey.redirects), source]
    target = redirect_target(source, answer.headers.get("Location", ""), visited)
    followed = FollowedRedirect(status=answer.status, source=source, target=target)
    return _depart(request, target, journey.started, (*journey.redirects, followed))


def _is_entitled(request: FetchRequest, url: str) -> bool:
    try:
        return origin(url) == origin(request.credentials_origin or request.url)
    except ValueError:
        return False


def _with_credentials(
    headers: Mapping[str, str], credentials: Credentials
) -> dict[str, str]:
    """The headers with those set by the operator for the feed, which take
    precedence."""
    secret = dict(credentials.headers)
    if credentials.username or credentials.password:
        pair = f"{credentials.username}:{credentials.password}".encode()
        secret["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    replaced = {name.lower() for name in secret}
    kept = {
        name: text for name, text in headers.items() if name.lower() not in replaced
    }
    return kept | secret


def _error_of(journey: _Journey, answer: Answer) -> str:
    """Why this answer is of no use; "" for a 200, or a 304 that was asked for."""
    if answer.status == 200:
        return ""
    if answer.status == 304:
        return "" if journey.conditional else "answered 304 to an unconditional request"
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = ""
    return f"answered {answer.status} {phrase}".rstrip()


def _text(answer: Answer, name: str) -> str:
    """A header's text; bytes that are not UTF-8 are read as Latin-1 (RFC 9110 5.5)."""
    value = answer.headers.get(name, "")
    if value.isascii():
        return value
    raw = value.encode(errors="surrogateescape")
    return _header(answer, name) or raw.decode("latin-1")


def _header(answer: Answer, name: str) -> str:
    """A header as sent, or "" if it is not Unicode, since it could not be sent back."""
    value = answer.headers.get(name, "")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return ""
    return value
