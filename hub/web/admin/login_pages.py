"""``/admin/login``: a session for who shows a token or a link, and its end."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.services.token_authentication import Principal
from hub.web.admin.page_access import (
    LOGIN_PATH,
    OperatorPages,
    PageAccess,
    read_form,
    redirect,
    require_operator,
    require_same_origin,
)
from hub.web.authentication import Authenticator
from hub.web.operation import HTML, Operation, Parameter, Routes
from hub.web.page_rendering import render_page
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits

START: Final = "/admin"
_OWN_PAGE: Final = re.compile(r"/admin(?:[/?][ -~]*)?")


class LoginPages(Routes):
    """For who has no session yet: there is no form token that could be checked."""

    tag = "pages"

    def __init__(
        self, access: PageAccess, authenticator: Authenticator, limits: RateLimits
    ) -> None:
        self._access = access
        self._authenticator = authenticator
        self._limits = limits

    @Operation(
        method="GET",
        path=LOGIN_PATH,
        id="get_login_page",
        summary="The form to log in to the operator's pages",
        answers={200: {HTML: str}},
        query=(
            Parameter(name="next", help="the page to go to afterwards"),
            Parameter(name="link", help="the code of a link of `fanfare ui`"),
        ),
    )
    async def show(self, request: Request) -> Response:
        self._limits.check_address(request)
        query = request.query_params
        return _page(query.get("next", START), link=query.get("link", ""))

    @Operation(
        method="POST",
        path=LOGIN_PATH,
        id="log_in",
        summary="Begin a session with a token, or with the code of a link",
        answers={303: None, 403: {HTML: str}},
        form=(
            Parameter(name="token", help="a token with the scope `admin`"),
            Parameter(name="link", help="the code of a link of `fanfare ui`"),
            Parameter(name="next", help="the page to go to afterwards"),
        ),
        problems=(403, 429, 503),
    )
    async def log_in(self, request: Request) -> Response:
        require_same_origin(request)
        self._limits.check_address(request)
        form = await read_form(request)
        target = form.get("next", START)
        try:
            secret = await self._begin(form)
        except Problem as problem:
            if problem.status != HTTPStatus.FORBIDDEN:
                raise
            return _page(target, error=problem.detail)
        answer = redirect(target if _OWN_PAGE.fullmatch(target) else START)
        self._access.remember(request, answer, secret)
        return answer

    async def _begin(self, form: dict[str, str]) -> str:
        """The new session. Raises `Problem` 403."""
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
        return await self._access.sessions.begin(_checked(principal))


def _checked(principal: Principal | None) -> Principal:
    if principal is None:
        raise Problem(
            HTTPStatus.FORBIDDEN, "There is no such token, or it was revoked."
        )
    require_operator(principal)
    return principal


def _page(target: str, *, link: str = "", error: str = "") -> Response:
    status = HTTPStatus.FORBIDDEN if error else HTTPStatus.OK
    return render_page(
        "login.html", status=status, target=target, link=link, error=error
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
    async def log_out(self, request: Request) -> Response:
        await self._access.sessions.end(self._access.session_of(request))
        answer = redirect(LOGIN_PATH)
        self._access.forget(request, answer)
        return answer
