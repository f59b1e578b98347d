"""One walk through every public output, looking for what must be in none of them."""

from __future__ import annotations

import httpx2
from msgspec.structs import replace

from hub.search.index_follower import SearchIndex
from protocols.model import Author, Entry, Feed, Link, Text
from storage.records import Credentials, FeedState
from tests.support import public_walk
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.public_walk import public_paths, public_routes, walk
from tests.support.services import Hub
from tests.support.storage_scene import START

SECRET = "s3cr3t"
"""Part of every planted text, address and name."""
ASKED = (
    *public_walk.ASKED,
    *(f"q={word}" for word in ("s3cr3t", "s3cr3t-private", "feed")),
    *(f"url=https://a.b/{name}" for name in ("", "withdrawn", "hidden")),
    *(f"url=https://example.org/{name}" for name in ("s3cr3t-0", "s3cr3t-unlisted")),
    *(f"url=/topics/entries/{entry}" for entry in range(48)),
)
"""Of OpenFeeder; by words and addresses, too, that only who knows them can ask for."""
UNSAFE = f"javascript:{SECRET}"


def secret_entry(key: str, **more: object) -> Entry:
    return an_entry(f"{SECRET}-{key}", content=Text(value=f"<p>{SECRET}</p>"), **more)


async def plant(hub: Hub) -> set[str]:
    """Paths of collections that were public and had secrets while these were none."""
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
            category=SECRET,
        ),
        await feeds.add(f"{SECRET}-removed", head=head),
    ]
    for number, feed in enumerate(hidden):
        await feeds.publish(feed, secret_entry(str(number)))
    await hub.storage.feeds.set_state(hidden[-1].id, FeedState.REMOVED, START)
    public = await feeds.add("public", category="open")
    mail = f"{SECRET}@example.org"
    author = Author(name=f"Ann <{mail}>", email=mail, uri=UNSAFE)
    open_entry = an_entry(
        "open", authors=(author,), links=(Link(href=UNSAFE), Link(href="https://a.b/"))
    )
    await feeds.publish(public, open_entry)
    await feeds.publish(public, secret_entry("unlisted", unlisted=True))
    # Readers are told by their URLs, which they know, that these are gone.
    withdrawn = secret_entry("withdrawn", links=(Link(href="https://a.b/withdrawn"),))
    known = (Link(href="https://a.b/hidden"),)
    await feeds.publish(public, withdrawn, secret_entry("hidden", links=known))
    left = await feeds.add("left", category="left")
    known = (Link(href="https://a.b/left"),)
    await feeds.publish(left, secret_entry("left", links=known))
    built = await hub.services.collections.build(snapshots=True)
    hub.clock.advance(3_600)
    await hub.storage.feeds.set_state(left.id, FeedState.REMOVED, START)
    await feeds.withdraw(public, f"{SECRET}-withdrawn")
    await feeds.publish(public, secret_entry("hidden", unlisted=True, links=known))
    await hub.services.collections.build(snapshots=False)
    await SearchIndex(hub.storage, hub.clock).catch_up()
    return {f"/scp/{each.name}" for each in built}


async def test_no_public_output_has_what_is_not_public(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    taken_back = await plant(hub)
    routes = public_routes(hub)
    start = public_paths(routes, ASKED) | taken_back
    start |= {"/search?q=title", "/search?q=open", "/topics?search=example"}
    read = [each async for each in walk(anybody, start)]
    assert [each.path for each in read if SECRET in each.text] == []
    gone = {each.path for each in read if each.status == 410}
    assert gone == taken_back
    # A route that is new is walked, too, or this says that nothing leads there.
    answered = [each.path.partition("?")[0] for each in read if each.status == 200]
    assert [
        route.path
        for route in routes
        if not any(route.path_regex.match(path) for path in answered)
    ] == []
    (found,) = [each.text for each in read if each.path == "/search?q=open"]
    assert "1 entry found" in found
    shown = "\n".join(each.text for each in read)
    assert shown.count("Title of open") >= 4  # topics and collections were read
    tombstone = '"url":"https://a.b/withdrawn","deleted_at"'
    assert tombstone in shown
    assert '"author":"Ann"' in shown
    for name in ("/scp/all-snapshot", "/scp/open-snapshot", "/topics/5.atom"):
        assert any(each.path.startswith(name) for each in read), name
