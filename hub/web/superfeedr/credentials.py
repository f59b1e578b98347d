"""Finds who calls: by a token as Basic credentials, as Bearer, or in ``authorization``.

Tokens of this API may be public, and pages of any site may use them. But what a browser
adds by itself is not the decision of its user. So in a request from another site's
page, an ``Authorization`` header counts only if a script may have set it, and never for
the admin token.

Browsers add stored Basic credentials to everything that a page loads by GET, such as an
image or a script. Over plain http they send neither the page's origin (``Origin``) nor
the purpose (``Sec-Fetch-*``). So Basic credentials in the header of a GET request open
no JSONP, which any page could read, and change nothing. From another site's page they
change nothing by any method, because browsers add them to forms too. Scripts in pages,
and clients that change things by GET, send the parameter ``authorization``.
"""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from hub.services.token_authentication import Principal
from hub.web.authentication import Authenticator, is_foreign, refuse_in_query
from hub.web.problems import Problem
from hub.web.superfeedr.answers import is_function
from hub.web.superfeedr.calls import Effect
from protocols.superfeedr.parameters import Parameters, read_parameters

SAFE = ("GET", "HEAD")
_OF_BROWSERS = ("accept-language", "cookie", "referer", "sec-fetch-mode", "origin")
CHALLENGE = 'Basic realm="fanfare", charset="UTF-8"'
"""Basic alone: some clients read only the first scheme of a challenge."""


async def identify(
    request: Request,
    parameters: Parameters,
    authenticator: Authenticator,
    effect: Effect,
) -> Principal:
    """Return the principal of a request.

    Raises `Problem` 401 or 403, `InvalidValue` and `StorageError`.
    """
    offered = parameters.one("authorization")
    headers = _as_header(offered) if offered else request.headers
    try:
        principal = await authenticator.identify(headers)
    except Problem as problem:
        raise _unauthorized(problem.detail) from None
    if principal is None:
        raise _unauthorized(
            "requires a token: Basic login:token, or its base64 as authorization"
        )
    of_query = read_parameters(query_of(request.scope), "", b"", parameters.lengths)
    if of_query.one("authorization"):
        refuse_in_query(principal)
    if not offered and _is_cross_site(request):
        _check_script(request, principal, effect)
    is_script = is_function(parameters.one("callback").strip())
    if is_script and principal.is_admin:
        raise _forbidden("the admin token cannot be used with callback")
    if request.method in SAFE and not offered:
        _check_safe(request, effect, is_script=is_script)
    return principal


def query_of(scope: Scope) -> str:
    """The query, including one that follows the path without a question mark.

    Superfeedr's own sample had ``https://stream.superfeedr.com/&hub.mode=…``.
    """
    path: bytes = (scope.get("raw_path") or b"").partition(b"?")[0]
    misplaced = path.partition(b"&")[2]
    query: bytes = b"&".join(filter(None, (misplaced, scope["query_string"])))
    return query.decode("latin-1")


def _check_safe(request: Request, effect: Effect, *, is_script: bool) -> None:
    """Check a GET or HEAD request whose token is in the header. Raises `Problem` 403.

    Any page can have a browser make such a request.
    """
    if not _is_basic(request):
        return
    if is_script:
        raise _forbidden(
            "with callback the token must be in the parameter authorization, because a"
            " browser may have added the Basic credentials"
        )
    is_refused = effect is Effect.CHANGES or (
        effect is Effect.SENDS and may_be_browser(request)
    )
    if is_refused:
        raise _forbidden(
            "by GET the token must be in the parameter authorization, because a browser"
            " may have added the Basic credentials; or use POST"
        )


def _is_basic(request: Request) -> bool:
    """Whether the header has Basic credentials, the only ones that browsers add."""
    return request.headers["authorization"].partition(" ")[0].lower() == "basic"


def may_be_browser(request: Request) -> bool:
    """Whether a browser may make the request.

    Browsers call themselves Mozilla, and send headers such as their user's languages.
    """
    headers = request.headers
    named = headers.get("user-agent", "").lower().startswith("mozilla/")
    return named or any(name in headers for name in _OF_BROWSERS)


def _as_header(offered: str) -> Headers:
    """The parameter ``authorization`` as a header. Raises `Problem` 401.

    Ruby breaks base64 into lines of 60 characters; some clients leave out the padding.
    """
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


def _check_script(request: Request, principal: Principal, effect: Effect) -> None:
    """Check a request of another site's page. Raises `Problem` 403.

    Its script may have set the header, or the browser may have added Basic credentials
    that it keeps; these look the same.
    """
    mode = request.headers.get("sec-fetch-mode", "cors")
    is_kept = _is_basic(request) and effect is not Effect.NONE
    if principal.is_admin or mode != "cors" or is_kept:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "requests of another site need the token in the parameter authorization",
        )


def _forbidden(detail: str) -> Problem:
    return Problem(HTTPStatus.FORBIDDEN, detail)


def _unauthorized(detail: str) -> Problem:
    return Problem(
        HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": CHALLENGE}
    )
