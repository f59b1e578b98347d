"""Common parts of this API's answers: CORS, JSONP, and errors."""

from __future__ import annotations

import re
from http import HTTPStatus

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hub.services.service_errors import AddressRefused, NotAllowed, TooManyWaiting
from hub.web.problems import Problem, as_problem
from hub.web.request_input import combined_field
from hub.web.superfeedr.calls import Call, accepts_json
from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.json_notifications import JSON_TYPE

JSONP_TYPE = "text/javascript; charset=utf-8"
RETRY_SECONDS = "60"
PREFLIGHT_SECONDS = "86400"
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Link, Retry-After, WWW-Authenticate",
}
SANDBOXED = {
    "Content-Security-Policy": "sandbox",
    "X-Content-Type-Options": "nosniff",
}
"""Headers for what publishers wrote: a browser runs no script of it on this origin."""
TOPIC_WANTED = (
    "Please provide a valid hub.topic (feed) URL that is accepted on this hub."
)
"""The beginning of each of Superfeedr's refusals of a topic; programs look for it."""

_UNREACHABLE = "This url could not be fetched."
_LONGEST_NAME = 128
_LINE_BREAKS = {b"\xe2\x80\xa8": rb"\u2028", b"\xe2\x80\xa9": rb"\u2029"}
"""Characters that break lines in JavaScript before 2019, but not in JSON."""
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d{1,9}\])*", re.ASCII)


def preflight_answer(request: Request) -> Response:
    """Answer ``OPTIONS``: any site may ask, with any headers."""
    asked = combined_field(request.headers, "access-control-request-headers")
    return Response(
        status_code=HTTPStatus.NO_CONTENT,
        headers={
            "Allow": METHODS,
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": asked or "Authorization, Content-Type",
            "Access-Control-Max-Age": PREFLIGHT_SECONDS,
            "Vary": "Access-Control-Request-Headers",
        },
    )


def json_answer(call: Call, document: object) -> Response:
    """JSON, or with ``callback=`` JSONP. Raises `InvalidValue` for an unsafe name."""
    return json_bytes_answer(call, orjson.dumps(document))


def json_bytes_answer(call: Call, body: bytes) -> Response:
    """Like `json_answer`, for JSON that is already rendered."""
    name = call.parameters.one("callback").strip()
    if not name:
        return Response(body, headers={"Content-Type": JSON_TYPE})
    if not is_function(name):
        raise InvalidValue("callback", "the name of a JavaScript function", name)
    return _script_answer(name, body)


def is_function(name: str) -> bool:
    """Whether a page can be called back by this name: that of a JavaScript function."""
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _function_named(request: Request, problem: Problem) -> str:
    """Return the function that a script calls with an error; "" if no script asks."""
    if request.method != "GET" or problem.field == "callback":
        return ""
    name = request.query_params.get("callback", "").strip()
    return name if is_function(name) else ""


def _script_answer(name: str, body: bytes) -> Response:
    for character, escaped in _LINE_BREAKS.items():
        body = body.replace(character, escaped)
    return Response(
        b"%b(%b)" % (name.encode(), body),
        headers={"Content-Type": JSONP_TYPE, "X-Content-Type-Options": "nosniff"},
    )


def error_answer(request: Request, error: Exception) -> Response:
    """Answer an error as text, or as JSON if that is accepted, with the field at fault.

    With JSONP the status is 200, because a page runs a script only then; the page's
    program looks for ``error`` in what it is called with.
    """
    problem = as_problem(error)
    detail = _detail(error, problem)
    headers = {**(problem.headers or {}), "X-Content-Type-Options": "nosniff"}
    if isinstance(error, TooManyWaiting):
        headers["Retry-After"] = RETRY_SECONDS
    document = {"status": problem.status.value, "error": detail}
    if problem.field:
        document["field"] = problem.field
    body = orjson.dumps(document)
    if function := _function_named(request, problem):
        return _script_answer(function, body)
    if not accepts_json(request):
        return PlainTextResponse(
            f"{detail}\n", status_code=problem.status, headers=headers
        )
    return Response(
        body,
        status_code=problem.status,
        headers={**headers, "Content-Type": JSON_TYPE},
    )


def _detail(error: Exception, problem: Problem) -> str:
    if isinstance(error, NotAllowed):
        return f"{TOPIC_WANTED} {error.reason} (hub.topic)"
    if problem.field != "hub.topic":
        return problem.detail
    is_unreachable = isinstance(error, AddressRefused)
    what = _UNREACHABLE if is_unreachable else "You did not provide a valid hub.topic."
    return f"{TOPIC_WANTED} {what} ({problem.detail})"
