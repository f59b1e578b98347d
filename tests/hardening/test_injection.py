"""What strangers write stays text: in pages, headers, log lines and statements.

Every place that takes text is given what would be a program, a header, a line or a
statement elsewhere, and the whole hub is looked at afterwards.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from lxml import etree, html

from hub.web.api.openapi import API_OPERATIONS, OPEN_OPERATIONS
from hub.web.superfeedr.endpoint import create_modes
from protocols.model import Feed
from storage.records import (
    FetchCommit,
    NewFeed,
    Polling,
    VerificationState,
    VerificationTry,
)
from tests.support.admin import ADMIN, ADMIN_LOGIN
from tests.support.application_client import client_of
from tests.support.documents import an_entry
from tests.support.services import Hub, open_hub
from tests.support.work_claims import finish_verification

BASIC = {"Authorization": f"Basic {ADMIN_LOGIN}"}
SAFE = "<>'\"=(){}!;&"
"""What is put into URLs as it is, though it means something in a page."""
SINKS = (
    *(("GET", path) for path in ("/{}", "/api/{}", "/api/feeds/{}", "/scp/{}")),
    *(("GET", path) for path in ("/topics/{}.atom", "/hub/subscriptions/{}")),
    *(("GET", path) for path in ("/stream", "/openfeeder", "/{}/..%2f")),
    *(("POST", path) for path in ("/hub", "/{}", "/rpc", "/openfeeder/update")),
)
"""Where something is told about what was asked."""
GOOD: dict[str, object] = {
    "url": "https://example.org/feed",
    "topic": "https://example.org/feed",
    "callback": "https://you.example/hook",
    "account": "alice",
    "rights": ["list"],
}
FORM = {
    "hub.topic": "https://example.org/feed",
    "hub.callback": "https://you.example/hook",
}
NAMES = (
    *("hub.topic", "hub.callback", "hub.url", "hub.secret", "hub.content", "format"),
    *("query", "before", "after", "count", "page", "by_page", "search[feed.url]"),
    *("search[subscription.callback]", "search[endpoint.url]", "search[feed.title]"),
)
MARKUP = (
    "</title><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'><svg/onload=alert(1)>",
    "'+alert(1)+'${alert(1)}{{7*7}}<!--<!--",
    "</p></style></textarea><iframe srcdoc='<script>alert(1)</script>'>",
    "&lt;script&gt;&#x3c;script&#62;\u2028<\u00ad/script>",
)
STATEMENTS = (
    "' OR '1'='1",
    "'; DROP TABLE feeds; --",
    '" OR ""="',
    "1) UNION SELECT secret FROM subscriptions --",
    "%",
    "_",
    "%' ESCAPE '",
    "\\",
    "feeds.url; DELETE FROM feeds",
    '"AND" NEAR(a b, 9) NOT title:* ^x {a b}: "',
    "*",
    "a\x00b",
    "\ud7ff\U0010ffff",
)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def client(hub: Hub) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(hub.application) as client:
        yield client


async def show(hub: Hub, title: str, url: str = "https://feeds.example/") -> None:
    """A public feed with that title, which may have had another before."""
    now = hub.clock.now()
    feed, _ = await hub.storage.feeds.add(NewFeed(url=url), now)
    entry = an_entry("1", title=title, text=title)
    await hub.storage.log.commit(
        FetchCommit(
            feed_id=feed.id,
            at=now,
            next_fetch=now,
            polling=Polling(code=500, error=title, last_fetch=now),
            title=title,
            format="atom",
            head=Feed(title=title, subtitle=title),
            entries=(entry,),
        )
    )
    hub.clock.advance(60)  # pages are kept for moments


def shape(page: str) -> list[tuple[str, tuple[str, ...]]]:
    """Elements with the names of their attributes, in order."""
    return _shape(html.fromstring(page))


def xml_shape(document: bytes) -> list[tuple[str, tuple[str, ...]]]:
    return _shape(etree.fromstring(document))


def _shape(root: etree._Element) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (str(each.tag), tuple(sorted(map(str, each.attrib)))) for each in root.iter()
    ]


@pytest.mark.parametrize("text", MARKUP)
async def test_pages_have_the_same_elements_whatever_feeds_say(
    hub: Hub, client: httpx2.AsyncClient, text: str
) -> None:
    await show(hub, "A title")
    harmless = [shape((await client.get(path)).text) for path in ("/", "/about")]
    await show(hub, text)
    answers = [await client.get(path) for path in ("/", "/about")]
    assert [shape(each.text) for each in answers] == harmless
    for each in answers:
        policy = each.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["/topics/1.atom", "/myPublicFeeds.opml"])
@pytest.mark.parametrize("text", MARKUP)
async def test_documents_have_the_same_elements_whatever_feeds_say(
    hub: Hub, client: httpx2.AsyncClient, path: str, text: str
) -> None:
    await show(hub, "A title")
    harmless = xml_shape((await client.get(path)).content)
    await show(hub, text)
    assert xml_shape((await client.get(path)).content) == harmless


async def diagnosis(hub: Hub, client: httpx2.AsyncClient, text: str) -> httpx2.Response:
    """The page of a request whose callback answered that."""
    form = {
        "hub.mode": "subscribe",
        "hub.topic": f"https://feeds.example/?{quote(text, safe=SAFE)}",
        "hub.callback": f"https://reader.example/?{quote(text, safe=SAFE)}",
    }
    asked = await client.post("/hub", data=form)
    assert asked.status_code == 202
    now = hub.clock.now()
    (found,) = await hub.storage.verifications.due(now, per_host=1, limit=1)
    last = VerificationTry(at=now, status=404, excerpt=text, reason=text)
    state = VerificationState.FAILED
    await finish_verification(hub.storage, found.id, state, last, now)
    where = asked.headers["link"][1:].partition(">")[0]
    return await client.get(where, headers={"Accept": "text/html"})


@pytest.mark.parametrize("text", MARKUP)
async def test_diagnostics_have_the_same_elements_whatever_callbacks_answer(
    hub: Hub, client: httpx2.AsyncClient, text: str
) -> None:
    harmless = shape((await diagnosis(hub, client, "text")).text)
    answer = await diagnosis(hub, client, text)
    assert shape(answer.text) == harmless
    assert "script-src" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize("text", MARKUP)
async def test_what_is_wrong_is_never_told_as_a_page(
    client: httpx2.AsyncClient, text: str
) -> None:
    for method, path in SINKS:
        for url in (
            path.replace("{}", quote(text, safe="")),
            f"{path}?q={quote(text)}",
        ):
            answer = await client.request(method, url, headers=ADMIN)
            kind = answer.headers.get("content-type", "")
            assert not kind.startswith("text/html"), url
            if kind.startswith("text/plain"):
                assert answer.headers["x-content-type-options"] == "nosniff"


SPLITTING = ("a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "\r\n\r\n<b>")


@pytest.mark.parametrize("text", SPLITTING)
async def test_no_answer_gets_a_header_from_what_was_asked(
    client: httpx2.AsyncClient, text: str
) -> None:
    for method, path in SINKS:
        asked = quote(text, safe="")
        answer = await client.request(
            method,
            f"{path.replace('{}', asked)}?topic={asked}&url={asked}&cursor={asked}",
            headers=ADMIN,
        )
        assert not any(
            "evil" in name.lower() or not value.isprintable()
            for name, value in answer.headers.items()
        )


@pytest.mark.parametrize(
    "headers",
    [
        *({"X-Key": text} for text in SPLITTING),
        *({text: "value"} for text in SPLITTING),
        {"Host": "inside.example"},
        {"Content-Length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"X Key": "value"},
        {"": "value"},
        {"X-Key": "a\x00b"},
    ],
)
async def test_a_feed_takes_no_header_that_would_be_another(
    client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    body = {"url": "https://example.org/feed", "headers": headers}
    answer = await client.post("/api/feeds", json=body, headers=ADMIN)
    assert answer.status_code == 422, headers


@pytest.mark.parametrize("text", SPLITTING)
async def test_no_url_with_a_line_break_is_taken(
    client: httpx2.AsyncClient, text: str
) -> None:
    url = f"https://example.org/{text}/end"
    for path, body in (
        ("/api/feeds", {"url": url}),
        ("/api/subscriptions", {"topic": "https://example.org/", "callback": url}),
        ("/api/subscriptions", {"topic": url, "callback": "https://you.example/"}),
        ("/api/lists", {"urls": [url]}),
        ("/api/discover", {"url": url}),
        ("/api/playground", {"topic": url}),
        ("/api/playground", {"hub": url}),
    ):
        answer = await client.post(path, json=body, headers=ADMIN)
        assert answer.status_code == 422, path
    for name in ("topic", "callback"):
        form = {"hub.mode": "subscribe", "hub.topic": "https://example.org/"}
        form |= {"hub.callback": "https://you.example/", f"hub.{name}": url}
        assert (await client.post("/hub", data=form)).status_code == 400
        assert (await client.post("/", data=form, headers=BASIC)).status_code == 422


BODIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "/api/feeds",
        ("url", "category", "title", "description", "basic", "publish_secret"),
    ),
    ("/api/subscriptions", ("topic", "callback", "secret", "algorithm", "format")),
    ("/api/tokens", ("account", "label")),
    ("/api/discover", ("url", "kind")),
)


@pytest.mark.parametrize("text", STATEMENTS, ids=repr)
async def test_no_text_is_a_statement(
    hub: Hub, client: httpx2.AsyncClient, text: str
) -> None:
    """Each parameter there is, by the tables of operations and modes."""
    await show(hub, "A title")
    before = await tables(client)
    for operation in (*API_OPERATIONS, *OPEN_OPERATIONS):
        if operation.method != "GET" or operation.path == "/stream":
            continue
        prefix = "/api" if operation in API_OPERATIONS else ""
        path = prefix + re.sub(r"{\w+}", quote(text, safe=""), operation.path)
        for parameter in operation.query:
            query = f"?{parameter.name}={quote(text, safe='')}"
            answer = await client.get(path + query, headers=ADMIN)
            assert answer.status_code < 500, path + query
    for path, names in BODIES:
        for name in names:
            body = {**GOOD, name: text}
            answer = await client.post(path, json=body, headers=ADMIN)
            assert answer.status_code < 500, (path, name)
    for mode in create_modes(hub.services):
        for name in NAMES:
            form = {"hub.mode": mode, **FORM, name: text}
            answer = await client.post("/", data=form, headers=BASIC)
            assert answer.status_code < 500, (mode, name)
    assert await tables(client) >= before
    health = (await client.get("/api/health", headers=ADMIN)).json()
    assert health["ready"]


async def tables(client: httpx2.AsyncClient) -> list[str]:
    """The feeds there are, the oldest first."""
    listed = (await client.get("/api/feeds", headers=ADMIN)).json()
    return [each["url"] for each in listed["feeds"]]
