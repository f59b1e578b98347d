"""Renders pages for people, and serves the files that pages need.

Whatever comes from elsewhere is escaped, and the Content-Security-Policy allows nothing
inline and nothing from other origins: what a feed puts into a title is text and nothing
else. Names of files contain a hash, so that browsers may keep the files for good.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

import hub
from hub.core.byte_sizes import byte_size
from hub.core.durations import duration
from hub.web.audited_requests import note_refusal
from hub.web.cross_origin import API
from hub.web.not_modified import is_current, not_modified, validators
from hub.web.operation import HTML, Operation, Routes
from hub.web.page_parts import PageParts, live_element, live_rows
from hub.web.problems import Problem, logged_problem, problem_response
from storage.records import AttemptReason, RecordKind

ATTEMPT_REASONS: Final[Mapping[AttemptReason, str]] = {
    AttemptReason.UNKNOWN: "not noted",
    AttemptReason.NEW_RECORD: "a new record",
    AttemptReason.RETRY: "a retry, by the schedule",
    AttemptReason.NEWS: "ahead of the next retry, because of a new record",
    AttemptReason.PROBE: "all tries are used up: a new record is one more",
    AttemptReason.CATCH_UP: "it was behind or paused, or the hub restarted",
    AttemptReason.SENT_AGAIN: "sent again, as asked",
    AttemptReason.ASKED: "a retry, as asked",
}
"""Why a request to a callback was made then, in words."""
WITHOUT_ENTRIES: Final[Mapping[RecordKind | None, str]] = {
    RecordKind.ERROR: "that the feed fails",
    RecordKind.RECOVERED: "that the feed works again",
    RecordKind.CONTENT: "a changed document, without news",
    RecordKind.DELETED: "that an entry was withdrawn",
    None: "not known any more",
}
"""What a request told of if none of its entries can be shown, in words, by its record;
of other records: entries that are deleted or hidden since."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
PAGE_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers send `Origin: null` with forms to the hub itself.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
    "Vary": "Accept, Cookie",
}
_ASSETS: Final[Mapping[str, str]] = {
    "admin.css": "text/css; charset=utf-8",
    "admin.js": "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}
_PAGES_OF_SESSIONS: Final = ("/admin", "/account")
VIEWER_KEY: Final = "fanfare.viewer"
"""The key in a request's scope of the viewer of a page that requires a session."""
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)Z")
_LITERAL: Final = re.compile(r"`{1,2}([^`]+)`{1,2}")
_BREAKS: Final = re.compile(r"(?<=[/_])(?![/_]|$)")
_SECRET: Final = re.compile("secret|password|token|headers")
_KEPT_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_ICON: Final = "favicon.svg"
_KEPT_FOR_A_DAY: Final = "public, max-age=86400"


class WatchedPage(Response):
    """The parts of a page that change while it is open; see `hub.web.page_parts`."""

    def __init__(self, parts: PageParts) -> None:
        super().__init__()
        self.parts = parts


def render_page(
    template: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Render a template with ``values``; one that is missing is an error.

    If its ``viewer`` watches the page, the answer is a `WatchedPage`.
    """
    shown = _environment().get_template(template)
    if recorder := getattr(values.get("viewer"), "recorder", None):
        recorder.begin()
        shown.render(
            values, live=recorder.element, live_rows=recorder.rows, is_watched=True
        )
        return WatchedPage(recorder.parts)
    text = shown.render(
        values, live=live_element, live_rows=live_rows, is_watched=False
    )
    return Response(
        text,
        status_code=status,
        media_type="text/html",
        headers={**PAGE_HEADERS, **(headers or {})},
    )


def render_macro(template: str, macro: str, *values: object) -> Markup:
    """The HTML of a macro made from these values alone, to be kept and put into
    pages."""
    made = getattr(_environment().get_template(template).module, macro)(*values)
    return Markup(made)  # noqa: S704 - escaped


def answer_unless_known(request: Request, body: bytes, etag: str = "") -> Response:
    """A page that caches may keep if they revalidate it each time.

    ``etag`` "": the tag is a hash of the body.
    """
    tag = etag or hashlib.sha256(body).hexdigest()[:32]
    known = {"Cache-Control": "no-cache", **validators(tag, None)}
    headers = {**PAGE_HEADERS, **known}
    if is_current(request, tag, None):
        return not_modified(headers)
    return Response(body, media_type="text/html", headers=headers)


def asset_url(name: str) -> str:
    return f"/assets/{_hashed(name)}"


def inner_text(text: str) -> Markup:
    """Text as it may stand within an element, where quotes are shorter as they are."""
    kept = str(escape(text)).replace("&#34;", '"').replace("&#39;", "'")
    return Markup(kept)  # noqa: S704 - escaped but for quotes


@lru_cache(maxsize=4_096)
def time_text(at: datetime) -> str:
    """The exact time in UTC, shown when the pointer hovers over a time."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def relative_time(at: datetime, now: datetime) -> str:
    """``12 min ago``, ``in 3 h 30 min``, ``now``."""
    seconds = (at - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    span = duration(round(abs(seconds)))
    return f"in {span}" if seconds > 0 else f"{span} ago"


def rate_text(rate: float) -> str:
    """A rate rounded to two figures: ``0.14``, ``3.5``, ``1,200``."""
    figures = float(f"{rate:.2g}")
    return f"{figures:,.0f}" if figures >= 10 else f"{figures:g}"


def figures_text(value: float) -> str:
    """A number in at least three figures: ``0.29``, ``148,500``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def host_of(url: str) -> str:
    """A URL's host with its port; "" if it has none."""
    return urlsplit(url).netloc


def breakable(text: str) -> Markup:
    """A text without blanks, such as a URL, that a line may end in after each slash and
    underscore; what is copied is the text alone."""
    parts = _BREAKS.split(text)
    return Markup("<wbr>").join(parts)


def with_literals(text: str) -> list[str]:
    """Text and code in turns; code stands between grave accents."""
    return _LITERAL.split(text)


def with_times(text: str) -> list[str | datetime]:
    """Text and times in turns; a time is written like 2026-11-21 10:00:00Z."""
    parts = _MOMENT.split(text)
    return [
        datetime.fromisoformat(f"{each}Z") if place % 2 else each
        for place, each in enumerate(parts)
    ]


def span_text(seconds: float) -> str:
    """Like `duration`, but with milliseconds."""
    return f"{seconds * 1e3:.3g} ms" if 0 < seconds < 1 else duration(seconds)


def with_query(query: Mapping[str, str], **changes: str | None) -> str:
    """A query with some parameters changed; None removes one."""
    changed = {**query, **changes}
    return urlencode([(name, value) for name, value in changed.items() if value])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hub.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        breakable=breakable,
        bytes=byte_size,
        duration=span_text,
        host=host_of,
        rate=rate_text,
        figures=figures_text,
        exact=time_text,
        inner_text=inner_text,
        json=json.dumps,
        with_literals=with_literals,
        with_times=with_times,
        number=lambda value: f"{value:,}",
        relative=relative_time,
        shell=shlex.quote,
    )
    environment.globals.update(
        asset=asset_url,
        attempt_reasons=ATTEMPT_REASONS,
        field_label=field_label,
        without_entries=WITHOUT_ENTRIES,
        version=hub.__version__,
        with_query=with_query,
    )
    return environment


@cache
def _read(name: str) -> bytes:
    return (files("hub.web") / "assets" / name).read_bytes()


@cache
def _hashed(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    digest = hashlib.sha256(_read(name)).hexdigest()[:12]
    return f"{stem}.{digest}.{suffix}"


# --- errors: as pages for browsers, and as `hub.web.problems` for programs ---


async def answer_error(request: Request, error: Exception) -> Response:
    """The only exception handler of the application, also for websockets."""
    problem = logged_problem(request, error)
    note_refusal(request, error, problem.detail)
    return answer_problem(request, problem)


def answer_problem(request: HTTPConnection, problem: Problem) -> Response:
    if not _wants_page(request):
        answer = problem_response(problem)
        if _may_be_page(request):
            answer.headers["Vary"] = "Accept"
        return answer
    viewer = request.scope.get(VIEWER_KEY)
    return render_page(
        "refusal.html" if viewer else "error.html",
        status=problem.status,
        headers=problem.headers,
        problem=problem,
        section="",
        start=_start(request.url.path),
        viewer=viewer,
        refused=_refused_form(request, problem) if viewer else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredField:
    """A field of a form that was refused.

    ``value`` is empty for a secret, so that no page holds one. ``is_shown`` False: the
    field is sent again, but the page does not show it.
    """

    name: str
    label: str
    value: str
    is_wrong: bool
    is_shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedForm:
    """A form that was refused, to be corrected and sent again to ``path``.

    ``is_search``: it is sent by GET. ``fields`` is empty unless one of them is at
    fault, or the same may be asked for again in a moment (``may_repeat``). ``reason``:
    why, with the field named as the form names it. ``back``: the page that the form was
    on.
    """

    reason: str

    is_search: bool
    path: str
    fields: tuple[EnteredField, ...]
    may_repeat: bool
    back: str


def _refused_form(request: HTTPConnection, problem: Problem) -> RefusedForm:
    is_search = request.scope.get("method") in ("GET", "HEAD")
    if is_search:
        given = [each for each in request.query_params.multi_items() if each[1]]
    else:
        sent = request.scope[VIEWER_KEY].form.multi_items()[::-1]  # kept in reverse
        given = [each for each in sent if each[0] != "form_token"]
    path = request.url.path
    is_known = problem.field in dict(given)
    is_busy = problem.status is HTTPStatus.CONFLICT and bool(problem.headers)
    fields = _entered(path, given, problem.field) if is_known or is_busy else ()
    rest = urlencode([each for each in given if each[0] != problem.field])
    back = f"{path}?{rest}" if rest else path
    return RefusedForm(
        reason=_labelled(path, problem),
        is_search=is_search,
        path=path,
        fields=fields,
        may_repeat=is_busy,
        back=_page_before(request) or (back if is_search else _start(path)),
    )


_LABELS: Final[Mapping[tuple[str, str], str]] = {
    ("feeds", "since"): "For at least",
    ("subscriptions", "since"): "For at least",
    ("entries", "until"): "To",
    ("entries", "search"): "Words of the title",
    ("entries", "feed"): "Feed, by its number",
    ("deliveries", "host"): "Callback's host",
    ("audit", "id"): "With number",
    ("audit", "source"): "By",
    ("audit", "operation"): "What",
    ("audit", "without"): "But not",
    ("audit", "target"): "To a",
    ("tokens", "scope"): "Which may",
}
"""Fields that a page calls otherwise than others."""
_COMMON_LABELS: Final[Mapping[str, str]] = {
    "since": "From",
    "until": "Until",
    "status": "Answer",
    "sort": "Order",
    "own_period": "Own period in seconds",
    "url": "URL",
}


def field_label(name: str, page: str = "") -> str:
    """What the forms of a page, named by the last part of its path, call a field."""
    common = _COMMON_LABELS.get(name, name.replace("_", " ").capitalize())
    return _LABELS.get((page, name), common)


def _page_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _labelled(path: str, problem: Problem) -> str:
    """The reason of a refusal, with the field named as the form names it."""
    field = f"{problem.field}: "
    if not problem.field or not problem.detail.startswith(field):
        return problem.detail
    label = field_label(problem.field, _page_of(path))
    return f"{label}: {problem.detail.removeprefix(field)}"


def _entered(
    path: str, given: list[tuple[str, str]], wrong: str
) -> tuple[EnteredField, ...]:
    """The fields of a form. Repeated ones, which are ticked rows, are not shown."""
    times = Counter(name for name, _ in given)
    return tuple(
        EnteredField(
            name=name,
            label=field_label(name, _page_of(path)),
            value="" if _SECRET.search(name) else value,
            is_wrong=name == wrong,
            is_shown=name == wrong or bool(value and times[name] == 1),
        )
        for name, value in given
    )


def _page_before(request: HTTPConnection) -> str:
    """The page of the hub from which the form came, by its ``Referer``; "" if unknown.

    It is "" as well for the requested page itself, and for pages that need no session.
    """
    address = urlsplit(request.headers.get("referer", ""))
    is_own = address.netloc == request.headers.get("host")
    if not is_own or not address.path.startswith(_PAGES_OF_SESSIONS):
        return ""
    page = f"{address.path}?{address.query}" if address.query else address.path
    asked = request.url
    return "" if page == f"{asked.path}?{asked.query}".rstrip("?") else page


def _start(path: str) -> str:
    """The path of the start page that a path lies below; "/" if there is none."""
    return next((each for each in _PAGES_OF_SESSIONS if path.startswith(each)), "/")


def _wants_page(request: HTTPConnection) -> bool:
    """Whether a person reads the answer: browsers accept HTML when they open a page."""
    return _may_be_page(request) and HTML in request.headers.get("accept", "")


def _may_be_page(request: HTTPConnection) -> bool:
    """Whether a person may have made the request.

    Some programs accept HTML by default, too, but do not post to pages of a session.
    """
    path = request.url.path
    method = request.scope.get("method")  # a websocket has none
    is_opened = method in ("GET", "HEAD") and not path.startswith(API)
    return is_opened or path.startswith(_PAGES_OF_SESSIONS)


# --- files ---


class AssetRoutes(Routes):
    tag = "pages"

    @Operation(
        method="GET",
        path="/assets/{name}",
        id="get_asset",
        summary="A file of the pages, by a name with its hash",
        answers={200: {"text/css": str, "text/javascript": str}},
        problems=(404, 429),
    )
    async def asset(self, request: Request) -> Response:
        wanted = request.path_params["name"]
        for name, type in _ASSETS.items():
            if wanted == _hashed(name):
                headers = {
                    "Content-Type": type,
                    "Cache-Control": _KEPT_FOR_GOOD,
                    "X-Content-Type-Options": "nosniff",
                }
                return Response(_read(name), headers=headers)
        raise Problem(HTTPStatus.NOT_FOUND, "no such file")


def icon_answer() -> Response:
    """The icon, under the name that browsers remember."""
    headers = {
        "Content-Type": _ASSETS[_ICON],
        "Content-Security-Policy": POLICY,
        "Cache-Control": _KEPT_FOR_A_DAY,
        "X-Content-Type-Options": "nosniff",
    }
    return Response(_read(_ICON), headers=headers)
