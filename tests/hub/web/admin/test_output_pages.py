"""What the hub publishes, as operators read it, and programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hub.core.byte_sizes import byte_size
from hub.services.output_reports import MOST_MEASURED
from protocols.model import Feed
from storage.records import FetchCommit, NewFeed, Polling
from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.documents import an_entry
from tests.support.operator_browser import OperatorBrowser, read, rows, text_of
from tests.support.services import Hub, open_hub
from tests.support.waiting import eventually

PAGE = "/admin/outputs"


async def publish(hub: Hub) -> None:
    now = hub.clock.now()
    feed, _ = await hub.storage.feeds.add(NewFeed(url="https://a.example/feed"), now)
    await hub.storage.log.commit(
        FetchCommit(
            feed_id=feed.id,
            at=now,
            next_fetch=now,
            polling=Polling(code=200, last_fetch=now),
            title="A feed",
            format="atom",
            head=Feed(title="A feed"),
            entries=(an_entry("1", link="https://a.example/1"),),
        )
    )


async def outputs(client: httpx2.AsyncClient) -> dict[str, Any]:
    return dict((await client.get("/api/outputs", headers=ADMIN)).json())


async def test_each_output_is_told_with_who_read_it(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    await publish(hub)
    opml_headers = {"User-Agent": "ClaudeBot/1.0"}
    document = await client.get("/myPublicFeeds.opml", headers=opml_headers)
    await client.get("/topics/1.atom")
    await client.get("/topics/99.atom")  # which is not there
    opml, topics, *_ = rows(await browser.open(PAGE))
    assert opml == [
        "List of public feeds (OPML)",
        "1 feed",
        byte_size(len(document.content)),
        "1",
        "1",
        "ClaudeBot 1",
    ]
    assert topics[1:] == ["1 feed, 0 entries", "made on request", "1", "1", "others 1"]
    found = await outputs(client)
    assert (found["topics"], found["opml_size"]) == (1, len(document.content))


async def test_a_long_list_is_as_long_as_it_was_when_it_was_last_asked_for(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    for number in range(MOST_MEASURED + 1):
        new = NewFeed(url=f"https://a.example/{number}")
        await hub.storage.feeds.add(new, hub.clock.now())
    assert (await outputs(client))["opml_size"] is None
    assert rows(await browser.open(PAGE))[0][2] == "made on request"
    document = await client.get("/myPublicFeeds.opml")
    assert (await outputs(client))["opml_size"] == len(document.content)


async def test_a_build_is_asked_for_watched_and_told(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    await publish(hub)
    assert "none yet" in text_of(await browser.open(PAGE))
    form_token = await browser.form_token()
    answer = await browser.send(f"{PAGE}/build", form_token=form_token, snapshots="yes")
    assert answer.headers["location"] == f"{PAGE}#collections"
    waiting = await browser.open(PAGE)
    assert "Being built" in text_of(waiting)
    assert waiting.headers["refresh"]
    publisher = asyncio.create_task(hub.built.background["asked builds"]())
    await eventually(lambda: hub.services.collections.last_build is not None)
    await eventually(lambda: not hub.services.collections.is_wanted)
    publisher.cancel()
    await asyncio.wait([publisher])
    page = await browser.open(PAGE)
    assert "Last built" in text_of(page)
    assert "refresh" not in page.headers
    found = (await outputs(client))["collections"]
    assert found["total"] == len(found["listed"]) > 0
    assert found["last_build"]["error"] == ""
    links = read(page).xpath("//a[starts-with(@href, '/scp/')]/@href")
    for link in links:
        assert (await client.get(link)).status_code == 200
    assert len(links) == found["total"]


async def test_a_build_that_fails_is_told_with_its_reason(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    await publish(hub)
    folder = hub.directory / "scp"
    folder.rmdir()
    folder.write_text("in the way")
    await client.post("/api/scp/build", json={}, headers=ADMIN)
    assert "The last build failed" in text_of(await browser.open(PAGE))
    assert (await outputs(client))["collections"]["last_build"]["error"]


@pytest.mark.parametrize("setting", ["scp", "openfeeder"])
async def test_what_is_off_is_said_to_be(tmp_path: Path, setting: str) -> None:
    async with (
        open_hub(tmp_path, **{setting: "off"}) as hub,
        client_of(hub.application) as client,
    ):
        browser = OperatorBrowser(client)
        await browser.log_in()
        page = text_of(await browser.open(PAGE))
        found = await outputs(client)
    if setting == "scp":
        assert "There are none: FANFARE_SCP is off." in page
        assert found["collections"] is None
    else:
        assert "OpenFeeder is off" in page
        assert not found["openfeeder"]
