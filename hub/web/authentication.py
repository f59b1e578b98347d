"""Who makes a request, and whether they may: accounts' tokens and the admin token.

``Authorization: Bearer TOKEN``, or Basic with the account's name and the token; the
admin token goes with the user ``admin``. Browsers send Basic credentials by themselves,
so a request to the API that another site caused is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hub.services.token_authentication import ADMINISTRATOR, Principal, TokenService
from hub.web.audited_requests import (
    SAFE_METHODS,
    draft_of,
    name_operation,
    note_refusal,
)
from hub.web.cross_origin import is_admitted
from hub.web.problem_types import ProblemType
from hub.web.problems import Problem, answer_error, problem_response
from hub.web.rate_limits import LimitHeaders, RateLimits, with_headers
from storage.errors import StorageError
from storage.records import AccountId, TokenScope


def is_foreign(connection: HTTPConnection) -> bool:
    """Whether a page of another origin makes the request."""
    origin = connection.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != connection.headers.get("host")
    except ValueError:
        return True


def is_of_another_site(connection: HTTPConnection) -> bool:
    """Whether another site makes the request, by ``Sec-Fetch-Site``, which browsers
    send to https URLs and to this machine.

    Where it is missing, ``Origin`` decides: every POST from another site has that.
    """
    site = connection.headers.get("sec-fetch-site")
    if site is None:
        return is_foreign(connection)
    return site in ("cross-site", "same-site")


USER = "admin"
CHALLENGE = 'Bearer realm="fanfare", Basic realm="fanfare", charset="UTF-8"'
ScopeOfRoute = Mapping[tuple[str, str], TokenScope | None]
"""The scope needed, by the route's method and path; None: open to everybody."""
_PRINCIPAL = "fanfare.principal"


class Authenticator:
    """Identifies the principal by the token. Every endpoint that is not public uses
    it."""

    def __init__(self, tokens: TokenService, admin_token: str) -> None:
        self._tokens = tokens
        self._admin_digest = _digest(admin_token)

    async def identify(self, headers: Headers) -> Principal | None:
        """The principal whose token the headers carry; None if they carry no token.

        Raises `Problem` 401 for an invalid or revoked token, and `StorageError`.
        """
        header = headers.get("authorization")
        if header is None:
            return None
        offered = _offered(header)
        if offered is None:
            raise _unauthorized("expected Authorization: Bearer TOKEN, or Basic")
        if principal := await self.admit(*offered):
            return principal
        raise _unauthorized("invalid or revoked token")

    async def admit(self, user: str, secret: str) -> Principal | None:
        """The principal with the token ``secret``; None if there is none.

        ``user`` "" accepts the token of any account. Raises `StorageError`.
        """
        # Compared by digest: the time it takes tells nothing of the token.
        if secrets.compare_digest(_digest(secret), self._admin_digest):
            is_named = user in ("", USER, ADMINISTRATOR.account.name)
            return ADMINISTRATOR if is_named else None
        return await self._tokens.authenticate(secret, user)


def refuse_in_query(principal: Principal) -> None:
    """Raises `Problem` 403 for the administrator: a query may not have that token.

    A query string is kept in logs, histories and Referers, and any page can link to
    one.
    """
    if principal.is_admin:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "the admin token is not accepted in a query string, which logs keep; send"
            " it in the Authorization header, or use a token with the scopes needed",
        )


def require(principal: Principal, scope: TokenScope) -> None:
    """Raises `Problem` 403 naming the scope if the token does not have it."""
    if principal.may(scope):
        return
    # RFC 6750 3.1, insufficient_scope: "The request requires higher privileges than
    # provided by the access token."
    challenge = f'Bearer realm="fanfare", error="insufficient_scope", scope="{scope}"'
    raise Problem(
        HTTPStatus.FORBIDDEN,
        f"requires the `{scope}` scope",
        headers={"WWW-Authenticate": challenge},
        type=ProblemType.INSUFFICIENT_SCOPE,
    )


def principal_of(request: Request) -> Principal:
    """The principal of a request that `RequireScope` has let through."""
    principal = request.scope[_PRINCIPAL]
    assert isinstance(principal, Principal)  # noqa: S101 - only set below
    return principal


def own_account(request: Request) -> AccountId | None:
    """The only account whose subscriptions may be shown; None: all accounts."""
    principal = principal_of(request)
    return None if principal.is_admin else principal.account.id


class RequireScope:
    """ASGI middleware for the API: admits requests whose token has the route's scope.

    A route that is not in ``scopes`` is for administrators only.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        limits: RateLimits,
        routes: Sequence[BaseRoute],
        scopes: ScopeOfRoute,
        origins: tuple[str, ...] = (),
    ) -> None:
        """``origins``: other origins whose pages may use the API."""
        self._origins = origins
        self._app = app
        self._authenticator = authenticator
        self._limits = limits
        self._routes = routes
        self._scopes = scopes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no websockets here: not found
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            headers = await self._admit(request)
        except Problem as problem:
            note_refusal(request, problem, problem.detail)
            await problem_response(problem)(scope, receive, send)
        except StorageError as error:
            answer = await answer_error(request, error)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, with_headers(send, headers))

    async def _admit(self, request: Request) -> LimitHeaders:
        if is_of_another_site(request):
            self._admit_other_site(request)
        route = self._route(request)
        if route is not None and self._scope_of(request, route) is None:
            return self._limits.check_address(request)
        principal = await self._identify(request)
        headers: LimitHeaders = ()
        if principal.token is not None:
            headers = self._limits.check_token(principal.token)
        draft_of(request).principal = request.scope[_PRINCIPAL] = principal
        if route is not None and (needed := self._scope_of(request, route)):
            if not principal.may(needed):
                self._note_refusal(request, route)
            require(principal, needed)
        return headers

    def _admit_other_site(self, request: Request) -> None:
        """Refuse another site's page, unless it is admitted and sends a Bearer token.

        Forms of other sites need no preflight, and browsers add stored Basic
        credentials to them; browsers never add a Bearer token by themselves.
        """
        if not is_admitted(request, self._origins):
            raise Problem(
                HTTPStatus.FORBIDDEN, "requests made by another site are refused"
            )
        scheme = request.headers.get("authorization", "Bearer").partition(" ")[0]
        if scheme.lower() != "bearer":
            raise Problem(
                HTTPStatus.FORBIDDEN, "pages of other origins send a Bearer token"
            )

    @staticmethod
    def _note_refusal(request: Request, route: Route) -> None:
        """Note that somebody tried a change that their token does not allow."""
        if request.method not in SAFE_METHODS:
            _, found = route.matches(request.scope)
            name_operation(request, route.name, route.path, found["path_params"])

    def _route(self, request: Request) -> Route | None:
        """The route that will answer; None if no route matches both path and method."""
        for route in self._routes:
            is_met = route.matches(request.scope)[0] is Match.FULL
            if is_met and isinstance(route, Route):
                return route
        return None

    def _scope_of(self, request: Request, route: Route) -> TokenScope | None:
        method = "GET" if request.method == "HEAD" else request.method
        return self._scopes.get((method, route.path), TokenScope.ADMIN)

    async def _identify(self, request: HTTPConnection) -> Principal:
        """The principal of a request. Raises `Problem` 401 and 429.

        Requests without a valid token are counted by address, so that guessing is slow.
        """
        try:
            principal = await self._authenticator.identify(request.headers)
            if principal is None:
                raise _unauthorized("requires a token")
        except Problem:
            self._limits.check_address(request)
            raise
        return principal


def _unauthorized(detail: str) -> Problem:
    return Problem(
        HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": CHALLENGE}
    )


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _offered(header: str) -> tuple[str, str] | None:
    """User and token; None if the header has no credentials. User "": none is named."""
    scheme, _, value = header.partition(" ")
    match scheme.lower():
        case "bearer":
            return "", value.strip()
        case "basic":
            return _basic(value.strip())
        case _:
            return None


def _basic(value: str) -> tuple[str, str] | None:
    """User and token; None if this is no base64 of both.

    The user is in lower case: as at Superfeedr, case does not matter in logins.
    """
    try:
        decoded = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    user, separator, password = decoded.partition(":")
    return (user.lower(), password) if separator and user else None
