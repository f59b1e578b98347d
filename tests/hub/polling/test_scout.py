"""What is at a URL, before it is followed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hub.core.fetched import Fetched
from hub.polling.fetcher import FetchRequest
from hub.polling.scout import USUAL_PLACES, Scout, Sight
from protocols.feeds import ParseContext, parse
from protocols.model import ParsedFeed
from storage.records import Credentials
from tests.support.clock import ManualClock
from tests.support.fetch_targets import an_answer
from tests.support.polled import ScriptedFetcher

SITE = "https://site.example"
ELSEWHERE = "https://elsewhere.example/page"
RSS = b"<rss version='2.0'><channel><item><guid>1</guid></item></channel></rss>"


class RealParser:
    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return parse(body, context)


async def look(
    pages: dict[str, bytes | Fetched], **more: Credentials
) -> tuple[Sight, list[FetchRequest]]:
    """A look at a site of these pages, and the requests it took."""

    def answer(request: FetchRequest) -> Fetched:
        page = pages.get(request.url.removeprefix(SITE), an_answer(404))
        return an_answer(200, page) if isinstance(page, bytes) else page

    clock = ManualClock()
    fetcher = ScriptedFetcher(clock, answers=answer)
    scout = Scout(fetcher, RealParser(), clock, "Fanfare")
    return await scout.look(f"{SITE}/", **more), fetcher.requests


def best_of(sight: Sight) -> str:
    return sight.choice.best.href if sight.choice.best else ""


async def test_a_feed_is_a_feed() -> None:
    sight, asked = await look({"/": RSS})

    assert sight.feed is not None
    assert sight.feed.entry_count == 1
    assert sight.fetched is not None
    assert sight.fetched.body == RSS
    assert len(asked) == 1


async def test_feeds_are_named_by_the_header_and_the_page() -> None:
    page = b"<html><link rel=alternate type=application/rss+xml title=B href=/b></html>"
    answer = replace(an_answer(200, page), link="</a>; rel=feed; title=A")

    sight, asked = await look({"/": answer})

    assert [feed.href for feed in sight.choice.feeds] == [f"{SITE}/a", f"{SITE}/b"]
    assert "an HTML page" in sight.trouble
    assert len(asked) == 1


async def test_where_none_is_named_the_usual_places_are_tried() -> None:
    sight, asked = await look({"/": b"<html></html>", "/atom.xml": RSS})

    assert best_of(sight) == f"{SITE}/atom.xml"
    assert [request.url for request in asked] == [
        f"{SITE}{place}" for place in ("/", "/feed", "/feed.xml", "/atom.xml")
    ]


async def test_credentials_are_sent_wherever_it_looks() -> None:
    secret = Credentials(username="me", password="secret")

    sight, asked = await look({"/": b"<html></html>"}, credentials=secret)

    assert (sight.choice.feeds, sight.choice.reason) == ((), "no feed was found")
    assert len(asked) == 1 + len(USUAL_PLACES)
    assert all(request.credentials == secret for request in asked)


async def test_credentials_are_not_sent_to_where_a_page_redirects() -> None:
    secret = Credentials(username="me", password="secret")
    clock = ManualClock()

    def answer(request: FetchRequest) -> Fetched:
        return an_answer(200, b"<html></html>")

    fetcher = ScriptedFetcher(clock, answers=answer, lands={f"{SITE}/": ELSEWHERE})
    scout = Scout(fetcher, RealParser(), clock, "Fanfare")

    await scout.look(f"{SITE}/", secret)

    page, *places = fetcher.requests
    assert page.credentials == secret
    assert [each.url for each in places] == [
        f"https://elsewhere.example{place}" for place in USUAL_PLACES
    ]
    assert {each.credentials for each in places} == {None}


@pytest.mark.parametrize(
    ("page", "trouble"),
    [
        (b"%PDF", "this is a PDF document, not a feed"),
        (b"", "the document is empty"),
        (an_answer(500), "answered 500"),
    ],
)
async def test_what_is_neither_a_feed_nor_a_page_is_trouble_and_nothing_else_is_tried(
    page: bytes | Fetched, trouble: str
) -> None:
    sight, asked = await look({"/": page})

    assert (sight.trouble, sight.choice.feeds) == (trouble, ())
    assert len(asked) == 1


async def test_a_look_that_takes_long_finds_nothing() -> None:
    clock = ManualClock()
    fetcher = ScriptedFetcher(clock)
    fetcher.gate.clear()
    scout = Scout(fetcher, RealParser(), clock, "Fanfare", seconds=0.01)

    sight = await scout.look(f"{SITE}/")

    assert sight.fetched is None
    assert sight.trouble == "looking at it took over 0.01 s"
