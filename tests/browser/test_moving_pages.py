"""Open pages in a browser: they move by themselves, and what a viewer does stays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect
from websockets.asyncio.client import connect

from tests.support.browsed_hubs import BrowsedHub, Kind, open_browsed_hub
from tests.support.chromium import Tab, in_a_browser, new_tab
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubApi

pytestmark = [in_a_browser, pytest.mark.asyncio(loop_scope="session")]

PATIENCE = 30_000
"""Milliseconds."""
VIEWERS = 3
MOST_CONNECTIONS = 6
"""Of a browser to one server, over HTTP/1.1."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browsed(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[BrowsedHub]:
    directory = tmp_path_factory.mktemp("moving")
    async with open_browsed_hub(Kind.EMPTY, chromium, directory) as browsed:
        yield browsed


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browsed: BrowsedHub) -> AsyncIterator[Tab]:
    tab = await browsed.new_tab()
    yield tab
    await tab.page.close()


async def open_moving(tab: Tab, path: str) -> None:
    await tab.open(path)
    await tab.page.locator("[data-watch=moving]").wait_for()


def status(tab: Tab) -> Locator:
    return tab.page.locator("[data-watch] [role=status]")


async def until(found: Locator, text: str) -> None:
    await expect(found).to_contain_text(text, timeout=PATIENCE)


async def feeds_of(api: HubApi) -> int:
    health = await api.request("GET", "/api/health")
    return int(health["backlog"]["feeds"])


async def test_all_overviews_count_what_comes(browsed: BrowsedHub) -> None:
    browser, url = browsed.context.browser, browsed.stage.hub.url
    assert browser is not None
    state = await browsed.context.storage_state()
    contexts = [await browser.new_context(storage_state=state) for _ in range(VIEWERS)]
    tabs = [await new_tab(each, url) for each in contexts]
    for each in tabs:
        await open_moving(each, "/admin")
    before = await feeds_of(browsed.stage.api)
    await browsed.stage.add_feed()
    for each in tabs:
        await until(each.page.locator("#feeds-all"), f"all{before + 1}")
        assert await status(each).inner_text() == ""
        assert each.complaints == []
        await each.page.context.close()


async def test_of_many_pages_in_one_browser_some_stand_still_and_all_open(
    browsed: BrowsedHub,
) -> None:
    tabs = [await browsed.new_tab() for _ in range(MOST_CONNECTIONS + 1)]
    for each in tabs:
        await each.open("/admin")
    await until(status(tabs[-1]), "while many other pages of the hub are open")
    for each in tabs[:-1]:
        await each.page.close()
    await tabs[-1].page.locator("[data-watch=moving]").wait_for()
    await tabs[-1].page.close()


async def test_rows_change_and_come_while_focus_ticks_and_typing_stay(
    browsed: BrowsedHub, tab: Tab
) -> None:
    stage = browsed.stage
    first_id, first = await stage.add_feed()
    await stage.api.request("PATCH", f"/api/feeds/{first_id}", category="moving")
    await open_moving(tab, "/admin/feeds?category=moving&sort=-id")
    row = tab.page.locator(f"#feed-{first_id}")
    await row.get_by_role("checkbox").check()
    await tab.page.get_by_label("Search").fill("typed")
    await row.get_by_role("link").first.focus()
    first.instead = ServerAnswer(status=503)
    await stage.api.fetch(first_id)
    await until(row, "503")
    other_id, _ = await stage.add_feed()
    await stage.api.request("PATCH", f"/api/feeds/{other_id}", category="moving")
    await tab.page.locator(f"#feed-{other_id}").wait_for()
    await expect(row.get_by_role("link").first).to_be_focused()
    await expect(row.get_by_role("checkbox")).to_be_checked()
    await expect(tab.page.get_by_label("Search")).to_have_value("typed")
    assert tab.complaints == []


async def test_who_goes_back_finds_the_filter_of_the_list_that_is_shown(
    tab: Tab,
) -> None:
    await tab.open("/admin/feeds")
    state = tab.page.locator("select[name=state]")
    await state.select_option("ok")
    await tab.page.get_by_role("button", name="Show").click()
    await tab.page.wait_for_url("**state=ok**")
    await tab.page.go_back()
    await expect(state).to_have_value("")


async def test_a_feeds_new_entries_come_and_what_is_unfolded_stays(
    browsed: BrowsedHub, tab: Tab
) -> None:
    stage = browsed.stage
    feed_id, feed = await stage.add_feed()
    await open_moving(tab, f"/admin/feeds/{feed_id}")
    await tab.page.locator("summary", has_text="term by term").click()
    terms = tab.page.locator("#terms")
    feed.titles[feed.count + 1] = "An entry that comes"
    await stage.publish(feed_id, feed)
    await until(tab.page.locator("#entries"), "An entry that comes")
    await expect(terms).to_be_visible()
    assert tab.complaints == []


async def test_a_plot_that_moves_stays_where_it_is_scrolled_to(
    browsed: BrowsedHub, tab: Tab
) -> None:
    stage = browsed.stage
    feed_id, feed = await stage.add_feed()
    await stage.subscribe("scrolled", feed)
    await tab.page.set_viewport_size({"width": 390, "height": 844})
    await open_moving(tab, "/admin")
    plot = tab.page.locator("#plot-commit-to-delivery .scroll")
    before = await plot.inner_html()
    place = await plot.evaluate("it => (it.scrollLeft -= 30, it.scrollLeft)")
    assert place == -30
    await stage.publish(feed_id, feed)
    await expect(plot).not_to_have_js_property("innerHTML", before, timeout=PATIENCE)
    assert await plot.evaluate("it => it.scrollLeft") == place
    assert tab.complaints == []


async def test_selected_text_stays_until_it_is_let_go(
    browsed: BrowsedHub, tab: Tab
) -> None:
    await open_moving(tab, "/admin")
    before = await feeds_of(browsed.stage.api)
    await tab.page.evaluate(
        "getSelection().selectAllChildren(document.getElementById('feeds-all'))"
    )
    await browsed.stage.add_feed()
    await until(status(tab), "Nothing moves while text is selected.")
    selected = await tab.page.evaluate("String(getSelection())")
    assert selected.split() == ["all", f"{before}"]
    await tab.page.evaluate("getSelection().removeAllRanges()")
    await until(tab.page.locator("#feeds-all"), f"all{before + 1}")


async def test_it_is_paused_and_goes_on(browsed: BrowsedHub, tab: Tab) -> None:
    await open_moving(tab, "/admin")
    before = await feeds_of(browsed.stage.api)
    button = tab.page.get_by_role("button", name="Pause updates")
    await button.click()
    await browsed.stage.add_feed()
    await until(status(tab), "Nothing moves until you go on.")
    await expect(tab.page.locator("#feeds-all")).to_have_text(f"all{before}")
    await button.click()
    await until(tab.page.locator("#feeds-all"), f"all{before + 1}")
    await expect(status(tab)).to_have_text("")


# --- a list whose rows come and go stands still while it is read ---


@asynccontextmanager
async def listening(browsed: BrowsedHub, count: int = 1) -> AsyncIterator[None]:
    """So many live connections."""
    url = f"ws{browsed.stage.hub.url.removeprefix('http')}/stream?topic=x://a/"
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(connect(url))
        yield


def connections(tab: Tab) -> Locator:
    return tab.page.locator("tbody tr")


@pytest.mark.parametrize("how", ["pointer", "keyboard", "selection", "pause"])
async def test_live_connections_stay_where_they_are_while_they_are_read(
    browsed: BrowsedHub, tab: Tab, how: str
) -> None:
    async with listening(browsed):
        await open_moving(tab, "/admin/live")
        await expect(connections(tab)).to_have_count(1)
        read, leave = READING[how]
        await read(tab)
        waiting = tab.page.locator("[data-steady] .waiting")
        async with listening(browsed, 2):
            await until(waiting, "2 new: show")
            await expect(connections(tab)).to_have_count(1)
            assert await tab.page.locator("[aria-live], [role=log]").count() == 0
            await waiting.press("Enter")
            await expect(connections(tab)).to_have_count(3)
            await read(tab)
        await until(waiting, "2 gone: show")
        await expect(connections(tab)).to_have_count(3)
        await leave(tab)
        await expect(connections(tab)).to_have_count(1)
        await expect(waiting).to_be_hidden()
    assert tab.complaints == []


async def _point(tab: Tab) -> None:
    await connections(tab).first.hover()


async def _point_elsewhere(tab: Tab) -> None:
    await tab.page.mouse.move(0, 0)
    await tab.page.locator("h1").click()


async def _focus(tab: Tab) -> None:
    await tab.page.locator("select[name=sort]").focus()
    row = connections(tab).first.get_by_role("link")
    while not await row.evaluate("it => it === document.activeElement"):
        await tab.page.keyboard.press("Tab")


async def _select(tab: Tab) -> None:
    await tab.page.evaluate(
        "getSelection().selectAllChildren(document.querySelector('tbody tr th'))"
    )


async def _let_go(tab: Tab) -> None:
    await tab.page.evaluate("getSelection().removeAllRanges()")
    await _point_elsewhere(tab)


async def _pause(tab: Tab) -> None:
    button = tab.page.get_by_role("button", name="Pause")
    if await button.get_attribute("aria-pressed") == "false":
        await button.click()
    await until(status(tab), "The list stands still until you go on.")


async def _go_on(tab: Tab) -> None:
    await tab.page.get_by_role("button", name="Pause").click()
    await _point_elsewhere(tab)


READING: Final[Mapping[str, Sequence[Callable[[Tab], Awaitable[None]]]]] = {
    "pointer": (_point, _point_elsewhere),
    "keyboard": (_focus, _point_elsewhere),
    "selection": (_select, _let_go),
    "pause": (_pause, _go_on),
}


async def test_notifications_of_a_topic_wait_while_it_is_paused(
    browsed: BrowsedHub, tab: Tab
) -> None:
    feed_id, feed = await browsed.stage.add_feed()
    topic = browsed.stage.publisher.url(feed)
    await tab.open(f"/admin/live/tail?{urlencode({'topic': topic})}")
    await until(tab.page.locator("#tail"), "Notifications appear here as they come.")
    pause = tab.page.get_by_role("button", name="Pause")
    await pause.click()
    for _ in range(2):
        await browsed.stage.publish(feed_id, feed)
    waiting = tab.page.locator(".waiting")
    await until(waiting, "2 new: show")
    lines = tab.page.locator("ol > li")
    await expect(lines).to_have_count(0)
    await waiting.click()
    await expect(lines).to_have_count(2)
    await browsed.stage.publish(feed_id, feed)
    await until(waiting, "1 new: show")
    await pause.click()
    await expect(lines).to_have_count(3)
    assert tab.complaints == []


async def test_a_form_that_came_later_is_accepted(
    browsed: BrowsedHub, tab: Tab
) -> None:
    feed_id, _ = await browsed.stage.add_feed()
    await open_moving(tab, f"/admin/feeds/{feed_id}")
    await browsed.stage.api.request("POST", f"/api/feeds/{feed_id}/pause")
    await tab.page.get_by_role("button", name="Resume").click()
    assert "polled again" in await tab.page.get_by_role("status").first.inner_text()


async def test_a_revoked_token_ends_it_and_the_page_says_so(
    browsed: BrowsedHub, chromium: Browser
) -> None:
    api, url = browsed.stage.api, browsed.stage.hub.url
    token = await api.create_token("alice", "list")
    context = await chromium.new_context()
    tab = await new_tab(context, url)
    await tab.open("/account/login")
    await tab.page.get_by_label("Token").fill(token)
    await tab.page.get_by_role("button", name="Log in").click()
    await tab.page.locator("[data-watch=moving]").wait_for()
    [listed] = (await api.request("GET", "/api/tokens"))["tokens"]
    await api.request("DELETE", f"/api/tokens/{listed['id']}")
    await until(status(tab), "Your session has ended")
    await status(tab).get_by_role("link", name="log in again").click()
    assert "/account/login" in tab.page.url
    await context.close()


async def test_a_hub_that_is_killed_is_told_lost_and_comes_back(
    browsed: BrowsedHub, tab: Tab
) -> None:
    hub = browsed.stage.hub
    await open_moving(tab, "/admin")
    await hub.kill()
    await until(status(tab), "The connection to the hub is lost; trying again.")
    await hub.start()
    await hub.wait_ready()
    await expect(status(tab)).to_have_text("", timeout=PATIENCE)
    before = await feeds_of(browsed.stage.api)
    await browsed.stage.add_feed()
    await until(tab.page.locator("#feeds-all"), f"all{before + 1}")


async def test_messages_of_the_playground_appear_as_they_pass(tab: Tab) -> None:
    """What is typed into a form meanwhile stays."""
    page = tab.page
    await tab.open("/admin/playground")
    await page.get_by_role("button", name="Start a run").click()
    await page.locator("[data-watch=moving]").wait_for()
    await page.get_by_text("Write a request").wait_for()
    await page.locator("summary", has_text="Publish: POST").click()
    written = page.locator("details[open] textarea[name=body]")
    await written.fill("hub.mode=mine")
    callback = await page.locator("#callback-url").inner_text()
    question = "hub.mode=subscribe&hub.topic=https://a.example/&hub.challenge=abc"
    answer = await page.context.request.get(f"{callback}?{question}")
    assert answer.status == 404
    await until(page.locator("#message-1"), "the callback answers 404")
    await until(page.locator("#last-verify"), "404")
    assert await written.input_value() == "hub.mode=mine"
    assert tab.complaints == []
