"""What is news, where the thirty cases (`test_identity_cases`) do not show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hub.core.news.entry_diff import UPDATES_A_DAY, EntryDiff, detect
from protocols.model import Deletion, Entry, FeedFormat, ParsedFeed, Text
from tests.support.documents import a_document, an_entry, entries_named

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class Reader:
    """Reads one document after another, an hour apart, as the poller would."""

    at: datetime = NOON
    seen: bytes = b""
    last: datetime | None = None
    format: str = ""
    news: list[EntryDiff] = field(default_factory=list)

    def read(self, document: ParsedFeed, *, after: timedelta = HOUR) -> EntryDiff:
        self.at += after
        news = detect(
            document,
            self.seen,
            at=self.at,
            last_success=self.last,
            is_reformatted=self.format not in ("", document.format),
        )
        self.seen, self.last, self.format = news.seen, self.at, document.format
        self.news.append(news)
        return news

    def read_entries(self, *entries: Entry, after: timedelta = HOUR) -> EntryDiff:
        return self.read(a_document(*entries), after=after)


def keys(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.key for entry in entries]


def assert_silent(news: EntryDiff) -> None:
    assert (news.new, news.updates, news.deletions) == ((), (), ())


def reader_of(*names: str) -> Reader:
    reader = Reader()
    reader.read_entries(*entries_named(*names))
    return reader


# --- new entries ---------------------------------------------------------------


def test_a_first_fetch_is_a_baseline_with_all_its_entries() -> None:
    news = Reader().read_entries(*entries_named("a", "b", "c"))

    assert news.is_baseline
    assert keys(news.new) == ["a", "b", "c"]


def test_what_follows_an_empty_first_document_is_news() -> None:
    reader = Reader()
    reader.read_entries()

    news = reader.read_entries(*entries_named("a"))

    assert not news.is_baseline
    assert keys(news.new) == ["a"]


def test_it_was_there_while_the_document_stayed_the_same_for_a_year() -> None:
    reader = reader_of("a", "b", "c", "d", "e", "f", "g", "h", "i")
    year = timedelta(days=365)
    reader.last = NOON + year  # a 304 each day

    reader.read_entries(*entries_named("a"), after=year)
    all_back = entries_named("a", "b", "c", "d", "e", "f", "g", "h", "i")

    assert_silent(reader.read_entries(*all_back, after=timedelta(days=80)))


# --- updates -------------------------------------------------------------------


def test_changed_content_is_an_update_but_not_fresh() -> None:
    edited = an_entry("a", text="edited")
    (update,) = reader_of("a", "b").read_entries(edited, an_entry("b")).updates

    assert update.entry == edited
    assert (update.is_logged, update.is_fresh) == (True, False)


@pytest.mark.parametrize(
    ("age", "is_fresh"),
    [
        (timedelta(), True),
        (timedelta(minutes=2, seconds=59), True),
        (timedelta(minutes=3), False),
        (timedelta(days=400), False),
        (-timedelta(minutes=2), True),
        (-timedelta(minutes=3), False),
    ],
)
def test_an_update_is_fresh_while_its_own_date_is_under_three_minutes_old(
    age: timedelta, is_fresh: bool
) -> None:
    reader = reader_of("a")
    edited = an_entry("a", text="edited", updated=reader.at + HOUR - age)

    (update,) = reader.read_entries(edited).updates

    assert update.is_fresh is is_fresh


def test_content_hashes_of_an_older_version_make_no_updates() -> None:
    reader = reader_of("a")
    reader.seen = reader.seen[:1] + b"\xff" + reader.seen[2:]

    assert_silent(reader.read_entries(an_entry("a", text="hashed differently")))
    assert reader.read_entries(an_entry("a", text="edited")).updates


def test_versions_that_alternate_make_no_flood_of_updates() -> None:
    reader = Reader(at=NOON.replace(hour=0))
    versions = (an_entry("a", text="one"), an_entry("a", text="two"))

    for number in range(20):
        reader.read_entries(versions[number % 2])

    logged = [each for news in reader.news for each in news.updates if each.is_logged]
    assert len(logged) == UPDATES_A_DAY
    assert all(
        len(news.updates) == 1 for news in reader.news[1:]
    )  # stored all the same


def test_a_live_blog_may_be_updated_all_day() -> None:
    reader = reader_of("a")
    for number in range(10):
        now = reader.at + timedelta(minutes=5)
        live = an_entry("a", text=str(number), updated=now)
        (update,) = reader.read_entries(live, after=timedelta(minutes=5)).updates
        assert update.is_logged


# --- other ids for known entries -----------------------------------------------


def dated(key: str, number: int, *, link: str = "") -> Entry:
    date = NOON - timedelta(days=number)
    return an_entry(key, title=f"Post {number}", link=link, published=date)


def test_a_domain_that_moves_brings_no_news() -> None:
    reader = Reader()
    reader.read_entries(*(dated(f"old/{n}", n, link=f"//old/{n}") for n in range(4)))

    moved = [dated(f"new/{n}", n, link=f"//new/{n}") for n in range(4)]
    news = reader.read_entries(*moved)

    assert_silent(news)
    assert news.rekeyed == 4
    assert_silent(reader.read_entries(*moved))


def test_what_another_format_says_in_other_words_is_no_update_for_anybody() -> None:
    reader = reader_of("a", "b", "c")
    other = [
        replace(entry, content=Text(value="In other words"))
        for entry in entries_named("a", "b", "c")
    ]
    edited = replace(other[1], updated=reader.at + HOUR / 2)

    news = reader.read(
        replace(a_document(other[0], edited, other[2]), format=FeedFormat.JSON_FEED)
    )
    again = reader.read(
        replace(a_document(other[0], edited, other[2]), format=FeedFormat.JSON_FEED)
    )

    assert [(each.entry.key, each.is_logged) for each in news.updates] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert_silent(again)


def test_a_single_entry_with_a_new_id_and_a_known_link_is_news() -> None:
    reader = Reader()
    reader.read_entries(an_entry("monday", link="https://weather.example/"))

    news = reader.read_entries(an_entry("tuesday", link="https://weather.example/"))

    assert keys(news.new) == ["tuesday"]


def test_a_link_that_all_entries_share_identifies_none() -> None:
    reader = Reader()
    home = "https://feed.example/"
    reader.read_entries(*(an_entry(f"old{n}", link=home) for n in range(4)))

    news = reader.read_entries(*(an_entry(f"new{n}", link=home) for n in range(4)))

    assert len(news.new) == 4


# --- deletions -----------------------------------------------------------------


def gone(key: str, at: datetime | None = None) -> Deletion:
    return Deletion(key=key, id=key, at=at)


def test_a_deletion_of_a_known_entry_is_told_once() -> None:
    reader = reader_of("a", "b")
    without_b = a_document(an_entry("a"), deletions=[gone("b")])

    assert reader.read(without_b).deletions == (gone("b"),)
    assert_silent(reader.read(without_b))


def test_a_deletion_of_an_unknown_entry_is_no_news() -> None:
    assert_silent(reader_of("a").read(a_document(an_entry("a"), deletions=[gone("z")])))


def test_absence_is_no_deletion() -> None:
    assert_silent(reader_of("a", "b").read_entries(an_entry("a")))


def test_a_deleted_entry_that_returns_is_an_update() -> None:
    reader = reader_of("a", "b")
    reader.read(a_document(an_entry("a"), deletions=[gone("b")]))

    news = reader.read_entries(*entries_named("a", "b"))

    assert [update.entry.key for update in news.updates] == ["b"]
    assert not news.new


@pytest.mark.parametrize(
    ("updated", "at", "is_deleted"),
    [
        (NOON, NOON, True),
        (NOON, NOON + HOUR, True),
        (NOON, NOON - HOUR, False),
        (None, NOON, False),
        (NOON, None, False),
    ],
)
def test_of_an_entry_and_its_deletion_the_newer_counts(
    updated: datetime | None, at: datetime | None, is_deleted: bool
) -> None:
    entries = (an_entry("a"), an_entry("b", updated=updated))
    document = a_document(*entries, deletions=[gone("b", at)])

    assert bool(reader_of("a", "b").read(document).deletions) is is_deleted


# --- invariants ----------------------------------------------------------------

names = st.lists(st.sampled_from("abcdefgh"), max_size=10)


@given(st.lists(names, min_size=1, max_size=6))
def test_no_key_is_ever_news_twice(documents: list[list[str]]) -> None:
    reader = Reader()
    for document in documents:
        reader.read_entries(*entries_named(*document))

    told = [key for news in reader.news for key in keys(news.new)]
    assert len(told) == len(set(told))


@given(names, st.integers(0, 60))
def test_the_same_document_again_is_silent(document: list[str], days: int) -> None:
    reader = reader_of(*document)

    assert_silent(
        reader.read_entries(*entries_named(*document), after=timedelta(days=days))
    )
