"""Lists of feeds on the pages: checked, confirmed, added and exported."""

from __future__ import annotations

import html

import httpx2
import pytest

from hub.services.feed_imports import MOST_KEPT, SHOWN
from protocols.opml import read_outlines
from storage.records import FeedId
from tests.support.admin import ADMIN
from tests.support.operator_browser import (
    FROM_A_PAGE,
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub
from tests.support.storage_scene import Scene
from tests.support.waiting import eventually, in_background

IMPORTS = "/admin/imports"
OUTLINE = '<outline type="rss" text="{}" xmlUrl="{}"/>'


def document(*urls: str, more: str = "", title: str = "A feed") -> str:
    listed = "".join(OUTLINE.format(html.escape(title), html.escape(it)) for it in urls)
    return f'<opml version="2.0"><head/><body>{listed}{more}</body></opml>'


async def give(
    browser: OperatorBrowser, text: str, *, is_file: bool = False, **fields: str
) -> httpx2.Response:
    """Send the form of the page, as a browser does, with the text in either way."""
    sent: dict[str, tuple[str | None, str]] = {
        "form_token": (None, await browser.form_token()),
        "list": ("feeds.opml", text if is_file else ""),
        "text": (None, "" if is_file else text),
        **{name: (None, value) for name, value in fields.items()},
    }
    return await browser.client.post(IMPORTS, files=sent, headers=FROM_A_PAGE)


async def press(browser: OperatorBrowser, path: str, verb: str) -> httpx2.Response:
    token = await browser.form_token()
    return await browser.send(f"{path}/{verb}", form_token=token)


async def rest(hub: Hub) -> None:
    """Until there is nothing at work."""

    async def is_idle() -> bool:
        imports = hub.services.feed_imports.latest()
        return not any(each.is_at_work for each in imports)

    async with in_background(hub.built.background["imports"]):
        await eventually(is_idle)


@pytest.fixture
def scene(hub: Hub) -> Scene:
    return Scene(hub.storage)


async def urls(hub: Hub) -> list[str]:
    feeds = await hub.storage.feeds.page(after=FeedId(0), limit=99)
    return [each.url for each in feeds]


@pytest.mark.parametrize("is_file", [True, False])
async def test_a_list_is_checked_confirmed_and_added(
    hub: Hub, scene: Scene, browser: OperatorBrowser, is_file: bool
) -> None:
    known = await scene.add_feed("a", private=True)
    text = document(
        known.url,
        "https://b.example/feed",
        "http://10.0.0.1/feed",
        more='<outline text="News">'
        + OUTLINE.format("C", "https://c.example/feed")
        + '</outline><outline type="include" url="https://other.example/list"/>',
    )
    made = await give(browser, text, is_file=is_file, category="blogs", private="yes")
    path = made.headers["location"]
    checking = await browser.open(path)
    assert read(checking).xpath("//noscript/meta/@content") == ["2"]
    assert "Being checked: nothing is added yet" in text_of(checking)

    await rest(hub)
    checked = await browser.open(path)
    assert not read(checked).xpath("//noscript")
    text = text_of(checked)
    assert "Nothing is added yet. 2 feeds are new" in text
    assert "it includes another list" in text
    assert len(await urls(hub)) == 1
    [refused, *new] = rows(checked)
    assert refused[0] == "http://10.0.0.1/feed"
    assert "url" in refused[1]
    assert new == [
        ["https://b.example/feed", "A feed", "blogs"],
        ["https://c.example/feed", "C", "News"],
    ]

    await press(browser, path, "confirm")
    assert "Being added" in text_of(await browser.open(path))
    await rest(hub)
    assert "Added2 of 2" in text_of(await browser.open(path))
    assert len(await urls(hub)) == 3
    found = await hub.services.feeds.find("https://b.example/feed")
    assert found is not None
    assert (found.private, found.category) == (True, "blogs")
    [listed] = rows(await browser.open(IMPORTS))
    assert [listed[1], listed[4], listed[5]] == ["done", "4", "2"]


async def test_a_list_without_news_has_nothing_to_confirm(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    feed = await scene.add_feed("a")
    made = await give(browser, document(feed.url))
    await rest(hub)
    answer = await browser.open(made.headers["location"])
    assert "No feed of the list is new" in text_of(answer)


async def test_an_import_is_stopped_while_it_is_checked_and_added(
    hub: Hub, browser: OperatorBrowser
) -> None:
    text = document("https://a.example/feed")
    for is_confirmed in (False, True):
        path = (await give(browser, text)).headers["location"]
        early = await press(browser, path, "confirm")
        assert early.status_code == 409
        if is_confirmed:
            await rest(hub)
            await press(browser, path, "confirm")
        await press(browser, path, "stop")
        assert "What was added stays." in text_of(await browser.open(path))
        assert (await press(browser, path, "stop")).status_code == 409
    await rest(hub)
    assert await urls(hub) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "List: expected a file, or the text of one"),
        ("<html/>", "List: expected a list of feeds in OPML: "),
        (document(), "List: expected a list with feeds"),
    ],
)
async def test_what_is_no_list_is_refused_in_words(
    browser: OperatorBrowser, text: str, reason: str
) -> None:
    answer = await give(browser, text)
    assert answer.status_code == 422
    assert reason in text_of(answer)


async def test_a_form_that_cannot_be_read_is_refused(browser: OperatorBrowser) -> None:
    headers = {**FROM_A_PAGE, "Content-Type": "multipart/form-data"}
    answer = await browser.client.post(IMPORTS, content=b"x", headers=headers)
    assert answer.status_code == 400


async def test_the_last_lists_are_kept_and_not_more_are_at_work_at_once(
    hub: Hub, browser: OperatorBrowser
) -> None:
    text = document(*(f"https://a.example/{number}" for number in range(3)))
    for _ in range(MOST_KEPT):
        assert (await give(browser, text)).status_code == 303
    assert (await give(browser, text)).status_code == 503
    await rest(hub)
    assert (await give(browser, text)).status_code == 303
    assert (await browser.open(f"{IMPORTS}/1")).status_code == 404
    assert len(hub.services.feed_imports.latest()) == MOST_KEPT


async def test_of_many_refused_feeds_the_first_are_named(
    hub: Hub, browser: OperatorBrowser
) -> None:
    bad = [f"http://10.0.0.1/{number}" for number in range(SHOWN + 60)]
    path = (await give(browser, document(*bad))).headers["location"]
    await rest(hub)
    answer = await browser.open(path)
    assert f"Refused{len(bad)}" in text_of(answer)
    assert len(rows(answer)) == SHOWN


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_of_a_list_is_more_than_text(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    listed = document(
        f"https://a.example/?{text}", f"http://10.0.0.1/{text}", title=text
    )
    path = (await give(browser, listed)).headers["location"]
    await rest(hub)
    for each in (path, IMPORTS):
        answer = await browser.open(each)
        assert answer.status_code == 200
        page = read(answer)
        assert len(page.xpath("//script")) == 1
        assert page.xpath("//style | //img | //@style | //@onfocus | //@onerror") == []


async def test_the_list_is_exported_with_its_filter(
    scene: Scene, browser: OperatorBrowser
) -> None:
    await scene.add_feed("a", category="news", title="<A>")
    await scene.add_feed("b", private=True)
    page = read(await browser.open("/admin/feeds?category=news&sort=url"))
    [link] = page.xpath("//a[contains(., 'as OPML')]/@href")
    one = await browser.open(link)
    every = await browser.client.get("/api/feeds.opml", headers=ADMIN)
    for answer, expected in ((one, "a"), (every, "ba")):
        assert answer.headers["content-type"].startswith("text/x-opml")
        listed = read_outlines(answer.content, "").feeds
        found = [it.url.removeprefix("https://")[:1] for it in listed]
        assert "".join(found) == expected
    assert 'filename="feeds.opml"' in one.headers["content-disposition"]


async def test_an_unknown_import_is_not_found_and_a_stranger_logs_in(
    browser: OperatorBrowser,
) -> None:
    assert (await browser.open(f"{IMPORTS}/9")).status_code == 404
    browser.client.cookies.clear()
    for path in (IMPORTS, "/admin/feeds.opml"):
        answer = await browser.open(path)
        assert answer.headers["location"].startswith("/admin/login?next=")
