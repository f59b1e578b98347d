"""What a subscriber does on the pages of its account, with and without scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.browsed_hubs import BrowsedHub, Kind, open_browsed_hub
from tests.support.chromium import Tab, in_a_browser, new_tab
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

pytestmark = [in_a_browser, pytest.mark.asyncio(loop_scope="session")]

ZONE = "Asia/Kathmandu"
"""Five hours and three quarters ahead of UTC."""


@dataclass(frozen=True, slots=True)
class Account:
    browsed: BrowsedHub
    token: str
    subscriber: Subscriber
    page: str  # of its subscription


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def account(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Account]:
    directory = tmp_path_factory.mktemp("subscribed")
    async with open_browsed_hub(Kind.EMPTY, chromium, directory) as browsed:
        stage = browsed.stage
        scopes = ("subscribe", "unsubscribe", "list", "retrieve")
        token = await stage.api.create_token("alice", *scopes)
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("alice", feed, account="alice")
        await stage.publish(feed_id, feed)
        await stage.subscribers.until_count("alice", 1)
        [number] = (await stage.api.subscriptions()).values()
        page = f"/account/subscriptions/{number}"
        yield Account(browsed, token, subscriber, page)


@pytest_asyncio.fixture(loop_scope="session", params=[True, False], ids=["", "no-js"])
async def tab(
    request: pytest.FixtureRequest, chromium: Browser, account: Account
) -> AsyncIterator[Tab]:
    """Logged in with the account's token; nothing is complained of in the end."""
    context = await chromium.new_context(
        java_script_enabled=request.param,
        timezone_id=ZONE,
        permissions=["clipboard-read", "clipboard-write"],
    )
    tab = await new_tab(context, account.browsed.stage.hub.url)
    await tab.open("/account/login")
    await tab.page.get_by_label("Token").fill(account.token)
    await tab.page.get_by_role("button", name="Log in").click()
    await tab.page.get_by_role("heading", name="Account alice").wait_for()
    yield tab
    await context.close()
    assert tab.complaints == []


async def test_requests_are_found_by_the_time_that_the_viewer_s_clock_shows(
    tab: Tab, account: Account, request: pytest.FixtureRequest
) -> None:
    has_scripts = "no-js" not in request.node.name
    await tab.open(account.page)
    assert await tab.page.get_by_text("(UTC)").count() == (0 if has_scripts else 3)
    moment = "2030-01-02T03:04" if has_scripts else "2030-01-01T21:19"
    field = tab.page.locator("main form[role=search] input[name=until]")
    await field.fill(moment)
    await tab.page.get_by_role("button", name="Show").click()
    await tab.page.wait_for_url("**until=2030-01-01T21*")
    assert "until=2030-01-01T21%3A19" in tab.page.url
    assert await field.input_value() == moment
    assert await tab.page.locator("tbody tr").count() == 1
    await field.fill("2020-01-01T00:00")
    await tab.page.get_by_role("button", name="Show").click()
    await tab.page.get_by_text("It was not subscribed then, only at").wait_for()


async def test_everything_is_sent_again_from_a_time(tab: Tab, account: Account) -> None:
    before = len(account.subscriber.receipts)
    await tab.open(account.page)
    await tab.page.locator("summary", has_text="Send again from a time").click()
    form = tab.page.locator("form[action$='/replay']")
    await form.locator("input[name=since]").fill("2020-01-01T00:00")
    await form.get_by_role("button", name="Send again").click()
    said = await tab.page.get_by_role("status").first.inner_text()
    assert "is sent once more, in order" in said
    await eventually(lambda: len(account.subscriber.receipts) > before)


async def test_a_new_secret_is_shown_once_to_be_copied(
    tab: Tab, account: Account, request: pytest.FixtureRequest
) -> None:
    await tab.open(account.page)
    await tab.page.locator("summary", has_text="Change the secret").click()
    await tab.page.get_by_role("button", name="Change", exact=True).click()
    made = await tab.page.locator("#secret").inner_text()
    assert made.startswith("whsec_")
    copy = tab.page.locator("button[data-copy]")
    if "no-js" in request.node.name:
        assert not await copy.is_visible()
    else:
        await copy.click()
        await tab.page.get_by_role("button", name="Copied").wait_for()
        copied = await tab.page.evaluate("navigator.clipboard.readText()")
        assert copied == made
    await tab.open(account.page)
    assert await tab.page.get_by_text("signs as well; that ends").count() == 1
