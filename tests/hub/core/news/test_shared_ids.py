"""Feeds that give one id to several entries, as windows that move over them.

Whatever a window shows, alone or beside others, each article is told once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.newsreader import Newsreader, post, reader_of, site_rss
from tests.support.two_readers import TwoReaders

DAY = timedelta(days=1)
ENCLOSURE = '<enclosure url="https://site.example/live.mp3" type="audio/mpeg"/>'
OTHERS = (post(98), post(99))

Article = Callable[[int, int], str]
"""An item by its number and the version of its text."""


def article(**fixed: str) -> Article:
    return lambda number, version: post(number, text=f"{number}.{version}", **fixed)


LINKED: dict[str, Article] = {
    "a guid": article(guid="g"),
    "a guid, undated": article(guid="g", date=""),
    "a guid that is the link of one": article(guid="https://site.example/2"),
    "a guid and a file": article(guid="g", more=ENCLOSURE),
}
"""What articles share that have links of their own."""
UNLINKED: dict[str, Article] = {
    "a guid and a link": article(guid="g", link="https://site.example/news"),
    "a guid and the site's link": article(guid="g", link="https://site.example/"),
    "a guid, without links": article(guid="g", link=""),
    "a link": article(guid="", link="https://site.example/news"),
    "a link, undated": article(guid="", link="https://site.example/news", date=""),
    "a file": article(guid="", link="", more=ENCLOSURE),
    "a file, undated": article(guid="", link="", date="", more=ENCLOSURE),
    "a guid, a link and a file": article(
        guid="g", link="https://site.example/news", more=ENCLOSURE
    ),
}

several = st.lists(st.integers(1, 6), min_size=2, max_size=4, unique=True)
some = st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True)


@st.composite
def windows(draw: st.DrawFn) -> list[list[int]]:
    """Numbers of articles, document by document: from the second one on at the latest
    it shows that they share what they share."""
    together = draw(several)
    first = draw(st.sampled_from([[], [together[-1:]]]))
    return [*first, together, *draw(st.lists(some, max_size=8))]


def told(reader: Newsreader) -> list[str]:
    return [title for reading in reader.readings for title in reading.new]


def expected(documents: list[list[int]]) -> list[str]:
    """Each when it comes first, but for those of the first document."""
    first, *later = documents
    new = dict.fromkeys(n for numbers in later for n in numbers if n not in first)
    return [f"Post {number}" for number in new]


@pytest.mark.parametrize("name", [*LINKED, *UNLINKED])
@pytest.mark.parametrize("others", [(), OTHERS], ids=["alone", "beside others"])
def test_each_article_is_told_once_while_a_window_shrinks_to_one(
    name: str, others: tuple[str, ...]
) -> None:
    of = (LINKED | UNLINKED)[name]
    documents = [[1], [2, 1], [3, 2, 1], [3], [4], [4, 3]]

    reader = reader_of(
        *(site_rss(*(of(number, 0) for number in each), *others) for each in documents)
    )

    assert told(reader) == ["Post 2", "Post 3", "Post 4"]
    assert not any(each.updated for each in reader.readings)


@pytest.mark.parametrize("name", [*LINKED, *UNLINKED])
@given(documents=windows(), others=st.sampled_from([(), OTHERS]))
@settings(max_examples=25)
def test_each_article_is_told_once_whatever_a_window_shows(
    name: str, documents: list[list[int]], others: tuple[str, ...]
) -> None:
    of = (LINKED | UNLINKED)[name]

    reader = reader_of(
        *(site_rss(*(of(number, 0) for number in each), *others) for each in documents)
    )

    assert told(reader) == expected(documents)
    assert not any(each.updated for each in reader.readings)


@dataclass
class Site:
    """Remembers which version of each article it has shown, and which is its newest."""

    newest: dict[int, int] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)

    def edited(self, numbers: list[int]) -> list[int]:
        """Of those that are shown now; they count as shown."""
        newest = {number: self.newest.get(number, 0) for number in numbers}
        changed = [n for n in numbers if self.shown.get(n, newest[n]) != newest[n]]
        self.shown |= newest
        return changed


@pytest.mark.parametrize("name", LINKED)
@settings(max_examples=25)
@given(
    together=several, documents=st.lists(st.tuples(some, st.integers(1, 6)), max_size=8)
)
def test_an_edit_under_the_same_link_is_an_update_of_that_article(
    name: str, together: list[int], documents: list[tuple[list[int], int]]
) -> None:
    of, site, reader = LINKED[name], Site(), Newsreader()
    site.edited(together)
    reader.read(site_rss(*(of(number, 0) for number in together)))

    for numbers, edited in documents:
        site.newest[edited] = site.newest.get(edited, 0) + 1
        items = [of(number, site.newest.get(number, 0)) for number in numbers]
        reading = reader.read(site_rss(*items), after=DAY)

        updated = [f"Post {number}" for number in site.edited(numbers)]
        assert list(reading.updated) == updated
    shown = [together, *(numbers for numbers, _ in documents)]
    assert told(reader) == expected(shown)


@pytest.mark.parametrize("name", [*LINKED, *UNLINKED])
@settings(max_examples=15)
@given(documents=windows())
@example(documents=[[2], [1, 2], [2]])
def test_what_is_committed_is_the_same_however_such_a_document_is_read(
    name: str, documents: list[list[int]]
) -> None:
    of, readers = (LINKED | UNLINKED)[name], TwoReaders()

    for numbers in documents:
        readers.fetch(site_rss(*(of(number, 0) for number in numbers), *OTHERS))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_under_an_id_that_was_never_shared_a_new_title_with_a_new_link_is_an_edit(
    numbers: list[int],
) -> None:
    reader = reader_of(site_rss(post(numbers[0], guid="g"), *OTHERS))

    for before, number in pairwise(numbers):
        reading = reader.read(site_rss(post(number, guid="g"), *OTHERS), after=DAY)

        changed = (f"Post {number}",) if number != before else ()
        assert (reading.new, reading.updated) == ((), changed)


def test_two_lone_entries_whose_ids_were_shared_are_two_under_one_link() -> None:
    def shown(guid: str, *numbers: int, **more: str) -> list[str]:
        return [post(number, guid=guid, **more) for number in numbers]

    link = "https://site.example/same"
    reader = reader_of(site_rss(*shown("g", 1, 2), *shown("h", 3, 4)))

    reading = reader.read(
        site_rss(*shown("g", 5, link=link), *shown("h", 6, link=link))
    )

    assert reading.new == ("Post 5", "Post 6")


def test_what_was_shared_where_a_feed_is_redirected_to_counts_there_too() -> None:
    elsewhere = reader_of(site_rss(post(2, guid="g"), post(1, guid="g"))).target.seen
    reader = reader_of(site_rss(post(1, guid="g")))

    reading = reader.read(site_rss(post(3, guid="g")), elsewhere=elsewhere)

    assert (reading.new, reading.updated) == (("Post 3",), ())
