"""One walk through every public output, looking for what must be in none of them."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
from starlette.routing import Mount, Route

from hub.search_index import SearchIndex
from hub.web.application import create_application
from protocols.model import Author, Entry, Feed, Link, Text
from storage.records import Credentials, FeedState
from tests.hub.web.conftest import TOKEN
from tests.support.public_feeds import PublicFeeds, an_entry
from tests.support.services import Hub
from tests.support.storage_scene import START

SECRET = "s3cr3t"
"""Part of every planted text, address and name."""
WALKED_ELSEWHERE = {
    "/stream",  # endless; what it opens is tested with it
    "/hub/subscriptions/{token}",  # whoever has the token asked for it
}
ASKED = (
    "limit=50",
    "since=1970-01-01T00:00:00Z",
    "until=2999-01-01T00:00:00Z",
    "q=title&limit=50",
    "q=open",
    *(f"q={word}" for word in ("s3cr3t", "s3cr3t-private", "feed")),
    *(f"url=https://a.b/{name}" for name in ("", "withdrawn", "hidden")),
    *(f"url=https://example.org/{name}" for name in ("s3cr3t-0", "s3cr3t-unlisted")),
    *(f"url=/topics/{feed}.json%23{entry}" for feed in range(6) for entry in range(8)),
)
"""Of OpenFeeder; by words and addresses, too, that only who knows them can ask for."""
UNSAFE = f"javascript:{SECRET}"


def secret_entry(key: str, **more: object) -> Entry:
    return an_entry(f"{SECRET}-{key}", content=Text(value=f"<p>{SECRET}</p>"), **more)


async def plant(hub: Hub) -> None:
    feeds = PublicFeeds(hub.storage)
    head = Feed(title=f"Feed {SECRET}", subtitle=SECRET)
    hidden = [
        await feeds.add(f"{SECRET}-private", head=head, private=True),
        await feeds.add(f"{SECRET}-unlisted", head=replace(head, unlisted=True)),
        await feeds.add(
            f"{SECRET}-credentials",
            head=head,
            private=True,
            credentials=Credentials(username=SECRET, password=SECRET),
            section=SECRET,
        ),
        await feeds.add(f"{SECRET}-removed", head=head),
    ]
    for number, feed in enumerate(hidden):
        await feeds.publish(feed, secret_entry(str(number)))
    await hub.storage.feeds.set_state(hidden[-1].id, FeedState.REMOVED, START)
    public = await feeds.add("public", section="open")
    author = Author(name="Ann", email=f"{SECRET}@example.org", uri=UNSAFE)
    open_entry = an_entry(
        "open", authors=(author,), links=(Link(href=UNSAFE), Link(href="https://a.b/"))
    )
    await feeds.publish(public, open_entry)
    await feeds.publish(public, secret_entry("unlisted", unlisted=True))
    # Readers are told by their URLs, which they know, that these are gone.
    withdrawn = secret_entry("withdrawn", links=(Link(href="https://a.b/withdrawn"),))
    known = (Link(href="https://a.b/hidden"),)
    await feeds.publish(public, withdrawn, secret_entry("hidden", links=known))
    await hub.services.collections.build(snapshots=True)
    hub.clock.advance(3_600)
    await feeds.withdraw(public, f"{SECRET}-withdrawn")
    await feeds.publish(public, secret_entry("hidden", unlisted=True, links=known))
    await hub.services.collections.build(snapshots=False)
    await SearchIndex(hub.storage).catch_up()


def public_paths(hub: Hub) -> set[str]:
    """Of all routes that take no token; ids are tried up to more than there are."""
    found = set()
    for route in create_application(hub.services, TOKEN).routes:
        if isinstance(route, Mount) or not isinstance(route, Route):
            continue
        if "GET" in (route.methods or ()) and route.path not in WALKED_ELSEWHERE:
            found |= {route.path.replace("{id}", str(n)) for n in range(1, 9)}
    asked = {f"/openfeeder?{query}" for query in ASKED}
    return {path for path in found if "{" not in path} | {"/api/openapi.json"} | asked


async def walk(client: httpx2.AsyncClient, start: set[str]) -> AsyncIterator[str]:
    """All that can be read, following whatever leads to another page of the hub."""
    waiting, seen = sorted(start), set(start)
    while waiting:
        path = waiting.pop()
        answer = await client.get(path)
        body = answer.content
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        text = f"{dict(answer.headers)}\n{body.decode()}"
        yield f"{path}\n{text}"
        for found in re.findall(r"http://hub\.example(/[^\s\"'<>;]*)", text):
            link = found.replace("&amp;", "&").partition("#")[0]
            if link not in seen and link != "/hub" and not link.startswith("/stream"):
                seen.add(link)
                waiting.append(link)


async def test_no_public_output_has_what_is_not_public(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await plant(hub)
    read = [each async for each in walk(anybody, public_paths(hub))]
    found = [each.partition("\n") for each in read]
    leaks = [path for path, _, text in found if SECRET in text]
    assert leaks == []
    shown = "\n".join(read)
    assert shown.count("Title of open") >= 4  # topics and collections were read
    tombstone = '"url":"https://a.b/withdrawn","deleted_at"'
    assert tombstone in shown
    assert '"author":"Ann"' in shown
    for name in ("/scp/all-snapshot", "/scp/open-snapshot", "/topics/5.atom"):
        assert any(each.startswith(name) for each in read), name
