"""``/myPublicFeeds.opml`` and ``/topics/{id}``."""

from __future__ import annotations

from datetime import timedelta

import httpx2
import pytest
from lxml import etree

from hub.services.public_pages import LONGEST_PAGE
from protocols.model import Author, Feed, Link
from storage.records import FeedState, NewFeed
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.services import Hub
from tests.support.storage_scene import START

ATOM = "{http://www.w3.org/2005/Atom}"
UNKNOWN = "/topics/99.json"


@pytest.fixture
def feeds(hub: Hub) -> PublicFeeds:
    return PublicFeeds(hub.storage)


async def titles(client: httpx2.AsyncClient, url: str) -> list[str]:
    answer = await client.get(url)
    assert answer.status_code == 200, answer.text
    return [item["title"] for item in answer.json()["items"]]


async def listed(client: httpx2.AsyncClient) -> list[str]:
    root = etree.fromstring((await client.get("/myPublicFeeds.opml")).content)
    return [each.get("xmlUrl") for each in root.iter("outline")]


async def test_public_feeds_are_listed_as_opml(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    head = Feed(title="A", subtitle="About a", links=(Link(href="https://a.example/"),))
    await feeds.add("a", head=head)
    await feeds.add("b")
    answer = await anybody.get("/myPublicFeeds.opml")
    assert answer.headers["content-type"] == "text/x-opml; charset=utf-8"
    first, _ = etree.fromstring(answer.content).iter("outline")
    assert first.get("description") == "About a"
    assert first.get("htmlUrl") == "https://a.example/"
    assert await listed(anybody) == ["https://a.example/feed", "https://b.example/feed"]


async def test_a_feed_is_listed_by_the_names_it_came_with_until_it_has_its_own(
    client: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    async def shown() -> tuple[str | None, str | None]:
        answer = await client.get("/myPublicFeeds.opml")
        [outline] = etree.fromstring(answer.content).iter("outline")
        return outline.get("title"), outline.get("description")

    named = {"url": "https://a.example/feed", "title": "Given", "description": "Told"}
    added = (await client.post("/api/feeds?wait=0", json=named)).json()
    assert added["title"] == "Given"
    assert await shown() == ("Given", "Told")
    feed = await hub.storage.feeds.get(added["id"])
    assert feed is not None
    await feeds.read(feed, Feed(title="", subtitle=""))
    assert await shown() == ("Given", "Told")
    await feeds.read(feed, Feed(title="Its own", subtitle="About it"))
    assert await shown() == ("Its own", "About it")
    await feeds.read(feed, Feed(title="", subtitle=""))
    assert await shown() == ("Given", "Told")


@pytest.mark.parametrize("field", ["title", "description", "category"])
async def test_a_name_that_cannot_be_shown_is_refused(
    client: httpx2.AsyncClient, field: str
) -> None:
    for name in ("x" * 1_001, "\x1b[2J"):
        body = {"url": "https://a.example/feed", field: name}
        answer = await client.post("/api/feeds?wait=0", json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_categories_are_folders_of_the_list(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    await feeds.add("a", category="News/World")
    root = etree.fromstring((await anybody.get("/myPublicFeeds.opml")).content)
    [outline] = root.findall("body/outline/outline/outline")
    assert outline.get("xmlUrl") == "https://a.example/feed"


async def test_private_removed_and_unlisted_feeds_are_not(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    await feeds.add("private", private=True)
    await feeds.add("unlisted", head=Feed(title="U", unlisted=True))
    gone = await feeds.add("gone")
    await hub.storage.feeds.set_state(gone.id, FeedState.REMOVED, START)
    assert await listed(anybody) == []
    for number in (1, 2, 3):
        for format in ("atom", "json", "normalized.json"):
            hidden = await anybody.get(f"/topics/{number}.{format}")
            unknown = await anybody.get(UNKNOWN)
            assert hidden.status_code == unknown.status_code == 404
            told = hidden.json()["detail"].replace(str(number), "99")
            assert told == unknown.json()["detail"]


async def test_the_list_is_sent_again_only_if_it_changed(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    await feeds.add("a")
    first = await anybody.get("/myPublicFeeds.opml")
    known = {"If-None-Match": f'"other", W/{first.headers["etag"]}'}
    again = await anybody.get("/myPublicFeeds.opml", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    await feeds.add("b")
    changed = await anybody.get("/myPublicFeeds.opml", headers=known)
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


async def test_what_is_known_may_be_said_in_several_lines(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    await feeds.add("a")
    first = await anybody.get("/myPublicFeeds.opml")
    lines = [("If-None-Match", '"other"'), ("If-None-Match", first.headers["etag"])]
    again = await anybody.get("/myPublicFeeds.opml", headers=lines)
    assert again.status_code == 304


async def test_a_topic_is_its_entries_newest_first(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    old = an_entry("old", published=START - timedelta(days=2))
    new = an_entry("new", published=START - timedelta(days=1))
    await feeds.publish(feed, old, new)
    answer = await anybody.get("/topics/1.atom")
    assert answer.headers["content-type"] == "application/atom+xml"
    root = etree.fromstring(answer.content)
    found = [each.findtext(f"{ATOM}title") for each in root.iter(f"{ATOM}entry")]
    assert found == ["Title of new", "Title of old"]
    assert await titles(anybody, "/topics/1.normalized.json") == found
    assert '<http://hub.example/hub>; rel="hub"' in answer.headers["link"]
    assert '<http://hub.example/topics/1.atom>; rel="self"' in answer.headers["link"]


async def test_a_topic_is_a_json_feed_and_each_format_names_the_others(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    types = {
        "atom": "application/atom+xml",
        "json": "application/feed+json",
        "normalized.json": "application/json",
    }
    for format, type in types.items():
        answer = await anybody.get(f"/topics/1.{format}")
        assert answer.headers["content-type"].partition(";")[0] == type
        for other, other_type in types.items():
            link = (
                f"<http://hub.example/topics/1.{other}>;"
                f' rel="alternate"; type="{other_type}"'
            )
            assert (link in answer.headers["link"]) is (other != format)
    document = (await anybody.get("/topics/1.json")).json()
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert [each["title"] for each in document["items"]] == ["Title of a"]


async def test_pages_are_chained_to_the_end_without_loss(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    entries = [
        an_entry(f"{n:02}", published=START - timedelta(hours=n // 3))  # many alike
        for n in range(25)
    ]
    await feeds.publish(feed, *entries)
    url: str | None = "/topics/1.normalized.json?limit=4"
    seen: list[str] = []
    while url:
        document = (await anybody.get(url)).json()
        seen += [item["id"] for item in document["items"]]
        url = document.get("next_url")
    assert seen == [entry.id for entry in entries]


async def test_withdrawn_and_unlisted_entries_are_left_out(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    secret = an_entry("secret", unlisted=True)
    await feeds.publish(feed, an_entry("a"), an_entry("b"), secret)
    await feeds.withdraw(feed, "a")
    assert await titles(anybody, "/topics/1.normalized.json") == ["Title of b"]


async def test_unsafe_addresses_and_mail_addresses_are_left_out(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    feed = await feeds.add(head=Feed(title="A", icon="javascript:alert(1)"))
    bad = an_entry(
        "a",
        links=(Link(href="javascript:alert(2)"),),
        authors=(Author(name="N", email="n@example.org", uri="data:,x"),),
    )
    await feeds.publish(feed, bad)
    for format in ("atom", "json", "normalized.json"):
        text = (await anybody.get(f"/topics/1.{format}")).text
        assert "alert" not in text
        assert "n@example.org" not in text
        assert "data:," not in text


async def test_a_topic_is_sent_again_only_if_it_changed(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    for format in ("atom", "json", "normalized.json"):
        url = f"/topics/1.{format}"
        first = await anybody.get(url)
        assert (await anybody.get(url)).content == first.content
        for headers in (
            {"If-None-Match": first.headers["etag"]},
            {"If-None-Match": "*"},
            {"If-Modified-Since": first.headers["last-modified"]},
        ):
            again = await anybody.get(url, headers=headers)
            assert (again.status_code, again.content) == (304, b"")
        for headers in (
            {"If-None-Match": '"x"', "If-Modified-Since": "Fri, 01 Jan 2100 0:0:0 GMT"},
            {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
            {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 -0000"},
            {"If-Modified-Since": "yesterday"},
        ):
            assert (await anybody.get(url, headers=headers)).status_code == 200
    known = {"If-None-Match": first.headers["etag"]}
    await feeds.publish(feed, an_entry("a", title="Other"))
    assert (await anybody.get(url, headers=known)).status_code == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 200),
        ("limit=100000", 200),
        ("limit=-1", 200),
        (f"limit={10**25}", 200),
        ("limit=x", 422),
        ("limit=", 422),
        ("limit=1.5", 422),
        ("before=x", 422),
        ("before=999999999999999-1", 422),
    ],
)
async def test_limits_are_cut_and_nonsense_is_refused(
    anybody: httpx2.AsyncClient, feeds: PublicFeeds, query: str, status: int
) -> None:
    feed = await feeds.add()
    count = LONGEST_PAGE + 1
    await feeds.publish(feed, *(an_entry(str(n)) for n in range(count)))
    answer = await anybody.get(f"/topics/1.normalized.json?{query}")
    assert answer.status_code == status
    if status == 200:
        shown = LONGEST_PAGE if "00" in query else 1
        assert len(answer.json()["items"]) == shown
    else:
        assert answer.json()["field"] == query.partition("=")[0]


async def test_a_feed_before_its_first_document_is_an_empty_topic(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await hub.storage.feeds.add(NewFeed(url="https://new.example/feed"), START)
    answer = await anybody.get("/topics/1.atom")
    assert answer.status_code == 200
    assert "last-modified" not in answer.headers
    assert await titles(anybody, "/topics/1.normalized.json") == []


async def test_an_entry_without_an_address_has_one_here_that_leads_to_it_alone(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add("a")
    await feeds.publish(feed, *(an_entry(key, links=()) for key in ("a", "b", "c")))
    answer = await anybody.get("/topics/entries/2")
    page = etree.fromstring(answer.content)
    assert [each.findtext(f"{ATOM}title") for each in page.iter(f"{ATOM}entry")] == [
        "Title of b"
    ]
    await feeds.withdraw(feed, "b")
    for unknown in ("2", "99", "x"):
        assert (await anybody.get(f"/topics/entries/{unknown}")).status_code == 404
    await hub.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    assert (await anybody.get("/topics/entries/1")).status_code == 404
