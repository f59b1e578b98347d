"""No door by which bytes reach the hub lets a bomb through: each is refused in words.

What comes as the document of a feed is in `test_publisher_bombs`. Here are the other
doors, each with a table of what is brought to it. One hub has to bear them all, and to
go on: after each test it is well, and has taken little memory.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import io
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import brotli
import pytest
import pytest_asyncio
from backports import zstd

from tests.support.admin import ADMIN
from tests.support.http_server import Origin, ServerAnswer
from tests.support.hub_process import HubProcess
from tests.support.upstream_hub import UpstreamScene, upstream_process, upstream_scene
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST_MEMORY = 500_000_000  # bytes, at any moment; a hub at rest has 80 MB
MEBIBYTE = 1 << 20
SECRET = "the publisher's"
TOO_LONG = b"&" * (MEBIBYTE + 1)
ZEROS = bytes(12 * MEBIBYTE)  # no answer may have more than ten, unpacked
CODED = {
    "gzip": gzip.compress(ZEROS, 9),
    "deflate": zlib.compress(ZEROS, 9),
    "br": brotli.compress(ZEROS, quality=1),
}
LAUGHS = (
    b'<!DOCTYPE r [<!ENTITY a0 "ha">'
    + b"".join(
        b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10)
        for level in range(1, 10)
    )
    + b"]>"
)
ENDLESS = ServerAnswer(body=b" " * 65_536, chunked=True, endless=True)
NAMES = b" ".join(b'a%d=""' % number for number in range(60_000))
"""Attributes: to list their values took minutes, in which nothing else was done."""

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PARTS = {"Content-Type": "multipart/form-data; boundary=b"}
XML = {"Content-Type": "text/xml"}
PACKED = {"Content-Encoding": "gzip"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HubProcess]:
    async with upstream_process(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest_asyncio.fixture(loop_scope="module")
async def scene(hub: HubProcess) -> AsyncIterator[UpstreamScene]:
    """After each test the hub is well."""
    async with upstream_scene(hub) as scene:
        yield scene
        well = await scene.api.ask("GET", "/healthz")
        assert well.status == 200
        scene.links = ""
        feed = await scene.api.feed(await scene.add_feed())
        assert feed["last_fetch"]
        assert not feed["error"]
        assert peak_memory(hub.pid) < MOST_MEMORY


# --- what is sent to the hub ---


@dataclass(frozen=True, slots=True)
class Sent:
    """A request's body, and what the hub is to answer; ``is_endless``: before its end,
    which never comes."""

    body: bytes
    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    is_endless: bool = False


def part(name: str, value: bytes = b"x") -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
    return head.encode() + value + b"\r\n"


def long_names() -> bytes:
    """Joined to the names of its members, one long name was gigabytes."""
    return json.dumps({"k" * 400_000: {f"a{n}": 1 for n in range(50_000)}}).encode()


DEPTH = b"[" * 100_000
NUMBER = b"9" * 900_000
REQUESTS = {
    "/api/feeds": {
        "depth": Sent(b'{"url":' + DEPTH, 422),
        "depth of a field that nobody knows": Sent(b'{"x":' + DEPTH, 422),
        "a number": Sent(b'{"url":' + NUMBER + b"}", 422),
        "a number of ten megabytes": Sent(b'{"url":' + NUMBER * 12 + b"}", 413),
        "depth of headers": Sent(b'{"url":"http://a/","headers":{"a":' + DEPTH, 422),
        "keys": Sent(b'{"headers":{' + b'"a":"b",' * 100_000 + b'"a":""}}', 422),
        "gzip": Sent(CODED["gzip"], 400, JSON | PACKED),
    },
    "/api/imports": {
        "too many": Sent(
            b'{"feeds":[' + b'{"url":"x"},' * 80_000 + b'{"url":""}]}', 422
        ),
        "depth": Sent(b'{"feeds":[{"url":' + DEPTH, 422),
    },
    "/api/lists": {
        "a number": Sent(b'{"urls":["http://a/"],"depth":' + NUMBER + b"}", 422),
        "too many": Sent(b'{"urls":[' + b'"http://a/",' * 80_000 + b'""]}', 422),
    },
    "/openfeeder/update": {
        "depth": Sent(b'{"action":"upsert","urls":' + DEPTH, 400),
        "too many": Sent(
            b'{"action":"upsert","urls":[' + b'"http://a/",' * 80_000 + b'""]}', 400
        ),
        "too long": Sent(TOO_LONG, 413),
    },
    "/": {
        "depth": Sent(b'{"hub.mode":' + DEPTH, 422),
        "a number": Sent(b'{"hub.mode":' + NUMBER + b"}", 422),
        "names": Sent(long_names(), 422),
        "members": Sent(b'{"hub.mode":[' + b'"list",' * 100_000 + b'""]}', 422),
        "fields": Sent(b"a=b&" * 200_000, 422, FORM),
        "parts": Sent(part("a") * 15_000 + b"--b--", 422, PARTS),
        "a large part": Sent(part("hub.mode", NUMBER) + b"--b--", 422, PARTS),
        "brackets": Sent(b"a" + b"[" * 900_000 + b"=b", 422, FORM),
        "gzip": Sent(CODED["gzip"], 422, FORM | PACKED),
        "endless": Sent(TOO_LONG, 413, FORM, is_endless=True),
    },
    "/hub": {
        "fields": Sent(b"a=b&" * 200_000, 400, FORM),
        "a large value": Sent(b"hub.mode=" + NUMBER, 400, FORM),
        "gzip": Sent(CODED["gzip"], 400, FORM | PACKED),
        "endless": Sent(TOO_LONG, 413, FORM, is_endless=True),
    },
    "/rpc": {
        "depth": Sent(b"<methodCall>" + b"<a>" * 5_000, 200, XML),
        "attributes": Sent(b"<methodCall " + NAMES[:16_000] + b"/>", 200, XML),
        "laughs": Sent(LAUGHS + b"<methodCall>&a9;</methodCall>", 200, XML),
        "gzip": Sent(CODED["gzip"], 200, XML | PACKED),
        "endless": Sent(TOO_LONG[: 16 * 1024 + 1], 413, XML, is_endless=True),
    },
}


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_request_that_is_a_bomb_is_refused(
    scene: UpstreamScene, path: str
) -> None:
    answers = {}
    for name, sent in REQUESTS[path].items():
        body = without_end(sent.body) if sent.is_endless else io.BytesIO(sent.body)
        answered = await scene.api.ask(
            "POST", path, data=body, headers={**ADMIN, **sent.headers}
        )
        assert answered.body
        if path == "/rpc" and answered.status == 200:
            assert b"<fault>" in answered.body
        answers[name] = answered.status
    assert answers == {name: sent.status for name, sent in REQUESTS[path].items()}


async def without_end(beginning: bytes) -> AsyncIterator[bytes]:
    yield beginning
    await asyncio.Event().wait()


# --- what is brought for a feed instead of being fetched ---

BROUGHT = {
    "laughs": LAUGHS + b"<rss>&a9;</rss>",
    "depth": b"<rss>" + b"<a>" * 100_000,
    "depth of json": DEPTH,
}
"""By publishers with a ping, and by hubs of others."""
PUSHED = {**BROUGHT, "gzip": CODED["gzip"], "zstd": zstd.compress(ZEROS)}


async def test_what_a_publisher_brings_may_be_a_bomb(scene: UpstreamScene) -> None:
    scene.links = ""
    feed_id = await scene.api.add_feed(scene.topic, publish_secret=SECRET)
    for content in BROUGHT.values():
        assert await publish(scene, content) == 204  # who pings is told nothing
    assert await publish(scene, scene.document("two")) == 204
    assert (await scene.api.feed(feed_id))["error"] == ""
    await scene.until_titles(feed_id, "one", "two")


async def publish(scene: UpstreamScene, content: bytes) -> int:
    signature = hmac.new(SECRET.encode(), content, "sha256").hexdigest()
    return (await scene.api.bring(scene.topic, content, signature)).status


async def test_what_a_hub_of_others_pushes_may_be_a_bomb(scene: UpstreamScene) -> None:
    feed_id = await scene.subscribed()
    for count, body in enumerate(PUSHED.values(), start=1):
        assert (await scene.push(body)).status == 202
        await scene.until(feed_id, lambda push, n=count: push["foreign"] == n)  # type: ignore[misc]
    assert (await scene.push(scene.document("two"))).status == 202
    await scene.until_titles(feed_id, "one", "two")


async def test_what_a_hub_answers_may_have_no_end(scene: UpstreamScene) -> None:
    async with a_host() as origin:
        origin.serve("/hub", ENDLESS)
        scene.links = (
            f'<link rel="hub" href="{origin.url("/hub")}"/>'
            f'<link rel="self" href="{scene.topic}"/>'
        )
        feed_id = await scene.add_feed()
        await asyncio.wait_for(origin.disconnected.wait(), 60)
        push = await scene.push_of(feed_id)
    assert push["state"] == "asked"


# --- the kind of request for beside feeds ---

LISTS = {
    **{
        coding: ServerAnswer(headers={"Content-Encoding": coding}, body=body)
        for coding, body in CODED.items()
    },
    "gzip unsaid": ServerAnswer(body=CODED["gzip"]),
    "laughs": ServerAnswer(body=LAUGHS + b"<opml><body>&a9;</body></opml>"),
    "depth": ServerAnswer(body=b"<opml><body>" + b"<outline>" * 100_000),
    "endless": ENDLESS,
}


async def test_a_list_of_feeds_may_include_bombs(scene: UpstreamScene) -> None:
    async with Origin() as origin:
        for number, answer in enumerate(LISTS.values()):
            origin.serve(f"/{number}", answer)
        included = "".join(
            f'<outline type="include" url="/{number}"/>' for number in range(len(LISTS))
        ).encode()
        attributes = b"<outline " + NAMES + b' xmlUrl="http://a.example/"/>'
        outlines = included + attributes + b'<outline xmlUrl="http://b.example/"/>'
        body = b'<opml version="2.0"><body>%s</body></opml>' % outlines
        origin.serve("/", ServerAnswer(body=body))
        found: dict[str, Any] = await scene.api.request(
            "POST", "/api/lists", urls=[origin.url()]
        )
    assert [each["url"] for each in found["feeds"]] == ["http://b.example/"]
    assert len(found["lists"]) == 1 + len(LISTS)
    assert all(each["error"] for each in found["lists"][1:])


PAGE = b"<!DOCTYPE html><title>openfeeder</title>"
INDEX = b'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
DISCOVERED = {
    "openfeeder": {
        "/": {
            "metas": PAGE + b'<meta name="openfeeder" content="/a">' * 26_000,
            "depth": PAGE + b"<div>" * 190_000,
            "attributes": PAGE + b"<link " + NAMES + b">",
        },
        "/.well-known/openfeeder.json": {
            "depth": DEPTH,
            "gzip": CODED["gzip"],
            "line breaks": b'{"version":"' + b"\n" * 100_000,
        },
        "/llms.txt": {
            "a word": b"x" * 9_000_000,
            "words": b"/openfeeder.json " * 60_000,
            "gzip": CODED["gzip"],
        },
    },
    "scp": {
        "/robots.txt": {
            "a line": b"Sitemap: " + b"x" * 9_000_000,
            "lines": b"Sitemap: http://[/x\n" * 300_000,
            "gzip": CODED["gzip"],
        },
        "/sitemap.xml": {
            "laughs": LAUGHS + INDEX + b"&a9;</sitemapindex>",
            "depth": INDEX + b"<sitemap>" * 20_000,
            "children": INDEX + b"<sitemap><loc>x:</loc></sitemap>" * 8_000,
            "gzip": CODED["gzip"],
            "gzip in gzip": gzip.compress(CODED["gzip"]),
        },
    },
}
"""By what is looked for, and where. Site by site one bomb of each place."""


@pytest.mark.parametrize("kind", DISCOVERED)
async def test_what_a_page_leads_to_may_be_a_bomb(
    scene: UpstreamScene, kind: str
) -> None:
    places = {path: [*bombs.values()] for path, bombs in DISCOVERED[kind].items()}
    async with AsyncExitStack() as stack:
        sites = []
        for number in range(max(map(len, places.values()))):
            site = await stack.enter_async_context(a_host())
            site.serve("/", ServerAnswer(body=PAGE))
            for path, bombs in places.items():
                site.serve(path, ServerAnswer(body=bombs[number % len(bombs)]))
            sites.append(site)
        asked = [{"url": site.url(), "kind": kind} for site in sites]
        seen = await asyncio.gather(
            *(scene.api.request("POST", "/api/discover", **each) for each in asked)
        )
        targets = [{each.target for each in site.requests} for site in sites]
    assert [each["best"] for each in seen] == [None] * len(seen)
    assert all(targeted >= places.keys() for targeted in targets)


_hosts = iter(range(1, 250))


def a_host() -> Origin:
    """Another one each time: each is asked once a second."""
    return Origin(f"127.0.4.{next(_hosts)}")


# --- what sites are read by ---

FRONT = {
    "version": "1.0",
    "site": {"name": "A site", "url": "/"},
    "feed": {"endpoint": "/openfeeder"},
}
OPENFEEDER = {
    **{
        coding: ServerAnswer(headers={"Content-Encoding": coding}, body=body)
        for coding, body in CODED.items()
    },
    "depth": ServerAnswer(body=b'{"schema":"openfeeder/1.0","items":' + DEPTH),
    "line breaks": ServerAnswer(body=b'{"items":"' + b"\n" * 9_000_000 + b'"}'),
    "values": ServerAnswer(body=b'{"items":[' + b"[]," * 3_000_000 + b"[]]}"),
    "endless": ENDLESS,
}


async def test_what_an_openfeeder_site_answers_may_be_a_bomb(
    scene: UpstreamScene,
) -> None:
    front = ServerAnswer(headers=JSON, body=json.dumps(FRONT).encode())
    async with AsyncExitStack() as stack:
        ids = {}
        for name, answer in OPENFEEDER.items():
            site = await stack.enter_async_context(a_host())
            site.serve("/openfeeder.json", front)
            site.serve("/openfeeder", answer)
            added = await scene.api.request(
                "POST", "/api/feeds?wait=0", url=site.url("/openfeeder.json")
            )
            ids[name] = added["id"]
        errors = await until_fetched(scene, ids)
    assert all(errors.values()), errors


NOW = datetime.now(UTC).isoformat()[:19] + "Z"  # noqa: TID251
SITEMAP = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">'
    "<scp:version>0.1</scp:version>"
    f'<scp:collection section="all" type="snapshot" url="/all" generated="{NOW}"/>'
    "</urlset>"
)
HEAD = (
    f'{{"collection":{{"id":"a","section":"all","type":"snapshot","generated":"{NOW}"'
    ',"version":"0.1"}}\n'
).encode()
COLLECTIONS = {
    "gzip": gzip.compress(HEAD + ZEROS),
    "zstd": zstd.compress(HEAD + ZEROS),
    "zstd in gzip": gzip.compress(zstd.compress(HEAD + ZEROS)),
    "depth of its head": DEPTH,
    "a number": HEAD.replace(b'"a"', NUMBER),
    "members": gzip.compress(HEAD) * 400_000,
}
"""Deltas and pages that are none: `tests/e2e/test_scp_sites.py`."""


async def test_what_a_site_publishes_in_collections_may_be_a_bomb(
    scene: UpstreamScene,
) -> None:
    async with AsyncExitStack() as stack:
        ids = {}
        for name, body in COLLECTIONS.items():
            site = await stack.enter_async_context(a_host())
            front = ServerAnswer(headers=XML, body=SITEMAP.encode())
            site.serve("/sitemap.xml", front)
            site.serve("/all", ServerAnswer(body=body))
            added = await scene.api.request(
                "POST", "/api/feeds?wait=0", url=site.url("/sitemap.xml")
            )
            ids[name] = added["id"]
        errors = await until_fetched(scene, ids)
    assert all(errors.values()), errors


SELECTED = {
    "matches": (b"[" * 40 + b"]" * 40, "$" + "[*,*]" * 39),
    "depth": (DEPTH, "$.a"),
    "recursion": (b"[" * 200 + b"]" * 200, "$" + "..*" * 20),
    "elements": (PAGE + b"<p>" * 100_000, "*"),
}


async def test_a_part_of_a_resource_may_be_a_bomb(scene: UpstreamScene) -> None:
    async with AsyncExitStack() as stack:
        ids = {}
        for name, (body, selector) in SELECTED.items():
            site = await stack.enter_async_context(a_host())
            site.serve("/part", ServerAnswer(body=body))
            url = site.url(f"/part#{quote(selector)}")
            added = await scene.api.request("POST", "/api/feeds?wait=0", url=url)
            ids[name] = added["id"]
        errors = await until_fetched(scene, ids)
    assert all(errors.values()), errors


async def until_fetched(
    scene: UpstreamScene, ids: Mapping[str, object]
) -> dict[str, object]:
    """What is wrong with feeds, as soon as all have been tried."""
    errors: dict[str, object] = {}

    async def look() -> bool:
        for name, feed_id in ids.items():
            feed = await scene.api.feed(feed_id)
            if feed["last_fetch"]:
                errors[name] = feed["error"]
        return len(errors) == len(ids)

    await eventually(look, seconds=120)
    return errors


def peak_memory(pid: int) -> int:
    """Bytes that the process had at most."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
