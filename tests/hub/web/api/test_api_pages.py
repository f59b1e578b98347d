"""The OpenAPI document as pages: all of it is there, in words, with examples."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import httpx2
import pytest

from hub.web.api.api_descriptions import EVENTS, ApiReader
from hub.web.api.openapi import openapi_document
from hub.web.page_rendering import POLICY
from tests.support.operator_browser import read, text_of

DOCUMENT: Any = openapi_document()
READER = ApiReader(DOCUMENT, "http://hub.example")
TAGS = READER.tags()
LARGEST = 100_000
ONE_OF = 'one of "", a, default "a"'


def operation_ids(paths: dict[str, Any]) -> set[str]:
    return {it["operationId"] for methods in paths.values() for it in methods.values()}


async def test_the_index_leads_to_every_operation(anybody: httpx2.AsyncClient) -> None:
    links = read(await anybody.get("/docs/api")).xpath("//li/a/@href")
    found = {link.partition("#")[2]: link.partition("#")[0] for link in links}
    every = operation_ids({**DOCUMENT["paths"], **DOCUMENT["webhooks"]})
    assert found.keys() == every
    for id, page in found.items():
        assert read(await anybody.get(page)).xpath(f"//h2[@id='{id}']"), id


@pytest.mark.parametrize("tag", TAGS)
async def test_a_page_is_small_and_all_its_links_lead_somewhere(
    anybody: httpx2.AsyncClient, tag: str
) -> None:
    answer = await anybody.get(f"/docs/api/{tag}")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert len(answer.content) <= LARGEST
    document = read(answer)
    ids = document.xpath("//@id")
    assert len(ids) == len(set(ids))
    targets = set(document.xpath("//main//a/@href"))
    assert {each[1:] for each in targets if each.startswith("#")} <= set(ids)
    for each in targets:
        if not each.startswith("#"):
            assert (await anybody.get(each)).status_code == 200, each


@pytest.mark.parametrize("tag", [each for each in TAGS if each != EVENTS])
def test_an_example_is_a_command_for_the_operation_s_address(tag: str) -> None:
    for each in READER.page(tag).operations:
        command = shlex.split(each.example)
        assert command[0] == "curl"
        address = next(it for it in command if it.startswith("http"))
        pattern = re.sub(r"\\{\w+\\}", "1", re.escape(each.path))
        assert re.match(rf"http://hub\.example{pattern}(\?|$)", address)
        if each.body:
            json.loads(command[command.index("-d") + 1])


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "maxLength": 9}, "string, at most 9 characters"),
        ({"type": "string", "format": "date-time"}, "time"),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "integer, 1 to 9"),
        ({"type": "integer", "minimum": 1, "maximum": 1 << 63}, "integer, at least 1"),
        ({"type": "integer", "maximum": 9}, "integer, at most 9"),
        ({"type": "boolean", "default": False}, "boolean, default false"),
        ({"type": "string", "enum": ["", "a"], "default": "a"}, ONE_OF),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number or null"),
        ({}, "any JSON"),
        ({"$ref": "#/components/schemas/Feed"}, "[Feed]"),
        (
            {"type": "array", "items": {"$ref": "#/components/schemas/Feed"}},
            "list of [Feed]",
        ),
    ],
)
def test_types_are_told_in_words(schema: dict[str, Any], words: str) -> None:
    parameter = {"name": "x", "in": "query", "required": False, "schema": schema}
    described = {"operationId": "i", "summary": "s", "tags": ["feeds"]}
    methods = {"get": {**described, "parameters": [parameter], "responses": {}}}
    document = {**DOCUMENT, "paths": {"/x": methods}}
    (operation,) = ApiReader(document, "").page("feeds").operations
    (told,) = [each.type for each in operation.parameters]
    reference = f"[{told.reference}]" if told.reference else ""
    assert f"{told.before}{reference}{told.after}" == words


async def test_what_a_page_says_of_an_operation(anybody: httpx2.AsyncClient) -> None:
    text = text_of(await anybody.get("/docs/api/feeds"))
    assert "POST /api/feeds Add a feed, and report its first fetch." in text
    assert "integer, 0 to 20, default 20" in text
    assert "curl -X POST -H 'Authorization: Bearer TOKEN'" in text
    assert "Refused with 400, 401, 403" in text


async def test_a_page_is_not_sent_again_and_unknown_tags_are_not_there(
    anybody: httpx2.AsyncClient,
) -> None:
    first = await anybody.get("/docs/api/feeds")
    known = {"If-None-Match": first.headers["etag"]}
    assert (await anybody.get("/docs/api/feeds", headers=known)).status_code == 304
    assert (await anybody.get("/docs/api/nothing")).status_code == 404
