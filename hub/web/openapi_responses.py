"""What operations answer, as OpenAPI has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from hub.web.api_schemas import member_schema
from hub.web.open_operation import OpenOperation
from hub.web.operation import Operation
from hub.web.problems import PROBLEM_TYPE

Members = dict[str, object]
_BODY_PROBLEMS = (400, 408, 413, 415, 422)
_TOKEN_PROBLEMS = (401, 403)
_ANY_PROBLEMS = (429, 503)
_PROBLEM_HEADERS = {
    401: {"WWW-Authenticate": "Bearer and Basic"},
    429: {"Retry-After": "seconds"},
    503: {"Retry-After": "seconds"},
}


def responses_of(each: Operation) -> Members:
    """By status; also the problems that a body, a token, or anything may have."""
    problems = {
        *each.problems,
        *(_BODY_PROBLEMS if each.body else ()),
        *(_TOKEN_PROBLEMS if each.right else ()),
        *_ANY_PROBLEMS,
    }
    answered = {
        str(status): _answer(status, {"application/json": shape})
        for status, shape in each.answers.items()
    }
    return {**answered, **_problems(problems, PROBLEM_TYPE, "Problem")}


def responses_of_open(each: OpenOperation) -> Members:
    """By status, of an operation outside of ``/api``."""
    answered = {
        str(status): _answer(status, contents, each.headers.get(status, {}))
        for status, contents in each.answers.items()
    }
    return {
        **answered,
        **_problems(each.problems, PROBLEM_TYPE, "Problem"),
        **_problems(each.plain_problems, "text/plain", "string"),
    }


def _problems(statuses: Iterable[int], media_type: str, shape: str) -> Members:
    return {
        str(status): _answer(status, {media_type: shape}, _PROBLEM_HEADERS.get(status))
        for status in sorted(statuses)
    }


def _answer(
    status: int, contents: Mapping[str, str], headers: Mapping[str, str] | None = None
) -> Members:
    answer: Members = {"description": HTTPStatus(status).phrase}
    if contents:
        answer["content"] = {
            media_type: {"schema": member_schema(shape)}
            for media_type, shape in contents.items()
        }
    if headers:
        answer["headers"] = {
            name: {"description": meaning, "schema": {"type": "string"}}
            for name, meaning in headers.items()
        }
    return answer
