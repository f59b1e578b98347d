"""``/api/openapi.json``: all routes in OpenAPI 3.1, as their handlers declare them.

The operator's pages are left out, since only browsers request them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec
import orjson
from starlette.requests import Request
from starlette.responses import Response

import hub
from hub.services.open_hub_requests import PingOutcome
from hub.web.api.account_routes import AccountRoutes
from hub.web.api.api_pages import ApiPages
from hub.web.api.audit_routes import AuditRoutes
from hub.web.api.connection_routes import ConnectionRoutes
from hub.web.api.database_routes import DatabaseRoutes
from hub.web.api.delivery_routes import DeliveryRoutes
from hub.web.api.entry_routes import EntryRoutes
from hub.web.api.feed_document_routes import FeedDocumentRoutes
from hub.web.api.feed_routes import FeedRoutes
from hub.web.api.list_routes import FeedListRoutes
from hub.web.api.operator_routes import OperatorRoutes
from hub.web.api.output_routes import OutputRoutes
from hub.web.api.plan_routes import PlanRoutes
from hub.web.api.playground_routes import PlaygroundRoutes
from hub.web.api.search_routes import SearchRoutes
from hub.web.api.series_routes import SeriesRoutes
from hub.web.api.subscription_routes import SubscriptionRoutes
from hub.web.api.token_routes import TokenRoutes
from hub.web.json_output import SCHEMA_REFERENCE
from hub.web.monitoring_routes import MonitoringRoutes
from hub.web.operation import (
    JSON,
    TEXT,
    ApiOperation,
    Contents,
    Operation,
    Parameter,
    Routes,
)
from hub.web.problems import PROBLEM_TYPE, ProblemJson
from hub.web.publishing.crawler_routes import CrawlerRoutes
from hub.web.publishing.openfeeder_routes import OpenFeederRoutes
from hub.web.publishing.reader_routes import ReaderRoutes
from hub.web.publishing.topic_routes import TopicRoutes
from hub.web.streams.stream_routes import (
    StreamNotificationJson,
    StreamResetJson,
    StreamRoutes,
)
from hub.web.websub.hub_routes import FORM_TYPE, HubRoutes
from hub.web.websub.ping_routes import PingRoutes
from hub.web.websub.playground_endpoints import PlaygroundEndpoints
from hub.web.websub.push_routes import PushRoutes
from protocols.model import FeedFormat
from protocols.openfeeder.write.content_queries import ErrorCode
from protocols.operational_events import DATA_OF_TYPE, MEANINGS, EventType
from protocols.websub.signatures import SIGNINGS
from storage.records import TokenScope

Members = dict[str, Any]

SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "An account's name and one of its tokens, or admin and the"
        " admin token.",
    },
    "query": {
        "type": "apiKey",
        "in": "query",
        "name": "authorization",
        "description": "The value of a Basic header.",
    },
}
TEXTS: Mapping[str, tuple[str, ...]] = {
    "Algorithm": tuple(SIGNINGS),
    "DocumentFormat": ("", *FeedFormat),
    "OpenFeederCode": tuple(ErrorCode),
    "PingOutcome": tuple(PingOutcome),
    "StreamKind": ("entries", "updated", "deleted", "error", "recovered"),
}
"""The values of a text, by the name from `hub.web.json_output.named_schema`."""
PUBLIC_NAMES = {"LookupKind": "Kind", "Term": "PeriodTerm"}
"""Names in the API that are not the class's own name without ``Json``."""
_PROBLEM_HEADERS = {
    401: {"WWW-Authenticate": "Bearer and Basic"},
    429: {"Retry-After": "seconds"},
    503: {"Retry-After": "seconds"},
}


class OpenApiRoutes(Routes):
    tag = "operator"

    @ApiOperation(
        method="GET",
        path="/openapi.json",
        id="get_openapi",
        scope=None,
        summary="This document",
        answers={200: dict},
    )
    async def show(self, request: Request) -> Response:
        return Response(_encoded(), media_type=JSON)


API_ROUTES: tuple[type[Routes], ...] = (
    OpenApiRoutes,
    FeedRoutes,
    FeedDocumentRoutes,
    SearchRoutes,
    FeedListRoutes,
    SubscriptionRoutes,
    DeliveryRoutes,
    PlanRoutes,
    PlaygroundRoutes,
    AccountRoutes,
    TokenRoutes,
    OperatorRoutes,
    EntryRoutes,
    SeriesRoutes,
    OutputRoutes,
    DatabaseRoutes,
    AuditRoutes,
    ConnectionRoutes,
)
OPEN_ROUTES: tuple[type[Routes], ...] = (
    HubRoutes,
    PingRoutes,
    PushRoutes,
    PlaygroundEndpoints,
    StreamRoutes,
    TopicRoutes,
    CrawlerRoutes,
    OpenFeederRoutes,
    ReaderRoutes,
    ApiPages,
    MonitoringRoutes,
)


def _api_operations() -> Iterator[ApiOperation]:
    for routes in API_ROUTES:
        for each in routes.operations():
            assert isinstance(each, ApiOperation)  # noqa: S101 - below /api
            yield each


API_OPERATIONS = tuple(_api_operations())
OPEN_OPERATIONS = tuple(each for it in OPEN_ROUTES for each in it.operations())
SCOPES: Mapping[tuple[str, str], TokenScope | None] = {
    (each.method, each.path): each.scope for each in API_OPERATIONS
}
"""The scope that the guard of the API requires, by method and path."""


@cache
def _encoded() -> bytes:
    return orjson.dumps(openapi_document())


@cache
def openapi_document() -> Members:
    paths: dict[str, Members] = {}
    for prefix, groups in (("/api", API_ROUTES), ("", OPEN_ROUTES)):
        for routes in groups:
            for each in routes.operations():
                members = paths.setdefault(f"{prefix}{each.path}", {})
                members[each.method.lower()] = _operation(each, routes.tag)
    tags = dict.fromkeys(it.tag for it in (*API_ROUTES[1:], *OPEN_ROUTES))
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Fanfare",
            "version": hub.__version__,
            "description": "A push hub for feeds. Times are RFC 3339 in UTC, periods"
            " and durations seconds. Paths outside /api need no token unless they"
            " say so.",
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": each} for each in tags],
        "paths": paths,
        "webhooks": {str(each): _webhook(str(each)) for each in DATA_OF_TYPE},
        "components": {"schemas": _schemas(), "securitySchemes": SECURITY_SCHEMES},
    }
    return _with_public_names(document)


def _webhook(type: str) -> Members:
    """An operational event of a type, as a callback gets it."""
    message: Members = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": [type]},
            "timestamp": {"type": "string", "format": "date-time"},
            "data": _reference(DATA_OF_TYPE[type]),
        },
        "required": ["type", "timestamp", "data"],
    }
    meaning = MEANINGS[EventType(type)] if type in MEANINGS else "a test delivery"
    return {
        "post": {
            "operationId": f"on_{type.replace('.', '_')}",
            "tags": [SubscriptionRoutes.tag],
            "summary": f"{meaning[0].upper()}{meaning[1:]}",
            "requestBody": {"required": True, "content": {JSON: {"schema": message}}},
            "responses": {"2XX": {"description": "It is taken"}},
        }
    }


def _operation(each: Operation, tag: str) -> Members:
    described: Members = {
        "operationId": each.id,
        "tags": [tag],
        "summary": each.summary,
        "description": _description(each),
        "parameters": [
            *_in_path(each),
            *(_parameter(parameter) for parameter in each.query),
        ],
        "responses": _responses(each),
        "security": _security(each),
    }
    if each.body is not None:
        schema = {"$ref": SCHEMA_REFERENCE.format(name=type(each.body).__name__)}
        content = {"schema": schema, "example": _example(each.body)}
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    if each.form:
        form: Members = {
            "type": "object",
            "properties": {it.name: _parameter_schema(it) for it in each.form},
            "required": [it.name for it in each.form if it.is_required],
        }
        described["requestBody"] = {"content": {FORM_TYPE: {"schema": form}}}
    return described


def _description(each: Operation) -> str:
    if isinstance(each, ApiOperation):
        needed = f"Requires the `{each.scope}` scope." if each.scope else ""
        return " ".join(filter(None, (each.description, needed)))
    return each.description


def _security(each: Operation) -> list[Members]:
    if isinstance(each, ApiOperation):
        return [{"bearer": []}, {"basic": []}] if each.scope else []
    opened: list[Members] = [{scheme: []} for scheme in each.security]
    return [{}, *opened] if opened else []


def _example(body: msgspec.Struct) -> Members:
    """The members of an example that differ from their defaults."""
    defaults = {it.name: it.default for it in msgspec.structs.fields(body)}
    members: Members = msgspec.to_builtins(body)
    return {
        name: value
        for name, value in members.items()
        if value and value != defaults[name]
    }


def _in_path(each: Operation) -> list[Members]:
    numbers = ("id",) if isinstance(each, ApiOperation) else ()
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if name in numbers else "string"},
        }
        for name in re.findall(r"{(\w+)}", each.path)
    ]


def _parameter(parameter: Parameter) -> Members:
    described: Members = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.help,
        "required": parameter.is_required,
        "schema": _parameter_schema(parameter),
    }
    return {**described, "deprecated": True} if parameter.is_deprecated else described


def _parameter_schema(parameter: Parameter) -> Members:
    limits = {
        "enum": list(parameter.choices) or None,
        "default": parameter.default,
        "minimum": parameter.least,
        "maximum": parameter.largest,
        "maxLength": parameter.longest,
    }
    schema: Members = {
        "type": parameter.kind,
        **{name: limit for name, limit in limits.items() if limit is not None},
    }
    return {"type": "array", "items": schema} if parameter.is_repeated else schema


def _responses(each: Operation) -> Members:
    """The responses of an operation, by status."""
    answered = {
        str(status): _answer(status, contents, each.headers.get(status))
        for status, contents in each.answers.items()
    }
    problems = each.problems
    if isinstance(each, ApiOperation):
        problems = tuple(each.all_problems)
    return {
        **answered,
        **_problems(problems, {PROBLEM_TYPE: ProblemJson}),
        **_problems(each.plain_problems, {TEXT: str}),
    }


def _problems(statuses: Iterable[int], contents: Contents) -> Members:
    return {
        str(status): _answer(status, contents, _PROBLEM_HEADERS.get(status))
        for status in sorted(statuses)
    }


def _answer(
    status: int, contents: Contents, headers: Mapping[str, str] | None
) -> Members:
    answer: Members = {"description": HTTPStatus(status).phrase}
    if by_type := _by_type(contents):
        answer["content"] = {
            media_type: {"schema": _reference(shape)}
            for media_type, shape in by_type.items()
        }
    if headers:
        answer["headers"] = {
            name: {"description": meaning, "schema": {"type": "string"}}
            for name, meaning in headers.items()
        }
    return answer


def _by_type(contents: Contents) -> Mapping[str, type[Any]]:
    if contents is None:
        return {}
    return contents if isinstance(contents, Mapping) else {JSON: contents}


def _reference(shape: type[Any]) -> Members:
    (schema,), _ = msgspec.json.schema_components(
        [shape], ref_template=SCHEMA_REFERENCE
    )
    return schema


def _schemas() -> Members:
    every = (*API_OPERATIONS, *OPEN_OPERATIONS)
    bodies = [type(each.body) for each in every if each.body is not None]
    answers: list[type[Any]] = [
        shape
        for each in every
        for contents in each.answers.values()
        for shape in _by_type(contents).values()
    ]
    shapes: list[type[Any]] = [
        *answers,
        ProblemJson,
        StreamNotificationJson,
        StreamResetJson,
        *DATA_OF_TYPE.values(),
    ]
    texts = {name: {"type": "string", "enum": list(TEXTS[name])} for name in TEXTS}
    shown = {name: _whole(schema) for name, schema in _components(shapes).items()}
    return {**_components(bodies), **texts, **shown}


def _components(types: Iterable[type[Any]]) -> Members:
    _, schemas = msgspec.json.schema_components(types, ref_template=SCHEMA_REFERENCE)
    for schema in schemas.values():
        if "description" in schema:  # a docstring, as it is indented in the source
            schema["description"] = _unwrapped(schema["description"])
    return schemas


def _unwrapped(docstring: str) -> str:
    """Its paragraphs, each in one line."""
    paragraphs = cleandoc(docstring).split("\n\n")
    return "\n\n".join(each.replace("\n", " ") for each in paragraphs)


def _whole(schema: Members) -> Members:
    """A schema as it is in answers: a member is required, unless it may be unset."""
    kept = {name: value for name, value in schema.items() if name != "title"}
    if "enum" in schema:
        return {"type": "string", **kept}
    members = schema["properties"]
    is_problem = schema["title"] == ProblemJson.__name__
    kept["properties"] = {name: _without_default(it) for name, it in members.items()}
    kept["required"] = schema["required"] if is_problem else list(members)
    return kept


def _without_default(member: Members) -> Members:
    """A member without its default, and without a type where a reference names it."""
    left_out = {"default", *({"type"} if "$ref" in member else ())}
    return {name: value for name, value in member.items() if name not in left_out}


def _with_public_names(document: Members) -> Members:
    """The document with public names: Python's ``FeedJson`` is the API's ``Feed``."""
    schemas = document["components"]["schemas"]
    names = {each: _public_name(each) for each in schemas}
    for each, schema in schemas.items():
        if "title" in schema:
            schema["title"] = names[each]
    document["components"]["schemas"] = {
        names[each]: schema for each, schema in schemas.items()
    }
    return dict(_renamed(document, names))


def _public_name(name: str) -> str:
    return PUBLIC_NAMES.get(name, name.removesuffix("Json"))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case {"$ref": str(reference), **more}:
            name = names[reference.rpartition("/")[2]]
            return {"$ref": SCHEMA_REFERENCE.format(name=name), **more}
        case dict():
            return {key: _renamed(each, names) for key, each in value.items()}
        case list():
            return [_renamed(each, names) for each in value]
        case _:
            return value
