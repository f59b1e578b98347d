"""Who calls: a token as Basic credentials, as Bearer, or in ``authorization``.

Tokens of this API may be public, and pages of any site may use them. What a browser
adds by itself, though, is nobody's wish: of another site's request an ``Authorization``
header counts only if a script set it, and never for the administrator's token.
"""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import Request

from hub.services.tokens import Principal
from hub.web.authentication import Authenticator
from hub.web.origins import is_foreign
from hub.web.problems import Problem
from protocols.superfeedr.parameters import Parameters

CHALLENGE = 'Basic realm="fanfare", charset="UTF-8"'
"""Basic alone: some clients look at the first scheme of a challenge only."""


async def identify(
    request: Request, parameters: Parameters, authenticator: Authenticator
) -> Principal:
    """Raises `Problem` 401 or 403, `InvalidValue` and `StorageError`."""
    offered = parameters.one("authorization")
    headers = _as_header(offered) if offered else request.headers
    try:
        principal = await authenticator.identify(headers)
    except Problem as problem:
        raise _unauthorized(problem.detail) from None
    if principal is None:
        raise _unauthorized(
            "this takes a token: Basic login:token, or its base64 as authorization"
        )
    if not offered and _is_cross_site(request):
        _check_script(request, principal)
    return principal


def _as_header(offered: str) -> Headers:
    """Ruby breaks base64 into lines of 60; some leave the padding out."""
    value = "".join(offered.split())
    if value[:5].lower() == "basic":
        value = value[5:]
    value += "=" * (-len(value) % 4)
    try:
        login, separator, _ = base64.b64decode(value, validate=True).partition(b":")
    except (binascii.Error, ValueError):
        login = separator = b""
    if not login or not separator:
        raise _unauthorized("authorization: expected base64 of login:token")
    return Headers({"authorization": f"Basic {value}"})


def _is_cross_site(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    return site in ("cross-site", "same-site") or is_foreign(request)


def _check_script(request: Request, principal: Principal) -> None:
    mode = request.headers.get("sec-fetch-mode", "cors")
    if principal.is_admin or mode != "cors":
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "another site's requests take a token in the parameter authorization",
        )


def _unauthorized(detail: str) -> Problem:
    return Problem(
        HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": CHALLENGE}
    )
