"""Other people's hubs, as their page tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.records import PushCount
from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub, open_hub

PAGE = "/admin/hubs"


async def count(hub: Hub, name: str, **counts: int) -> None:
    for what, number in counts.items():
        for _ in range(number):
            await hub.storage.pushes.count(name, PushCount(what))


async def test_without_other_hubs_the_page_says_so(browser: OperatorBrowser) -> None:
    assert "No feed has been pushed by another hub yet." in text_of(
        await browser.open(PAGE)
    )


async def test_each_hub_says_how_many_entries_it_brought_first(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await count(hub, "https://good.example/", requested=2, confirmed=2, brought=3)
    await count(hub, "https://good.example/", missed=1, late=2, delivered=4)
    await count(hub, "https://new.example/", requested=3, confirmed=1, refused=1)
    answer = await browser.open(PAGE)
    assert rows(answer) == [
        ["https://good.example/", "75 %: 3 of 4", "2", "2 of 2 confirmed", "4 taken"],
        [
            "https://new.example/",
            "nothing yet",
            "0",
            "1 of 3 confirmed, 1 refused",
            "0 taken",
        ],
    ]
    assert read(answer).xpath("//tfoot//td")[0].text_content() == "75 %: 3 of 4"


@pytest.mark.parametrize(
    ("upstream", "marks", "is_used"),
    [("on", ["", " not used"], [True, False]), ("off", [" not used"] * 2, [False] * 2)],
)
async def test_a_hub_that_is_not_used_says_so_on_the_page_and_in_the_api(
    tmp_path: Path, upstream: str, marks: list[str], is_used: list[bool]
) -> None:
    hubs = ["https://good.example/", "https://push.bad.example/"]
    async with (
        open_hub(tmp_path, unused_hubs=("bad.example",), upstream=upstream) as hub,
        client_of(hub.application) as client,
    ):
        for each in hubs:
            await count(hub, each, confirmed=1)
        browser = OperatorBrowser(client)
        await browser.log_in()
        page = await browser.open(PAGE)
        answer = await client.get("/api/hubs", headers=ADMIN)
    told = [row[0] for row in rows(page)]
    assert ("None is used now, by FANFARE_UPSTREAM" in text_of(page)) == (
        upstream == "off"
    )
    assert told == [hub + mark for hub, mark in zip(hubs, marks, strict=True)]
    found = {each["hub"]: each["used"] for each in answer.json()["hubs"]}
    assert [found[each] for each in hubs] == is_used


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_name_of_a_hub_becomes_part_of_the_page(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    await count(hub, f"https://hub.example/{text}", confirmed=1)
    page = read(await browser.open(PAGE))
    assert len(page.xpath("//script")) == 1
    assert not page.xpath("//main//img | //main//style | //*[@autofocus]")
    assert text in page.text_content()
