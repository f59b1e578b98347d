"""Collections as crawlers get them, from the first to the last of their days."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import timedelta
from itertools import pairwise

import httpx2
import pytest

from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_store import CollectionStore
from hub.publishing.page_visibility import PageUpdater
from protocols.model import Feed
from storage.records import FeedChange, FeedState, NewFeed
from tests.support.application_client import client_of
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.scp_crawler import ScpCrawler
from tests.support.scp_schemas import faults_of_file, faults_of_sitemap
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import START, fetch

HOUR = 3_600


@pytest.fixture
def feeds(hub: Hub) -> PublicFeeds:
    return PublicFeeds(hub.storage)


async def build(hub: Hub, *, later: float = 0, snapshots: bool = False) -> list[str]:
    hub.clock.advance(later)
    built = await hub.services.collections.build(snapshots=snapshots)
    return [f"{each.section} {each.type} {each.pages}" for each in built]


async def test_all_that_is_published_is_valid_by_the_schemas(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add(category="News & more")
    await feeds.publish(feed, *(an_entry(str(n)) for n in range(120)))
    assert await build(hub) == ["all snapshot 120", "News-more snapshot 120"]
    await feeds.publish(feed, an_entry("1", title="Other"))
    assert await build(hub, later=HOUR) == ["all delta 1", "News-more delta 1"]
    sitemap = await anybody.get("/sitemap.xml")
    assert sitemap.headers["content-type"].partition(";")[0] == "application/xml"
    assert faults_of_sitemap(sitemap.content) == []
    for section in ("all", "News-more"):
        crawler = ScpCrawler(anybody, section)
        await crawler.crawl()
        assert len(crawler.pages) == 120
        assert crawler.pages["https://example.org/1"]["title"] == "Other"
        for raw in crawler.raw[1:]:
            assert faults_of_file(raw) == []


async def test_a_sitemap_without_collections_is_valid(
    anybody: httpx2.AsyncClient,
) -> None:
    answer = await anybody.get("/sitemap.xml")
    assert faults_of_sitemap(answer.content) == []
    headers = {"If-None-Match": answer.headers["etag"]}
    assert (await anybody.get("/sitemap.xml", headers=headers)).status_code == 304


async def test_the_same_state_gives_the_same_bytes(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"), an_entry("b"))
    crawler = ScpCrawler(anybody)
    await build(hub)
    (first,) = await crawler.advertised()
    await build(hub, later=HOUR, snapshots=True)
    (second,) = [each for each in await crawler.advertised() if each.is_snapshot]
    one, other = await crawler.download(first), await crawler.download(second)
    assert one.splitlines()[1:] == other.splitlines()[1:]
    assert (await anybody.get("/sitemap.xml")).content == (
        await anybody.get("/sitemap.xml")
    ).content


async def test_robots_are_told_again_only_if_it_changed(
    anybody: httpx2.AsyncClient,
) -> None:
    first = await anybody.get("/robots.txt")
    assert "Sitemap: http://hub.example/sitemap.xml" in first.text
    known = {"If-None-Match": first.headers["etag"]}
    assert (await anybody.get("/robots.txt", headers=known)).status_code == 304


@pytest.mark.parametrize(
    ("ranges", "status", "length"),
    [
        ("bytes=0-9", 206, 10),
        ("bytes=-5", 206, 5),
        ("bytes=900000-", 416, None),
        ("lines=0-9", 200, None),  # of a unit that is not known
    ],
)
async def test_a_download_goes_on_where_it_was_broken_off(
    anybody: httpx2.AsyncClient,
    hub: Hub,
    feeds: PublicFeeds,
    ranges: str,
    status: int,
    length: int | None,
) -> None:
    await feeds.publish(await feeds.add(), an_entry("a"))
    await build(hub)
    (each,) = await ScpCrawler(anybody).advertised()
    async with anybody.stream("GET", each.url, headers={"Range": ranges}) as answer:
        assert answer.status_code == status
        sent = b"".join([part async for part in answer.aiter_raw()])
        assert int(answer.headers["content-length"]) == len(sent)
    if status != 416:
        assert len(sent) == (length or each.size)


async def test_nothing_is_built_when_nothing_has_changed(
    hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    assert await build(hub) == ["all snapshot 1"]
    assert await build(hub, later=HOUR) == []
    day = 24 * HOUR
    assert await build(hub, later=day) == ["all delta 0", "all snapshot 1"]


async def test_windows_of_deltas_join_whatever_lies_between(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    await build(hub)
    crawler = ScpCrawler(anybody)
    await crawler.crawl()
    for hour in range(30):
        if hour % 3:
            await feeds.publish(
                feed, an_entry(f"{hour}"), an_entry("a", title=f"{hour}")
            )
        await build(hub, later=HOUR)
        if hour % 7 == 0:
            await crawler.follow_deltas()
    await crawler.follow_deltas()
    assert len(crawler.pages) == 21
    assert crawler.pages["https://example.org/a"]["title"] == "29"
    deltas = [each for each in await crawler.advertised() if not each.is_snapshot]
    deltas.sort(key=lambda each: each.generated)
    for one, other in pairwise(deltas):
        assert other.since == one.generated


async def test_two_builds_in_one_second_are_told_apart(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    crawler = ScpCrawler(anybody)
    for number in range(4):
        await feeds.publish(feed, an_entry("a", title=str(number)))
        await build(hub)
        await crawler.crawl()
        assert crawler.pages["https://example.org/a"]["title"] == str(number)
    modified = [at for at, _ in crawler.history["https://example.org/a"]]
    assert modified == sorted(set(modified))


async def test_a_withdrawn_page_is_gone_with_the_next_build(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add(category="s")
    other = await feeds.add("b")
    await feeds.publish(feed, an_entry("a", title="Secret"))
    await feeds.publish(other, an_entry("b"))
    await build(hub)
    await feeds.publish(feed, an_entry("a", title="Secret again"))
    await build(hub, later=HOUR)
    crawlers = [ScpCrawler(anybody), ScpCrawler(anybody, "s")]
    for crawler in crawlers:
        await crawler.crawl()
        assert "https://example.org/a" in crawler.pages
    known = [each.url for each in await crawlers[0].advertised()]
    known += [each.url for each in await crawlers[1].advertised()]
    await feeds.withdraw(feed, "a")
    assert await build(hub, later=HOUR) == [
        "all delta 0",
        "all snapshot 1",
        "s delta 0",
        "s snapshot 0",
    ]
    for crawler in crawlers:
        await crawler.crawl()
        assert "https://example.org/a" not in crawler.pages
    newcomer = ScpCrawler(anybody)
    await newcomer.crawl()
    assert b"Secret" not in b"".join(newcomer.raw)
    # Nobody gets it by a name that was known before either.
    for url in known:
        assert (await anybody.get(url)).status_code == 410
    # It returns, and is newer than it ever was.
    await feeds.publish(feed, an_entry("a", title="Back"))
    await build(hub, later=HOUR)
    for crawler in crawlers:
        await crawler.crawl()
        assert crawler.pages["https://example.org/a"]["title"] == "Back"


async def test_hidden_feeds_and_moved_ones_are_followed(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add("a", category="one")
    await feeds.publish(feed, an_entry("a"))
    await build(hub)
    moved = FeedChange(category="two")
    await hub.storage.feeds.edit(feed.id, moved, "", START)
    assert await build(hub, later=HOUR) == [
        "all delta 1",
        "one delta 0",
        "one snapshot 0",
        "two snapshot 1",
    ]
    await hub.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    assert await build(hub, later=HOUR) == [
        "all delta 0",
        "all snapshot 0",
        "two delta 0",
        "two snapshot 0",
    ]
    await hub.storage.feeds.add(NewFeed(url=feed.url), START)
    assert await build(hub, later=HOUR) == ["all delta 1", "two delta 1"]


async def test_a_page_of_two_feeds_is_one_with_one_history(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    first = await feeds.add("a", category="one")
    second = await feeds.add("b", category="two")
    await feeds.publish(first, an_entry("x", title="Older"))
    later = START + timedelta(minutes=1)
    await feeds.publish(second, an_entry("x", title="Newer", published=later))
    await build(hub)
    crawlers = [ScpCrawler(anybody, name) for name in ("all", "one", "two")]
    for crawler, title in zip(crawlers, ("Newer", "Older", "Newer"), strict=True):
        await crawler.crawl()
        (page,) = crawler.pages.values()
        assert page["title"] == title
    await feeds.withdraw(second, "x")
    await build(hub, later=HOUR)
    for crawler, titles in zip(crawlers, (["Older"], ["Older"], []), strict=True):
        await crawler.crawl()
        assert [page["title"] for page in crawler.pages.values()] == titles


@pytest.mark.parametrize("section", ["", "s"])
async def test_each_change_of_a_feeds_language_rewrites_its_pages(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds, section: str
) -> None:
    head = Feed(title="A", language="de")
    feed = await feeds.add(category=section, head=head)
    own = an_entry("own", language="it")
    await feeds.publish(feed, an_entry("a", language="de"), an_entry("b"), own)
    await build(hub)
    crawler = ScpCrawler(anybody, section or "all")
    await crawler.crawl()
    for language in ("fr", "de", "fr", ""):
        head = Feed(title="A", language=language)
        now = hub.clock.now()
        await hub.storage.log.commit(fetch(feed, when=now, head=head))
        hub.clock.advance(HOUR)
        built = await hub.services.collections.build(snapshots=False)
        assert [each.pages for each in built] == [2] * len(built)
        await crawler.follow_deltas()
        found = [crawler.pages[f"https://example.org/{key}"] for key in ("a", "b")]
        assert [page["language"] for page in found] == [
            language or "de",  # it took that over once
            language or "en",
        ]
        assert crawler.pages["https://example.org/own"]["language"] == "it"
    answer = await anybody.get("/openfeeder?url=https://example.org/b")
    assert answer.json()["language"] == "en"


async def test_another_setting_rewrites_pages_that_name_no_language(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"), an_entry("b", language="it"))
    await build(hub)
    store = CollectionStore(hub.directory / "scp")
    for language in ("de", "en", "de"):  # the hub was started with it
        hub.clock.advance(HOUR)
        store.open()
        updater = PageUpdater(
            hub.storage.pages, hub.clock, "http://hub.example", language
        )
        options = BuildOptions(language=language)
        builder = CollectionBuilder(hub.storage, updater, store, hub.clock, options)
        (delta,) = await builder.build()
        lines = gzip.decompress(store.path(delta.name).read_bytes()).splitlines()[1:]
        assert [json.loads(line)["language"] for line in lines] == [language]


async def test_a_name_is_served_until_its_time_is_over_and_one_interval_more(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    await build(hub)
    (first,) = await ScpCrawler(anybody).advertised()
    path = first.url.removeprefix("http://hub.example")
    day = 24 * HOUR
    for _ in range(2):
        await build(hub, later=day)
        assert first not in await ScpCrawler(anybody).advertised()
        assert (await anybody.get(path)).status_code == 200
    hub.clock.advance(day)
    answer = await anybody.get(path)
    assert answer.status_code == 410
    assert "expired" in answer.json()["detail"]
    await build(hub)
    assert (await anybody.get(path)).status_code == 410
    assert not (hub.directory / path.removeprefix("/")).exists()
    assert (await anybody.get("/scp/nothing.scp.gz")).status_code == 404
    assert (await anybody.get("/scp/collections.json")).status_code == 404


async def test_a_withdrawal_takes_back_no_collection_that_has_not_the_page(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed, other = await feeds.add(category="s"), await feeds.add("b", category="t")
    await feeds.publish(feed, an_entry("a"))
    await feeds.publish(other, an_entry("b"))
    await build(hub)
    (kept,) = await ScpCrawler(anybody, "t").advertised()
    await feeds.withdraw(feed, "a")
    await build(hub, later=HOUR)
    assert await ScpCrawler(anybody, "t").advertised() == [kept]
    assert (await anybody.get(kept.url)).status_code == 200


async def test_a_sitemap_names_nothing_that_has_expired(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    """Though nothing is built meanwhile."""
    await feeds.publish(await feeds.add(), an_entry("a"))
    await build(hub)
    hub.clock.advance(48 * HOUR - 60)
    assert len(await ScpCrawler(anybody).advertised()) == 1
    hub.clock.advance(60)
    assert await ScpCrawler(anybody).advertised() == []
    assert faults_of_sitemap((await anybody.get("/sitemap.xml")).content) == []


async def test_what_is_taken_away_is_neither_named_nor_found_and_is_built_anew(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    await feeds.publish(await feeds.add(), an_entry("a"))
    await build(hub)
    whole = await anybody.get("/sitemap.xml")
    (lost,) = await ScpCrawler(anybody).advertised()
    hub.clock.advance(60)
    shutil.rmtree(hub.directory / "scp")
    assert await ScpCrawler(anybody).advertised() == []
    assert (await anybody.get(lost.url)).status_code == 404
    since = {"If-Modified-Since": whole.headers["last-modified"]}
    answer = await anybody.get("/sitemap.xml", headers=since)
    assert answer.status_code == 200
    assert faults_of_sitemap(answer.content) == []
    assert await build(hub, later=60) == ["all delta 0", "all snapshot 1"]
    crawler = ScpCrawler(anybody)
    await crawler.crawl()
    assert list(crawler.pages) == ["https://example.org/a"]


async def test_a_delta_that_is_taken_away_makes_a_snapshot_due(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    await build(hub)
    await feeds.publish(feed, an_entry("b"))
    await build(hub, later=HOUR)
    for each in await ScpCrawler(anybody).advertised():
        if not each.is_snapshot:
            (hub.directory / "scp" / each.url.rpartition("/")[2]).unlink()
    assert await build(hub, later=HOUR) == ["all delta 0", "all snapshot 2"]
    crawler = ScpCrawler(anybody)
    await crawler.crawl()
    assert len(crawler.pages) == 2
    assert await build(hub, later=HOUR) == []


async def test_headers_say_how_long_a_collection_may_be_kept(
    anybody: httpx2.AsyncClient, hub: Hub, feeds: PublicFeeds
) -> None:
    feed = await feeds.add()
    await feeds.publish(feed, an_entry("a"))
    await build(hub)
    await feeds.publish(feed, an_entry("b"))
    await build(hub, later=HOUR)
    found = {
        each.is_snapshot: await anybody.head(each.url)
        for each in await ScpCrawler(anybody).advertised()
    }
    assert found[True].headers["cache-control"] == "public, max-age=86400, immutable"
    delta = "public, max-age=3600, must-revalidate"
    assert found[False].headers["cache-control"] == delta
    assert all(each.headers["content-encoding"] == "gzip" for each in found.values())


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
async def test_collections_are_compressed_as_the_setting_says(
    tmp_path_factory: pytest.TempPathFactory, encoding: str
) -> None:
    async with open_hub(tmp_path_factory.mktemp("h"), scp_compression=encoding) as hub:
        feeds = PublicFeeds(hub.storage)
        feed = await feeds.add()
        await feeds.publish(feed, *(an_entry(str(n)) for n in range(9)))
        await build(hub)
        async with client_of(hub.application) as client:
            crawler = ScpCrawler(client)
            await crawler.crawl()
            assert len(crawler.pages) == 9
            answer = await client.get("/sitemap.xml")
            assert encoding.encode() in answer.content
            assert faults_of_sitemap(answer.content) == []


async def test_only_administrators_have_collections_built(
    anybody: httpx2.AsyncClient,
) -> None:
    assert (await anybody.post("/api/scp/build", json={})).status_code == 401
