"""What is told of a path that nothing is at, and of a method that a path has not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from hub.web.problems import Problem, problem_response

SHOWN_PATH = 100


async def answer_not_found(request: Request, error: Exception) -> Response:
    path = request.url.path[:SHOWN_PATH]
    return problem_response(
        Problem(HTTPStatus.NOT_FOUND, f"there is nothing at {path}")
    )


def wrong_method_answer(
    top: Sequence[BaseRoute], mounted: Sequence[Route]
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """An exception handler. ``Allow`` names the methods of all routes with that path

    (RFC 9110 15.5.6); Starlette's own would name those of the first one.
    """

    async def answer(request: Request, error: Exception) -> Response:
        routes = mounted if request.scope.get("root_path") else top
        methods = {
            method
            for route in routes
            if isinstance(route, Route) and _has_path(route, request)
            for method in route.methods or ()
        }
        allowed = ", ".join(sorted(methods))
        problem = Problem(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"this takes {allowed}, not {request.method[:SHOWN_PATH]}",
            headers={"Allow": allowed},
        )
        return problem_response(problem)

    return answer


def _has_path(route: Route, request: Request) -> bool:
    return route.matches(request.scope)[0] is not Match.NONE
