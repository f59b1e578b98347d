"""Sites that are read in steps, on every engine."""

from __future__ import annotations

from msgspec.structs import replace

from storage.records import (
    FeedState,
    FetchCommit,
    SiteTally,
    SiteWrite,
    StoredFeed,
    StoredSitePage,
)
from tests.support.storage_scene import START, Scene, at, fetch


def a_page(key: str, **more: int) -> StoredSitePage:
    return StoredSitePage(key=key, reference=f"/{key}", content=2**63 - 1, **more)


def step(feed: StoredFeed, *pages: StoredSitePage, **more: object) -> FetchCommit:
    write = replace(SiteWrite(state=b"state", pages=pages), **more)
    return replace(fetch(feed), site=write)


async def test_a_site_that_was_never_read_has_neither_state_nor_pages(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    sites = scene.storage.sites

    assert await sites.state(feed.id) == b""
    assert await sites.known(feed.id, ["a"]) == []
    assert await sites.tally(feed.id, 1) == SiteTally(pages=0, unlisted=0)


async def test_state_and_pages_are_written_with_the_step_that_found_them(
    scene: Scene,
) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    sites = scene.storage.sites
    a, b = a_page("a", stamp=7, walk=1, day=3, changes=2), a_page("b", walk=1)

    await scene.storage.log.commit(step(feed, a, b))
    await scene.storage.log.commit(step(other, a_page("a"), state=b"other"))
    changed = replace(a, content=5, is_deleted=True)
    await scene.storage.log.commit(step(feed, changed, state=b"second"))

    assert await sites.state(feed.id) == b"second"
    known = await sites.known(feed.id, ["b", "a", "a", "c"])
    assert sorted(known, key=lambda page: page.key) == [changed, b]
    assert await sites.known(other.id, ["a", "b"]) == [a_page("a")]
    assert await sites.known(feed.id, []) == []


async def test_pages_are_listed_anew_by_their_keys_and_found_where_they_are_not(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    sites = scene.storage.sites
    pages = [a_page(f"page {number}", walk=1) for number in range(9)]
    gone = a_page("gone", walk=1, is_deleted=True)
    await scene.storage.log.commit(step(feed, *pages, gone))

    listed = ("page 3", "page 5", "unknown")
    await scene.storage.log.commit(step(feed, listed=listed, walk=2))

    assert await sites.tally(feed.id, 2) == SiteTally(pages=9, unlisted=7)
    found: list[StoredSitePage] = []
    after = ""
    while part := await sites.unlisted(feed.id, 2, after=after, limit=3):
        assert len(part) <= 3
        found += part
        after = part[-1].key
    assert {page.key for page in found} == {
        f"page {number}" for number in range(9) if number not in (3, 5)
    }
    assert len(found) == 7


async def test_a_purged_feed_takes_its_pages_along(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.storage.log.commit(step(feed, a_page("a")))

    feeds = scene.storage.feeds
    await feeds.set_state(feed.id, FeedState.REMOVED, START)
    await feeds.purge_removed(at(1), 9)

    assert await scene.storage.sites.known(feed.id, ["a"]) == []
    assert await scene.storage.sites.state(feed.id) == b""
