"""Sites have a share of the workers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from hub.polling.site_places import NoPlace, SitePlaces
from tests.support.fetch_targets import a_feed
from tests.support.openfeeder import WELL_KNOWN
from tests.support.site_reading import Reading

SITE = replace(a_feed(1), format="openfeeder")


@pytest.mark.parametrize(("concurrency", "places"), [(1, 1), (4, 1), (8, 2), (64, 16)])
def test_a_quarter_is_for_sites_and_a_place_is_given_back(
    concurrency: int, places: int
) -> None:
    free = SitePlaces(concurrency)

    for _ in range(2):
        with ExitStack() as held:
            got = [held.enter_context(free.hold(SITE)) for _ in range(places + 1)]
            assert got == [True] * places + [False]
            assert held.enter_context(free.hold(a_feed(2)))


async def test_a_site_that_is_new_takes_a_place_once_it_shows_to_be_one() -> None:
    reading = Reading()
    reading.site.add("/a")
    with reading.places.hold(SITE), pytest.raises(NoPlace):
        await reading.visit()
    assert reading.requests == [f"{reading.site.base}{WELL_KNOWN}"]
    assert await reading.entries() == {}

    await reading.visit()
    with reading.places.hold(SITE) as is_free:
        assert is_free
        await reading.visit()  # whoever visits what is known to be a site holds a place
    assert set(await reading.entries()) == {"/a"}
