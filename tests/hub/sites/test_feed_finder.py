"""What is at a URL, before it is followed."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FetchRequest
from hub.sites.feed_finder import (
    LARGEST_UNPACKED,
    USUAL_PLACES,
    FeedFinder,
    LookupKind,
    LookupResult,
    find_scp,
)
from protocols.model import ParsedFeed
from protocols.openfeeder.read.site_urls import LLMS, WELL_KNOWN, WORDPRESS
from protocols.protocol_errors import FeedError
from storage.records import Credentials
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher, InlineParser
from tests.support.fetch_targets import an_answer

SITE = "https://site.example"
SITE_PLACES = (WELL_KNOWN, "/robots.txt", "/sitemap.xml", LLMS)
ELSEWHERE = "https://elsewhere.example/page"
RSS = b"<rss version='2.0'><channel><item><guid>1</guid></item></channel></rss>"


async def look(
    pages: dict[str, bytes | Fetched], path: str = "/", **more: Any
) -> tuple[LookupResult, list[FetchRequest]]:
    """A look at a page of a site of these pages, and the requests it took."""

    def answer(request: FetchRequest) -> Fetched:
        page = pages.get(request.url.removeprefix(SITE), an_answer(404))
        answered = an_answer(200, page) if isinstance(page, bytes) else page
        return replace(answered, url=request.url)

    clock = ManualClock()
    fetcher = FakeFetcher(clock, answers=answer)
    finder = FeedFinder(fetcher, InlineParser(), clock, "Fanfare")
    return await finder.look(f"{SITE}{path}", **more), fetcher.requests


def best_of(result: LookupResult) -> str:
    return result.choice.best.href if result.choice.best else ""


async def test_a_feed_is_a_feed() -> None:
    result, asked = await look({"/": RSS})

    assert result.feed is not None
    assert result.feed.entry_count == 1
    assert result.fetched is not None
    assert result.fetched.body == RSS
    assert len(asked) == 1


async def test_feeds_are_named_by_the_header_and_the_page() -> None:
    page = b"<html><link rel=alternate type=application/rss+xml title=B href=/b></html>"
    answer = replace(an_answer(200, page), link="</a>; rel=feed; title=A")

    result, asked = await look({"/": answer})

    assert [feed.href for feed in result.choice.feeds] == [f"{SITE}/a", f"{SITE}/b"]
    assert "an HTML page" in result.error
    assert paths(asked) == ["/", *SITE_PLACES]


async def test_where_none_is_named_the_usual_places_are_tried() -> None:
    result, asked = await look({"/": b"<html></html>", "/atom.xml": RSS})

    assert best_of(result) == f"{SITE}/atom.xml"
    assert [request.url for request in asked] == [
        f"{SITE}{place}"
        for place in ("/", *SITE_PLACES, "/feed", "/feed.xml", "/atom.xml")
    ]


async def test_credentials_are_sent_wherever_it_looks() -> None:
    secret = Credentials(username="me", password="secret")

    result, asked = await look({"/": b"<html></html>"}, credentials=secret)

    assert (result.choice.feeds, result.choice.reason) == ((), "no feed was found")
    assert len(asked) == 1 + len(SITE_PLACES) + len(USUAL_PLACES)
    assert all(request.credentials == secret for request in asked)


async def test_credentials_are_not_sent_to_where_a_page_redirects() -> None:
    secret = Credentials(username="me", password="secret")
    clock = ManualClock()

    def answer(request: FetchRequest) -> Fetched:
        return an_answer(200, b"<html></html>")

    fetcher = FakeFetcher(clock, answers=answer, lands={f"{SITE}/": ELSEWHERE})
    finder = FeedFinder(fetcher, InlineParser(), clock, "Fanfare")

    await finder.look(f"{SITE}/", secret)

    page, *places = fetcher.requests
    assert page.credentials == secret
    assert [each.url for each in places] == [
        f"https://elsewhere.example{place}" for place in (*SITE_PLACES, *USUAL_PLACES)
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
async def test_what_is_neither_a_feed_nor_a_page_is_an_error_and_nothing_else_is_tried(
    page: bytes | Fetched, trouble: str
) -> None:
    result, asked = await look({"/document": page}, "/document")

    assert (result.error, result.choice.feeds) == (trouble, ())
    assert len(asked) == 1


async def test_a_look_that_takes_long_finds_nothing() -> None:
    clock = ManualClock()
    fetcher = FakeFetcher(clock)
    fetcher.gate.clear()
    finder = FeedFinder(fetcher, InlineParser(), clock, "Fanfare", seconds=0.01)

    result = await finder.look(f"{SITE}/")

    assert result.fetched is None
    assert result.error == "looking at it took over 0.01 s"


async def look_with_hanging(
    *hanging: str, site_seconds: float, **more: Any
) -> tuple[LookupResult, list[str]]:
    """A look at a page that names a feed, where these paths never answer."""
    pages = {"/": NAMING, "/unnaming": b"<html></html>", "/feed": RSS}
    asked = []

    async def answer(request: FetchRequest) -> Fetched:
        path = request.url.removeprefix(SITE)
        asked.append(path)
        if path in hanging:
            await asyncio.Event().wait()
        page = pages.get(path)
        return an_answer(200, page) if page else an_answer(404)

    clock = ManualClock()
    finder = FeedFinder(
        FakeFetcher(clock, answer),
        InlineParser(),
        clock,
        "Fanfare",
        seconds=more.pop("seconds", 60.0),
        site_seconds=site_seconds,
    )
    return await finder.look(f"{SITE}{more.pop('path', '/')}", **more), asked


@pytest.mark.parametrize("place", SITE_PLACES)
async def test_a_site_that_hangs_keeps_nobody_from_the_feeds_a_page_names(
    place: str,
) -> None:
    result, asked = await look_with_hanging(place, site_seconds=0.01)

    assert best_of(result) == f"{SITE}/rss"
    assert set(asked) <= {"/", *SITE_PLACES}


async def test_where_a_site_hangs_the_usual_places_are_tried_all_the_same() -> None:
    result, _ = await look_with_hanging(
        "/robots.txt", site_seconds=0.01, path="/unnaming"
    )

    assert best_of(result) == f"{SITE}/feed"


async def test_a_search_for_sites_alone_has_all_the_time_of_the_look() -> None:
    result, _ = await look_with_hanging(
        "/robots.txt", site_seconds=0.0, seconds=0.5, kind=LookupKind.SCP
    )

    assert result.error == "looking at it took over 0.5 s"


@pytest.mark.parametrize("url", ["http://[::1", "http://[", "http://a.example:99999/"])
async def test_what_is_no_url_is_not_asked_for_and_raises_nothing(url: str) -> None:
    robots = f"Sitemap: {url}".encode()
    index = INDEX % (CHILD % url.encode())

    result, asked = await look(
        {"/": b"<html></html>", "/robots.txt": robots, "/sitemap.xml": index}
    )
    clock = ManualClock()
    alone = await FeedFinder(FakeFetcher(clock), InlineParser(), clock, "F").look(url)

    assert result.choice.feeds == alone.choice.feeds == ()
    assert alone.error == "it is not a valid URL"
    assert url not in [each.url for each in asked]


DISCOVERY = json.dumps(
    {
        "version": "1.0",
        "site": {"name": "A site", "url": SITE, "language": "en"},
        "feed": {"endpoint": "/openfeeder"},
    }
).encode()
NAMING = b"<html><link rel=alternate type=application/rss+xml href=/rss></html>"


def paths(asked: list[FetchRequest]) -> list[str]:
    return [request.url.removeprefix(SITE) for request in asked]


@pytest.mark.parametrize(
    "page", [NAMING, b"<html></html>", b'{"hello": 1}', an_answer(404), b"%PDF"]
)
async def test_of_a_site_s_own_address_the_site_is_taken_before_its_feeds(
    page: bytes | Fetched,
) -> None:
    result, asked = await look({"/": page, WELL_KNOWN: DISCOVERY, "/rss": RSS})

    assert best_of(result) == f"{SITE}{WELL_KNOWN}"
    assert result.choice.best is not None
    assert result.choice.best.title == "A site"
    assert "openfeeder" in result.choice.reason
    assert result.site is not None
    assert result.site.fetched.body == DISCOVERY
    assert paths(asked) == ["/", WELL_KNOWN]


async def test_of_another_page_its_feeds_are_taken_before_the_site() -> None:
    pages: dict[str, bytes | Fetched] = {
        "/blog": NAMING,
        "/about": b"<html></html>",
        WELL_KNOWN: DISCOVERY,
        "/feed": RSS,
    }

    named, _ = await look(pages, "/blog")
    unnamed, _ = await look(pages, "/about")

    assert best_of(named) == f"{SITE}/rss"
    assert best_of(unnamed) == f"{SITE}{WELL_KNOWN}"


@pytest.mark.parametrize(
    ("page", "place"),
    [
        (b"<html><meta name=OpenFeeder content=/of.json></html>", "/of.json"),
        (b"<html><link rel=openfeeder href=/of.json></html>", "/of.json"),
        (b"<html><img src=/wp-content/a.png></html>", WORDPRESS),
    ],
)
async def test_a_site_is_found_where_its_page_says(page: bytes, place: str) -> None:
    result, _ = await look({"/": page, place: DISCOVERY})

    assert best_of(result) == f"{SITE}{place}"


async def test_a_site_is_found_where_the_header_says() -> None:
    answer = replace(
        an_answer(200, b"<html></html>"), link="</of.json>; rel=openfeeder"
    )

    result, asked = await look({"/": answer, "/of.json": DISCOVERY})

    assert best_of(result) == f"{SITE}/of.json"
    assert paths(asked) == ["/", "/of.json"]


async def test_a_site_is_found_where_a_titled_link_says() -> None:
    link = b"<link rel=alternate type=application/json title=OpenFeeder href=/of.json>"
    in_page, _ = await look({"/": b"<html>" + link, "/of.json": DISCOVERY})
    header = '</of.json>; rel="alternate"; title="OpenFeeder"'
    answer = replace(an_answer(200, b"<html></html>"), link=header)
    in_header, _ = await look({"/": answer, "/of.json": DISCOVERY})

    assert best_of(in_page) == best_of(in_header) == f"{SITE}/of.json"


async def test_a_site_that_only_says_that_it_is_one_has_the_usual_endpoint() -> None:
    answer = replace(an_answer(200, b"<html></html>"), speaks_openfeeder=True)
    index = b'{"schema": "openfeeder/1.0", "type": "index", "items": []}'

    result, _ = await look({"/": answer, "/openfeeder": index})

    assert best_of(result) == f"{SITE}/openfeeder"


async def test_a_site_is_found_where_its_llms_txt_says() -> None:
    llms = b"# A site\n\n- [All of it](/api/openfeeder.json): in pages\n"
    pages = {"/": b"<html></html>", LLMS: llms, "/api/openfeeder.json": DISCOVERY}

    result, asked = await look(pages)

    assert best_of(result) == f"{SITE}/api/openfeeder.json"
    assert paths(asked) == ["/", *SITE_PLACES, "/api/openfeeder.json"]


async def test_a_kind_may_be_insisted_on() -> None:
    pages: dict[str, bytes | Fetched] = {"/": NAMING, WELL_KNOWN: DISCOVERY}

    feed, _ = await look(pages, kind=LookupKind.FEED)
    site, _ = await look(pages, kind=LookupKind.OPENFEEDER)
    none, _ = await look({"/": NAMING}, kind=LookupKind.SCP)

    assert best_of(feed) == f"{SITE}/rss"
    assert best_of(site) == f"{SITE}{WELL_KNOWN}"
    assert none.choice.feeds == ()


async def test_a_discovery_document_s_own_address_is_a_feed_s() -> None:
    result, asked = await look({WELL_KNOWN: DISCOVERY}, WELL_KNOWN)

    assert result.feed is not None
    assert result.feed.feed.title == "A site"
    assert len(asked) == 1


async def test_part_of_a_page_is_meant_as_it_is() -> None:
    pages: dict[str, bytes | Fetched] = {"/#.news": b"<html></html>"}

    result, _ = await look({**pages, WELL_KNOWN: DISCOVERY}, "/#.news")

    assert result.site is None


SITEMAP = (
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    b' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">'
    b'<scp:collection section="all" type="snapshot" url="/1.scp.gz" pages="1" size="1"'
    b' generated="2026-01-02T00:00:00Z" expires="2026-01-03T00:00:00Z"/></urlset>'
)
INDEX = b"<sitemapindex>%b</sitemapindex>"
CHILD = b"<sitemap><loc>%b</loc></sitemap>"


@pytest.mark.parametrize(
    ("pages", "place", "count"),
    [
        ({"/sitemap.xml": SITEMAP}, "/sitemap.xml", 3),
        ({"/sitemap.xml": an_answer(500), "/": b"words"}, "", 3),
        ({"/robots.txt": b"Sitemap: /a.xml.gz", "/a.xml.gz": SITEMAP}, "/a.xml.gz", 3),
        (
            {
                "/robots.txt": b"Sitemap: /index.xml",
                "/index.xml": INDEX % (CHILD % b"/posts.xml" + CHILD % b"/scp.xml"),
                "/posts.xml": b"<urlset/>",
                "/scp.xml": SITEMAP,
            },
            "/scp.xml",
            5,
        ),
        (
            {
                "/sitemap.xml": INDEX % b"".join(CHILD % b"/%d" % n for n in range(9)),
                "/8": SITEMAP,
            },
            "",
            6,
        ),
        ({"/sitemap.xml": b"<urlset>" + b" " * 300_000 + b"</urlset>"}, "", 3),
        ({"/sitemap.xml": RSS}, "", 3),
        (
            {
                "/sitemap.xml": gzip.compress(
                    INDEX % (CHILD % b"/scp.xml" + b" " * LARGEST_UNPACKED)
                ),
                "/scp.xml": SITEMAP,
            },
            "",
            3,
        ),
    ],
)
async def test_a_sitemap_that_names_collections_is_looked_for(
    pages: dict[str, bytes | Fetched], place: str, count: int
) -> None:
    result, asked = await look({"/": b"<html></html>"} | pages, kind=LookupKind.SCP)

    assert best_of(result) == (f"{SITE}{place}" if place else "")
    assert len(asked) == count


async def test_an_index_is_read_beside_the_event_loop() -> None:
    order: list[str] = []

    async def fetch(url: str) -> Fetched:
        order.append(urlsplit(url).path)
        is_index = url.endswith("/sitemap.xml")
        answer = an_answer(200, INDEX % (CHILD % b"/scp.xml"))
        return replace(answer if is_index else an_answer(404), url=url)

    async def read(fetched: Fetched) -> ParsedFeed | FeedError | None:
        asyncio.get_running_loop().call_soon(order.append, "the loop")
        return None

    await find_scp(replace(an_answer(200), url=SITE), fetch, read)

    after = order.index("/sitemap.xml") + 1
    assert order[after : after + 2] == ["the loop", "/scp.xml"]
