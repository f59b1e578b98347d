from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.status.feed_stats import (
    MOST_PLACES,
    WordList,
    examine,
    is_stale,
    popularity,
    site_of,
)
from protocols.model import Category, Entry, Feed, Link, Text
from storage.records import Polling
from tests.support.fetch_targets import START, a_feed

DAY = timedelta(days=1)


def a_linking_entry(title: str = "", *links: str, content: str = "") -> Entry:
    return Entry(
        key="k",
        id="k",
        title=title,
        links=tuple(Link(href=link) for link in links),
        content=Text(value=content, type="html"),
    )


def a_head(*pages: str) -> Feed:
    return Feed(links=tuple(Link(href=page) for page in pages))


# --- sites and links ---


@pytest.mark.parametrize(
    ("pages", "site"),
    [
        ([], ""),
        (["https://www.Example.com/"], "example.com"),
        (["http://example.com/blog/?x#y"], "example.com/blog"),
        (["urn:no-page", "https://example.com/"], "example.com"),
    ],
)
def test_the_site_of_a_feed_is_its_page(pages: list[str], site: str) -> None:
    assert site_of(a_head(*pages)) == site


def test_only_alternate_links_are_pages() -> None:
    own = Link(href="https://example.com/feed", rel="self")
    assert site_of(Feed(links=(own,))) == ""


def test_places_are_the_pages_elsewhere_that_entries_link_to() -> None:
    here, there = "https://here.example/a", "https://there.example/b/?x=1"
    entry = a_linking_entry(
        "",
        here,
        there,
        content='<a href="http://third.example">x</a><a href="/y">y</a>',
    )

    found = examine(a_head("https://here.example/"), [entry, entry], None)

    assert found.site == "here.example"
    assert found.places == {"there.example/b", "third.example/"}
    assert found.porn_rank is None


def test_a_feed_can_link_to_so_many_places_only() -> None:
    entry = a_linking_entry(
        "", *(f"https://a.example/{n}" for n in range(2 * MOST_PLACES))
    )

    assert len(examine(Feed(), [entry], None).places) == MOST_PLACES


# --- popularity ---


@pytest.mark.parametrize(
    ("subscribers", "linking", "expected"),
    [(0, 0, 0.0), (1, 0, 0.69), (0, 1, 0.69), (2, 0, 1.1), (50, 49, 4.61)],
)
def test_popularity_grows_with_subscribers_and_feeds_that_link(
    subscribers: int, linking: int, expected: float
) -> None:
    assert popularity(subscribers, linking) == expected


# --- porn rank ---

LIST = "# a comment\n\nPlug  # of any kind\nhot stuff\n...\n"


@pytest.fixture
def words() -> WordList:
    return WordList(LIST)


@pytest.mark.parametrize(
    ("entry", "is_in"),
    [
        (a_linking_entry("A PLUG."), True),
        (a_linking_entry("plugs"), False),
        (a_linking_entry("", content="<p>it is <b>hot</b> stuff</p>"), True),
        (a_linking_entry("stuff hot"), False),
        (a_linking_entry("comment"), False),
        (replace(a_linking_entry(), categories=(Category(term="plug"),)), True),
        (replace(a_linking_entry(), summary=Text(value="plug")), True),
        (a_linking_entry("hot", content="stuff"), False),
    ],
)
def test_whole_words_and_phrases_are_looked_for(
    words: WordList, entry: Entry, is_in: bool
) -> None:
    assert words.is_in(entry) is is_in


def test_the_porn_rank_is_the_share_of_entries_with_a_listed_word(
    words: WordList,
) -> None:
    entries = [a_linking_entry("plug"), a_linking_entry("a"), a_linking_entry("b")]

    assert examine(Feed(), entries, words).porn_rank == 0.33
    assert examine(Feed(), entries[1:], words).porn_rank == 0.0


def test_there_is_no_porn_rank_without_entries(words: WordList) -> None:
    assert examine(Feed(), [], words).porn_rank is None


# --- staleness ---


@pytest.mark.parametrize(
    ("last_parse", "period", "age", "expected"),
    [
        (None, 0, 2.9 * DAY, False),
        (None, 0, 3.1 * DAY, True),
        (START + DAY, 900, 3.9 * DAY, False),
        (START + DAY, 900, 4.1 * DAY, True),
        (START, 2 * DAY.total_seconds(), 3.9 * DAY, False),
        (START, 2 * DAY.total_seconds(), 4.1 * DAY, True),
    ],
)
def test_a_feed_is_stale_when_nothing_could_be_read_for_days(
    last_parse: datetime | None, period: float, age: timedelta, expected: bool
) -> None:
    feed = a_feed(polling=Polling(last_parse=last_parse, period=period))

    assert is_stale(feed, START + age) is expected
