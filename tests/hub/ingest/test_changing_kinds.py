"""A source that changes its kind at the same URL keeps its identity."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from storage.records import FeedId
from tests.support.clock import ManualClock
from tests.support.one_blog import FORMATS
from tests.support.openfeeder import WELL_KNOWN, FeederSite
from tests.support.site_visits import Page, PolledHub, polled_hub

BASE = "https://site.exempt"
URL = f"{BASE}{WELL_KNOWN}"


class Pages(dict[str, Page]):
    """What is not put there is answered by the site."""

    def __init__(self, site: FeederSite) -> None:
        self.site = site

    def __missing__(self, url: str) -> Page:
        parts = urlsplit(url)
        answer = self.site.answer(parts.path, dict(parse_qsl(parts.query)), {})
        return answer.body if answer.status == 200 else answer.status


def a_feed(*paths: str) -> bytes:
    """In RSS, with ids that say nothing of the links."""
    items = "".join(
        f"<item><guid isPermaLink='false'>id of {path}</guid><title>On {path}</title>"
        f"<link>{BASE}{path}</link></item>"
        for path in paths
    )
    return f"<rss version='2.0'><channel>{items}</channel></rss>".encode()


async def fetch(hub: PolledHub, site: FeederSite, feed_id: FeedId) -> None:
    """Twice, so that what is told at once is not told again either."""
    for _ in range(2):
        site.now = hub.clock.now() + timedelta(seconds=3_600)
        polling = await hub.fetch(feed_id)
        assert polling.error == ""


async def test_a_feed_becomes_a_site_and_again_a_feed(tmp_path: Path) -> None:
    clock = ManualClock()
    site = FeederSite(base=BASE, now=clock.now() - timedelta(days=9))
    site.add("/long-ago")
    async with polled_hub(tmp_path / "hub.db", clock) as hub:
        hub.sites.pages = Pages(site)
        hub.sites.pages[URL] = a_feed("/a", "/b")
        feed_id = await hub.add(URL)

        for path in ("/a", "/b", "/c"):
            site.now = clock.now() + timedelta(seconds=600)
            site.add(path)
        del hub.sites.pages[URL]
        await fetch(hub, site, feed_id)
        assert await hub.told(feed_id) == ["On /c"]

        site.add("/d")
        await fetch(hub, site, feed_id)
        hub.sites.pages[URL] = a_feed("/e", "/d", "/c", "/b", "/a")
        await fetch(hub, site, feed_id)
        assert await hub.told(feed_id) == ["On /c", "On /d", "On /e"]

        site.add("/e")
        site.now = clock.now() + timedelta(seconds=1_800)
        site.add("/f")
        del hub.sites.pages[URL]
        await fetch(hub, site, feed_id)

        assert await hub.told(feed_id) == ["On /c", "On /d", "On /e", "On /f"]
        assert set(await hub.kinds(feed_id)) == {"entries"}


async def test_a_site_that_was_never_a_feed_becomes_one(tmp_path: Path) -> None:
    clock = ManualClock()
    site = FeederSite(base=BASE, now=clock.now() - timedelta(days=9))
    for path in ("/a", "/b"):
        site.add(path)
    async with polled_hub(tmp_path / "hub.db", clock) as hub:
        hub.sites.pages = Pages(site)
        feed_id = await hub.add(URL)

        hub.sites.pages[URL] = a_feed("/c", "/b", "/a")
        await fetch(hub, site, feed_id)

        assert await hub.told(feed_id) == ["On /c"]


async def test_of_a_feed_that_has_nothing_of_the_site_it_was_nothing_is_told(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    site = FeederSite(base=BASE, now=clock.now() - timedelta(days=9))
    site.add("/a")
    async with polled_hub(tmp_path / "hub.db", clock) as hub:
        hub.sites.pages = Pages(site)
        feed_id = await hub.add(URL)

        hub.sites.pages[URL] = a_feed("/x", "/y")
        await fetch(hub, site, feed_id)

        assert await hub.told(feed_id) == []


async def test_from_any_format_to_any_other_and_back_nothing_is_told_twice(
    tmp_path: Path,
) -> None:
    async with polled_hub(tmp_path / "hub.db", ManualClock()) as hub:
        for number, (one, other) in enumerate(permutations(FORMATS.values(), 2)):
            url = f"https://blog.exempt/{number}"
            hub.sites.pages[url] = one("abc")
            feed_id = await hub.add(url)
            for write, names in ((one, "abc"), (other, "dabc"), (one, "edabc")):
                hub.sites.pages[url] = write(names)
                await hub.fetch(feed_id)

            told = await hub.told(feed_id), await hub.kinds(feed_id)
            assert told == (["On d", "On e"], ["entries", "entries"]), (
                one(""),
                other(""),
            )
