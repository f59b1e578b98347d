"""Adding pages, on real sockets: the feed they name, or the choice they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocols.openfeeder.read.site_urls import LLMS, WELL_KNOWN
from tests.support.command import fanfare, knowing
from tests.support.creator import a_creator_feed
from tests.support.hub_process import HubProcess
from tests.support.publisher import Publisher

pytestmark = pytest.mark.once("feeds are found before anything is stored")

LINK = '<link rel="alternate" type="application/atom+xml" title="{}" href="{}">'
FEED = '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title></feed>'


async def test_of_a_page_its_feed_is_added_and_asked_for_once(tmp_path: Path) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        page = (
            "<!doctype html>" + LINK.format("T", "/a") + LINK.format("Comments", "/c")
        )
        site.put("/", page, "text/html")
        site.put("/a", FEED, "application/atom+xml")

        done = await fanfare("feeds", "add", site.url(), variables=knowing(hub))
        direct = await fanfare("feeds", "add", site.url("/a"), variables=knowing(hub))

        assert done.code == 0, done.err
        assert f"added  {site.url('/a')}" in done.out
        assert f"known  {site.url('/a')}" in direct.out
        looked = [WELL_KNOWN, "/robots.txt", "/sitemap.xml", LLMS]
        assert site.asked == ["/", *looked, "/a"]


async def test_a_feed_that_is_added_is_asked_for_once(tmp_path: Path) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        site.put("/feed.json", a_creator_feed("a"))

        done = await fanfare(
            "feeds", "add", site.url("/feed.json"), variables=knowing(hub)
        )

        assert "1 entry" in done.out
        assert site.asked == ["/feed.json"]


async def test_a_feed_in_a_usual_place_is_asked_for_once(tmp_path: Path) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        site.put("/", "<!doctype html><p>Hello", "text/html")
        site.put("/feed", FEED, "application/atom+xml")

        done = await fanfare("feeds", "add", site.url(), variables=knowing(hub))

        assert f"added  {site.url('/feed')}" in done.out
        assert site.asked.count("/feed") == 1


async def test_a_choice_is_listed_and_left_with_status_3(tmp_path: Path) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        page = (
            "<!doctype html>" + LINK.format("News", "/a") + LINK.format("Sport", "/b")
        )
        site.put("/", page, "text/html")

        added = await fanfare("feeds", "add", site.url(), variables=knowing(hub))
        found = await fanfare("feeds", "discover", site.url(), variables=knowing(hub))
        listed = await fanfare("feeds", "list", variables=knowing(hub))

        assert (added.code, found.code) == (3, 3)
        for output in (added.out, found.out):
            assert f"{site.url('/a')}  (News, application/atom+xml)" in output
            assert f"{site.url('/b')}  (Sport, application/atom+xml)" in output
        assert "no feeds yet" in listed.out


async def test_a_page_without_feeds_is_registered_with_its_error(
    tmp_path: Path,
) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        site.put("/", "<!doctype html><p>Hello", "text/html")

        added = await fanfare("feeds", "add", site.url(), variables=knowing(hub))
        found = await fanfare("feeds", "discover", site.url(), variables=knowing(hub))

        assert (added.code, found.code) == (1, 1)
        assert "this is an HTML page, not a feed" in added.err
        assert "no feed: this is an HTML page, not a feed" in found.err
