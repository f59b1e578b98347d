"""Visits to OpenFeeder sites that end before a step does: each gets further."""

from __future__ import annotations

import pytest

from hub.core.sites.openfeeder_session import OpenFeederState, read_state
from hub.core.sites.openfeeder_walk import MOST_MISSES
from hub.core.sites.site_bounds import SiteBounds
from tests.support.openfeeder import Answer, FeederSite, Ways
from tests.support.site_visits import Reading

FEW = SiteBounds(requests=4)
"""Fewer than the pages of a step."""
MANY = SiteBounds(requests=1_000)


async def a_reading(
    ways: Ways | None = None, pages: int = 10, bounds: SiteBounds = MANY
) -> Reading:
    """Of a site that was read whole once."""
    reading = Reading(site=FeederSite(ways=ways or Ways()), bounds=bounds)
    for number in range(pages):
        reading.site.add(f"/p{number:02}")
    await reading.visit_until_read()
    return reading


def asked_pages(reading: Reading) -> list[str]:
    """Each time that a page was asked for by itself."""
    asked = reading.site.asked
    return [each.split("&")[0] for each in asked if each.startswith("url=")]


async def test_of_a_first_reading_no_page_is_asked_for_twice() -> None:
    reading = await a_reading(pages=10, bounds=FEW)

    assert len(await reading.entries()) == 10
    assert len(asked_pages(reading)) == len(set(asked_pages(reading))) == 10


async def test_of_differences_no_page_is_asked_for_twice() -> None:
    reading = await a_reading()
    reading.bounds = FEW
    reading.site.asked.clear()
    for number in range(10):
        reading.site.add(f"/new{number}")

    await reading.visit_until_read()

    assert sorted(await reading.told()) == [("entries", f"/new{n}") for n in range(10)]
    assert len(asked_pages(reading)) == len(set(asked_pages(reading))) == 10


async def test_of_what_the_index_lacks_no_page_is_asked_for_twice() -> None:
    reading = await a_reading(Ways(has_since=False), pages=25)
    reading.bounds = FEW
    reading.site.asked.clear()
    gone = [f"/p{number:02}" for number in range(10)]
    for path in gone:
        reading.site.forget(path)

    await reading.visit_until_read()

    assert sorted(await reading.told()) == [("deleted", path) for path in gone]
    assert len(asked_pages(reading)) == len(set(asked_pages(reading))) == 10


async def test_what_was_read_before_a_site_failed_is_told() -> None:
    reading = await a_reading(Ways(has_since=False))
    for number in range(5):
        reading.site.add(f"/new{number}")
    reading.site.broken["/new0"] = Answer(503, {}, b"")

    feed = await reading.visit()

    assert "answered 503" in feed.polling.error
    told = [each for each in await reading.told() if each[0] == "entries"]
    assert told == [("entries", f"/new{number}") for number in (4, 3, 2, 1)]


async def test_a_failure_counts_though_nothing_more_may_be_told() -> None:
    reading = await a_reading(pages=2)
    reading.bounds = SiteBounds(entries=1)
    for number in range(9):
        reading.site.add(f"/new{number}")
        reading.site.broken[f"/new{number}"] = Answer(429, {"Retry-After": "900"}, b"")
    reading.site.broken.pop("/new3")

    feeds = [await reading.visit(seconds=1_000) for _ in range(9)]

    assert {feed.polling.code for feed in feeds} == {429}


async def a_long_index() -> Reading:
    """Of 30 pages, which is not to be read in one visit."""
    reading = await a_reading(Ways(has_since=False, page_size=1), pages=30)
    reading.bounds = SiteBounds(requests=8)
    reading.site.asked.clear()
    return reading


async def test_a_comparison_of_the_index_goes_on_where_the_last_visit_ended() -> None:
    reading = await a_long_index()

    for _ in range(4):
        feed = await reading.visit(seconds=300)

    asked = [each for each in reading.site.asked if each.startswith("page=")]
    assert asked == [f"page={n}&limit=50" for n in range(1, 31)]
    assert (feed.next_fetch - reading.clock.now()).total_seconds() > 10


async def test_after_a_comparison_a_long_index_rests() -> None:
    reading = await a_long_index()
    for _ in range(4):
        await reading.visit(seconds=300)
    reading.site.asked.clear()

    await reading.visit(seconds=60)
    assert reading.site.asked == []
    await reading.visit(seconds=300)
    assert reading.site.asked[0] == "page=1&limit=50"


async def test_a_change_far_down_a_long_index_is_found() -> None:
    reading = await a_long_index()
    reading.site.edit("/p02", "Another text.")

    for _ in range(12):
        await reading.visit(seconds=300)

    assert await reading.told() == [("updated", "/p02")]


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520])
async def test_an_edit_is_told_though_its_page_could_not_be_read_at_first(
    status: int,
) -> None:
    reading = await a_reading(Ways(summaries=False))
    reading.site.edit("/p03", "Another text.")
    reading.site.edit("/p04", "Another text.")
    reading.site.broken["/p03"] = Answer(status, {}, b"")

    await reading.visit()
    reading.site.broken.clear()
    await reading.visit()

    told = [each for each in await reading.told() if each[0] == "updated"]
    assert sorted(told) == [("updated", "/p03"), ("updated", "/p04")]


async def test_for_a_page_that_never_can_be_read_nothing_is_held_up() -> None:
    reading = await a_reading(Ways(summaries=False))
    reading.site.edit("/p03", "Another text.")
    reading.site.broken["/p03"] = Answer(500, {}, b"")
    reading.site.asked.clear()

    for _ in range(MOST_MISSES + 3):
        await reading.visit()

    assert len(asked_pages(reading)) == MOST_MISSES + 1
    reading.site.add("/new")
    await reading.visit()
    assert await reading.told() == [("entries", "/new")]


@pytest.mark.parametrize(
    "packed", [b"", b"\xc1", b"\x91", b"\x92\x01\x07", b"\x91\x63"]
)
def test_a_damaged_state_begins_anew(packed: bytes) -> None:
    assert read_state(packed) == OpenFeederState()


async def test_a_site_that_says_the_same_again_has_the_same_index_read() -> None:
    reading = await a_reading(Ways(has_since=False))
    reading.shows_front = True
    reading.site.asked.clear()

    await reading.visit()

    assert [each.split("&")[0] for each in reading.site.asked] == [
        "since=2026-05-01T12:10:08.000Z",
        "page=1",
    ]
