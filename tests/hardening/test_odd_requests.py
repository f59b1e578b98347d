"""No request is a fault of the hub's, whatever is in it: each is answered below 500.

Made from the OpenAPI document: every member of every body and every parameter there is,
with values that no client means.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.services import open_hub

HEADERS = {**ADMIN, "Content-Type": "application/json"}
NUMBERS = (
    "-1",
    "0",
    f"{2**63}",
    f"-{2**63 + 1}",
    "9" * 400,
    "1e9",
    "NaN",
    "٣",
    "²",
    "",
)
TEXTS = ("a\0b", "\U0010ffff", "9999-12-31T23:59:59-14:00", "a" * 5_000)
ODD_JSON = (
    *(b"null", b"[]", b"{}", b"true", b"1.5", b"-1", b'""', b"1e400", b"9" * 400),
    *(b'"\\ud800"', b'"\\u0000"', b'"\xed\xa0\x80"', b'"\xff"', b'["\xc0\xaf"]'),
    *(b"[" * 9_000, b'{"a": "\xf5\x80\x80\x80"}'),
)
ODD_BODIES = (b"", b"\0", b"\xff\xfe{\x00}\x00", b"[" * 9_000, b"{}{}", b'{"\xff": 1}')


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        open_hub(tmp_path) as hub,
        client_of(hub.application) as client,
    ):
        yield client


async def described(client: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/api/openapi.json")
    document: dict[str, Any] = answer.json()
    return document


def members(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    """The names of a body's members, if the operation takes one as JSON."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    schema = document["components"]["schemas"].get(name, schema)
    yield from schema.get("properties", ())


def good(name: str) -> object:
    """What is refused only for something else."""
    known: dict[str, object] = {"rights": ["list"], "urls": ["https://a.example/"]}
    return known.get(name, "https://a.example/")


async def test_no_body_is_a_fault_of_the_hub(client: httpx2.AsyncClient) -> None:
    document = await described(client)
    asked = 0
    for path, operations in document["paths"].items():
        operation = operations.get("post", {})
        names = list(members(document, operation))
        target = re.sub(r"{\w+}", "1", path)
        if any(each["name"] == "wait" for each in operation.get("parameters", ())):
            target += "?wait=0"
        for body in (*bodies(names), *(ODD_BODIES if names else ())):
            answer = await client.post(target, content=body, headers=HEADERS)
            assert answer.status_code < 500, (path, body[:200], answer.text)
            asked += 1
    assert asked > 300


def bodies(names: list[str]) -> Iterator[bytes]:
    """Each member by itself is odd, and the others are not."""
    for odd in names:
        others = {name: good(name) for name in names if name != odd}
        rest = f", {json.dumps(others)[1:]}" if others else "}"
        for value in ODD_JSON:
            yield b'{"%b": %b%b' % (odd.encode(), value, rest.encode())


async def test_no_parameter_is_a_fault_of_the_hub(client: httpx2.AsyncClient) -> None:
    document = await described(client)
    asked = 0
    for path, operations in document["paths"].items():
        operation = operations.get("get", {})
        names = [each["name"] for each in operation.get("parameters", ())]
        if path == "/stream":  # would not end
            continue
        for value in (*NUMBERS, *TEXTS):
            text = quote(value, safe="")
            urls = [f"{re.sub('{.*?}', '1', path)}?{name}={text}" for name in names]
            urls.append(re.sub(r"{\w+}", text or "0", path))
            for url in urls if operation else ():
                answer = await client.get(url, headers=HEADERS)
                assert answer.status_code < 500 or url == "/readyz", (url, answer.text)
                asked += 1
    assert asked > 300
