"""``POST /rpc``: what blogs' programs send, and what they are answered."""

from __future__ import annotations

import xmlrpc.client

import httpx2
import pytest

from hub.services.publisher_notices import MOST_FEEDS_OF_SITE
from hub.websub import ping_queue as pings_module
from protocols.legacy_pings import MOST_BYTES
from storage.records import FeedStatistics, FeedStatisticsWrite, NewFeed, StoredFeed
from tests.support.services import Hub
from tests.support.work_claims import save_statistics

XML = {"Content-Type": "text/xml; charset=utf-8"}
BLOG, FEED = "https://www.blog.example/", "https://blog.example/feed.xml"
THANKS = "Thanks for the ping; it is being fetched."


async def add(hub: Hub, url: str = FEED, **options: bool) -> StoredFeed:
    now = hub.clock.now()
    feed, _ = await hub.storage.feeds.add(NewFeed(url=url, **options), now)
    return feed


async def name_site(hub: Hub, *feeds: StoredFeed, site: str = "blog.example") -> None:
    """As maintenance does when it has read the feeds' heads."""
    now = hub.clock.now()
    statistics = FeedStatistics(maintained_at=now, popularity=0.0, porn_rank=None)
    await save_statistics(
        hub.storage,
        *[
            FeedStatisticsWrite(
                feed_id=each.id,
                statistics=statistics,
                site=site,
                places=frozenset(),
                due=now,
            )
            for each in feeds
        ],
    )


async def ping(
    client: httpx2.AsyncClient,
    *parameters: str,
    method: str = "weblogUpdates.ping",
    path: str = "/rpc",
) -> tuple[bool, str]:
    """``flerror`` and ``message``. Raises `xmlrpc.client.Fault`."""
    body = xmlrpc.client.dumps(parameters, method).encode()
    answer = await client.post(path, content=body, headers=XML)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/xml; charset=utf-8"
    ((value,), _) = xmlrpc.client.loads(answer.content)
    assert isinstance(value, dict)
    return bool(value["flerror"]), str(value["message"])


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("weblogUpdates.ping", ("A blog", FEED)),
        ("weblogUpdates.ping", ("A blog", BLOG, FEED, "news")),
        ("weblogUpdates.extendedPing", ("A blog", BLOG, FEED)),
        ("weblogUpdates.extendedPing", ("A blog", BLOG, f"{BLOG}new", FEED, "a|b")),
    ],
)
async def test_the_feed_of_a_ping_is_fetched(
    hub: Hub, anybody: httpx2.AsyncClient, method: str, parameters: tuple[str, ...]
) -> None:
    feed = await add(hub)
    assert await ping(anybody, *parameters, method=method) == (False, THANKS)
    assert hub.poller.asked == [feed.id]


async def test_the_path_may_end_with_a_slash(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    feed = await add(hub)
    assert await ping(anybody, "A blog", FEED, path="/rpc/") == (False, THANKS)
    assert hub.poller.asked == [feed.id]


@pytest.mark.parametrize("url", [BLOG, "http://blog.example", "https://BLOG.example"])
async def test_a_blog_s_own_page_stands_for_its_feeds(
    hub: Hub, anybody: httpx2.AsyncClient, url: str
) -> None:
    feeds = [await add(hub, f"{FEED}?{number}") for number in range(2)]
    other = await add(hub, "https://other.example/feed")
    await name_site(hub, *feeds)
    await name_site(hub, other, site="other.example")
    assert await ping(anybody, "A blog", url) == (False, THANKS)
    assert hub.poller.asked == [each.id for each in feeds]


async def test_no_more_than_some_feeds_of_a_site_are_fetched_for_a_ping(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    many = MOST_FEEDS_OF_SITE + 5
    await name_site(hub, *[await add(hub, f"{FEED}?{each}") for each in range(many)])
    await ping(anybody, "A blog", BLOG)
    assert len(hub.poller.asked) == MOST_FEEDS_OF_SITE


async def test_nothing_is_fetched_for_who_is_unknown_and_a_private_feed_looks_so(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    private = await add(hub, private=True)
    await name_site(hub, private)
    unknown = await ping(anybody, "A blog", "https://nobody.example/")
    assert unknown[0]
    assert hub.poller.asked == []
    assert await ping(anybody, "A blog", BLOG) == unknown
    assert hub.poller.asked == []
    assert await ping(anybody, "A blog", FEED) == unknown
    assert hub.poller.asked == [private.id]


async def test_equal_pings_are_one_and_whoever_pings_too_often_is_told(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    await add(hub)
    assert await ping(anybody, "A blog", FEED) == (False, THANKS)
    assert await ping(anybody, "A blog", FEED) == (False, THANKS)
    assert len(hub.poller.asked) == 1
    for _ in range(10):
        hub.poller.asked.clear()  # each is served before the next one comes
        answer = await ping(anybody, "A blog", FEED)
    later = "Thanks for the ping; it was pinged very often and will be fetched later."
    assert answer == (False, later)


async def test_too_many_topics_that_wait_are_an_error_that_is_told(
    hub: Hub, anybody: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pings_module, "MOST_WAITING", 0)
    await add(hub)
    assert await ping(anybody, "A blog", FEED) == (
        True,
        "too many topics are waiting to be fetched",
    )


async def test_what_is_no_ping_is_a_fault(anybody: httpx2.AsyncClient) -> None:
    with pytest.raises(xmlrpc.client.Fault) as caught:
        await ping(anybody, "A", BLOG, method="pingback.ping")
    assert caught.value.faultCode == -32601


async def test_a_hub_out_of_order_says_so_and_not_why(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    await hub.storage.close()
    with pytest.raises(xmlrpc.client.Fault) as caught:
        await ping(anybody, "A", BLOG)
    assert caught.value.faultCode == -32400
    assert caught.value.faultString == "the hub cannot answer now"


async def test_a_body_that_is_too_large_or_no_xml_is_refused(
    anybody: httpx2.AsyncClient,
) -> None:
    large = await anybody.post("/rpc", content=b" " * (MOST_BYTES + 1), headers=XML)
    assert large.status_code == 413
    form = await anybody.post("/rpc", data={"hub.mode": "publish"})
    assert form.status_code == 415
    assert (await anybody.get("/rpc")).status_code == 405
