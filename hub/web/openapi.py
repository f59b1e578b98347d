"""``/api/openapi.json``: the API described in OpenAPI 3.1, made from its operations."""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus

import msgspec
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import hub
from hub.web.api_operations import OPERATIONS, Operation, Parameter
from hub.web.api_schemas import member_schema, schemas
from hub.web.problems import PROBLEM_TYPE

Members = dict[str, object]
_BODY_PROBLEMS = (400, 408, 413, 415, 422)
_TOKEN_PROBLEMS = (401, 403)
_ANY_PROBLEMS = (429, 503)


class OpenApiRoutes:
    def routes(self) -> list[Route]:
        return [Route("/openapi.json", self.show, methods=["GET"])]

    async def show(self, request: Request) -> Response:
        return Response(_encoded(), media_type="application/json")


@cache
def _encoded() -> bytes:
    return orjson.dumps(openapi_document())


def openapi_document() -> Members:
    bodies = [each.body for each in OPERATIONS if each.body is not None]
    _, body_schemas = msgspec.json.schema_components(
        bodies, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Members] = {}
    for each in OPERATIONS:
        paths.setdefault(f"/api{each.path}", {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fanfare",
            "version": hub.__version__,
            "description": "Administration of a push hub for feeds. Times are RFC 3339"
            " in UTC, periods and durations seconds.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {**schemas(), **body_schemas},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The account's name and a token of it, or admin"
                    " and the admin token.",
                },
            },
        },
    }


def _operation(each: Operation) -> Members:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer"}}
        for name in re.findall(r"{(\w+)}", each.path)
    ]
    described: Members = {
        "operationId": _operation_id(each),
        "summary": each.summary,
        "description": f"Takes the right {each.right}." if each.right else "",
        "parameters": [*in_path, *(_parameter(parameter) for parameter in each.query)],
        "responses": _responses(each),
        "security": [{"bearer": []}, {"basic": []}] if each.right else [],
    }
    if each.body is not None:
        reference = {"$ref": f"#/components/schemas/{each.body.__name__}"}
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": reference}},
        }
    return described


def _operation_id(each: Operation) -> str:
    """``post_feeds_id_pause``: stable, and a name in most languages."""
    words = re.sub(r"\W+", "_", each.path).strip("_")
    return f"{each.method.lower()}_{words}"


def _parameter(parameter: Parameter) -> Members:
    schema: Members = {"type": parameter.kind}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.help,
        "schema": schema,
    }


def _responses(each: Operation) -> Members:
    problems = {
        *each.problems,
        *(_BODY_PROBLEMS if each.body else ()),
        *(_TOKEN_PROBLEMS if each.right else ()),
        *_ANY_PROBLEMS,
    }
    answered = {
        str(status): _content(status, "application/json", shape)
        for status, shape in each.answers.items()
    }
    refused = {
        str(status): _content(status, PROBLEM_TYPE, "Problem")
        for status in sorted(problems)
    }
    return {**answered, **refused}


def _content(status: int, media_type: str, shape: str) -> Members:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {media_type: {"schema": member_schema(shape)}},
    }
