"""The description of all routes: it says what they are, and answers keep to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from msgspec.structs import replace
from starlette.routing import BaseRoute, Mount, Route

from hub.web.api.openapi import API_OPERATIONS, OPEN_OPERATIONS, openapi_document
from hub.web.operation import ApiOperation
from protocols.model import Hints
from storage.records import (
    NewDeadLetter,
    Polling,
    Position,
    RecordKind,
    Redirect,
    Validators,
    VerificationState,
    VerificationTry,
)
from tests.support.chosen_engine import CHOSEN, Engine
from tests.support.failures import ANSWER, details, failed
from tests.support.golden import DATA
from tests.support.json_schema import faults
from tests.support.live_hub import live_hub
from tests.support.services import LIST, PAGE, Hub
from tests.support.storage_scene import Scene, at
from tests.support.waiting import in_background
from tests.support.work_claims import finish_verification

OF_BROWSERS = ("/admin", "/account", "/assets/")
"""The pages of operators and subscribers, of which programs have no use."""
METHODS = {"get", "post", "put", "patch", "delete", "options"}


def real_routes(hub: Hub) -> set[tuple[str, str]]:
    """Method and path of every route; the websocket is at one of them, too."""
    application = hub.application
    return {
        (method, f"{prefix}{route.path}")
        for prefix, routes in (("", application.routes), *mounted(application.routes))
        for route in routes
        if isinstance(route, Route)
        if prefix or not route.path.startswith(OF_BROWSERS)
        for method in (route.methods or set()) - {"HEAD"}
    }


def mounted(routes: list[BaseRoute]) -> Iterator[tuple[str, list[BaseRoute]]]:
    return ((each.path, each.routes) for each in routes if isinstance(each, Mount))


@cache
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
    keys = [("api", each.method, each.path) for each in API_OPERATIONS]
    keys += [("open", each.method, each.path) for each in OPEN_OPERATIONS]
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
    is_uncounted = key[1] in ("/metrics", "/healthz", "/readyz")
    assert ("429" in operation["responses"]) != is_uncounted
    is_guarded = key[1].startswith("/api/") and key[1] != "/api/openapi.json"
    opened = ("/stream", "/openfeeder", "/openfeeder/update")
    is_opened = key[1] in opened and key[0] != "OPTIONS"  # by a token or a key
    assert ("401" in operation["responses"]) == (is_guarded or is_opened)
    assert bool(operation["security"]) == (is_guarded or is_opened)


@cache
def components() -> dict[str, Any]:
    document: Any = openapi_document()
    schemas: dict[str, Any] = document["components"]["schemas"]
    return schemas


def answer_faults(method: str, url: str, answer: httpx2.Response) -> list[str]:
    """What an answer has that the description has not, or otherwise."""
    answers = operation_of(method, url)[1]["responses"]
    described = answers.get(str(answer.status_code))
    if described is None:
        return [f"{answer.status_code} is none of {sorted(answers)}"]
    contents = described.get("content", {})
    if not contents:
        return ["a body"] if answer.content else []
    kind = answer.headers["content-type"].partition(";")[0]
    if kind not in contents:
        return [f"{kind} is none of {sorted(contents)}"]
    body = answer.json() if kind.endswith("json") else answer.text
    return faults(body, contents[kind]["schema"], components())


def _pattern(path: str) -> str:
    return re.sub(r"{\w+}", "[^/]+", path.replace("{id}", "[^/.]+"))


def operation_of(method: str, url: str) -> tuple[tuple[str, str], dict[str, Any]]:
    path = url.partition("?")[0]
    [found] = [
        (key, operation)
        for key, operation in described().items()
        if key[0] == method and re.fullmatch(_pattern(key[1]), path)
    ]
    return found


FEED = {"url": "https://example.org/feed.xml"}
SUBSCRIPTION = {"callback": "https://you.example/hook", "topic": FEED["url"]}
FORM = {"content-type": "application/x-www-form-urlencoded"}
ASKED = (
    "hub.mode=subscribe&hub.topic=https://a.example/feed"
    "&hub.callback=https://subscriber.example/s"
)
JSON_CALLS: list[tuple[str, str, dict[str, object] | None]] = [
    ("GET", "/api/openapi.json", None),
    ("POST", "/api/feeds", {**FEED}),
    ("POST", "/api/feeds", {**FEED}),
    ("GET", "/api/feeds", None),
    ("POST", "/api/imports", {"feeds": [FEED, {"url": "x"}]}),
    ("POST", "/api/discover", {"url": PAGE}),
    ("POST", "/api/lists", {"urls": ["https://example.org/a.opml"]}),
    ("POST", "/api/watched-lists?wait=0", {"url": LIST}),
    ("GET", "/api/watched-lists", None),
    ("GET", "/api/watched-lists/1", None),
    ("DELETE", "/api/watched-lists/1", None),
    ("GET", "/api/feeds/1", None),
    ("GET", "/api/feeds/1/plan", None),
    ("GET", "/api/feeds/1/history", None),
    ("GET", "/api/feeds/1/entries", None),
    ("POST", "/api/feeds/1/parse", None),
    ("GET", "/api/deliveries/sent?since=1d", None),
    ("GET", "/api/deliveries/slowest", None),
    ("GET", "/api/findings", None),
    ("GET", "/api/hubs", None),
    ("POST", "/api/feeds/1/fetch", None),
    ("POST", "/api/feeds/1/pause", None),
    ("POST", "/api/feeds/1/resume", None),
    ("PATCH", "/api/feeds/1", {"category": "news", "private": True}),
    ("POST", "/api/subscriptions", {**SUBSCRIPTION}),
    ("POST", "/api/events/subscriptions", {"callback": "https://you.example/hook"}),
    ("POST", "/api/subscriptions", {**SUBSCRIPTION, "secret": "s"}),
    ("GET", "/api/subscriptions", None),
    ("GET", "/api/subscriptions/1", None),
    ("PATCH", "/api/subscriptions/1", {"format": "atom", "secret": "s"}),
    ("POST", "/api/subscriptions/1/pause", None),
    ("POST", "/api/subscriptions/1/resume", None),
    ("GET", "/api/subscriptions/1/attempts", None),
    ("GET", "/api/subscriptions/1/request", None),
    ("POST", "/api/subscriptions/1/replay", {"since": "2h"}),
    ("POST", "/api/subscriptions/1/secret", {}),
    ("POST", "/api/subscriptions/1/test", None),
    ("POST", "/api/deliveries/test", {**SUBSCRIPTION}),
    ("POST", "/api/plans", {"action": "remove", "subscriptions": {"failing": True}}),
    ("POST", "/api/plans", {"action": "retry", "deliveries": {"status": "5xx"}}),
    (
        "POST",
        "/api/plans",
        {"action": "set_category", "category": "x", "feeds": {"state": ["ok"]}},
    ),
    ("GET", "/api/plans", None),
    ("GET", "/api/plans/3", None),
    ("POST", "/api/plans/3/confirm", None),
    ("POST", "/api/plans/3/cancel", None),
    ("DELETE", "/api/subscriptions/1", None),
    ("POST", "/api/tokens", {"account": "alice", "scopes": ["list"]}),
    ("GET", "/api/tokens", None),
    ("DELETE", "/api/tokens/1", None),
    ("GET", "/api/connections", None),
    ("GET", "/api/account", None),
    ("POST", "/api/playground", {}),
    ("GET", "/api/playground", None),
    ("POST", "/api/login-links", {}),
    ("GET", "/api/health", None),
    ("GET", "/api/settings", None),
    ("GET", "/api/series?points=3", None),
    ("GET", "/api/entries", None),
    ("GET", "/api/search?query=news", None),
    ("GET", "/api/audit?target=feed", None),
    ("GET", "/api/outputs", None),
    ("GET", "/api/accounts", None),
    ("GET", "/api/accounts/operator", None),
    ("POST", "/api/db/check?wait=0", None),
    ("GET", "/api/db/jobs", None),
    ("DELETE", "/api/feeds/1", None),
    ("GET", "/metrics", None),
    ("GET", "/healthz", None),
    ("GET", "/readyz", None),
    ("GET", "/", None),
    ("GET", "/about", None),
    ("GET", "/search?q=entry", None),
    ("GET", "/docs/api", None),
    ("GET", "/docs/api/feeds", None),
    ("GET", "/topics?search=example", None),
    ("GET", "/favicon.svg", None),
    ("GET", "/myPublicFeeds.opml", None),
    ("GET", "/robots.txt", None),
    ("POST", "/api/scp/build", {"snapshots": True}),
    ("GET", "/api/scp/build", None),
    ("GET", "/sitemap.xml", None),
    ("GET", "/.well-known/openfeeder.json", None),
    ("OPTIONS", "/.well-known/openfeeder.json", None),
    ("GET", "/openfeeder", None),
    ("OPTIONS", "/openfeeder", None),
    ("POST", "/openfeeder/update", {"urls": ["https://example.org/feed.xml"]}),
]
NO_BACKUP = 422 if CHOSEN is Engine.SQLITE else 409
"""A server has tools of its own for backups."""
REFUSED: list[tuple[str, str, dict[str, object] | None, int]] = [
    ("GET", "/api/feeds?limit=x", None, 422),
    ("POST", "/api/feeds", {}, 422),
    ("POST", "/api/imports", {"feeds": []}, 422),
    ("POST", "/api/imports", {"feeds": [{"url": "x"}] * 501}, 422),
    ("POST", "/api/lists", {"urls": []}, 422),
    ("POST", "/api/lists", {"urls": ["https://a.example/"], "skip": -1}, 422),
    ("POST", "/api/lists", {"urls": ["https://a.example/"], "depth": 6}, 422),
    ("POST", "/api/watched-lists", {"url": "x"}, 422),
    ("GET", "/api/watched-lists/9", None, 404),
    ("DELETE", "/api/watched-lists/9", None, 404),
    ("GET", "/api/feeds/9", None, 404),
    ("GET", "/openfeeder?page=x", None, 400),
    ("GET", "/openfeeder?url=/x", None, 404),
    ("POST", "/openfeeder/update", {"urls": []}, 400),
    ("GET", "/api/feeds/9/raw", None, 404),
    ("GET", "/api/feeds/9/plan", None, 404),
    ("GET", "/api/feeds/9/history", None, 404),
    ("GET", "/api/feeds/9/entries", None, 404),
    ("GET", "/api/entries/9", None, 404),
    ("POST", "/api/feeds/9/parse", None, 404),
    ("GET", "/api/deliveries/sent?since=x", None, 422),
    ("GET", "/api/findings?kind=odd", None, 422),
    ("GET", "/api/hubs?limit=x", None, 422),
    ("GET", "/identity?challenge=0123456789abcdef", None, 404),
    ("GET", "/problems/odd", None, 404),
    ("GET", "/api/playground/unknown", None, 404),
    ("POST", "/api/playground", {"topic": "x"}, 422),
    ("GET", "/playground/topics/unknown", None, 410),
    ("GET", "/playground/callbacks/unknown?hub.mode=subscribe", None, 410),
    ("POST", "/playground/callbacks/unknown", {}, 410),
    ("GET", "/upstream/unknown?hub.mode=subscribe", None, 404),
    ("POST", "/upstream/unknown", {}, 410),
    ("POST", "/api/feeds/9/fetch", None, 404),
    ("DELETE", "/api/subscriptions/1?tell=x", None, 422),
    ("POST", "/api/subscriptions/9/pause", None, 404),
    ("POST", "/api/subscriptions/9/resume", None, 404),
    ("POST", "/api/subscriptions/9/resubscribe", None, 404),
    ("POST", "/api/subscriptions/9/test", None, 404),
    ("POST", "/api/deliveries/test", {"callback": "x", "topic": "y"}, 422),
    ("POST", "/api/deliveries/retry", {"dead_letter": 9}, 404),
    ("POST", "/api/deliveries/discard", {"dead_letter": 9}, 404),
    ("POST", "/api/plans", {"action": "pause"}, 422),
    ("GET", "/api/plans?limit=x", None, 422),
    ("GET", "/api/plans/9", None, 404),
    ("POST", "/api/plans/9/confirm", None, 404),
    ("POST", "/api/db/backup", {"destination": "x"}, NO_BACKUP),
    ("POST", "/api/db/check?wait=51", None, 422),
    ("DELETE", "/api/tokens/9", None, 404),
    ("DELETE", "/api/connections/9", None, 404),
    ("GET", "/api/connections?cursor=x", None, 422),
    ("GET", "/hub/subscriptions/unknown", None, 404),
    ("POST", "/hub", {"hub.mode": "subscribe"}, 415),
    ("POST", "/rpc", {"hub.mode": "publish"}, 415),
    ("GET", "/stream?topic=https://nobody.example/", None, 404),
    ("GET", "/stream", None, 422),
    ("GET", "/scp/unknown", None, 404),
    ("POST", "/api/scp/build", {"snapshots": 1}, 422),
    ("GET", "/topics/9.atom", None, 404),
    ("GET", "/topics/9", None, 404),
    ("GET", "/topics/entries/9", None, 404),
    ("GET", "/topics/9.json?limit=x", None, 422),
    ("GET", "/topics/9.normalized.json?limit=x", None, 422),
]


def polled(polling: Polling) -> Polling:
    """All that a feed can show is there."""
    now = polling.last_fetch
    assert now is not None
    return replace(
        polling,
        code=200,
        validators=Validators(url=FEED["url"], etag='"a"'),
        redirect=Redirect(target="https://b.example/", sightings=1, first_seen=now),
        hints=Hints(ttl_minutes=5, skip_days=(1,)),
        retry_after=now,
        fresh_until=now,
        failing_since=now,
    )


async def test_a_choice_of_feeds_is_as_described(client: httpx2.AsyncClient) -> None:
    body = {"url": PAGE, "discover": True}
    answer = await client.post("/api/feeds", json=body)
    assert answer.status_code == 300
    assert answer_faults("POST", "/api/feeds", answer) == []


async def test_answers_are_as_described(client: httpx2.AsyncClient, hub: Hub) -> None:
    hub.poller.outcome = polled
    for method, url, body in JSON_CALLS:
        answer = await client.request(method, url, json=body)
        assert answer.status_code < 300, (method, url, answer.text)
        assert answer_faults(method, url, answer) == [], (method, url)


async def test_the_way_of_an_entry_is_as_described(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    await scene.subscribe_retrying(await scene.add_feed())
    span = f"since={at(-1):%FT%TZ}&until={at(1):%FT%TZ}"
    listed = await client.get(f"/api/entries?{span}")
    (entry,) = listed.json()["entries"]
    answer = await client.get(f"/api/entries/{entry['id']}")
    assert answer.json()["deliveries"]
    assert answer_faults("GET", "/api/entries/1", answer) == []


@pytest.mark.parametrize(("method", "url", "body", "status"), REFUSED)
async def test_refusals_are_as_described(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    body: dict[str, object] | None,
    status: int,
) -> None:
    answer = await client.request(method, url, json=body)
    assert answer.status_code == status
    assert answer_faults(method, url, answer) == []


async def test_without_a_token_the_answer_is_as_described(
    anybody: httpx2.AsyncClient,
) -> None:
    for method, path in described():
        if path.startswith("/api/") and path != "/api/openapi.json":
            url = path.replace("{id}", "1")
            answer = await anybody.request(method, url)
            assert answer.status_code == 401
            assert answer_faults(method, url, answer) == []


async def test_late_and_dead_deliveries_are_as_described(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    dead = await scene.subscribe_retrying(await scene.add_feed("a"))
    (claimed,) = await scene.claim_retrying(at(5))
    first = Position(claimed.position + 1)
    await scene.flush(
        given_up=(
            NewDeadLetter(
                subscription_id=dead.id,
                lease_id=claimed.lease_id,
                first=first,
                last=first,
                reason="tried too often",
                at=hub.clock.now(),
            ),
        )
    )
    late = await scene.subscribe_retrying(await scene.add_feed("b"))
    listed = await client.get("/api/deliveries")
    assert listed.json()["retrying"]
    [dead_letter] = listed.json()["dead_letters"]
    assert (dead_letter["entries"], dead_letter["titles"]) == (1, ["for late"])
    of_it = await client.get(f"/api/subscriptions/{dead.id}")
    assert of_it.json()["dead_letters"] == [dead_letter]
    shown = await client.get(f"/api/subscriptions/{late.id}")
    assert shown.json()["retrying"]
    assert shown.json()["attempts"]
    url = "/api/deliveries/retry"
    retried = await client.post(url, json={"subscription": late.id})
    discarded = await client.post(
        "/api/deliveries/discard", json={"subscription": late.id}
    )
    assert answer_faults("POST", "/api/deliveries/discard", discarded) == []
    assert answer_faults("GET", "/api/deliveries", listed) == []
    assert answer_faults("GET", f"/api/subscriptions/{late.id}", shown) == []
    assert answer_faults("POST", url, retried) == []


async def test_failed_deliveries_are_as_described(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    late = await scene.subscribe_retrying(await scene.add_feed("a"))
    await scene.flush(attempts=(failed(late, kept=details(answer=ANSWER)),))
    listed = await client.get("/api/deliveries/failed")
    assert answer_faults("GET", "/api/deliveries/failed", listed) == []
    for each in listed.json()["failed"]:
        url = f"/api/deliveries/failed/{each['id']}"
        assert answer_faults("GET", url, await client.get(url)) == []
    assert len(listed.json()["failed"]) == 2


async def test_the_playground_answers_as_described(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.services.playground.patience = 0.01
    started = (await client.post("/api/playground", json={})).json()
    path = f"/api/playground/{started['id']}"
    calls: list[tuple[str, str, dict[str, object] | None, int]] = [
        ("POST", f"{path}/steps", {"step": "subscribe"}, 200),
        ("POST", f"{path}/steps", {"step": "verify"}, 422),
        ("POST", f"{path}/messages", {"again": 1}, 200),
        ("POST", f"{path}/messages", {"again": 9}, 404),
        ("GET", path, None, 200),
        ("GET", f"{path}?after=x", None, 422),
        ("PATCH", path, {"challenge": "slow"}, 200),
        ("GET", started["own_topic"].removeprefix("http://hub.example"), None, 200),
        ("DELETE", path, None, 200),
    ]
    for method, url, body, status in calls:
        answer = await client.request(method, url, json=body)
        assert answer.status_code == status, (method, url, answer.text)
        assert answer_faults(method, url, answer) == [], (method, url)


@pytest.mark.once("a server has tools of its own for backups")
async def test_a_backup_is_answered_as_described(
    client: httpx2.AsyncClient, hub: Hub, tmp_path: Path
) -> None:
    body = {"destination": str(tmp_path / "copy.db")}
    async with in_background(hub.built.background["database jobs"]):
        for status in (201, 409):
            answer = await client.post("/api/db/backup", json=body)
            assert answer.status_code == status
            assert answer_faults("POST", "/api/db/backup", answer) == []


async def test_the_open_hub_answers_as_described(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = await Scene(hub.storage).add_feed("a")
    ping = f"hub.mode=publish&hub.url={feed.url}&hub.url=nonsense&hub.url=https://b.c/"
    for content, accept, status in (
        (ASKED, "*/*", 202),
        (ping, "*/*", 204),
        (ping, "application/json", 200),
        ("hub.mode=subscribe", "*/*", 400),
        ("x" * 1_100_000, "*/*", 413),
    ):
        answer = await anybody.post(
            "/hub", content=content, headers={**FORM, "accept": accept}
        )
        assert answer.status_code == status
        assert answer_faults("POST", "/hub", answer) == []


async def test_diagnostics_are_as_described_before_and_after(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    scene, now = Scene(hub.storage), hub.clock.now()
    feed = await scene.add_feed("a")
    answer = await anybody.post("/hub", content=ASKED, headers=FORM)
    url = (
        answer.headers["link"][1:].partition(">")[0].removeprefix("http://hub.example")
    )
    pending = await anybody.get(url)
    (found,) = await hub.storage.verifications.due(now, per_host=1, limit=1)
    last = VerificationTry(at=now, status=200, excerpt="challenge", reason="")
    verified = VerificationState.VERIFIED
    await finish_verification(hub.storage, found.id, verified, last, now)
    assert (await scene.subscribe_retrying(feed, "s")).callback in ASKED
    verified_now = await anybody.get(url)
    page = await anybody.get(url, headers={"accept": "text/html"})
    assert verified_now.json()["subscription"]
    assert verified_now.json()["deliveries"]
    assert verified_now.json()["next_retry"]
    for each in (pending, verified_now, page):
        assert answer_faults("GET", url, each) == []


async def test_events_are_as_described(tmp_path: Path) -> None:
    topic = "https://news.example/feed"
    async with live_hub(tmp_path) as hub:
        await hub.add_feed(topic)
        for kind in (RecordKind.ENTRIES, RecordKind.ERROR):
            await hub.publish(topic, "one", kind=kind)
        begin = await hub.cursor(0)
        for cursor, format in ((begin, "json"), (begin, "atom"), ("other-0", "json")):
            url = f"/stream?topic={topic}&cursor={cursor}&format={format}"
            client = await hub.ask(url, Accept="text/event-stream")
            operation = operation_of("GET", "/stream")[1]
            contents = operation["responses"][str(client.status)]["content"]
            assert client.headers["content-type"].partition(";")[0] in contents
            kind_of_event, schema = "notification", "StreamNotification"
            if cursor == "other-0":
                kind_of_event, schema = "reset", "StreamReset"
            event = await client.next(kind_of_event)
            assert faults(event, components()[schema], components()) == []


def test_every_operation_has_been_asked() -> None:
    asked = {operation_of(method, url)[0] for method, url, *_ in JSON_CALLS + REFUSED}
    elsewhere = {
        ("GET", "/api/feeds.opml"),
        ("GET", "/api/deliveries"),
        ("GET", "/api/deliveries/failed"),
        ("GET", "/api/deliveries/failed/{id}"),
        ("PATCH", "/api/playground/{id}"),
        ("DELETE", "/api/playground/{id}"),
        ("POST", "/api/playground/{id}/steps"),
        ("POST", "/api/playground/{id}/messages"),
    }
    assert asked | elsewhere == set(described())


def test_every_schema_is_used() -> None:
    document: Any = openapi_document()
    used = {each.rpartition("/")[2] for each in references(document)}
    assert components().keys() - used == {"StreamNotification", "StreamReset"}


def test_generated_clients_keep_their_names() -> None:
    """Operations by their ids, members of schemas and the values of texts."""
    names = json.loads((DATA / "openapi" / "names.json").read_text())
    found = {f"{' '.join(key)}": it["operationId"] for key, it in described().items()}
    assert found == names["operations"]
    assert {
        name: sorted(schema.get("properties", schema.get("enum")))
        for name, schema in components().items()
    } == names["schemas"]


def test_every_tag_is_said_and_used() -> None:
    document: Any = openapi_document()
    said = [each["name"] for each in document["tags"]]
    used = {tag for each in described().values() for tag in each["tags"]}
    assert len(said) == len(set(said))
    assert set(said) == used


@pytest.mark.parametrize("operation", API_OPERATIONS, ids=lambda it: it.id)
def test_examples_are_as_described(operation: ApiOperation) -> None:
    if operation.body is None:
        return
    shown = described()[operation.method, f"/api{operation.path}"]
    content = shown["requestBody"]["content"]["application/json"]
    body = msgspec.json.encode(content["example"])
    assert msgspec.json.decode(body, type=type(operation.body)) == operation.body


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (True, {"type": "integer"}),
        ("x", {"type": "string", "enum": ["y"]}),
        ("2026-01-01T00:00:00", {"type": "string", "format": "date-time"}),
        ([1, "2"], {"type": "array", "items": {"type": "integer"}}),
        ({}, {"type": "object", "properties": {}, "required": ["a"]}),
        ({"b": 1}, {"type": "object", "properties": {}}),
        (None, {"anyOf": [{"type": "string"}, {"type": "object"}]}),
        ("x", {"type": "string", "pattern": "y"}),
    ],
)
def test_what_is_otherwise_would_be_noticed(
    value: object, schema: dict[str, object]
) -> None:
    assert faults(value, schema, {})


def test_descriptions_of_objects_are_paragraphs_without_the_source_s_line_ends() -> (
    None
):
    schemas = openapi_document()["components"]["schemas"].values()
    descriptions = [each["description"] for each in schemas if "description" in each]
    assert any("\n\n" in each for each in descriptions)
    for each in descriptions:
        assert not re.search(r"(?<!\n)\n(?!\n)|  ", each), each
