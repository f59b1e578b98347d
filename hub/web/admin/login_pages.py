"""``/admin/login``, ``/account/login``: start and end a session.

It is started by a token, or by a link.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.services.token_authentication import WITHOUT_TOKEN, Principal
from hub.web.admin.page_access import (
    AREA_SOURCES,
    Area,
    OperatorPages,
    PageAccess,
    area_of,
    read_form,
    redirect,
    require_operator,
    require_same_origin,
)
from hub.web.audited_requests import draft_of
from hub.web.authentication import Authenticator, require
from hub.web.operation import HTML, Operation, Parameter, Routes
from hub.web.page_rendering import render_page
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from storage.records import TokenScope

_OWN_PAGES: Final[Mapping[Area, re.Pattern[str]]] = {
    area: re.compile(rf"{area}(?:[/?][ -~]*)?") for area in Area
}
_QUERY: Final = (
    Parameter(name="next", help="the page to go to afterwards"),
    Parameter(name="link", help="the code of a link of `fanfare ui`"),
)
_FORM: Final = (
    Parameter(name="token", help="the token; for /admin one with the scope `admin`"),
    Parameter(name="link", help="the code of a link of `fanfare ui`"),
    Parameter(name="next", help="the page to go to afterwards"),
)


class LoginPages(Routes):
    """Pages for visitors without a session, and so without a form token to check."""

    tag = "pages"

    def __init__(
        self, access: PageAccess, authenticator: Authenticator, limits: RateLimits
    ) -> None:
        self._access = access
        self._authenticator = authenticator
        self._limits = limits

    @Operation(
        method="GET",
        path="/admin/login",
        id="get_login_page",
        summary="The form to log in to the operator's pages",
        answers={200: {HTML: str}},
        query=_QUERY,
    )
    @Operation(
        method="GET",
        path="/account/login",
        id="get_login_page_of_account",
        summary="The form to log in to an account's own pages",
        answers={200: {HTML: str}},
        query=_QUERY,
    )
    async def show(self, request: Request) -> Response:
        self._limits.check_address(request)
        query, area = request.query_params, area_of(request)
        return _page(area, query.get("next", area), link=query.get("link", ""))

    @Operation(
        method="POST",
        path="/admin/login",
        id="log_in",
        summary="Begin a session with a token, or with the code of a link",
        answers={303: None, 403: {HTML: str}},
        form=_FORM,
        problems=(403, 429, 503),
    )
    @Operation(
        method="POST",
        path="/account/login",
        id="log_in_to_account",
        summary="Begin a session of an account, with its token or the code of a link",
        answers={303: None, 403: {HTML: str}},
        form=_FORM,
        problems=(403, 429, 503),
    )
    async def log_in(self, request: Request) -> Response:
        require_same_origin(request)
        self._limits.check_address(request)
        form, area = await read_form(request), area_of(request)
        target = form.get("next", area)
        try:
            secret = await self._begin(form, area)
        except Problem as problem:
            if problem.status != HTTPStatus.FORBIDDEN:
                raise
            self._tell_audit_of_failure(request)
            return _page(area, target, error=problem.detail)
        answer = redirect(target if _OWN_PAGES[area].fullmatch(target) else area)
        self._access.remember(request, answer, secret)
        if principal := await self._access.sessions.principal(secret):
            self._access.tell_audit(request, principal, secret)
        return answer

    @staticmethod
    def _tell_audit_of_failure(request: Request) -> None:
        draft = draft_of(request)
        draft.principal, draft.source = WITHOUT_TOKEN, AREA_SOURCES[area_of(request)]

    async def _begin(self, form: Mapping[str, str], area: Area) -> str:
        """Start a session and return its secret. Raises `Problem` 403."""
        if link := form.get("link"):
            secret = await self._access.sessions.redeem(link)
            if secret is None:
                raise Problem(
                    HTTPStatus.FORBIDDEN,
                    "This link was used before, or is older than 5 minutes. Make"
                    " another with `fanfare ui`.",
                )
            return secret
        principal = await self._authenticator.admit("", form.get("token", "").strip())
        return await self._access.sessions.begin(_checked(principal, area))


def _checked(principal: Principal | None, area: Area) -> Principal:
    if principal is None:
        raise Problem(
            HTTPStatus.FORBIDDEN, "There is no such token, or it was revoked."
        )
    if area is Area.OPERATOR:
        require_operator(principal)
    else:
        require(principal, TokenScope.LIST)
    return principal


def _page(area: Area, target: str, *, link: str = "", error: str = "") -> Response:
    status = HTTPStatus.FORBIDDEN if error else HTTPStatus.OK
    return render_page(
        "login.html", status=status, area=area, target=target, link=link, error=error
    )


class LogoutPages(OperatorPages):
    @Operation(
        method="POST",
        path="/admin/logout",
        id="log_out",
        summary="End the session",
        answers={303: None},
        problems=(403, 429, 503),
    )
    @Operation(
        method="POST",
        path="/account/logout",
        id="log_out_of_account",
        summary="End the session of an account",
        answers={303: None},
        problems=(403, 429, 503),
    )
    async def log_out(self, request: Request) -> Response:
        await self._access.sessions.end(self._access.session_of(request))
        self._access.streams.wake()
        answer = redirect(area_of(request).login)
        self._access.forget(request, answer)
        return answer
