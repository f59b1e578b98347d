"""The page at ``/`` in a real browser, with a hub that has something to show.

Where no Chromium is installed these cases are skipped; what the page's program relies
on, its one request and the members of the events that it reads, is tested all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from lxml import html

from tests.support.browser import Browser, Tab, find_browser
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.waiting import eventually

PROGRAM = find_browser()
HOSTILE = "<img src=x onerror=document.title=1><script>document.title=2</script> &amp;"
LONG_WORD = "entry" * 80

in_a_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")


@dataclass(frozen=True, slots=True)
class Scene:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    feed: PublishedFeed
    feed_id: int

    async def publish(self, title: str = HOSTILE) -> None:
        """A new entry, by default with a title that is dangerous as markup."""
        escaped = title.replace("&", "&amp;").replace("<", "&lt;")
        self.feed.titles[self.feed.count + 1] = escaped
        self.publisher.publish(self.feed)
        await self.api.fetch(self.feed_id)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    hub = HubProcess(directory=tmp_path)
    async with Publisher() as publisher, hub, HubApi(hub.url) as api:
        feed = publisher.add_feed()
        feed_id = await api.add_feed(publisher.url(feed))
        yield Scene(hub, api, publisher, feed, feed_id)


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    assert PROGRAM is not None
    async with Browser(PROGRAM, tmp_path / "browser") as browser:
        yield await browser.new_tab()


async def first_notification(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    name = ""
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: ") and name == "notification":
            message: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return message
    raise AssertionError("the event stream ended")


async def the_page_of(scene: Scene) -> html.HtmlElement:
    async with (
        aiohttp.ClientSession() as session,
        session.get(scene.hub.url) as answer,
    ):
        return html.fromstring(await answer.text())


async def test_the_pages_request_brings_events_with_what_its_program_reads(
    scene: Scene,
) -> None:
    document = await the_page_of(scene)
    topics = document.xpath("//li/@data-live")
    assert topics == [scene.publisher.url(scene.feed)]
    stream = f"{scene.hub.url}/stream?{urlencode({'topic': topics[0]})}"
    headers = {"Accept": "text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(stream, headers=headers) as answer,
    ):
        assert answer.status == 200
        await scene.publish()
        body = (await first_notification(answer))["body"]
    [item] = body["items"]
    assert body["title"] == "Feed 1"
    assert item["permalinkUrl"] == "https://publisher.example/1/2"
    assert item["title"] == HOSTILE


async def until_it_says(tab: Tab, what: str) -> None:
    async def is_said() -> bool:
        said = await tab.evaluate("document.getElementById('state').textContent")
        return what in str(said)

    await eventually(is_said, seconds=60)


async def until_it_shows(tab: Tab, entries: int) -> None:
    async def are_shown() -> bool:
        count = "document.querySelectorAll('#entries li').length"
        return bool(await tab.evaluate(count) == entries)

    await eventually(are_shown, seconds=60)


@in_a_browser
async def test_entries_appear_by_themselves_and_whatever_they_say_is_text(
    scene: Scene, tab: Tab
) -> None:
    await tab.open(scene.hub.url)
    await until_it_says(tab, "Listening")
    await scene.publish()
    await until_it_shows(tab, 1)
    await scene.publish("A later one")
    await until_it_shows(tab, 2)
    titles = "[...document.querySelectorAll('#entries a')].map((a) => a.textContent)"
    assert await tab.evaluate(titles) == ["A later one", HOSTILE]
    links = "[...document.querySelectorAll('#entries a')].map((a) => a.href)"
    expected = [f"https://publisher.example/1/{number}" for number in (3, 2)]
    assert await tab.evaluate(links) == expected
    assert await tab.evaluate("document.title") == "Fanfare"
    assert await tab.evaluate("document.images.length") == 0
    assert await tab.evaluate("document.scripts.length") == 1
    assert tab.complaints == []


@in_a_browser
async def test_a_hub_that_comes_back_is_listened_to_again(
    scene: Scene, tab: Tab
) -> None:
    await tab.open(scene.hub.url)
    await until_it_says(tab, "Listening")
    await scene.hub.kill()
    await until_it_says(tab, "The connection was lost")
    await scene.hub.start()
    await scene.hub.wait_ready()
    await scene.publish("While it was away")
    await until_it_shows(tab, 1)
    await until_it_says(tab, "Listening")


@in_a_browser
async def test_the_examples_are_for_the_feed_that_is_chosen(
    scene: Scene, tab: Tab
) -> None:
    other = f"{scene.publisher.url(scene.publisher.add_feed())}?a=1&b='$(x)"
    await scene.api.request("POST", "/api/feeds?wait=0", url=other)
    await eventually(lambda: has_both(scene))
    await tab.open(scene.hub.url)
    await tab.evaluate("document.querySelectorAll('li button')[1].click()")
    shown = "[...document.querySelectorAll('[data-topic]')].map((it) => it.textContent)"
    quoted = "'" + other.replace("'", "'\"'\"'") + "'"
    assert await tab.evaluate(shown) == [
        other,
        quoted,
        quoted,
        json.dumps(other),
        quoted,
    ]
    pressed = "[...document.querySelectorAll('li button')].map((b) => b.ariaPressed)"
    assert await tab.evaluate(pressed) == ["false", "true"]
    assert tab.complaints == []


async def has_both(scene: Scene) -> bool:
    """The page's list is some seconds old at most."""
    return len((await the_page_of(scene)).xpath("//li/@data-live")) == 2


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_it_can_be_read_on_any_screen(
    scene: Scene, tab: Tab, width: int, scheme: str
) -> None:
    await tab.see(width=width, height=900, scheme=scheme)
    await tab.open(scene.hub.url)
    await until_it_says(tab, "Listening")
    await scene.publish(LONG_WORD)
    await until_it_shows(tab, 1)
    assert await tab.evaluate("document.documentElement.scrollWidth") <= width
    contrasts = await tab.evaluate(CONTRASTS)
    assert len(contrasts) > 10
    assert [each for each in contrasts if each[1] < LEAST_CONTRAST] == []


LEAST_CONTRAST = 4.5
"""Of text, WCAG 2.2 1.4.3."""
CONTRASTS = """
(() => {
  const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = rgb(color).slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = (node) => {
    const color = getComputedStyle(node).backgroundColor;
    const isClear = rgb(color)[3] === 0 && node.parentElement;
    return isClear ? paper(node.parentElement) : color;
  };
  const isText = (node) => node.nodeType === 3 && node.data.trim();
  return [...document.body.querySelectorAll("*")]
    .filter((node) => [...node.childNodes].some(isText))
    .map((node) => {
      const [a, b] = [light(getComputedStyle(node).color), light(paper(node))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return [`${node.tagName} ${node.textContent.slice(0, 20)}`, contrast];
    });
})()
"""


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_diagnostics_of_a_request_can_be_read(
    scene: Scene, tab: Tab, scheme: str
) -> None:
    form = {
        "hub.mode": "subscribe",
        "hub.topic": scene.publisher.url(scene.feed),
        "hub.callback": f"https://you.example/<script>/{LONG_WORD}",
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{scene.hub.url}/hub", data=form) as answer,
    ):
        link = answer.headers["Link"].partition("<")[2].partition(">; rel")[0]
    await tab.see(width=320, height=900, scheme=scheme)
    await tab.open(link)
    shown = await tab.evaluate("document.body.innerText")
    assert "Request to subscribe" in shown
    assert form["hub.callback"] in shown
    assert await tab.evaluate("document.documentElement.scrollWidth") <= 320
    assert await tab.evaluate("document.scripts.length") == 0
    assert tab.complaints == []


@in_a_browser
async def test_what_a_policy_forbids_would_be_noticed(tab: Tab) -> None:
    page = "<!doctype html><p onclick='x()'>a</p><script>y()</script>"
    policy = {"Content_Security_Policy": "default-src 'none'"}
    async with Publisher() as publisher:
        await tab.open(publisher.put("/", page, "text/html", **policy).url)
        await eventually(lambda: bool(tab.complaints))
    assert re.search("Content Security Policy", " ".join(tab.complaints))
