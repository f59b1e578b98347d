"""OpenFeeder sites that fail, lie or have too much, and what the hub makes of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hub.core.sites.site_bounds import SiteBounds
from tests.support.openfeeder import Answer, FeederSite, Ways
from tests.support.site_visits import Reading


async def a_reading(
    ways: Ways | None = None, pages: int = 10, bounds: SiteBounds | None = None
) -> Reading:
    """Of a site that was read whole once."""
    reading = Reading(
        site=FeederSite(ways=ways or Ways()), bounds=bounds or SiteBounds()
    )
    for number in range(pages):
        reading.site.add(f"/p{number:02}")
    await reading.visit_until_read()
    return reading


def an_answer(status: int, body: object = None, **headers: str) -> Answer:
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, headers, written)


@pytest.mark.parametrize(
    ("refusal", "trouble"),
    [
        (an_answer(500), "answered 500"),
        (an_answer(401), "answered 401"),
        (an_answer(200, {"items": {}}), "/items: expected an array"),
        (an_answer(200, {"items": 5, "sync": 7}), "/items: expected an array"),
        (an_answer(200, {"sync": {}, "added": 1}), "/added: expected an array"),
        (an_answer(200, b"{"), "line 1"),
        (an_answer(200, b"\x00"), "this is binary data"),
        (an_answer(200, [1]), "expected an object"),
        (an_answer(200, b"<!doctype html><h1>Oops"), "this is an HTML page"),
        (an_answer(200, b"<rss><channel/></rss>"), "expected JSON"),
        (an_answer(200, b"\x1f\x8b packed twice"), "this is gzip data"),
    ],
)
async def test_trouble_says_what_and_where_once_and_leaves_all_as_it_was(
    refusal: Answer, trouble: str
) -> None:
    reading = await a_reading()
    before = await reading.entries()
    reading.site.add("/new")
    reading.site.refusal = refusal

    for _ in range(2):
        feed = await reading.visit()
        assert trouble in feed.polling.error
        assert "https://site.example/openfeeder?" in feed.polling.error
    assert await reading.entries() == before
    reading.site.refusal = None
    feed = await reading.visit()

    assert feed.polling.error == ""
    told = await reading.told()
    assert sorted(told) == [("entries", "/new"), ("error", ""), ("recovered", "")]


async def test_an_index_that_answers_changes_is_an_error() -> None:
    reading = await a_reading(Ways(has_since=False))
    await reading.visit()
    reading.site.refusal = an_answer(200, {"sync": {}})

    feed = await reading.visit()

    assert feed.polling.error.endswith("expected an index")


async def test_a_front_document_that_is_wrong_is_an_error() -> None:
    reading = await a_reading()
    reading.front_body = b'{"version": "1.0", "site": {}, "feed": {}}'

    feed = await reading.visit()

    assert feed.polling.error == "/feed/endpoint: expected a URL"


@pytest.mark.parametrize("status", [400, 422])
async def test_a_cursor_that_is_refused_is_dropped_and_the_index_walked(
    status: int,
) -> None:
    reading = await a_reading()
    reading.site.add("/new")
    reading.site.refuses_since = status

    feed = await reading.visit()

    assert feed.polling.error == ""
    assert await reading.told() == [("entries", "/new")]


@pytest.mark.parametrize("year", ["0001", "1969"])
async def test_a_server_whose_clock_says_nothing_is_asked_by_the_time_here(
    year: str,
) -> None:
    reading = await a_reading(Ways(date=f"Mon, 01 Jan {year} 00:00:00 GMT"))
    reading.site.add("/new")

    feed = await reading.visit()

    assert feed.polling.error == ""
    assert await reading.told() == [("entries", "/new")]


async def test_a_page_that_cannot_be_read_is_noted_and_tried_again() -> None:
    reading = await a_reading(Ways(has_since=False))
    for path in ("/bad", "/good"):
        reading.site.add(path)
    reading.site.broken["/bad"] = an_answer(500)

    feed = await reading.visit()

    assert feed.polling.problems == ("/bad: answered 500",)
    assert await reading.told() == [("entries", "/good")]
    reading.site.broken["/bad"] = an_answer(200, {"chunks": 1})
    feed = await reading.visit()
    assert feed.polling.problems == ("/bad: /chunks: expected an array",)
    del reading.site.broken["/bad"]
    feed = await reading.visit()
    assert feed.polling.problems == ()
    assert await reading.told() == [("entries", "/bad")]


async def test_three_pages_in_a_row_that_cannot_be_read_are_trouble() -> None:
    reading = await a_reading(Ways(has_since=False))
    for number in range(3):
        reading.site.add(f"/bad{number}")
        reading.site.broken[f"/bad{number}"] = an_answer(500)

    feed = await reading.visit()

    assert "answered 500" in feed.polling.error


async def test_a_429_of_a_page_is_an_error_and_its_patience_is_granted() -> None:
    reading = await a_reading()
    reading.site.add("/new")
    reading.site.broken["/new"] = Answer(429, {"Retry-After": "7200"}, b"")

    feed = await reading.visit()

    assert feed.polling.code == 429
    assert feed.polling.retry_after is not None
    assert feed.next_fetch >= feed.polling.retry_after
    del reading.site.broken["/new"]
    await reading.visit(seconds=9_000)
    assert ("entries", "/new") in await reading.told()


@pytest.mark.parametrize("ways", [Ways(has_since=False), Ways(tracks_deletions=False)])
async def test_a_site_that_has_lost_most_is_not_believed_until_it_says_so_again(
    ways: Ways,
) -> None:
    reading = await a_reading(ways)
    for number in range(8):
        reading.site.remove(f"/p{number:02}")

    feed = await reading.visit()
    assert await reading.told() == []
    assert "8 of 10 pages are missing" in feed.polling.problems[0]

    await reading.visit()
    assert len(await reading.told()) == 8
    assert len(await reading.entries()) == 2


async def test_what_the_index_lacks_is_there_if_it_can_be_asked_for() -> None:
    reading = await a_reading(Ways(has_since=False))
    reading.site.hidden = {"/p03"}
    await reading.visit()
    assert await reading.told() == []

    reading.site.broken["/p03"] = an_answer(500)
    reading.site.edit("/p05", "Another text.")
    await reading.visit()
    assert await reading.told() == [("updated", "/p05")]

    reading.site.broken["/p03"] = an_answer(200, {"chunks": [], "url": "/"})
    reading.site.add("/new")
    await reading.visit()
    assert sorted(await reading.told()) == [("deleted", "/p03"), ("entries", "/new")]


async def test_what_returns_without_a_word_is_there_again() -> None:
    reading = await a_reading()
    post = reading.site.posts["/p04"]
    reading.site.remove("/p04")
    await reading.visit()
    reading.site.posts["/p04"] = post  # and the index is as it was
    del reading.site.tombstones["/p04"]

    await reading.visit(seconds=90_000)

    assert await reading.told() == [("deleted", "/p04"), ("updated", "/p04")]


async def test_what_an_old_index_lists_still_stays_deleted() -> None:
    reading = await a_reading()
    reading.site.tick()
    reading.site.tombstones["/p04"] = reading.site.now
    reading.site.broken["/p04"] = an_answer(404)

    for _ in range(3):
        await reading.visit(seconds=90_000)

    assert await reading.told() == [("deleted", "/p04")]


async def test_nothing_is_gone_while_the_index_cannot_be_read_whole() -> None:
    reading = await a_reading(Ways(has_since=False))
    reading.site.remove("/p03")
    reading.site.spoils_items = True

    feed = await reading.visit()

    assert await reading.told() == []
    assert "/items/0: expected an object" in feed.polling.problems[0]


async def test_addresses_with_a_query_are_known_by_what_the_index_says() -> None:
    reading = Reading(site=FeederSite(ways=Ways(drops_query=True)))
    for path in ("/", "/?p=12", "/there?p=1"):
        reading.site.add(path, f"The text of {path}")

    await reading.visit_until_read()

    entries = await reading.entries()
    assert set(entries) == {"/", "/?p=12", "/there?p=1"}
    assert entries["/"].content is not None
    for path in ("/?p=12", "/there?p=1"):
        assert entries[path].content is None
        assert entries[path].title == f"On {path}"


async def test_chunks_that_are_not_sent_are_told_of() -> None:
    reading = Reading(site=FeederSite(ways=Ways(most_chunks=3)))
    reading.site.add("/long", "\n\n".join("abcdefgh"))

    feed = await reading.visit_until_read()

    entry = (await reading.entries())["/long"]
    assert entry.extensions == {"openfeeder": {"missing_chunks": 5}}
    assert feed.polling.problems == ("/long: 5 chunks are missing",)


async def test_an_edit_that_shows_in_no_index_is_found_when_all_is_read_again() -> None:
    reading = await a_reading(Ways(has_since=False, summaries=False))
    reading.site.edit("/p03", "Another text.")

    await reading.visit()
    assert await reading.told() == []
    await reading.visit(seconds=90_000)
    assert await reading.told() == [("updated", "/p03")]


async def test_an_idle_visit_asks_for_the_index_alone_and_stores_nothing() -> None:
    reading = await a_reading(Ways(has_since=False), pages=120)
    await reading.visit()
    reading.site.asked.clear()
    feed = await reading.visit()
    state = await reading.storage.sites.state(feed.id)
    await reading.visit()

    assert reading.site.asked == [f"page={n}&limit=50" for n in (1, 2, 3)] * 2
    assert await reading.storage.sites.state(feed.id) == state


@pytest.mark.parametrize("empty", [(2,), (2, 3), (1,)])
async def test_pages_of_the_index_may_come_empty(empty: tuple[int, ...]) -> None:
    ways = Ways(page_size=5, empty_pages=empty, has_since=False)
    reading = await a_reading(ways, pages=25)

    assert len(await reading.entries()) == 25 - 5 * len(empty)
    reading.site.ways = replace(ways, empty_pages=())
    reading.site.add("/new")
    await reading.visit()
    assert len(await reading.entries()) == 26


async def test_an_index_of_nothing_but_empty_pages_ends() -> None:
    ways = Ways(page_size=5, empty_pages=(1, 2, 3, 4, 5), has_since=False)
    reading = await a_reading(ways, pages=25)

    assert await reading.entries() == {}
    assert len(reading.site.asked) <= 6


async def test_what_does_not_fit_a_visit_follows_in_the_next_ones() -> None:
    bounds = SiteBounds(requests=30, entries=15)
    reading = await a_reading(pages=100, bounds=bounds)
    assert len(await reading.entries()) == 100
    for number in range(45):
        reading.site.add(f"/new{number:02}")

    feed = await reading.visit()
    assert (feed.next_fetch - reading.clock.now()).total_seconds() == 10
    await reading.visit_until_read()

    told = await reading.told()
    assert sorted(told) == [("entries", f"/new{number:02}") for number in range(45)]


async def test_what_does_not_fit_a_day_follows_on_the_next() -> None:
    reading = await a_reading(pages=5)
    reading.bounds = SiteBounds(entries_of_day=30)
    for number in range(90):
        reading.site.add(f"/new{number:02}")

    feed = await reading.visit(seconds=90_000)
    assert (feed.next_fetch - reading.clock.now()).total_seconds() > 600
    some = await reading.told()
    await reading.visit(seconds=90_000)
    more = await reading.told()
    await reading.visit(seconds=90_000)
    rest = await reading.told()

    assert len(some) == len(more) == 40
    assert sorted(some + more + rest) == [
        ("entries", f"/new{number:02}") for number in range(90)
    ]


async def test_a_site_that_moves_its_endpoint_is_followed() -> None:
    reading = await a_reading(Ways(has_since=False))
    reading.site.behave(endpoint="/v2/openfeeder")
    reading.site.add("/new")
    reading.shows_front = True

    feed = await reading.visit()

    assert feed.polling.error == ""
    assert await reading.told() == [("entries", "/new")]


async def test_a_site_that_reports_all_is_walked_now_and_then_all_the_same() -> None:
    reading = await a_reading()
    await reading.visit()
    reading.site.asked.clear()
    await reading.visit()
    assert [each for each in reading.site.asked if each.startswith("page=")] == []

    reading.site.forget("/p03")
    await reading.visit()
    assert await reading.told() == []
    await reading.visit(seconds=30_000)
    assert await reading.told() == [("deleted", "/p03")]


async def test_a_long_index_is_looked_at_less_often() -> None:
    reading = await a_reading(Ways(has_since=False, page_size=1), pages=20)
    await reading.visit()
    await reading.visit(seconds=40_000)
    reading.site.asked.clear()

    await reading.visit(seconds=60)
    assert reading.site.asked == []
    await reading.visit(seconds=3_600)
    assert len(reading.site.asked) == 20


async def test_of_a_very_long_index_not_all_is_marked_and_so_it_is_walked() -> None:
    ways = Ways(has_since=False, page_size=1)
    reading = await a_reading(ways, pages=202, bounds=SiteBounds(requests=1_000))
    await reading.visit()
    reading.site.asked.clear()

    await reading.visit(seconds=4_000)

    assert reading.site.asked[0] == "page=1&limit=50"
    assert len(await reading.entries()) == 202
    assert await reading.told() == []


async def test_of_many_problems_the_first_are_told() -> None:
    reading = Reading(site=FeederSite(ways=Ways(most_chunks=1)))
    for number in range(25):
        reading.site.add(f"/{number:02}", "one\n\ntwo")

    feed = await reading.visit()

    assert len(feed.polling.problems) == 5
