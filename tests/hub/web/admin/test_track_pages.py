"""The track tester: what a query means, what it found, and saving it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from storage.records import Format, SubscriptionId
from tests.support.application_client import client_of
from tests.support.library import Library
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub, open_hub

PAGE = "/admin/track"


@pytest.fixture
async def library(hub: Hub) -> Library:
    return await Library.open(hub)


async def test_a_query_says_what_it_matched_and_how_much_a_day(
    library: Library, browser: OperatorBrowser
) -> None:
    await library.add_feed("public")
    for number in range(14):
        await library.publish("public", f"laurel {number}", minutes=number)
    await library.publish("public", "hardy", minutes=1)
    await library.index()

    answer = await browser.open(f"{PAGE}?query={quote('laurel -hardy')}")

    text = text_of(answer)
    assert "Read as laurel -hardy" in text
    told = "14 entries found. 2 a day, by the news of the last week:"
    assert told in text
    assert len(rows(answer)) == 14
    assert read(answer).xpath("//tbody//a/@href")[0].startswith("/admin/entries/")


async def test_of_more_matches_than_are_shown_the_newest_tell_how_many_come_a_day(
    library: Library, browser: OperatorBrowser
) -> None:
    await library.add_feed("public")
    for number in range(51):
        await library.publish("public", f"laurel {number}", minutes=number)
    await library.index()
    first = await browser.open(f"{PAGE}?query=laurel")
    text = text_of(first)
    assert "The newest 50 entries of more that were found." in text
    assert "a day, by the news among these:" in text
    (older,) = read(first).xpath("//a[@rel='next']/@href")
    second = await browser.open(older)
    assert "1 more entry found. Entry" in text_of(second)
    assert [row[0] for row in rows(second)] == ["laurel 0"]
    (back,) = read(second).xpath("//nav[@aria-label='Pages of the matches']/a/@href")
    assert rows(await browser.open(back)) == rows(first)


async def test_a_query_that_is_none_says_what_was_expected(
    browser: OperatorBrowser,
) -> None:
    answer = await browser.open(f"{PAGE}?query={quote('laurel (hardy')}")
    assert answer.status_code == 422
    assert "query" in read(answer).xpath("//p[@role='status']")[0].text_content()
    assert not read(answer).xpath(
        "//form[@method='post' and contains(@class, 'filter')]"
    )


async def test_without_an_index_a_query_is_understood_all_the_same(
    tmp_path: Path,
) -> None:
    async with (
        open_hub(tmp_path, search_days=0) as hub,
        client_of(hub.application) as client,
    ):
        browser = OperatorBrowser(client)
        await browser.log_in()
        text = text_of(await browser.open(f"{PAGE}?query=laurel"))
    assert "Read as laurel" in text
    assert "a day, by" not in text


async def test_a_query_is_saved_as_a_subscription(
    hub: Hub, browser: OperatorBrowser
) -> None:
    page = read(await browser.open(f"{PAGE}?query={quote('laurel | hardy')}"))
    [form] = page.xpath("//form[@action='/admin/subscriptions']")
    fields = {str(each.get("name")): str(each.value) for each in form.xpath(".//input")}
    answer = await browser.send(
        "/admin/subscriptions",
        **{**fields, "callback": "https://you.example/hook", "format": "atom"},
    )
    assert answer.headers["location"].startswith("/admin/subscriptions/1")
    made = await hub.storage.subscriptions.get(SubscriptionId(1))
    assert made is not None
    assert made.format is Format.ATOM
    assert "laurel" in made.topic


@pytest.mark.parametrize("text", HOSTILE)
async def test_neither_queries_nor_what_they_find_become_part_of_the_page(
    library: Library, browser: OperatorBrowser, text: str
) -> None:
    await library.add_feed("public")
    await library.publish("public", f"laurel {text}")
    await library.index()
    found = read(await browser.open(f"{PAGE}?query=laurel"))
    assert text in found.text_content()
    asked = read(await browser.open(f"{PAGE}?query={quote(text)}"))
    assert asked.xpath("//input[@name='query']/@value") == [text]
    for page in (found, asked):
        assert len(page.xpath("//script")) == 1
        assert not page.xpath("//main//img | //main//style | //*[@autofocus]")
