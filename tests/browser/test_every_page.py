"""Each page of the hub in a real browser, over an empty hub, a lively one with hostile
texts wherever others choose them, one where everything fails, and a large one."""

from __future__ import annotations

import pytest

from scripts.linked_pages import PAGES
from tests.support.browsed_hubs import BrowsedHub, Kind
from tests.support.chromium import in_a_browser

pytestmark = [in_a_browser, pytest.mark.asyncio(loop_scope="session")]

every_page = pytest.mark.parametrize("page", PAGES)


@every_page
async def test_it_opens(browsed: BrowsedHub, page: str) -> None:
    seen = await browsed.look(page)
    is_elsewhere = "{" in page or not browsed.kind.shown(page)
    assert seen or (is_elsewhere and browsed.kind is not Kind.LIVELY), (
        f"no link leads to {page} in a hub that is lively: have `furnish` in"
        " tests/support/browsed_hubs.py make what it shows, or return an address there"
    )
    assert {each.status for each in seen.values()} <= {200}


@every_page
async def test_the_console_stays_empty_and_nothing_is_loaded_from_elsewhere(
    browsed: BrowsedHub, page: str
) -> None:
    seen = await browsed.look(page)
    assert {where: it.complaints for where, it in seen.items() if it.complaints} == {}


@every_page
async def test_it_moves_where_it_should(browsed: BrowsedHub, page: str) -> None:
    seen = await browsed.look(page)
    assert {where: it.standstill for where, it in seen.items() if it.standstill} == {}


@every_page
async def test_axe_finds_nothing_in_light_and_dark(
    browsed: BrowsedHub, page: str
) -> None:
    seen = await browsed.look(page)
    found = {where: it.inaccessible for where, it in seen.items() if it.inaccessible}
    assert found == {}


@every_page
async def test_nothing_is_wider_than_a_phone(browsed: BrowsedHub, page: str) -> None:
    seen = await browsed.look(page)
    found = {where: it.overflowing for where, it in seen.items() if it.overflowing}
    assert found == {}


@pytest.mark.parametrize("browsed", [Kind.LIVELY], indirect=True)
@every_page
async def test_it_opens_without_scripts(browsed: BrowsedHub, page: str) -> None:
    seen = await browsed.look_without_scripts(page)
    assert seen.status == 200
    assert seen.complaints == []
    assert seen.overflowing == []
