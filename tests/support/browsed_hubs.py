"""Hubs to look at in a browser, with data of several kinds, and where their pages are.

The addresses of pages are read from the links of other pages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode, urlsplit
from xml.sax.saxutils import quoteattr

from playwright.async_api import Browser, BrowserContext, Cookie
from websockets.asyncio.client import connect

from scripts.benchmarks.stored_lists import ListLengths, open_lists
from scripts.linked_pages import PAGES, STARTS, Fetch, find_addresses
from tests.support.admin import ADMIN
from tests.support.chromium import CONTRAST, PHONE, Tab, new_tab
from tests.support.command import fanfare, knowing
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubApi, HubProcess
from tests.support.operator_browser import HOSTILE, OPENED
from tests.support.publisher import Publisher
from tests.support.stage import Stage, open_stage

SHOWN: Final = "<>'\"=(){}%/ "
"""Characters that a header shows as they are, though HTML gives them a meaning."""
MANY_FEEDS: Final = 60
"""More feeds than a page of the list has."""
FIXED_PAGES: Final = [each for each in PAGES if "{" not in each]
LARGE: Final = ListLengths(feeds=100_000, subscriptions=1_000, deliveries=1_000)
"""Lengths of lists; ``scripts/bench pages`` shows that longer ones are as quick."""


OF_ANY_HUB: Final = ("/docs/", "/about", "/admin/login", "/account/login")
MOST_ADDRESSES: Final = 3
"""Addresses of one page to look at in a lively hub, whose feeds differ in state."""


class Kind(StrEnum):
    EMPTY = "empty"
    LIVELY = "lively"
    FAILING = "failing"
    LARGE = "large"

    def shown(self, page: str) -> int:
        """At how many addresses a page is looked at in a hub of this kind.

        A page that does not depend on what is in the hub is looked at once.
        """
        if page.startswith(OF_ANY_HUB):
            return 1 if self is Kind.LIVELY else 0
        return MOST_ADDRESSES if self is Kind.LIVELY else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a browser made of one address."""

    status: int
    complaints: list[str]
    inaccessible: list[str]
    overflowing: list[str]
    standstill: str


@dataclass(slots=True, kw_only=True)
class BrowsedHub:
    """A hub, and a browser that is logged in to it, with and without scripts."""

    kind: Kind
    stage: Stage
    context: BrowserContext
    scriptless: BrowserContext
    starts: Sequence[str]  # addresses from which links lead to all others
    _addresses: dict[str, list[str]] = field(default_factory=dict)  # by page
    _tabs: dict[bool, Tab] = field(default_factory=dict)  # by whether they have scripts
    _seen: dict[str, dict[str, Seen]] = field(default_factory=dict)

    async def look(self, page: str) -> dict[str, Seen]:
        """Look at a page's addresses, and keep what is seen."""
        if page not in self._seen:
            tab = await self._tab(has_scripts=True)
            self._seen[page] = {
                address: await _look(tab, self.kind, address, is_first=number == 0)
                for number, address in enumerate(await self._addresses_of(page))
            }
        return self._seen[page]

    async def look_without_scripts(self, page: str) -> Seen:
        """Look at a page's first address."""
        first, *_ = await self._addresses_of(page)
        return await _look_without_scripts(await self._tab(has_scripts=False), first)

    async def new_tab(self, *, has_scripts: bool = True) -> Tab:
        context = self.context if has_scripts else self.scriptless
        return await new_tab(context, self.stage.hub.url)

    async def _tab(self, *, has_scripts: bool) -> Tab:
        """A tab for all pages: to open a new one costs as much as three pages."""
        if has_scripts not in self._tabs:
            self._tabs[has_scripts] = await self.new_tab(has_scripts=has_scripts)
        return self._tabs[has_scripts]

    async def _addresses_of(self, page: str) -> list[str]:
        if not self._addresses:
            self._addresses = await find_addresses(
                _fetching(self.stage.api, await self.context.cookies()),
                [*self.starts, *FIXED_PAGES],
                most=MOST_ADDRESSES if self.kind is Kind.LIVELY else 1,
            )
        return self._addresses.get(page, [])[: self.kind.shown(page)]


async def _look(tab: Tab, kind: Kind, address: str, *, is_first: bool) -> Seen:
    """Look at an address; Axe checks colours only at the first of the lively hub.

    All colours are in the lively hub, and those of a page at its first address. To
    compare colours takes Axe more time than all else.
    """
    tab.complaints.clear()
    await tab.see()
    status = await tab.open(address)
    standstill = await tab.standstill()
    if kind is Kind.LIVELY and is_first:
        found = [f"light: {each}" for each in await tab.inaccessible()]
        await tab.see(scheme="dark")
        found += [f"dark: {each}" for each in await tab.inaccessible(CONTRAST)]
    else:
        found = await tab.inaccessible(without=[CONTRAST])
    await tab.see(width=PHONE)
    overflowing = await tab.overflowing()
    return Seen(
        status=status,
        complaints=list(tab.complaints),
        inaccessible=found,
        overflowing=overflowing,
        standstill=standstill,
    )


async def _look_without_scripts(tab: Tab, address: str) -> Seen:
    """Look at an address without Axe, which waits by timers that need scripts."""
    tab.complaints.clear()
    await tab.see(width=PHONE)
    return Seen(
        status=await tab.open(address),
        complaints=list(tab.complaints),
        inaccessible=[],
        overflowing=await tab.overflowing(),
        standstill="",
    )


@asynccontextmanager
async def open_browsed_hub(
    kind: Kind, browser: Browser, directory: Path
) -> AsyncIterator[BrowsedHub]:
    if kind is Kind.LARGE:
        await (await open_lists(directory / "hub.db", LARGE)).close()
    async with open_stage(directory) as stage, AsyncExitStack() as stack:
        starts = await FURNISH[kind](stage)
        if kind is Kind.LIVELY:
            await stack.enter_async_context(listener_of(stage))
        context = await browser.new_context()
        await log_in(stage.hub, context)
        if kind is Kind.LIVELY:
            await give_list(stage.hub, context)
        state = await context.storage_state()
        scriptless = await browser.new_context(
            storage_state=state, java_script_enabled=False
        )
        yield BrowsedHub(
            kind=kind,
            stage=stage,
            context=context,
            scriptless=scriptless,
            starts=starts,
        )
        await context.close()
        await scriptless.close()


async def log_in(hub: HubProcess, context: BrowserContext) -> None:
    """Log in by the link that ``fanfare ui`` prints."""
    printed = await fanfare("ui", variables=knowing(hub))
    tab = await new_tab(context, hub.url)
    await tab.page.goto(printed.out.strip())
    await tab.page.get_by_role("button", name="Log in").click()
    await tab.page.get_by_role("heading", name="Overview").wait_for()
    await tab.page.close()


async def give_list(hub: HubProcess, context: BrowserContext) -> None:
    """Import a list on the page of imports, since a hub keeps lists in memory alone."""
    tab = await new_tab(context, hub.url)
    await tab.open("/admin/imports")
    title = quoteattr(HOSTILE[0])
    outline = f'<outline text={title} xmlUrl="http://10.0.0.1/"/>'
    text = f'<opml version="2.0"><body>{outline}</body></opml>'
    await tab.page.get_by_label("or its text").fill(text)
    await tab.page.get_by_role("button", name="Check it").click()
    await tab.page.get_by_role("heading", name="A list of 1 feed").wait_for()
    await tab.page.close()


def listener_of(stage: Stage) -> connect:
    """A live connection to feeds with hostile addresses, from which nobody reads."""
    url = f"ws{stage.hub.url.removeprefix('http')}/stream"
    paths = [f"/{number}/{quote(text)}" for number, text in enumerate(HOSTILE)]
    topics = [("topic", stage.publisher.url(path)) for path in paths]
    return connect(f"{url}?{urlencode(topics)}", max_queue=None, ping_interval=None)


def _fetching(api: HubApi, cookies: Sequence[Cookie]) -> Fetch:
    cookie = "; ".join(f"{each.get('name')}={each.get('value')}" for each in cookies)

    async def fetch(address: str) -> str:
        answer = await api.ask("GET", address, headers={**OPENED, "Cookie": cookie})
        return answer.text

    return fetch


async def leave_as_it_is(stage: Stage) -> list[str]:
    return [*STARTS]


async def furnish(stage: Stage) -> list[str]:
    """Make feeds and subscriptions in all states, with hostile texts."""
    api, publisher, subscribers = stage.api, stage.publisher, stage.subscribers
    feed_id, feed = await stage.add_feed()
    good = await stage.subscribe("good", feed)
    failing = await stage.subscribe("failing", feed)
    failing.answer(
        ServerAnswer(
            status=500, body=HOSTILE[0].encode(), headers={"X-Said": HOSTILE[1]}
        )
    )
    for each in HOSTILE:
        feed.titles[feed.count + 1] = _escaped(each)
        await stage.publish(feed_id, feed)
    await subscribers.until_count(good.name, len(HOSTILE))
    await subscribers.until_count(failing.name, 1)
    await put_hostile_feeds(api, publisher)
    for status in (503, 410):
        other_id, other = await stage.add_feed()
        other.instead = ServerAnswer(status=status)
        await api.fetch(other_id)
    paused_id, _ = await stage.add_feed()
    await api.request("POST", f"/api/feeds/{paused_id}/pause")
    await play(api)
    await api.create_token("alice", "subscribe", "list")
    await api.request("POST", "/api/plans", action="pause", feeds={"state": ["ok"]})
    form = {
        "hub.mode": "subscribe",
        "hub.topic": publisher.url(feed),
        "hub.callback": subscribers["open"].url + "?" + quote(HOSTILE[0]),
    }
    answer = await api.ask("POST", "/hub", data=form)
    link = answer.headers["Link"].partition("<")[2].partition(">; rel")[0]
    return [*STARTS, urlsplit(link).path]


async def play(api: HubApi) -> None:
    """Make a run of the playground with every step, and with hostile messages."""
    run = await api.request("POST", "/api/playground", topic="")
    path = f"/api/playground/{run['id']}"
    await api.request("POST", f"{path}/steps", step="all")
    for each in HOSTILE:
        message = {
            "step": "notify",
            "method": "POST",
            "url": run["callback"],
            "headers": f"Content-Type: {quote(each, safe=SHOWN)}",
            "body": each,
        }
        await api.ask("POST", f"{path}/messages", json=message, headers=ADMIN)


async def put_hostile_feeds(api: HubApi, publisher: Publisher) -> None:
    for number, text in enumerate(HOSTILE):
        document = (
            '<rss version="2.0"><channel>'
            f"<title>{_escaped(text)}</title><link>javascript:alert(1)</link><item>"
            f"<guid>{number}</guid><title>{_escaped(text)}</title>"
            f"<link>javascript:alert(1)</link><author>{_escaped(text)}</author>"
            f"<description>{_escaped(text)}</description></item></channel></rss>"
        )
        path = f"/{number}/{quote(text)}"
        publisher.put(path, document, "application/rss+xml")
        await api.add_feed(publisher.url(path), category=f"{number} {HOSTILE[0]}")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


async def let_all_fail(stage: Stage) -> list[str]:
    feed_id, feed = await stage.add_feed()
    for number in range(MANY_FEEDS):
        subscriber = await stage.subscribe(f"{number}", feed)
        subscriber.answer(ServerAnswer(status=500))
    await stage.publish(feed_id, feed)
    for number in range(MANY_FEEDS):
        await stage.subscribers.until_count(f"{number}", 1)
    for _ in range(MANY_FEEDS):
        other_id, other = await stage.add_feed()
        other.instead = ServerAnswer(status=503)
        await stage.api.fetch(other_id)
    feed.instead = ServerAnswer(status=503)
    await stage.api.fetch(feed_id)
    return [*STARTS]


FURNISH: Final[Mapping[Kind, Callable[[Stage], Awaitable[list[str]]]]] = {
    Kind.EMPTY: leave_as_it_is,
    Kind.LIVELY: furnish,
    Kind.FAILING: let_all_fail,
    Kind.LARGE: leave_as_it_is,
}
