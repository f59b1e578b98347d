"""The hub and an OpenFeeder site agree, in whichever way the site deviates."""

from __future__ import annotations

import pytest

from hub.core.sites.site_bounds import SiteBounds
from tests.support.openfeeder import FeederSite, Ways
from tests.support.site_visits import Killed, Reading

SLOW = 90_000.0
"""Seconds: more than a day."""

WAYS = {
    "as the specification has it": Ways(),
    "1 since is ignored": Ways(has_since=False),
    "2 since goes by the first publication": Ways(
        since_is_published=True, tracks_deletions=False
    ),
    "3 everything is updated at once": Ways(marks_all=True),
    "3 what is there again stays deleted": Ways(keeps_tombstones=True),
    "4 the time of an answer is late": Ways(late_seconds=3),
    "5 the order of chunks is lost": Ways(shuffles=True),
    "6 a high limit is refused": Ways(most_limit=100),
    "7 URLs are absolute": Ways(is_absolute=True),
    "7 URLs of pages alone are absolute": Ways(page_is_absolute=True),
    "8 the first page comes under any number": Ways(
        repeats_page=True, total_pages=42, has_since=False, page_size=1_000
    ),
    "8 no number of pages is known": Ways(total_pages=0, has_since=False),
    "8 pages are short": Ways(page_size=7, has_since=False),
    "12 neither author nor dates": Ways(is_sparse=True, has_since=False),
    "13 discovery is where WordPress has it": Ways(
        discovery="/wp-json/openfeeder/v1/discovery"
    ),
    "14 the site calls itself by another name": Ways(site_url="http://localhost:3003"),
    "no ETags": Ways(has_etags=False, has_since=False),
}


async def a_reading(ways: Ways, pages: int = 30) -> Reading:
    """Of a site that was read whole once."""
    site = FeederSite(ways=ways)
    for number in range(pages):
        site.add(f"/p{number:02}")
    reading = Reading(site=site)
    feed = await reading.visit_until_read()
    assert feed.polling.error == ""
    assert feed.title == "A site"
    assert await reading.told() == []
    assert set(await reading.entries()) == set(site.posts)
    return reading


@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
async def test_what_is_added_edited_and_removed_is_told_once(ways: Ways) -> None:
    reading = await a_reading(ways)
    site = reading.site

    site.add("/new")
    await reading.visit()
    assert await reading.told() == [("entries", "/new")]

    site.edit("/p03", "Quite another text.")
    await reading.visit()
    await reading.visit(seconds=SLOW)  # there are those that report no edits
    assert await reading.told() == [("updated", "/p03")]

    site.remove("/p04")
    site.remove("/new")
    await reading.visit()
    assert sorted(await reading.told()) == [("deleted", "/new"), ("deleted", "/p04")]

    site.add("/p04")
    await reading.visit()
    assert await reading.told() == [("updated", "/p04")]
    for seconds in (60, 3_600, SLOW):
        feed = await reading.visit(seconds=seconds)
        assert feed.polling.error == ""
        assert await reading.told() == []
    assert set(await reading.entries()) == set(site.posts)


@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
async def test_a_hub_that_dies_between_two_steps_loses_and_repeats_nothing(
    ways: Ways,
) -> None:
    site = FeederSite(ways=ways)
    for number in range(70):
        site.add(f"/p{number:02}")
    reading = Reading(site=site, bounds=SiteBounds(requests=60))
    for steps in range(12):
        reading.dies_after = steps % 3
        try:
            await reading.visit(seconds=10)
        except Killed:
            continue
    reading.dies_after = None
    await reading.visit_until_read()
    assert await reading.told() == []
    assert set(await reading.entries()) == set(site.posts)

    for number in range(25):
        site.add(f"/new{number:02}")
    for steps in (0, 1, 0, 1):
        reading.dies_after = steps
        with pytest.raises(Killed):
            await reading.visit()
    reading.dies_after = None
    await reading.visit()
    told = await reading.told()
    assert sorted(told) == [("entries", f"/new{number:02}") for number in range(25)]


async def test_a_walk_by_a_clock_that_was_ahead_puts_no_other_off() -> None:
    reading = await a_reading(Ways(has_since=False, has_etags=False), pages=150)
    await reading.visit(seconds=400 * 86_400.0)
    await reading.visit_until_read()
    await reading.told()
    reading.clock.set_back(400 * 86_400.0)
    reading.site.add("/new")

    await reading.visit(seconds=SLOW)
    assert await reading.told() == [("entries", "/new")]
