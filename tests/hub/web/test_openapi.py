"""The API's description: it says what the routes are, and their answers keep to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx2
import pytest
from starlette.routing import Mount, Route

from hub.web.api_operations import OPERATIONS, Operation
from hub.web.api_schemas import SHAPES
from hub.web.application import create_application
from hub.web.openapi import openapi_document
from tests.hub.web.conftest import TOKEN
from tests.support.services import Hub

METHODS = {"get", "post", "put", "patch", "delete"}


def real_routes(hub: Hub) -> set[tuple[str, str]]:
    """Method and path of every route below ``/api``."""
    application = create_application(hub.services, TOKEN)
    [api] = [
        each
        for each in application.routes
        if isinstance(each, Mount) and each.path == "/api"
    ]
    return {
        (method, f"/api{route.path}")
        for route in api.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }


def described() -> dict[tuple[str, str], dict[str, Any]]:
    paths: Any = openapi_document()["paths"]
    return {
        (method.upper(), path): operation
        for path, operations in paths.items()
        for method, operation in operations.items()
    }


def test_every_route_is_described_and_nothing_else_is(hub: Hub) -> None:
    assert set(described()) == real_routes(hub)


def test_no_operation_is_there_twice() -> None:
    keys = [(each.method, each.path) for each in OPERATIONS]
    assert len(keys) == len(set(keys)) == len(described())
    ids = [operation["operationId"] for operation in described().values()]
    assert len(ids) == len(set(ids))


async def test_it_is_open_to_everybody(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/api/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == openapi_document()
    assert answer.json()["openapi"] == "3.1.0"


def references(value: object) -> Iterator[str]:
    match value:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for each in value.values():
                yield from references(each)
        case list():
            for each in value:
                yield from references(each)


def test_every_reference_leads_to_a_schema() -> None:
    document: Any = openapi_document()
    known = {
        f"#/components/schemas/{each}" for each in document["components"]["schemas"]
    }
    assert set(references(document)) <= known


@pytest.mark.parametrize("key", sorted(described()), ids=" ".join)
def test_every_operation_says_what_it_needs_and_what_it_may_answer(
    key: tuple[str, str],
) -> None:
    operation = described()[key]
    named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
    assert named == set(re.findall(r"{(\w+)}", key[1]))
    assert any(status.startswith("2") for status in operation["responses"])
    assert "429" in operation["responses"]
    is_open = key == ("GET", "/api/openapi.json")
    assert ("401" in operation["responses"]) != is_open
    assert bool(operation["security"]) != is_open


def keeps_to(value: object, kind: str) -> bool:
    """Whether a value of an answer is what the notation of the shapes says."""
    if kind.endswith("?"):
        return value is None or keeps_to(value, kind[:-1])
    if kind.startswith("["):
        return isinstance(value, list) and all(
            keeps_to(each, kind[1:-1]) for each in value
        )
    if kind in SHAPES:
        shape = SHAPES[kind]
        return (
            isinstance(value, dict)
            and value.keys() == shape.keys()
            and all(keeps_to(value[name], shape[name]) for name in shape)
        )
    match kind, value:
        case "boolean", bool():
            return True
        case (("integer" | "number" | "string"), bool()):
            return False
        case ("integer", int()) | ("number", int() | float()):
            return True
        case ("string", str()) | ("object", dict()):
            return True
        case "time", str():
            return datetime.fromisoformat(value).tzinfo is not None
    return False


FEED = {"url": "https://example.org/feed.xml"}
SUBSCRIPTION = {"callback": "https://you.example/hook", "topic": FEED["url"]}
CALLS: list[tuple[str, str, dict[str, object] | None]] = [
    ("GET", "/openapi.json", None),
    ("POST", "/feeds", {**FEED}),
    ("GET", "/feeds", None),
    ("GET", "/feeds/1", None),
    ("POST", "/feeds/1/fetch", None),
    ("POST", "/feeds/1/pause", None),
    ("POST", "/feeds/1/resume", None),
    ("POST", "/subscriptions", {**SUBSCRIPTION}),
    ("GET", "/subscriptions", None),
    ("GET", "/subscriptions/1", None),
    ("DELETE", "/subscriptions/1", None),
    ("GET", "/deliveries", None),
    ("POST", "/tokens", {"account": "alice", "rights": ["list"]}),
    ("GET", "/tokens", None),
    ("DELETE", "/tokens/1", None),
    ("GET", "/health", None),
    ("DELETE", "/feeds/1", None),
]


def operation_of(method: str, path: str) -> Operation:
    template = re.sub(r"\d+", "{id}", path)
    [found] = [e for e in OPERATIONS if (e.method, e.path) == (method, template)]
    return found


async def test_answers_have_the_shape_that_is_described(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    for method, path, body in CALLS:
        operation = operation_of(method, path)
        answer = await client.request(method, f"/api{path}", json=body)
        assert answer.status_code in operation.answers, (method, path, answer.text)
        shape = operation.answers[answer.status_code]
        assert keeps_to(answer.json(), shape), (method, path, answer.json())


async def test_a_problem_has_the_shape_that_is_described(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.get("/api/feeds?limit=x")
    problem = answer.json()
    assert problem.pop("field") == "limit"
    assert keeps_to(problem, "Problem")
