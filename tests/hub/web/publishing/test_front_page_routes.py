"""The page at ``/``: safe whatever feeds say, and useful without a script."""

from __future__ import annotations

import re

import httpx2
import pytest
from lxml import html
from msgspec.structs import replace

from hub.services.public_pages import SHOWN_FEEDS, AboutPage
from hub.web.publishing.front_page_routes import (
    ASSETS,
    LONGEST_QUERY,
    POLICY,
    render_about,
)
from storage.records import FetchCommit, NewFeed, Polling
from tests.support.services import Hub

HOSTILE = "</title><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"


async def add(hub: Hub, url: str, *, private: bool = False, title: str = "") -> None:
    now = hub.clock.now()
    feed, _ = await hub.storage.feeds.add(NewFeed(url=url, private=private), now)
    await hub.storage.log.commit(
        FetchCommit(
            feed_id=feed.id,
            at=now,
            next_fetch=now,
            polling=replace(Polling(), code=200),
            title=title,
            format="atom",
        )
    )


async def page(anybody: httpx2.AsyncClient) -> html.HtmlElement:
    answer = await anybody.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return html.fromstring(answer.text)


async def test_an_empty_hub_says_so_and_how_to_subscribe(
    anybody: httpx2.AsyncClient,
) -> None:
    text = (await page(anybody)).text_content()
    assert "no public feeds yet" in text
    assert "http://hub.example/hub" in text
    assert "http://hub.example/stream" in text
    assert "ws://hub.example/stream" in text


async def test_public_feeds_are_shown_and_listened_to(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await add(hub, "https://example.org/feed.xml", title="Example")
    await add(hub, "https://example.org/secret.xml", private=True, title="Secret")
    document = await page(anybody)
    assert document.xpath("//li/@data-live") == ["https://example.org/feed.xml"]
    assert document.xpath("//li/a/text()") == ["Example"]
    assert "secret" not in document.text_content().lower()


async def test_what_a_feed_says_stays_text(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await add(hub, "https://example.org/?a='%22><script>x</script>", title=HOSTILE)
    document = await page(anybody)
    assert document.xpath("//li/a/text()") == [HOSTILE]
    assert document.xpath("//script/@src") == ["/page.js"]
    assert not document.xpath("//img")


async def test_the_commands_shown_are_quoted_for_the_shell(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await add(hub, "https://example.org/?a=1&b=$(rm)")
    text = (await page(anybody)).text_content()
    assert "topic='https://example.org/?a=1&b=$(rm)'" in text
    assert '"topic": "https://example.org/?a=1&b=$(rm)"' in text


@pytest.mark.parametrize("path", ["/", *(f"/{name}" for name in ASSETS)])
async def test_nothing_inline_and_nothing_of_others_may_run(
    anybody: httpx2.AsyncClient, path: str
) -> None:
    answer = await anybody.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers


async def test_the_page_keeps_to_its_own_policy(anybody: httpx2.AsyncClient) -> None:
    document = await page(anybody)
    assert not document.xpath("//script[not(@src)] | //style | //@style")
    assert not [name for name in document.xpath("//@*") if name.attrname[:2] == "on"]
    for source in document.xpath("//script/@src | //link/@href"):
        assert (await anybody.get(source)).status_code == 200


async def test_the_program_sets_text_and_never_markup(
    anybody: httpx2.AsyncClient,
) -> None:
    program = (await anybody.get("/page.js")).text
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|eval|document\.write", program
    )


@pytest.mark.parametrize("name", ASSETS)
async def test_a_file_that_did_not_change_is_not_sent_again(
    anybody: httpx2.AsyncClient, name: str
) -> None:
    first = await anybody.get(f"/{name}")
    assert first.headers["content-type"] == ASSETS[name]
    known = f'"former", W/{first.headers["etag"]}'
    again = await anybody.get(f"/{name}", headers={"If-None-Match": known})
    assert (again.status_code, again.content) == (304, b"")


async def test_the_page_listens_to_no_more_than_a_request_can_name(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    for number in range(SHOWN_FEEDS + 1):
        await add(hub, f"https://example.org/{number}/{'x' * 200}")
    document = await page(anybody)
    live = document.xpath("//li/@data-live")
    assert len(document.xpath("//li")) == SHOWN_FEEDS
    assert 0 < len(live) < SHOWN_FEEDS
    assert sum(len(each) for each in live) < LONGEST_QUERY


async def test_private_feeds_do_not_hide_public_ones(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    for number in range(260):
        await add(hub, f"https://example.org/{number}", private=True)
    await add(hub, "https://example.org/public")
    document = await page(anybody)
    assert document.xpath("//li/@data-live") == ["https://example.org/public"]


async def test_the_database_is_asked_at_most_every_few_seconds(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await page(anybody)
    await add(hub, "https://example.org/feed.xml")
    assert not (await page(anybody)).xpath("//li")
    hub.clock.advance(5)
    assert (await page(anybody)).xpath("//li")


async def test_publishers_are_told_who_asks_and_how_to_be_left_alone(
    anybody: httpx2.AsyncClient,
) -> None:
    answer = await anybody.get("/about")
    assert answer.headers["content-security-policy"] == POLICY
    text = html.fromstring(answer.text).text_content()
    for told in ("User-Agent", "Retry-After", "410 Gone", "hub.mode=publish"):
        assert told in text
    assert "http://hub.example/hub" in text


@pytest.mark.parametrize(
    ("heeds_robots", "told"),
    [(True, "Disallow it in your robots.txt"), (False, "does not read robots.txt")],
)
def test_publishers_are_told_whether_their_robots_txt_counts(
    heeds_robots: bool, told: str
) -> None:
    page = AboutPage(
        url="https://hub.example",
        version="1",
        user_agent="Fanfare/1",
        contact="<ops@hub.example>",
        heeds_robots=heeds_robots,
    )
    text = html.fromstring(render_about(page)).text_content()
    assert told in text
    assert "<ops@hub.example>" in text
