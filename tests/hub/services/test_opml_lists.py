"""Lists read through the network's seam."""

from __future__ import annotations

import asyncio

from hub.core.fetched import Fetched
from hub.http.guard import Guard
from hub.ingest.fetcher import FetchRequest
from hub.services.opml_lists import KEPT_SECONDS, MOST_KEPT, FeedListService
from hub.services.topic_addresses import AddressCheck
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher
from tests.support.fetch_targets import an_answer

SITE = "https://example.org"


async def look_up(host: str) -> list[str]:
    return ["93.184.215.14"]


class Lists:
    """Answers with what there is at a path; an answer of None never comes."""

    def __init__(self, **pages: str | None) -> None:
        self.pages = pages
        self.fetcher = FakeFetcher(ManualClock(), self._answer)

    async def _answer(self, request: FetchRequest) -> Fetched:
        page = self.pages.get(request.url.rpartition("/")[2], "")
        if page is None:
            await asyncio.Event().wait()
        if not page:
            return an_answer(404)
        return an_answer(200, str(page).encode())

    def service(self, seconds: float = 50.0) -> FeedListService:
        check = AddressCheck(topics=Guard(), callbacks=Guard(), lookup=look_up)
        return FeedListService(self.fetcher, check, "Fanfare", seconds)


def opml(*outlines: str) -> str:
    return f"<opml><body>{''.join(outlines)}</body></opml>"


FEED = '<outline xmlUrl="https://a.example/feed"/>'
INCLUDED = '<outline type="include" url="{}"/>'


async def test_a_list_is_read_with_those_it_includes() -> None:
    lists = Lists(
        a=opml(INCLUDED.format("b"), INCLUDED.format("c"), INCLUDED.format("d")),
        b=opml(FEED),
        c="<!doctype html>",
    )

    walk = await lists.service().read([f"{SITE}/a"])

    assert [feed.url for feed in walk.feeds] == ["https://a.example/feed"]
    assert [(each.url, each.error) for each in walk.lists] == [
        (f"{SITE}/a", ""),
        (f"{SITE}/b", ""),
        (f"{SITE}/c", "this is an HTML page, not a list of feeds"),
        (f"{SITE}/d", "answered 404"),
    ]


async def test_what_was_read_in_time_counts() -> None:
    lists = Lists(a=opml(FEED, INCLUDED.format("b")), b=None)

    walk = await lists.service(seconds=1.0).read([f"{SITE}/a"])

    assert len(walk.feeds) == 1
    assert walk.notes == ["reading the lists took over 1 s"]


async def test_the_parts_of_a_list_are_of_one_reading_for_a_while() -> None:
    lists, now = Lists(a=opml(FEED)), [0.0]
    check = AddressCheck(topics=Guard(), callbacks=Guard(), lookup=look_up)
    service = FeedListService(lists.fetcher, check, "Fanfare", monotonic=lambda: now[0])
    first = await service.part([f"{SITE}/a"])
    lists.pages["a"] = opml(FEED, FEED.replace("a.example", "b.example"))

    assert await service.part([f"{SITE}/a"], skip=1) is first
    now[0] = KEPT_SECONDS + 1
    anew = await service.part([f"{SITE}/a"], skip=1)
    assert len(anew.feeds) == 2
    lists.pages["a"] = opml(FEED)
    assert len((await service.part([f"{SITE}/a"])).feeds) == 1  # from the beginning


async def test_few_readings_are_kept() -> None:
    lists = Lists(**{f"l{number}": opml(FEED) for number in range(MOST_KEPT + 1)})
    service = lists.service()
    walks = [
        await service.part([f"{SITE}/l{number}"]) for number in range(MOST_KEPT + 1)
    ]
    assert await service.part([f"{SITE}/l{MOST_KEPT}"], skip=1) is walks[-1]
    assert await service.part([f"{SITE}/l0"], skip=1) is not walks[0]
