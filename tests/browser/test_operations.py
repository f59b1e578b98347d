"""What an operator does on pages, to its end, with a mouse or by keys, with and without
scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page

from tests.support.admin import TOKEN
from tests.support.browsed_hubs import BrowsedHub, Kind, open_browsed_hub
from tests.support.chosen_engine import CHOSEN, Engine, change
from tests.support.chromium import PHONE, Tab, in_a_browser, new_tab
from tests.support.http_server import ServerAnswer
from tests.support.stage import Stage
from tests.support.waiting import eventually

pytestmark = [in_a_browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browsed(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[BrowsedHub]:
    directory = tmp_path_factory.mktemp("operated")
    async with open_browsed_hub(Kind.EMPTY, chromium, directory) as browsed:
        yield browsed


@pytest_asyncio.fixture(loop_scope="session", params=[True, False], ids=["", "no-js"])
async def tab(
    request: pytest.FixtureRequest, browsed: BrowsedHub
) -> AsyncIterator[Tab]:
    """Where nothing is complained of in the end."""
    tab = await browsed.new_tab(has_scripts=request.param)
    yield tab
    await tab.page.close()
    assert tab.complaints == []


def button(tab: Tab, name: str) -> Locator:
    return tab.page.get_by_role("button", name=name, exact=True)


async def told(tab: Tab) -> str:
    """What the page says was done."""
    return await tab.page.get_by_role("status").first.inner_text()


async def unfold(page: Page, summary: str) -> None:
    await page.locator("summary", has_text=summary).click()


# --- sessions ---


@pytest.mark.parametrize("has_scripts", [True, False])
async def test_one_logs_in_by_a_token_and_out_again(
    browsed: BrowsedHub, chromium: Browser, has_scripts: bool
) -> None:
    context = await chromium.new_context(java_script_enabled=has_scripts)
    tab = await new_tab(context, browsed.stage.hub.url)
    await tab.open("/admin/feeds?sort=url")
    assert "/admin/login" in tab.page.url
    await tab.page.get_by_label("Token").fill("wrong")
    await button(tab, "Log in").click()
    assert "Not logged in" in await tab.page.get_by_role("alert").inner_text()
    await tab.page.get_by_label("Token").fill(TOKEN)
    await button(tab, "Log in").click()
    assert tab.page.url.endswith("/admin/feeds?sort=url")
    await button(tab, "Log out").click()
    await tab.open("/admin")
    assert "/admin/login" in tab.page.url
    await context.close()


# --- feeds ---


async def test_a_feed_is_added_changed_paused_polled_again_and_removed(
    tab: Tab, browsed: BrowsedHub
) -> None:
    publisher, page = browsed.stage.publisher, tab.page
    url = publisher.url(publisher.add_feed())
    await tab.open("/admin/feeds")
    await page.get_by_label("URL of the feed or its page").fill(url)
    await button(tab, "Add").click()
    assert await told(tab) == "The feed was added."
    await button(tab, "Pause").first.click()
    assert (
        await told(tab) == "The feed is paused: it is not polled until it is resumed."
    )
    await button(tab, "Resume").click()
    assert await told(tab) == "The feed is resumed: it is polled again."
    await button(tab, "Fetch now").click()
    assert await told(tab) == "The feed was fetched."
    await unfold(page, "Edit the feed")
    form = page.locator("form[action$='/edit']")
    await form.get_by_label("Category").fill("news")
    await form.get_by_role("button", name="Save").click()
    assert await told(tab) == "The feed was changed."
    await tab.open("/admin/feeds?category=news&state=ok")
    await page.locator("tbody").get_by_role("link").first.click()
    await unfold(page, "Remove the feed")
    await button(tab, "Remove it").click()
    assert "The feed was removed" in await told(tab)


async def test_credentials_are_set_and_removed_and_the_document_is_explained(
    tab: Tab, browsed: BrowsedHub
) -> None:
    feed_id, _ = await browsed.stage.add_feed()
    await tab.open(f"/admin/feeds/{feed_id}")
    await button(tab, "Show how it is read").click()
    assert "It is read as atom" in await told(tab)
    await tab.page.get_by_role("link", name="Feed").last.click()
    await unfold(tab.page, "Credentials: none")
    await tab.page.get_by_label("User").fill("me")
    await tab.page.get_by_label("Password").fill("geheim")
    await button(tab, "Set").click()
    assert "fetched with these credentials" in await told(tab)
    await unfold(tab.page, "Credentials: it has some")
    await button(tab, "Remove them").click()
    assert "without credentials" in await told(tab)


async def test_the_week_is_shown_in_the_viewer_s_zone(
    browsed: BrowsedHub, chromium: Browser
) -> None:
    stage = browsed.stage
    entries = "".join(
        f"<entry><id>tag:publisher.example,2026:{day}</id><title>{day}</title>"
        f"<published>2026-03-{day}T12:00:00Z</published></entry>"
        for day in range(10, 20)
    )
    text = f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'
    daily = stage.publisher.put("/daily", text, "application/atom+xml")
    feed_id = await stage.api.add_feed(daily.url)
    state = await browsed.context.storage_state()
    context = await chromium.new_context(storage_state=state, timezone_id="Asia/Tokyo")
    tab = await new_tab(context, browsed.stage.hub.url)
    await tab.open(f"/admin/feeds/{feed_id}")
    cell = tab.page.locator("svg.week rect").filter(has_text="Mon 20:00 UTC")
    place = await cell.get_attribute("x"), await cell.get_attribute("y")
    assert place == (f"{40 + 5 * 24}", "23")  # Tuesday at five
    assert await tab.page.get_by_text("Hours in your zone").count() == 1
    zone = tab.page.get_by_text("Times are in your zone, UTC+9")
    assert "GMT+9" in (await zone.get_attribute("title") or "")
    assert tab.complaints == []
    await context.close()


async def test_a_list_is_filtered_and_the_filter_is_in_the_address(
    tab: Tab, browsed: BrowsedHub
) -> None:
    _, feed = await browsed.stage.add_feed()
    url = browsed.stage.publisher.url(feed)
    await tab.open("/admin/feeds")
    await tab.page.get_by_label("Search").fill(url)
    await button(tab, "Show").click()
    assert "search=" in tab.page.url
    await tab.page.locator("tbody tr").first.wait_for()
    assert await tab.page.locator("tbody tr").count() == 1
    assert await tab.page.get_by_label("Search").input_value() == url


async def test_filters_are_folded_on_a_phone_and_say_what_is_shown(tab: Tab) -> None:
    search = tab.page.get_by_label("Search")
    await tab.open("/admin/feeds")
    assert await search.is_visible()
    await tab.see(width=PHONE)
    assert not await search.is_visible()
    await tab.page.locator(".filters summary").first.click()
    assert await search.is_visible()
    await tab.open("/admin/feeds?state=ok")
    assert not await search.is_visible()
    assert await tab.page.get_by_text("Filter: ok").is_visible()


async def test_what_is_done_to_many_is_planned_confirmed_and_watched(
    tab: Tab, browsed: BrowsedHub
) -> None:
    category = f"many {tab.page.url} {id(tab)}"
    publisher, api = browsed.stage.publisher, browsed.stage.api
    for _ in range(3):
        await api.add_feed(publisher.url(publisher.add_feed()), category=category)
    await tab.open(f"/admin/feeds?category={quote(category)}")
    await tab.page.get_by_role("checkbox").first.wait_for()
    form = tab.page.get_by_role("form", name="For many at once")
    await form.get_by_role("combobox").select_option("pause")
    await form.get_by_role("button", name="Plan for all").click()
    assert "Nothing is done yet" in await tab.page.locator("main").inner_text()
    await tab.page.locator("main").get_by_role("button").first.click()
    await tab.page.get_by_text("3 of 3").wait_for()
    await tab.open(f"/admin/feeds?category={quote(category)}&state=paused")
    assert await tab.page.locator("tbody tr").count() == 3


# --- subscriptions ---


async def test_a_subscription_is_tried_paused_resumed_and_ended(
    tab: Tab, browsed: BrowsedHub
) -> None:
    stage = browsed.stage
    subscription_id = await subscribe(stage)
    path = f"/admin/subscriptions/{subscription_id}"
    await tab.open(path)
    await button(tab, "Send a test").click()
    assert "The callback took it: 200" in await told(tab)
    await tab.open(path)
    await button(tab, "Pause").click()
    assert await health_of(stage, subscription_id) == "paused"
    await button(tab, "Resume").click()
    assert await health_of(stage, subscription_id) == "ok"
    await unfold(tab.page, "End the subscription")
    await button(tab, "End it").click()
    state = (await stage.api.subscription(subscription_id))["state"]
    assert state in ("ending", "ended")


async def test_what_was_given_up_is_sent_again(tab: Tab, browsed: BrowsedHub) -> None:
    stage = browsed.stage
    feed_id, feed = await stage.add_feed()
    subscriber = await stage.subscribe(f"late-{feed_id}", feed)
    await stage.publish(feed_id, feed)
    await stage.subscribers.until_count(subscriber.name, 1)
    await give_up(stage, subscriber.url)
    await tab.open("/admin/deliveries")
    row = tab.page.get_by_role("row").filter(has_text=subscriber.url)
    await row.get_by_role("button", name="Send again").click()
    await stage.subscribers.until_count(subscriber.name, 2)


async def test_what_was_given_up_is_discarded(tab: Tab, browsed: BrowsedHub) -> None:
    stage = browsed.stage
    feed_id, feed = await stage.add_feed()
    subscriber = await stage.subscribe(f"lost-{feed_id}", feed)
    await stage.publish(feed_id, feed)
    await stage.subscribers.until_count(subscriber.name, 1)
    await give_up(stage, subscriber.url)
    await tab.open("/admin/deliveries")
    row = tab.page.get_by_role("row").filter(has_text=subscriber.url)
    await row.get_by_role("button", name="Discard").click()
    assert "discarded" in await told(tab)
    assert await row.count() == 0


async def test_a_retrying_subscription_is_tried_at_once(
    tab: Tab, browsed: BrowsedHub
) -> None:
    stage = browsed.stage
    feed_id, feed = await stage.add_feed()
    subscriber = await stage.subscribe(f"slow-{feed_id}", feed)
    subscriber.answer(ServerAnswer(status=500))
    await stage.publish(feed_id, feed)
    subscription_id = (await stage.api.subscriptions())[subscriber.url]
    await eventually(lambda: is_retrying(stage, subscription_id))
    before = len(subscriber.receipts)
    await tab.open(f"/admin/subscriptions/{subscription_id}")
    await button(tab, "Retry now").click()
    await stage.subscribers.until_count(subscriber.name, before + 1)
    await eventually(lambda: says(tab, subscription_id, "a retry, as asked"))


async def says(tab: Tab, subscription_id: int, text: str) -> bool:
    await tab.open(f"/admin/subscriptions/{subscription_id}")
    return await tab.page.get_by_text(text).count() > 0


async def is_retrying(stage: Stage, subscription_id: int) -> bool:
    found = await stage.api.subscription(subscription_id)
    return found["retrying"] is not None


async def health_of(stage: Stage, subscription_id: int) -> str:
    found = await stage.api.subscription(subscription_id)
    return str(found["health"]["state"])


async def subscribe(stage: Stage) -> int:
    feed_id, feed = await stage.add_feed()
    subscriber = await stage.subscribe(f"one-{feed_id}", feed)
    return (await stage.api.subscriptions())[subscriber.url]


async def give_up(stage: Stage, callback: str) -> None:
    """As if the last record had been tried for a week."""
    subscription_id = (await stage.api.subscriptions())[callback]
    change(stage.hub.database, _GIVE_UP, subscription_id)


_GIVE_UP = (
    "INSERT INTO dead (subscription_id, first, last, reason, at)"
    " SELECT ?, position, position, 'answered 500', at FROM records"
    " WHERE position = (SELECT max(position) FROM records)"
)
if CHOSEN is Engine.POSTGRESQL:
    _GIVE_UP = _GIVE_UP.replace("INTO dead", "INTO dead_letters")


# --- tokens ---


async def test_a_token_is_made_used_and_revoked(tab: Tab, browsed: BrowsedHub) -> None:
    account = "js" if await tab.page.evaluate("1") else "none"
    await tab.open("/admin/tokens")
    await tab.page.get_by_placeholder("alice").fill(account)
    await tab.page.get_by_label("list:").check()
    await button(tab, "Make it").click()
    secret = await tab.page.get_by_role("status").locator("code").inner_text()
    headers = {"Authorization": f"Bearer {secret}"}
    ask = browsed.stage.api.ask
    assert (await ask("GET", "/api/subscriptions", headers=headers)).status == 200
    row = tab.page.get_by_role("row").filter(has_text=account)
    await row.get_by_role("button", name="Revoke").first.click()
    assert "revoked" in await told(tab)
    assert (await ask("GET", "/api/subscriptions", headers=headers)).status == 401


# --- keys ---


async def test_by_keys_one_skips_to_the_content_and_sees_where_one_is(
    browsed: BrowsedHub,
) -> None:
    tab = await browsed.new_tab()
    await tab.open("/admin/feeds")
    await tab.page.keyboard.press("Tab")
    focused = tab.page.locator(":focus")
    assert await focused.inner_text() == "Skip to the content"
    assert await is_seen(focused)
    await tab.page.keyboard.press("Enter")
    await tab.page.keyboard.press("Tab")
    assert await focused.evaluate("node => Boolean(node.closest('main'))")
    assert await focused.evaluate("node => node.matches(':focus-visible')")
    await tab.page.close()


async def test_keys_pass_the_page_in_the_order_in_which_it_is_read(
    browsed: BrowsedHub,
) -> None:
    tab = await browsed.new_tab()
    for path in ("/admin", "/admin/feeds", "/admin/tokens", "/admin/deliveries"):
        await tab.open(path)
        assert await tab.page.locator("[tabindex]").evaluate_all(
            "nodes => nodes.every((node) => node.tabIndex <= 0)"
        )
        await tab.page.keyboard.press("Tab")
        order = []
        for _ in range(15):
            order.append(await tab.page.evaluate(PLACE_OF_FOCUS))
            await tab.page.keyboard.press("Tab")
        reached = [each for each in order if each >= 0]
        assert reached == sorted(reached)
    await tab.page.close()


async def is_seen(locator: Locator) -> bool:
    box = await locator.bounding_box()
    return box is not None and box["x"] >= 0 and box["y"] >= 0 and box["width"] > 10


PLACE_OF_FOCUS = (
    "() => [...document.querySelectorAll('*')].indexOf(document.activeElement)"
    " - (document.activeElement === document.body ? 1e9 : 0)"
)


# --- the playground ---


async def test_a_run_is_made_edited_sent_again_and_forgotten(tab: Tab) -> None:
    page = tab.page
    await tab.open("/admin/playground")
    await button(tab, "Run all steps").click()
    first = page.locator("#message-1")
    assert "names the topic itself" in await first.inner_text()
    await button(tab, "Discover").click()
    assert "#message-" in page.url
    permalink = page.url.partition("#")[0]
    subscribe = page.locator("#message-2")
    await subscribe.locator("summary").click()
    await subscribe.get_by_label("Body").fill("hub.mode=subscribe")
    await subscribe.get_by_role("button", name="Send again").click()
    sent = page.locator(f"#{page.url.partition('#')[2]}")
    assert "hub.callback is missing" in await sent.inner_text()
    await page.get_by_label("To a challenge it answers").select_option("not-found")
    await button(tab, "Change").click()
    chosen = page.get_by_label("To a challenge it answers")
    assert await chosen.input_value() == "not-found"
    assert page.url == permalink
    await button(tab, "Forget this run").click()
    assert page.url.endswith("/admin/playground")


@pytest.mark.parametrize("width", [1152, 1280, 1366])
async def test_the_menu_is_one_line_where_there_is_room(tab: Tab, width: int) -> None:
    await tab.page.set_viewport_size({"width": width, "height": 900})
    await tab.open("/admin")
    places = await tab.page.locator(".menu a").evaluate_all(
        "links => links.map((link) => link.getBoundingClientRect().top)"
    )
    assert len(set(places)) == 1
