"""``/api/openapi.json``: all routes in OpenAPI 3.1, made from the tables of them."""

from __future__ import annotations

import re
from functools import cache

import msgspec
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import hub
from hub.web.api_operations import OPERATIONS
from hub.web.api_schemas import schemas
from hub.web.open_operation import OpenOperation
from hub.web.open_operations import OPEN_OPERATIONS
from hub.web.openapi_responses import responses_of, responses_of_open
from hub.web.operation import Operation, Parameter
from hub.web.websub.hub_routes import FORM_TYPE

Members = dict[str, object]
SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The account's name and a token of it, or admin and the admin"
        " token.",
    },
    "query": {
        "type": "apiKey",
        "in": "query",
        "name": "authorization",
        "description": "What would follow Basic in the header.",
    },
}


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
    for open_one in OPEN_OPERATIONS:
        members = paths.setdefault(open_one.path, {})
        members[open_one.method.lower()] = _open_operation(open_one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fanfare",
            "version": hub.__version__,
            "description": "A push hub for feeds. Times are RFC 3339 in UTC, periods"
            " and durations seconds. What is outside of /api takes no token.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {**body_schemas, **schemas()},
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _operation(each: Operation) -> Members:
    described: Members = {
        "operationId": _operation_id(each.method, each.path),
        "summary": each.summary,
        "description": f"Takes the right {each.right}." if each.right else "",
        "parameters": [
            *_in_path(each.path, "integer"),
            *(_parameter(parameter) for parameter in each.query),
        ],
        "responses": responses_of(each),
        "security": [{"bearer": []}, {"basic": []}] if each.right else [],
    }
    if each.body is not None:
        reference = {"$ref": f"#/components/schemas/{each.body.__name__}"}
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": reference}},
        }
    return described


def _open_operation(each: OpenOperation) -> Members:
    tokens: list[Members] = [{"bearer": []}, {"basic": []}, {"query": []}]
    described: Members = {
        "operationId": _operation_id(each.method, each.path),
        "summary": each.summary,
        "description": each.description,
        "parameters": [
            *_in_path(each.path, "string"),
            *(_parameter(parameter) for parameter in each.query),
        ],
        "responses": responses_of_open(each),
        "security": [{}, *tokens] if each.is_opened else [],
    }
    if each.form:
        form: Members = {
            "type": "object",
            "properties": {it.name: _parameter_schema(it) for it in each.form},
            "required": [it.name for it in each.form if it.is_required],
        }
        described["requestBody"] = {"content": {FORM_TYPE: {"schema": form}}}
    return described


def _operation_id(method: str, path: str) -> str:
    """``post_feeds_id_pause``: stable, and a name in most languages."""
    words = re.sub(r"\W+", "_", path).strip("_") or "page"
    return f"{method.lower()}_{words}"


def _in_path(path: str, kind: str) -> list[Members]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": kind}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _parameter(parameter: Parameter) -> Members:
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.help,
        "required": parameter.is_required,
        "schema": _parameter_schema(parameter),
    }


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
