"""What is news in a step of a site's reading."""

from __future__ import annotations

from datetime import UTC, datetime

from hub.core.sites.site_commits import compare, content_of
from hub.core.sites.walk_steps import CommitPages, ReadPage
from protocols.model import Deletion, Entry
from storage.records import StoredSitePage

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def a_page(key: str, title: str = "", updated: datetime | None = None) -> ReadPage:
    entry = Entry(key=key, id=key, title=title, updated=updated)
    return ReadPage(entry=entry, reference=f"/{key}", stamp=1)


def known(*pages: ReadPage) -> dict[str, StoredSitePage]:
    step = CommitPages(state=b"", pages=pages)
    compared = compare(step, {}, at=NOW, is_read=True)
    return {page.key: page for page in compared.pages}


def test_a_page_is_compared_by_what_its_entry_says() -> None:
    page = a_page("a", "A")

    assert known(page)["a"].content == content_of(page.entry)


def test_of_two_pages_with_one_key_the_first_counts() -> None:
    step = CommitPages(state=b"", pages=(a_page("a", "first"), a_page("a", "second")))

    compared = compare(step, {}, at=NOW, is_read=True)

    assert [entry.title for entry in compared.news.new] == ["first"]
    assert compared.growth == 1


def test_what_is_the_same_is_not_written_again() -> None:
    step = CommitPages(state=b"", pages=(a_page("a"),))

    compared = compare(step, known(a_page("a")), at=NOW, is_read=True)

    assert (compared.pages, compared.news.updates, compared.growth) == ((), (), 0)


def test_of_one_page_three_changes_a_day_are_told_but_for_fresh_ones() -> None:
    pages = known(a_page("a", "0"))
    logged = []
    for number in range(1, 6):
        step = CommitPages(state=b"", pages=(a_page("a", str(number)),))
        compared = compare(step, pages, at=NOW, is_read=True)
        pages = {page.key: page for page in compared.pages}
        logged.append(compared.news.updates[0].is_logged)
    fresh = CommitPages(state=b"", pages=(a_page("a", "fresh", NOW),))

    compared = compare(fresh, pages, at=NOW, is_read=True)

    assert logged == [True, True, True, False, False]
    assert compared.news.updates[0].is_fresh


def test_before_the_first_reading_ends_nothing_is_told() -> None:
    gone = Deletion(key="a", id="a")
    step = CommitPages(
        state=b"", pages=(a_page("b"), a_page("c", "new")), deletions=(gone,)
    )
    before = known(a_page("a"), a_page("c"))

    compared = compare(step, before, at=NOW, is_read=False)

    assert [entry.key for entry in compared.baseline] == ["b"]
    assert (compared.news.new, compared.news.deletions) == ((), ())
    assert [update.is_logged for update in compared.news.updates] == [False]


class Counted(Entry):
    """Counts how often it is compared with another."""

    comparisons = 0
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return self is other


def test_entries_of_a_long_step_are_not_compared_with_each_other() -> None:
    entries = [Counted(key=str(n), id=str(n)) for n in range(100)]
    pages = tuple(ReadPage(entry=each, reference="/", content=1) for each in entries)
    even = {each.key for each in entries[::2]}

    compared = compare(
        CommitPages(state=b"", pages=pages),
        {},
        at=NOW,
        is_read=False,
        is_news=lambda entry: entry.key in even,
    )

    assert Counted.comparisons == 0
    assert [each.key for each in compared.news.new] == [e.key for e in entries[::2]]
    assert [each.key for each in compared.baseline] == [e.key for e in entries[1::2]]
