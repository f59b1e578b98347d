"""Pages for readers: the newest, search, topics, one topic; safe whatever feeds say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from lxml import html

from hub.publishing.page_visibility import PageUpdater
from hub.search.index_follower import SearchIndex
from hub.services.reader_pages import SHOWN_TOPICS, AboutPage
from hub.web.page_rendering import POLICY, render_page
from protocols.model import Entry, Feed, Link, Text
from storage.records import NewFeed, StoredFeed
from tests.support.application_client import client_of
from tests.support.operator_browser import HOSTILE, read, text_of
from tests.support.public_feeds import PublicFeeds
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import START

PAGES = ["/", "/search", "/search?q=morning", "/topics", "/about"]


@dataclass
class Library:
    hub: Hub
    feeds: PublicFeeds

    async def publish(self, feed: StoredFeed, *entries: Entry) -> None:
        """Published, judged, and in the index."""
        await self.feeds.publish(feed, *entries)
        storage, clock = self.hub.storage, self.hub.clock
        await PageUpdater(storage.pages, clock, "http://hub.example").catch_up()
        await SearchIndex(storage, clock).catch_up()
        clock.advance(5)  # for so long the newest are kept


@pytest.fixture
def library(hub: Hub) -> Library:
    return Library(hub, PublicFeeds(hub.storage))


def entry(key: str, title: str = "", days: int = 0, link: str = "") -> Entry:
    href = link or f"https://a.example/{key}"
    return Entry(
        key=key,
        id=f"id-{key}",
        title=title,
        published=START + timedelta(days=days - 100),
        links=(Link(href=href, rel="alternate"),),
    )


def lines(answer: httpx2.Response) -> list[tuple[str, str]]:
    """Titles of the entries shown, and where they lead."""
    found = read(answer).xpath("//li[@data-entry]/*[1]")
    return [(each.text_content(), each.get("href", "")) for each in found]


def topics(answer: httpx2.Response) -> list[str]:
    return [str(each) for each in read(answer).xpath("//li/span[@class='url']/text()")]


async def test_an_empty_hub_says_so_and_how_to_subscribe(
    anybody: httpx2.AsyncClient,
) -> None:
    text = text_of(await anybody.get("/"))
    assert "no public entries yet" in text
    for door in ("http://hub.example/hub", "http://hub.example/stream", "ws://hub"):
        assert door in text
    assert "no public topics yet" in text_of(await anybody.get("/topics"))


async def test_the_newest_public_entries_of_all_topics_are_shown_at_once(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    first, second = await library.feeds.add("a"), await library.feeds.add("b")
    secret = await library.feeds.add("secret", private=True)
    unlisted = await library.feeds.add("hidden", head=Feed(title="x", unlisted=True))
    await library.publish(first, entry("1", "Older"), entry("2", "Newer", 2))
    await library.publish(second, entry("3", "Between", 1))
    await library.publish(secret, entry("4", "Secret", 3))
    await library.publish(unlisted, entry("5", "Hidden", 3))
    answer = await anybody.get("/")
    assert lines(answer) == [
        ("Newer", "https://a.example/2"),
        ("Between", "https://a.example/3"),
        ("Older", "https://a.example/1"),
    ]
    assert "Feed b" in text_of(answer)
    assert "hub.topic=https://b.example/feed" in text_of(answer)


async def test_its_examples_are_of_a_topic_that_has_entries(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    first = await library.feeds.add("a")
    await library.feeds.add("broken")
    assert "hub.topic=https://broken.example/feed" in text_of(await anybody.get("/"))
    library.hub.clock.advance(5)
    await library.publish(first, entry("1", "One"))
    assert "hub.topic=https://a.example/feed" in text_of(await anybody.get("/"))


async def test_the_database_is_asked_at_most_every_few_seconds(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    feed = await library.feeds.add("a")
    assert not lines(await anybody.get("/"))
    await library.feeds.publish(feed, entry("1", "One"))
    storage, clock = library.hub.storage, library.hub.clock
    await PageUpdater(storage.pages, clock, "http://hub.example").catch_up()
    assert not lines(await anybody.get("/"))
    clock.advance(5)
    assert lines(await anybody.get("/"))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (Entry(key="1", id="1", summary=Text(value="<p>Only this</p>")), "Only this"),
        (
            Entry(
                key="1", id="1", summary=Text(value="<p>"), content=Text(value="Text")
            ),
            "Text",
        ),
        (Entry(key="1", id="1"), "(untitled)"),
    ],
)
async def test_an_entry_without_title_is_shown_by_how_it_begins(
    anybody: httpx2.AsyncClient, library: Library, said: Entry, shown: str
) -> None:
    feed = await library.feeds.add("a")
    await library.publish(feed, said)
    assert lines(await anybody.get("/")) == [
        (shown, "http://hub.example/topics/entries/1")
    ]
    assert lines(await anybody.get(f"/topics/{feed.id}")) == [(shown, "")]


async def test_search_finds_public_entries_and_topics(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    feed = await library.feeds.add("morning")
    secret = await library.feeds.add("morning.secret", private=True)
    await library.publish(feed, entry("1", "One morning"), entry("2", "Evening"))
    await library.publish(secret, entry("3", "Secret morning"))
    answer = await anybody.get("/search", params={"q": "morning"})
    assert lines(answer) == [("One morning", "https://a.example/1")]
    assert "1 entry found, newest first" in text_of(answer)
    assert topics(answer) == ["https://morning.example/feed"]
    assert read(answer).xpath("//input[@name='q']/@value") == ["morning"]


async def test_what_a_search_finds_has_pages(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    feed = await library.feeds.add("many")
    await library.publish(feed, *[entry(f"{n}", f"Many {n}") for n in range(60)])
    first = await anybody.get("/search?q=many")
    assert "the newest 50 entries of more that were found" in text_of(first)
    (older,) = read(first).xpath("//main//section//a[@rel='next']/@href")
    second = await anybody.get(older)
    assert "10 more entries found, newest first" in text_of(second)
    assert len({*lines(first), *lines(second)}) == 60
    assert not read(second).xpath("//a[@rel='next']")
    (newest,) = read(second).xpath("//a[text()='Newest' and contains(@href, 'q=')]")
    assert newest.get("href") == "/search?q=many"
    assert (await anybody.get("/search?q=many&cursor=x")).status_code == 422


@pytest.mark.parametrize(
    ("query", "told"),
    [("(", "expected"), ("xy", "three characters"), ("zzzz", "No topic has this")],
)
async def test_search_says_why_it_finds_nothing(
    anybody: httpx2.AsyncClient, query: str, told: str
) -> None:
    answer = await anybody.get("/search", params={"q": query})
    assert answer.status_code == 200
    assert told in text_of(answer)


async def test_search_says_that_the_hub_keeps_no_index(tmp_path: Path) -> None:
    async with (
        open_hub(tmp_path, search_days=0) as hub,
        client_of(hub.application) as client,
    ):
        assert "FANFARE_SEARCH_DAYS" in text_of(await client.get("/search?q=one"))


@pytest.mark.parametrize(
    "path",
    [
        f"/search?q={'x' * 501}",
        "/topics?search=ab",
        f"/topics?search={'x' * 501}",
        "/topics?before=x",
    ],
)
async def test_what_cannot_be_looked_for_is_refused(
    anybody: httpx2.AsyncClient, path: str
) -> None:
    assert (await anybody.get(path)).status_code == 422


async def test_all_topics_are_reached_page_by_page_the_latest_added_first(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    urls = []
    for number in range(SHOWN_TOPICS + 2):
        urls.append((await library.feeds.add(f"f{number}")).url)
    await library.feeds.add("secret", private=True)
    first = await anybody.get("/topics")
    assert topics(first) == urls[:1:-1]
    (link,) = read(first).xpath("//a[@rel='next']/@href")
    second = await anybody.get(link)
    assert topics(second) == urls[1::-1]
    assert not read(second).xpath("//a[@rel='next']")
    assert topics(await anybody.get("/topics?search=F3.EXAMPLE")) == [urls[3]]
    assert "No topic has this" in text_of(await anybody.get("/topics?search=secret"))


async def test_a_topic_s_page_has_its_entries_and_its_own_examples(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    head = Feed(
        title="A", subtitle="<b>About</b> a", links=(Link(href="https://a.example/"),)
    )
    feed = await library.feeds.add("a", head=head, category="News")
    await library.publish(
        feed, *(entry(f"{number}", f"E{number}", number) for number in range(51))
    )
    answer = await anybody.get(f"/topics/{feed.id}")
    text = text_of(answer)
    assert [title for title, _ in lines(answer)][:2] == ["E50", "E49"]
    assert "About a" in text
    assert "News" in text
    assert "hub.topic=https://a.example/feed" in text
    assert '"topic": "https://a.example/feed"' in text
    (follow,) = read(answer).xpath("//ol/@data-follow")
    assert follow.startswith("/stream?topic=https%3A%2F%2Fa.example%2Ffeed&cursor=")
    (older,) = read(answer).xpath("//a[@rel='next']/@href")
    second = await anybody.get(older)
    assert [title for title, _ in lines(second)] == ["E0"]
    assert not read(second).xpath("//ol/@data-follow")


@pytest.mark.parametrize("more", [{"private": True}, {"head": Feed(unlisted=True)}])
async def test_a_topic_that_is_not_public_is_not_there(
    anybody: httpx2.AsyncClient, library: Library, more: dict[str, bool]
) -> None:
    feed = await library.feeds.add("a", **more)
    for path in (f"/topics/{feed.id}", "/topics/77", "/topics/x"):
        assert (await anybody.get(path)).status_code == 404


async def test_a_closed_hub_claims_no_open_doors(tmp_path: Path) -> None:
    async with (
        open_hub(tmp_path, open_hub="off", open_stream="off", scp="off") as hub,
        client_of(hub.application) as client,
    ):
        feed = await PublicFeeds(hub.storage).add("a")
        page = await client.get(f"/topics/{feed.id}")
        text = text_of(page)
        assert "live only to holders of a token" in text
        assert "-u LOGIN:TOKEN http://hub.example/stream" in text
        assert "http://hub.example/hub" not in text
        assert "sitemap.xml" not in text
        assert not read(page).xpath("//@data-follow")
        front, _, _ = text_of(await client.get("/")).partition("How")
        assert "as they arrive" not in front


async def test_the_commands_shown_are_quoted_for_the_shell(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    feed = await library.feeds.add("a", title="x")
    await library.feeds.read(feed, Feed(title="A"))
    other, _ = await library.hub.storage.feeds.add(
        NewFeed(url="https://a.example/?a=1&b=$(rm)"), START
    )
    text = text_of(await anybody.get(f"/topics/{other.id}"))
    assert "hub.topic='https://a.example/?a=1&b=$(rm)'" in text
    assert '"topic": "https://a.example/?a=1&b=$(rm)"' in text


async def test_what_feeds_say_stays_text(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    for number, said in enumerate(HOSTILE):
        head = Feed(
            title=said, subtitle=said, links=(Link(href="javascript:alert(1)"),)
        )
        feed = await library.feeds.add(f"a{number}", head=head, category=said)
        bad = entry(f"{number}", said, link="javascript:alert(1)")
        await library.publish(feed, bad)
    paths = ["/", "/topics", *(f"/topics/{n + 1}" for n in range(len(HOSTILE)))]
    paths += [str(httpx2.URL("/search", params={"q": said})) for said in HOSTILE]
    for path in paths:
        document = read(await anybody.get(path))
        assert len(document.xpath("//script")) == 1
        assert not document.xpath(
            "//img | //style | //@style | //@onfocus | //@onerror"
        )
        links = document.xpath("//a/@href")
        assert not [each for each in links if each.startswith("javascript")]
    titles = {title for title, _ in lines(await anybody.get("/"))}
    assert titles == set(HOSTILE)


@pytest.mark.parametrize("path", [*PAGES, "/favicon.svg"])
async def test_nothing_inline_and_nothing_of_others_may_run(
    anybody: httpx2.AsyncClient, path: str
) -> None:
    answer = await anybody.get(path)
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", [*PAGES, "/topics/1"])
async def test_a_page_that_did_not_change_is_not_sent_again(
    anybody: httpx2.AsyncClient, library: Library, path: str
) -> None:
    await library.publish(await library.feeds.add("a"), entry("1", "One morning"))
    first = await anybody.get(path)
    assert first.headers["cache-control"] == "no-cache"
    known = {"If-None-Match": f'"former", W/{first.headers["etag"]}'}
    again = await anybody.get(path, headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


async def test_a_topic_s_page_is_sent_again_when_its_entries_changed(
    anybody: httpx2.AsyncClient, library: Library
) -> None:
    feed = await library.feeds.add("a")
    first = await anybody.get(f"/topics/{feed.id}")
    await library.publish(feed, entry("1", "One"))
    known = {"If-None-Match": first.headers["etag"]}
    assert (await anybody.get(f"/topics/{feed.id}", headers=known)).status_code == 200


async def test_publishers_are_told_who_asks_and_how_to_be_left_alone(
    anybody: httpx2.AsyncClient,
) -> None:
    text = text_of(await anybody.get("/about"))
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
    about = AboutPage(
        url="https://hub.example",
        contact="<ops@hub.example>",
        heeds_robots=heeds_robots,
    )
    page = render_page("about.html", section="About", about=about)
    text = html.fromstring(bytes(page.body).decode()).text_content()
    assert told in text
    assert "<ops@hub.example>" in text
