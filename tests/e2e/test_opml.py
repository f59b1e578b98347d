"""Lists of feeds imported into a running hub."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from protocols.opml import read_outlines
from tests.support.command import fanfare, knowing
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher

FEED = '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title></feed>'


async def test_a_sites_lists_are_found_and_imported_once(tmp_path: Path) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        site.put("/a", FEED, "application/atom+xml")
        site.put("/b", FEED, "application/atom+xml")
        site.put(
            "/myPublicFeeds.opml",
            '<opml><body><outline text="News">'
            '<outline type="rss" text="A" xmlUrl="/a"/></outline>'
            '<outline type="link" xmlUrl="/more.opml"/></body></opml>',
            "text/x-opml",
        )
        site.put(
            "/more.opml",
            '<opml><body><outline xmlUrl="/b"/><outline xmlUrl="/a"/>'
            '<outline type="link" xmlUrl="/myPublicFeeds.opml"/></body></opml>',
        )
        source = site.url("/myPublicFeeds.opml")

        found = await fanfare("opml", "discover", site.url(), variables=knowing(hub))
        dry = await fanfare(
            "opml", "import", source, "--dry-run", variables=knowing(hub)
        )
        first = await fanfare("opml", "import", source, variables=knowing(hub))
        again = await fanfare("opml", "import", source, variables=knowing(hub))
        listed = await fanfare("feeds", "list", "--json", variables=knowing(hub))

        assert found.code == 0, found.err
        assert found.out.startswith(f"{site.url('/a')}  [News]\n  A\n{site.url('/b')}")
        assert "2 would be added" in dry.out
        assert first.out.endswith("2 added, of 2 feeds\n"), first.out
        assert again.out.endswith("2 already there, of 2 feeds\n"), again.out
        assert '"category": "News"' in listed.out


UNNAMED = '<feed xmlns="http://www.w3.org/2005/Atom"></feed>'


async def test_what_was_imported_is_exported_with_folders_and_names(
    tmp_path: Path,
) -> None:
    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:
        site.put("/named", FEED, "application/atom+xml")
        site.put("/unnamed", UNNAMED, "application/atom+xml")
        listing = (
            '<opml version="2.0"><body><outline text="News"><outline text="Far off">'
            f'<outline text="Mine" description="Told" xmlUrl="{site.url("/unnamed")}"/>'
            "</outline></outline>"
            f'<outline text="Other" xmlUrl="{site.url("/named")}"/>'
            f'<outline text="Gone" xmlUrl="{site.url("/gone")}"/></body></opml>'
        )
        source = tmp_path / "in.opml"
        source.write_text(listing)
        await fanfare("opml", "import", str(source), variables=knowing(hub))
        async with HubApi(hub.url) as api:
            for number in (1, 2, 3):
                with suppress(AssertionError):
                    await api.fetch(number)

        exported = await fanfare("opml", "export", variables=knowing(hub))

        found = read_outlines(exported.out.encode(), "").feeds
        assert {(each.title, each.description, each.category) for each in found} == {
            ("Mine", "Told", "News/Far off"),  # it says nothing of itself
            ("T", "T", ""),  # its own
            ("Gone", "Gone", ""),  # it could not be read yet
        }


async def test_the_hub_stays_in_step_with_a_watched_list(tmp_path: Path) -> None:
    """Also after it was killed, and though the list breaks."""
    listing = '<opml><body><outline text="Partners">{}</outline></body></opml>'
    outline = '<outline text="{0}" xmlUrl="/{0}"/>'

    async with Publisher() as site, HubProcess(directory=tmp_path) as hub:

        def put(*names: str) -> None:
            feeds = "".join(outline.format(each) for each in names)
            site.put("/list.opml", listing.format(feeds))

        async def categories() -> dict[str, str]:
            run = await fanfare("feeds", "list", "--json", variables=knowing(hub))
            return {each["url"][-1]: each["category"] for each in json.loads(run.out)}

        for name in "abcd":
            site.put(f"/{name}", FEED, "application/atom+xml")
        put("a", "b", "c")
        command = ("opml", "import", site.url("/list.opml"), "--watch")

        first = await fanfare(*command, variables=knowing(hub))
        assert first.code == 0, first.err
        assert "3 feeds, 3 added" in first.out
        assert await categories() == dict.fromkeys("abc", "Partners")

        await hub.kill()
        await hub.start()
        await hub.wait_ready()
        site.put("/list.opml", listing.format(outline.format("a"))[:-20])
        broken = await fanfare(*command, variables=knowing(hub))
        assert broken.code == 1
        assert await categories() == dict.fromkeys("abc", "Partners")

        put("a", "b", "d")
        again = await fanfare(*command, variables=knowing(hub))
        assert "3 feeds, 1 added, 1 removed" in again.out, again.err
        assert await categories() == dict.fromkeys("abd", "Partners")

        listed = await fanfare("opml", "watches", variables=knowing(hub))
        assert site.url("/list.opml") in listed.out
        await fanfare("opml", "unwatch", "1", variables=knowing(hub))
        ended = await fanfare("opml", "watches", "--json", variables=knowing(hub))
        assert json.loads(ended.out) == []
