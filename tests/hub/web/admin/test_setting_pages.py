"""The settings, as their page and the API tell them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.settings import GivenSetting
from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.operator_browser import HOSTILE, OperatorBrowser, read, rows
from tests.support.services import open_hub

GIVEN = (
    GivenSetting(field="port", source="--port", text="81"),
    GivenSetting(field="admin_token", source="FANFARE_ADMIN_TOKEN_FILE", text=""),
    *(
        GivenSetting(field=field, source="FANFARE_CONTACT", text=text)
        for field, text in zip(
            (
                "contact",
                "openfeeder_name",
                "host",
                "public_url",
                "openfeeder_key",
                "blocked_hosts",
            ),
            HOSTILE,
            strict=True,
        )
    ),
)


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[OperatorBrowser]:
    async with (
        open_hub(tmp_path, given=GIVEN) as hub,
        client_of(hub.application) as client,
    ):
        browser = OperatorBrowser(client)
        await browser.log_in()
        yield browser


async def test_each_setting_says_its_value_and_what_gave_it(
    browser: OperatorBrowser,
) -> None:
    shown = {row[0].split()[0]: row[1:] for row in rows(await browser.open(PAGE))}
    assert shown["FANFARE_PORT"] == ["81 instead of 8080", "--port"]
    assert shown["FANFARE_ROBOTS"] == ["off", "nobody: the default"]
    assert shown["FANFARE_ADMIN_TOKEN"] == [
        "set, and not shown",
        "FANFARE_ADMIN_TOKEN_FILE",
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("search=listen+PORT", ["FANFARE_PORT"]),
        ("search=admin-token&given=yes", ["FANFARE_ADMIN_TOKEN"]),
        ("search=no-such-words", []),
    ],
)
async def test_settings_are_found_by_words_and_by_whether_they_were_given(
    browser: OperatorBrowser, query: str, found: list[str]
) -> None:
    shown = rows(await browser.open(f"{PAGE}?{query}"))
    assert [row[0].split()[0] for row in shown] == found


async def test_no_text_of_a_setting_becomes_part_of_the_page(
    browser: OperatorBrowser,
) -> None:
    page = read(await browser.open(f"{PAGE}?given=yes"))
    assert len(page.xpath("//script")) == 1
    assert not page.xpath("//img | //style | //*[@autofocus]")
    assert HOSTILE[0] in page.text_content()


async def test_the_api_tells_the_same(browser: OperatorBrowser) -> None:
    answer = await browser.client.get("/api/settings", headers=ADMIN)
    told = {each["name"]: each for each in answer.json()["settings"]}
    assert told["FANFARE_PORT"]["value"] == "81"
    assert told["FANFARE_PORT"]["source"] == "--port"
    secret = told["FANFARE_ADMIN_TOKEN"]
    assert (secret["secret"], secret["value"]) == (True, "")


PAGE = "/admin/settings"
