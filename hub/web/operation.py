"""An operation of the HTTP interface, declared at the handler that answers it.

Routes, the guard of ``/api`` and the OpenAPI document are made from the declarations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hub.web.audited_requests import SAFE_METHODS, name_operation
from hub.web.request_input import DEFAULT_PAGE, LARGEST_ID, LARGEST_PAGE, RequestBody
from storage.records import TokenScope

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
ANY_TOKEN = ("bearer", "basic", "query")
"""Schemes of an operation that is open to all, but may give more to a token."""

Contents = type[Any] | Mapping[str, type[Any]] | None
"""What an answer holds: a type as JSON, types by media type, or nothing."""

Handler = Callable[[Request], Awaitable[Response]]
_Handler = TypeVar("_Handler", bound=Callable[[Any, Request], Awaitable[Response]])
_BODY_PROBLEMS = (400, 408, 413, 415, 422)
_TOKEN_PROBLEMS = (401, 403)
_ANY_PROBLEMS = (429, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the query, or of a form. Numbers go from ``least`` to
    ``largest``; ``longest`` is in characters."""

    name: str
    help: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    default: int | bool | None = None
    least: int | None = None
    largest: int | None = None
    longest: int | None = None
    is_required: bool = False
    is_repeated: bool = False
    is_deprecated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method on a path that anybody may request; it decorates its handler.

    ``id``: what generated clients call it. ``plain_problems`` are answered as text,
    ``problems`` as JSON. ``security``: the schemes whose token gives access to more.
    ``only_reads``: it changes nothing, and has another method than GET only for its
    input, so that it leaves no trace in the audit trail.
    """

    method: str
    path: str
    id: str
    summary: str
    answers: Mapping[int, Contents]  # by status
    description: str = ""
    query: tuple[Parameter, ...] = ()
    form: tuple[Parameter, ...] = ()
    body: RequestBody | None = None  # an example of it
    headers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    problems: tuple[int, ...] = (429,)
    plain_problems: tuple[int, ...] = ()
    security: tuple[str, ...] = ()
    only_reads: bool = False

    def __call__(self, handler: _Handler) -> _Handler:
        declared = getattr(handler, "operations", ())
        handler.operations = (self, *declared)  # type: ignore[attr-defined]
        return handler


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation(Operation):
    """A method on a path below ``/api``; ``scope`` None: it needs no token."""

    scope: TokenScope | None
    problems: tuple[int, ...] = ()  # besides those that any operation has

    @property
    def all_problems(self) -> set[int]:
        """Its own problems, and those of any body, any token, and any request."""
        return {
            *self.problems,
            *(_BODY_PROBLEMS if self.body else ()),
            *(_TOKEN_PROBLEMS if self.scope else ()),
            *_ANY_PROBLEMS,
        }


class Routes:
    """Handlers that declare their operations; ``tag`` names their subject."""

    tag: ClassVar[str]

    @classmethod
    def operations(cls) -> tuple[Operation, ...]:
        return tuple(each for _, each in _declared(cls))

    def routes(self) -> list[BaseRoute]:
        return [
            Route(
                each.path,
                _audited(each, self.endpoint(getattr(self, name))),
                methods=[each.method],
                name=each.id,
            )
            for name, each in _declared(type(self))
        ]

    def endpoint(self, handler: Handler) -> Handler:
        """The endpoint that answers for a handler: by default the handler itself."""
        return handler


def _audited(operation: Operation, endpoint: Handler) -> Handler:
    """The endpoint, and before it a note for the audit of what it may change."""
    if operation.method in SAFE_METHODS or operation.only_reads:
        return endpoint

    async def answer(request: Request) -> Response:
        name_operation(request, operation.id, operation.path, request.path_params)
        return await endpoint(request)

    return answer


def _declared(kind: type[Routes]) -> Iterator[tuple[str, Operation]]:
    for name, member in vars(kind).items():
        for each in getattr(member, "operations", ()):
            yield name, each


def every_operation(kind: type[Routes] = Routes) -> Iterator[Operation]:
    """The operations of all routes whose modules are imported."""
    for each in kind.__subclasses__():
        yield from each.operations()
        yield from every_operation(each)


PAGE = (
    Parameter(
        name="after",
        help="the page after this id",
        kind="integer",
        default=0,
        least=0,
        largest=LARGEST_ID,
    ),
    Parameter(
        name="limit",
        help="the most items on a page",
        kind="integer",
        default=DEFAULT_PAGE,
        least=1,
        largest=LARGEST_PAGE,
    ),
)
