"""The pages of the playground: steps in order, messages, forms that send them again."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from hub.http.network_errors import Blocked
from hub.websub.playground_runs import ChallengeManner, DeliveryManner
from tests.support.fake_network import answered
from tests.support.operator_browser import HOSTILE, OperatorBrowser, read, text_of
from tests.support.services import Hub

PAGE = "/admin/playground"
LINKS = '<https://hub.other.example/>; rel="hub", <https://site.example/>; rel="self"'


@pytest.fixture(autouse=True)
def alone(hub: Hub) -> None:
    """A hub that does not reach itself; steps wait for nothing."""
    hub.services.playground.patience = 0.01
    hub.network.answer_with(Blocked())


async def press(
    browser: OperatorBrowser, where: str, action: str, number: int = 0, **fields: str
) -> httpx2.Response:
    """Send a form of a page as a browser would, with some fields changed."""
    page = read(await browser.open(where))
    form: Any = page.xpath(f"//form[@action='{action}']")[number]
    given = {name: value for name, value in form.form_values() if isinstance(name, str)}
    return await browser.send(action, **{**given, **fields})


async def start(browser: OperatorBrowser, **fields: str) -> str:
    """The path of a new run's page."""
    answer = await press(browser, PAGE, PAGE, 1, **fields)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def test_all_steps_are_run_by_one_button(
    hub: Hub, browser: OperatorBrowser
) -> None:
    answer = await press(browser, PAGE, PAGE)
    where = answer.headers["location"]
    text = text_of(await browser.open(where))
    assert "1. Discover ✓ 200".replace("✓ ", "") in text
    assert "the Link header names the topic itself" in text
    assert "2. Subscribe 202" in text
    assert "The hub does not reach itself by its public URL: blocked" in text
    listed = text_of(await browser.open(PAGE))
    assert "a topic of the playground" in listed
    assert "While the run is kept, its topic is counted among the feeds." in listed


async def test_a_step_leads_to_its_message(browser: OperatorBrowser) -> None:
    where = await start(browser)
    answer = await press(browser, where, f"{where}/step", 0, step="discover")
    assert answer.headers["location"] == f"{where}#message-1"
    page = read(await browser.open(where))
    request, answered_with = page.xpath("//*[@id='message-1']//pre")
    assert request.text_content().startswith("GET /playground/topics/")
    assert answered_with.text_content().startswith("HTTP/1.1 200")
    assert "<feed xmlns" in answered_with.text_content()


async def test_a_message_is_edited_and_sent_again(browser: OperatorBrowser) -> None:
    where = await start(browser)
    await press(browser, where, f"{where}/step", 0, step="subscribe")
    [form] = read(await browser.open(where)).xpath("//*[@id='message-1']//form")
    fields = dict(form.form_values())
    assert "hub.secret=(secret)" in fields["body"].splitlines()
    fields["body"] = "hub.mode=subscribe\r\nhub.topic=x"
    answer = await browser.send(f"{where}/messages", **fields)
    assert answer.headers["location"] == f"{where}#message-2"
    text = text_of(await browser.open(where))
    assert "hub.callback is missing" in text
    assert "hub.mode=subscribe&hub.topic=x" in text


async def test_a_callback_answers_as_the_form_says(
    hub: Hub, browser: OperatorBrowser
) -> None:
    where = await start(browser)
    answer = await press(
        browser,
        where,
        f"{where}/manners",
        challenge="wrong-challenge",
        delivery="gone",
        secret="a secret of mine",
    )
    assert answer.status_code == 303
    [run] = hub.services.playground.latest(None)
    assert run.on_challenge is ChallengeManner.WRONG
    assert run.on_delivery is DeliveryManner.GONE
    assert run.secret == "a secret of mine"
    assert "a secret of mine" not in (await browser.open(where)).text


async def test_requests_to_a_hub_wait_for_its_discovery(
    hub: Hub, browser: OperatorBrowser
) -> None:
    where = await start(browser, topic="https://site.example/")
    page = await browser.open(where)
    assert "once one is discovered" in text_of(page)
    refused = await browser.send(
        f"{where}/step", step="publish", form_token=await browser.form_token()
    )
    assert refused.status_code == 409
    hub.network.at["https://site.example/"] = answered(headers={"Link": LINKS})
    await press(browser, where, f"{where}/step", 0, step="discover")
    found = read(await browser.open(where))
    assert found.xpath("//summary[contains(., 'POST https://hub.other.example/')]")


async def test_old_messages_are_folded_and_one_is_shown_in_full(
    hub: Hub, browser: OperatorBrowser
) -> None:
    where = await start(browser, topic="https://site.example/")
    hub.network.answer_with(answered(body=b"x" * 20_000))
    for _ in range(14):
        await press(browser, where, f"{where}/step", 0, step="discover")
    page = await browser.open(where)
    assert len(page.content) < 200_000
    assert "Both parts of message 1" in text_of(page)
    assert page.text.count("x" * 4_097) == 0
    whole = await browser.open(f"{where}?message=1")
    assert whole.text.count("x" * 20_000) == 1
    assert (await browser.open(f"{where}?message=x")).status_code == 422


async def test_a_run_is_forgotten(hub: Hub, browser: OperatorBrowser) -> None:
    where = await start(browser)
    answer = await press(browser, where, f"{where}/remove")
    assert answer.headers["location"] == PAGE
    assert (await browser.open(where)).status_code == 404


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_of_a_message_becomes_part_of_the_page(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    plain = text.encode("ascii", "replace").decode()
    where = await start(browser, topic="https://site.example/")
    hub.network.answer_with(
        answered(
            body=text.encode(),
            headers={"Link": f'<{plain}>; rel="hub"', "X-Text": plain, "Server": plain},
        )
    )
    await press(browser, where, f"{where}/step", 0, step="discover")
    await browser.send(
        f"{where}/messages",
        form_token=await browser.form_token(),
        step="notify",
        method="POST",
        url="https://site.example/hook",
        headers=f"X-A: {plain}",
        body=text,
    )
    page = read(await browser.open(where))
    assert text in page.text_content()
    assert len(page.xpath("//script")) == 1
    assert not page.xpath("//main//img | //main//style | //*[@autofocus]")
