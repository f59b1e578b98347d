"""Who may see which pages.

A page needs a session. A request that changes something must come from the hub's own
pages as well, with the token of their forms.

The operator's pages and those of subscribers are the same, as far as both have them: an
account sees and changes what is its own (`own_account`).

A session is a cookie that no script reads and that no other site's request carries
(SameSite). Besides, every unsafe method has to come from the same origin, by
``Sec-Fetch-Site``, or by ``Origin`` where browsers do not send that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hub.services.operator_sessions import SessionService
from hub.services.token_authentication import Principal
from hub.web.admin.page_streams import PageStreams, WatchRequest, wants_events
from hub.web.audited_requests import draft_of
from hub.web.authentication import is_foreign, require
from hub.web.multipart_forms import MULTIPART, read_parts
from hub.web.operation import Contents, Handler, Operation, Parameter, Routes
from hub.web.page_parts import PartRecorder
from hub.web.page_rendering import PAGE_HEADERS, VIEWER_KEY
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from hub.web.request_input import LARGEST_PAGE, read_bytes, ungrouped
from protocols.opml import MOST_BYTES
from storage.records import LONGEST_SESSION, AccountId, AuditSource, TokenScope

FORM_FIELD: Final = "form_token"
_SAFE: Final = frozenset({"GET", "HEAD"})
_LARGEST_FORM: Final = 64 * 1024
_LARGEST_UPLOAD: Final = MOST_BYTES + _LARGEST_FORM
_MOST_FIELDS: Final = LARGEST_PAGE + 100
"""The most fields of a form: each chosen row is one, and a whole page may be chosen."""
_Handler = TypeVar("_Handler", bound=Callable[[Any, Request], Awaitable[Response]])


class Area(StrEnum):
    """Whom pages are for; the value is how their paths begin."""

    OPERATOR = "/admin"
    ACCOUNT = "/account"

    @property
    def login(self) -> str:
        return f"{self}/login"


AREA_SOURCES: Final[Mapping[Area, AuditSource]] = {
    Area.OPERATOR: AuditSource.OPERATOR_PAGES,
    Area.ACCOUNT: AuditSource.ACCOUNT_PAGES,
}


def area_of(request: Request) -> Area:
    path = request.url.path
    is_of_account = path == Area.ACCOUNT or path.startswith(f"{Area.ACCOUNT}/")
    return Area.ACCOUNT if is_of_account else Area.OPERATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks at a page, and what was sent with it.

    ``form``: the fields of the form, the first of each name, or by ``getlist`` all of
    them; ``files``: the files that were chosen for it. ``recorder``: records the page
    for all who watch it. A page that is recorded has nothing of a single session in it,
    and no time relative to now.
    """

    principal: Principal
    area: Area
    form_token: str
    form: ImmutableMultiDict[str, str] = field(default_factory=ImmutableMultiDict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    recorder: PartRecorder | None = None

    def may(self, scope: str) -> bool:
        """Whether the session's token has a scope, by its name."""
        return self.principal.may(TokenScope(scope))


def viewer_of(request: Request) -> Viewer:
    """The viewer of a request that `PageAccess` has let through."""
    viewer = request.scope[VIEWER_KEY]
    assert isinstance(viewer, Viewer)  # noqa: S101 - only set below
    return viewer


def own_account(request: Request, scope: TokenScope) -> AccountId | None:
    """The only account whose subscriptions a page may show or change; None: all.

    Raises `Problem` 403 unless the session's token has the scope.
    """
    viewer = viewer_of(request)
    require(viewer.principal, scope)
    is_of_account = viewer.area is Area.ACCOUNT
    return viewer.principal.account.id if is_of_account else None


def require_same_origin(request: Request) -> None:
    """Raises `Problem` 403 unless a page of the hub itself makes the request.

    With safe methods, browsers send ``Origin`` to other sites only.
    """
    site = request.headers.get("sec-fetch-site")
    is_safe = request.method in _SAFE
    if site is not None:
        is_own = site == "same-origin"
    else:
        has_origin = is_safe or "origin" in request.headers
        is_own = has_origin and not is_foreign(request)
    if not is_own:
        what = "streams go" if is_safe else "forms are accepted"
        raise Problem(HTTPStatus.FORBIDDEN, f"{what} from the hub's own pages only")


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """The fields of a form. Raises `Problem` 400, 408 or 413."""
    body = await read_bytes(request, _LARGEST_FORM)
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise Problem(HTTPStatus.BAD_REQUEST, "the form cannot be read") from None
    return ImmutableMultiDict(fields[::-1])


async def read_upload(
    request: Request,
) -> tuple[ImmutableMultiDict[str, str], dict[str, bytes]]:
    """The fields and the files of a form that may have some.

    Raises `Problem` 400, 408 or 413.
    """
    body = await read_bytes(request, _LARGEST_UPLOAD)
    try:
        parts = list(read_parts(body, request.headers["content-type"]))
        fields = [(it.name, it.content.decode()) for it in parts if not it.is_file]
    except ValueError:
        raise Problem(HTTPStatus.BAD_REQUEST, "the form cannot be read") from None
    files = {each.name: each.content for each in parts if each.is_file}
    return ImmutableMultiDict(fields[::-1]), files


def redirect(path: str) -> Response:
    """Redirect to a page of the hub, which the browser fetches by GET."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, headers=PAGE_HEADERS)


_NUMBERS: Final = frozenset({"feed", "id", "subscription", "token"})
"""Fields of filters that take a number as pages write it."""


def without_blanks(request: Request) -> Request:
    """The request without the empty parameters that forms send for empty fields, and
    without the commas in numbers."""
    given = [
        (name, ungrouped(value.strip()) if name in _NUMBERS else value)
        for name, value in request.query_params.multi_items()
    ]
    query = urlencode([(name, value) for name, value in given if value.strip()])
    return Request({**request.scope, "query_string": query.encode()})


class PageAccess:
    def __init__(
        self,
        sessions: SessionService,
        limits: RateLimits,
        public_url: str,
        streams: PageStreams,
    ) -> None:
        self.sessions = sessions
        self.streams = streams
        self._limits = limits
        address = urlsplit(public_url)
        self._secure_host = address.netloc if address.scheme == "https" else None

    def guard(self, handler: Handler, *, is_stream: bool = False) -> Handler:
        """The handler behind the check of the session.

        ``is_stream``: its answer is itself a stream.
        """

        async def answer(request: Request) -> Response:
            is_watching = request.method in _SAFE and (
                is_stream or wants_events(request)
            )
            if is_watching or request.method not in _SAFE:
                require_same_origin(request)
            secret = self.session_of(request)
            principal = await self.sessions.principal(secret) if secret else None
            if principal is None:
                return self._answer_stranger(request, is_watching=is_watching)
            self.tell_audit(request, principal, secret)
            if principal.token is not None:
                self._limits.check_token(principal.token)
            viewer = await self._viewer(request, principal, secret)
            if is_watching and not is_stream:
                return self._watch(request, handler, viewer, secret)
            request.scope[VIEWER_KEY] = viewer
            return await handler(request)

        return answer

    def _answer_stranger(self, request: Request, *, is_watching: bool) -> Response:
        """Answer a request without a session. Raises `Problem` 401 and 429."""
        self._limits.check_address(request)
        if is_watching:
            raise Problem(HTTPStatus.UNAUTHORIZED, "requires a session: log in again")
        login = area_of(request).login
        return redirect(f"{login}?next={quote(_place(request))}")

    def _watch(
        self, request: Request, handler: Handler, viewer: Viewer, secret: str
    ) -> Response:
        """Answer with a stream. Raises `Problem` 429 and 503.

        All operators share a view; in an account, sessions of the same token do.
        """
        principal, path = viewer.principal, request.url.path
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "path_params": request.path_params,
            "query_string": request.scope["query_string"],
            "headers": [],
            VIEWER_KEY: Viewer(
                principal=principal,
                area=viewer.area,
                form_token="",
                recorder=PartRecorder(),
            ),
        }
        is_operator = viewer.area is Area.OPERATOR
        seen_as = None if is_operator else principal

        async def make() -> Response:
            return await handler(Request(scope))

        return self.streams.answer(
            WatchRequest(
                key=(seen_as, path, request.scope["query_string"]),
                session=(secret, principal),
                account=None if is_operator else principal.account.id,
                make=make,
                is_over=partial(self._is_over, secret, principal),
            )
        )

    def tell_audit(self, request: Request, principal: Principal, secret: str) -> None:
        """Note for the audit trail who acts on a page, and by which session."""
        draft = draft_of(request)
        draft.principal = principal
        draft.session = self.sessions.name_of(secret)
        draft.source = AREA_SOURCES[area_of(request)]

    async def _is_over(self, secret: str, principal: Principal) -> bool:
        """Whether the session has ended or changed its principal.

        Raises `StorageError`.
        """
        return await self.sessions.principal(secret, is_use=False) != principal

    async def is_over(self, request: Request) -> bool:
        """Whether the session in which the request was made is over.

        Raises `StorageError`.
        """
        principal = viewer_of(request).principal
        return await self._is_over(self.session_of(request), principal)

    async def _viewer(
        self, request: Request, principal: Principal, secret: str
    ) -> Viewer:
        """The viewer of the page. Raises `Problem` 403."""
        area = area_of(request)
        if area is Area.OPERATOR:
            require_operator(principal)
        is_safe = request.method in _SAFE
        form, files = await self._form(request)
        is_good = self.sessions.is_form_token(secret, form.get(FORM_FIELD, ""))
        if not is_safe and not is_good:
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "the form is of another session; reload the page and try again",
            )
        token = self.sessions.form_token(secret)
        return Viewer(
            principal=principal, area=area, form_token=token, form=form, files=files
        )

    async def _form(
        self, request: Request
    ) -> tuple[ImmutableMultiDict[str, str], dict[str, bytes]]:
        """The fields and files of the form; only operators may send files.

        Raises `Problem` 400, 408 or 413.
        """
        if request.method in _SAFE:
            return ImmutableMultiDict(), {}
        type = request.headers.get("content-type", "")
        if area_of(request) is Area.OPERATOR and type.lower().startswith(MULTIPART):
            return await read_upload(request)
        return await read_form(request), {}

    def session_of(self, request: Request) -> str:
        """The session's secret in the browser's cookie; "" if there is none."""
        return request.cookies.get(self._cookie(request), "")

    def remember(self, request: Request, response: Response, secret: str) -> None:
        """Have the browser keep a session's secret in a cookie."""
        response.set_cookie(
            self._cookie(request),
            secret,
            max_age=int(LONGEST_SESSION.total_seconds()),
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def forget(self, request: Request, response: Response) -> None:
        response.delete_cookie(
            self._cookie(request),
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def _cookie(self, request: Request) -> str:
        """The cookie's name.

        Browsers take ``__Host-`` only over https, and from no subdomain.
        """
        return "__Host-fanfare" if self._is_secure(request) else "fanfare"

    def _is_secure(self, request: Request) -> bool:
        """Whether the request came to the public URL, and that is https."""
        return request.headers.get("host") == self._secure_host


def require_operator(principal: Principal) -> None:
    """Raises `Problem` 403 if the principal is not an administrator."""
    if not principal.is_admin:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "these pages require the admin token, or a token with the scope `admin`;"
            " the pages of an account are at /account",
        )


def _place(request: Request) -> str:
    """The path to return to after the login; forms are not sent again."""
    if request.method not in _SAFE:
        return area_of(request)
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


def in_both_areas(
    *,
    method: str,
    path: str,
    id: str,
    summary: str,
    answers: Mapping[int, Contents],
    query: tuple[Parameter, ...] = (),
    problems: tuple[int, ...] = (403, 429, 503),
) -> Callable[[_Handler], _Handler]:
    """Declare an `Operation` of the operator's pages, and its like for an account."""

    def declare(handler: _Handler) -> _Handler:
        for area in Area:
            of_account = area is Area.ACCOUNT
            handler = Operation(
                method=method,
                path=f"{area}{path}",
                id=f"{id}_of_account" if of_account else id,
                summary=f"{summary}; an account's own" if of_account else summary,
                answers=answers,
                query=query,
                problems=problems,
            )(handler)
        return handler

    return declare


class OperatorPages(Routes):
    """Handlers of pages that require a session; each has `viewer_of` the request."""

    tag: ClassVar[str] = "pages"

    def __init__(self, access: PageAccess) -> None:
        self._access = access

    def endpoint(self, handler: Handler) -> Handler:
        return self._access.guard(handler)
