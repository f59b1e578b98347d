"""Whatever a hub can be made to ask, by whomever, it asks no forbidden address.

A real hub may reach one address of this machine, which stands for the internet; on the
others a canary listens that must see no connection. Each way of making the hub ask is
given spellings of the forbidden addresses, and once the allowed one, so that it is
known to ask at all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from tests.hardening.forbidden_addresses import forbidden_urls
from tests.support.admin import ADMIN
from tests.support.http_server import Origin, ServerAnswer, ServerRequest, redirect
from tests.support.hub_process import HubApi, HubProcess
from tests.support.waiting import eventually
from tests.support.websub import topic_document

pytestmark = pytest.mark.asyncio(loop_scope="module")
OUTSIDE = "127.0.0.2"
PATIENCE = 180.0
PARTS = 4
SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0"><scp:version>0.1'
    "</scp:version><scp:compression>gzip</scp:compression><scp:collection"
    ' section="all" type="snapshot" url="{url}" generated="2026-11-01T00:00:00Z"'
    ' expires="2099-01-01T00:00:00Z" pages="1" size="100"/>'
    "<url><loc>https://site.example/</loc></url></urlset>"
)


@dataclass
class Internet:
    """One publisher, whose documents name a URL each."""

    hub: HubProcess
    origin: Origin
    canaries: list[Origin]
    client: HubApi
    run: str = ""  # of the playground
    numbers: Any = field(default_factory=count)

    @property
    def forbidden(self) -> list[str]:
        return forbidden_urls(self.canaries[0].port)

    def allowed(self) -> str:
        """Of something that is there."""
        return self.put(feed())

    def put(
        self,
        body: bytes | str,
        type: str = "application/atom+xml",
        path: str = "",
        **headers: str,
    ) -> str:
        """Serve a document under a new path; its URL."""
        path = path or f"/{next(self.numbers)}"
        content = body.encode() if isinstance(body, str) else body
        sent = {"Content-Type": type, **headers}
        self.origin.serve(path, ServerAnswer(headers=sent, body=content))
        return self.origin.url(path)

    def put_answer(
        self, answer: ServerAnswer | Callable[[ServerRequest], ServerAnswer]
    ) -> str:
        path = f"/{next(self.numbers)}"
        self.origin.serve(path, answer)
        return self.origin.url(path)

    def asked(self, url: str) -> int:
        path = url.removeprefix(self.origin.url("")).partition("?")[0]
        return sum(
            request.target.partition("?")[0] == path for request in self.origin.requests
        )

    async def api(self, method: str, path: str, /, **body: Any) -> tuple[int, Any]:
        answer = await self.client.ask(method, path, json=body or None, headers=ADMIN)
        return answer.status, answer.json

    async def form(self, path: str, **parameters: str) -> int:
        body = urlencode({f"hub.{name}": value for name, value in parameters.items()})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if path == "/":
            headers |= ADMIN
        return (await self.client.ask("POST", path, data=body, headers=headers)).status


def feed(link: str = "") -> bytes:
    return topic_document(1, links=link)


def confirm(request: ServerRequest) -> ServerAnswer:
    query = request.target.partition("?")[2]
    pairs = [each.partition("=") for each in query.split("&")]
    challenge = {name: value for name, _, value in pairs}.get("hub.challenge", "")
    return ServerAnswer(body=challenge.encode())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def internet(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Internet]:
    hub = HubProcess(
        directory=tmp_path_factory.mktemp("hub"),
        settings={
            "FANFARE_ALLOW_NETWORKS": f"{OUTSIDE}/32",
            "FANFARE_OPEN_HUB": "any",
            "FANFARE_RATE_LIMIT_ADDRESS": "0",
            "FANFARE_ROBOTS": "on",
            "FANFARE_UPSTREAM": "on",
        },
    )
    async with (
        hub,
        Origin(OUTSIDE) as origin,
        Origin("127.0.0.1") as canary,
        Origin("::1", canary.port) as canary_6,
        HubApi(hub.url, seconds=300.0) as client,
    ):
        yield Internet(hub, origin, [canary, canary_6], client)


Door = Callable[[Internet, str], Awaitable[None]]
"""Makes the hub ask for a URL, and returns when it has, or has refused to."""
DOORS: dict[str, Door] = {}


def door(ask: Door) -> Door:
    DOORS[ask.__name__.replace("_", " ")] = ask
    return ask


async def add(internet: Internet, url: str, **options: Any) -> Any:
    _, answer = await internet.api("POST", "/api/feeds", url=url, **options)
    return answer


@door
async def a_feed_that_is_added(internet: Internet, url: str) -> None:
    await add(internet, url)


def fits_a_header(url: str) -> bool:
    """`test_ssrf` has the others."""
    return url.isascii() and url.isprintable()


@door
async def a_redirect_of_a_feed(internet: Internet, url: str) -> None:
    if fits_a_header(url):
        await add(internet, internet.put_answer(redirect(url)))


@door
async def a_document_that_is_explained(internet: Internet, url: str) -> None:
    if fits_a_header(url):
        where = internet.put(feed())
        added = await add(internet, where)
        internet.origin.serve(
            where.removeprefix(internet.origin.url("")), redirect(url)
        )
        await internet.api("POST", f"/api/feeds/{added['id']}/parse")


@door
async def a_page_that_is_looked_at(internet: Internet, url: str) -> None:
    await internet.api("POST", "/api/discover", url=url)


@door
async def a_feed_that_a_page_names(internet: Internet, url: str) -> None:
    page = (
        "<!doctype html><title>A page</title><link rel=alternate"
        f' type="application/rss+xml" href="{escape(url)}">'
    )
    await add(internet, internet.put(page, "text/html"), discover=True)


@door
async def a_site_that_a_page_names(internet: Internet, url: str) -> None:
    page = f'<!doctype html><title>A</title><link rel=openfeeder href="{escape(url)}">'
    where = internet.put(page, "text/html")
    await internet.api("POST", "/api/discover", url=where, kind="openfeeder")


@door
async def many_feeds_at_once(internet: Internet, url: str) -> None:
    await internet.api("POST", "/api/imports", feeds=[{"url": url}])


@door
async def a_list_of_feeds(internet: Internet, url: str) -> None:
    await internet.api("POST", "/api/lists", urls=[url])


@door
async def a_list_that_is_watched(internet: Internet, url: str) -> None:
    await internet.api("POST", "/api/watched-lists?wait=0", url=url)


@door
async def a_list_that_another_includes(internet: Internet, url: str) -> None:
    outline = f'<outline type="include" url="{escape(url)}"/>'
    opml = f'<opml version="2.0"><head/><body>{outline}</body></opml>'
    where = internet.put(opml, "text/x-opml")
    await internet.api("POST", "/api/lists", urls=[where])


@door
async def the_endpoint_of_an_openfeeder_site(internet: Internet, url: str) -> None:
    document = {
        "version": "1.0",
        "site": {"name": "A site", "url": internet.origin.url("")},
        "feed": {"endpoint": url, "type": "paginated"},
    }
    where = internet.put(json.dumps(document), "application/json")
    await add(internet, where)


@door
async def a_collection_of_an_scp_site(internet: Internet, url: str) -> None:
    sitemap = SITEMAP.replace("{url}", escape(url))
    await add(internet, internet.put(sitemap, "application/xml"))


@door
async def a_hub_that_a_feed_names(internet: Internet, url: str) -> None:
    link = f'<link rel="hub" href="{escape(url)}"/>'
    await add(internet, internet.put(feed(link)))


@door
async def a_hub_that_redirects_a_subscriber(internet: Internet, url: str) -> None:
    if fits_a_header(url):
        hub = internet.put_answer(redirect(url, 307))
        await add(internet, internet.put(feed(f'<link rel="hub" href="{hub}"/>')))
        await eventually(lambda: internet.asked(hub) > 0, PATIENCE)


@door
async def a_cloud_that_a_feed_names(internet: Internet, url: str) -> None:
    place = url.partition("://")[2]
    authority, _, path = place.partition("/")
    domain, _, port = authority.rpartition(":")
    cloud = (
        f'<cloud domain="{escape(domain)}" port="{escape(port)}"'
        f' path="{escape(path)}" protocol="http-post"/>'
    )
    channel = f'<rss version="2.0"><channel>{cloud}<title>A</title></channel></rss>'
    await add(internet, internet.put(channel, "application/rss+xml"))


@door
async def a_topic_of_the_open_hub(internet: Internet, url: str) -> None:
    callback = internet.put_answer(confirm)
    await internet.form("/hub", mode="subscribe", topic=url, callback=callback)


@door
async def a_callback_of_the_open_hub(internet: Internet, url: str) -> None:
    topic = internet.allowed()
    await internet.form("/hub", mode="subscribe", topic=topic, callback=url)


@door
async def a_callback_that_is_unsubscribed(internet: Internet, url: str) -> None:
    topic = internet.allowed()
    await internet.form("/hub", mode="unsubscribe", topic=topic, callback=url)


@door
async def a_callback_that_redirects_its_question(internet: Internet, url: str) -> None:
    if not fits_a_header(url):
        return
    callback = internet.put_answer(redirect(url, 307))
    topic = internet.allowed()
    await internet.form("/hub", mode="subscribe", topic=topic, callback=callback)
    await eventually(lambda: internet.asked(callback) > 0, PATIENCE)


@door
async def a_callback_that_redirects_what_is_delivered(
    internet: Internet, url: str
) -> None:
    if not fits_a_header(url):
        return
    callback = internet.put_answer(redirect(url, 308))
    topic = internet.put(feed())
    made, _ = await internet.api(
        "POST", "/api/subscriptions", topic=topic, callback=callback
    )
    assert made == 201
    internet.put(topic_document(2, 1), path=topic.removeprefix(internet.origin.url("")))
    await internet.form("/hub", mode="publish", url=topic)
    await eventually(lambda: internet.asked(callback) > 0, PATIENCE)


@door
async def a_callback_that_redirects_a_replay_and_a_denial(
    internet: Internet, url: str
) -> None:
    if not fits_a_header(url):
        return
    callback = internet.put_answer(redirect(url, 307))
    topic = internet.put(feed(), path="/replayed")
    made, subscription = await internet.api(
        "POST", "/api/subscriptions", topic=topic, callback=callback
    )
    assert made == 201
    await internet.form("/", mode="replay", topic=topic, callback=callback)
    await internet.api("DELETE", f"/api/subscriptions/{subscription['id']}")
    await eventually(lambda: internet.asked(callback) > 1, PATIENCE)


@door
async def a_callback_of_an_account(internet: Internet, url: str) -> None:
    """It is told when the subscription ends."""
    topic = internet.allowed()
    status, made = await internet.api(
        "POST", "/api/subscriptions", topic=topic, callback=url
    )
    if status == 201:
        await internet.api("DELETE", f"/api/subscriptions/{made['id']}")


@door
async def a_callback_that_is_asked_before_the_answer(
    internet: Internet, url: str
) -> None:
    topic = internet.allowed()
    await internet.form("/", mode="subscribe", topic=topic, callback=url, verify="sync")


@door
async def a_publisher_who_is_asked_who_may_subscribe(
    internet: Internet, url: str
) -> None:
    topic = internet.put(feed(f'<link rel="validate" href="{escape(url)}"/>'))
    await add(internet, topic)
    callback = internet.put_answer(confirm)
    await internet.form("/hub", mode="subscribe", topic=topic, callback=callback)


@door
async def a_publisher_that_the_operator_names(internet: Internet, url: str) -> None:
    topic = internet.allowed()
    await add(internet, topic, subscription_callback=url)
    callback = internet.put_answer(confirm)
    await internet.form("/hub", mode="subscribe", topic=topic, callback=callback)


@door
async def a_topic_that_is_pinged(internet: Internet, url: str) -> None:
    await internet.form("/hub", mode="publish", url=url)
    await internet.form("/", mode="publish", url=url)
    await internet.api("POST", "/openfeeder/update", urls=[url])


async def play(internet: Internet, step: str, method: str, url: str) -> None:
    if not internet.run:
        _, run = await internet.api("POST", "/api/playground", topic="")
        internet.run = run["id"]
    path = f"/api/playground/{internet.run}/messages"
    await internet.api("POST", path, step=step, method=method, url=url)


@door
async def a_topic_of_the_playground(internet: Internet, url: str) -> None:
    await play(internet, "discover", "GET", url)


@door
async def a_topic_of_the_playground_that_redirects(
    internet: Internet, url: str
) -> None:
    if fits_a_header(url):
        await play(internet, "discover", "GET", internet.put_answer(redirect(url)))


@door
async def a_hub_of_the_playground(internet: Internet, url: str) -> None:
    await play(internet, "subscribe", "POST", url)


@door
async def a_hub_of_the_playground_that_redirects(internet: Internet, url: str) -> None:
    if fits_a_header(url):
        hub = internet.put_answer(redirect(url, 307))
        await play(internet, "subscribe", "POST", hub)


@door
async def a_callback_of_the_playground(internet: Internet, url: str) -> None:
    await play(internet, "notify", "POST", url)


NEVER_ASKED = {
    "a callback that is unsubscribed": "there is nothing to end",
    "a topic that is pinged": "it would have to be known",
    "a callback that redirects its question": "callbacks' redirects are not followed",
    "a callback that redirects what is delivered": "nor there",
    "a callback that redirects a replay and a denial": "nor there",
}
"""Ways that lead not even to the allowed address."""


async def use(door: Door, internet: Internet, forbidden: Sequence[str]) -> str:
    """Ask for what is forbidden, and then for the URL that is given back."""
    turns = asyncio.Semaphore(8)

    async def one(url: str) -> None:
        async with turns:
            await door(internet, url)

    await asyncio.gather(*map(one, forbidden))
    witness = internet.put_answer(confirm)
    await door(internet, witness)
    return witness


def spellings_for(number: int, door: Door, internet: Internet) -> Sequence[str]:
    if door is a_cloud_that_a_feed_names:
        return internet.forbidden
    return internet.forbidden[number % PARTS :: PARTS]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def used(internet: Internet) -> AsyncIterator[dict[str, asyncio.Task[str]]]:
    """All doors at once: hosts have a pace, for which they would wait in turn."""
    async with asyncio.TaskGroup() as group:
        yield {
            name: group.create_task(
                use(ask, internet, spellings_for(number, ask, internet))
            )
            for number, (name, ask) in enumerate(DOORS.items())
        }


@pytest.mark.parametrize("name", DOORS)
async def test_no_forbidden_address_is_asked(
    internet: Internet, used: dict[str, asyncio.Task[str]], name: str
) -> None:
    witness = await used[name]
    if name not in NEVER_ASKED:
        await eventually(lambda: internet.asked(witness) > 0, PATIENCE)
    assert [canary.connections for canary in internet.canaries] == [0, 0]


async def test_a_site_s_robots_txt_leads_nowhere_forbidden(internet: Internet) -> None:
    turns = asyncio.Semaphore(8)

    async def one(url: str) -> None:
        async with turns, Origin(OUTSIDE) as site:
            site.serve("/robots.txt", redirect(url))
            site.serve("/feed", ServerAnswer(body=feed()))
            await add(internet, site.url("/feed"))
            assert site.requests

    await asyncio.gather(*map(one, filter(fits_a_header, internet.forbidden)))
    assert [canary.connections for canary in internet.canaries] == [0, 0]


async def test_nothing_of_all_that_has_harmed_the_hub(internet: Internet) -> None:
    status, health = await internet.api("GET", "/api/health")
    assert (status, health["ready"]) == (200, True)
    assert [line for line in internet.hub.log if "Traceback" in line] == []
    assert [canary.connections for canary in internet.canaries] == [0, 0]
