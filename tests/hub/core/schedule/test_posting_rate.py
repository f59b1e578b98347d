from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp

import pytest

from hub.core.schedule.posting_profile import (
    burst_of,
    count_posts,
    is_new,
    posting_history,
    posting_rate,
    read_habits,
    velocity,
    watched_days,
)
from protocols.model import Entry
from storage.records import Posting
from tests.support.documents import an_entry

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def posted(age: timedelta) -> Entry:
    return an_entry(str(age), published=NOW - age)


def test_a_feed_without_history_is_taken_to_post_every_five_days() -> None:
    assert posting_rate(Posting(), NOW) == pytest.approx(0.2)
    assert velocity(Posting(), NOW) == 0


def test_the_dates_of_a_first_document_are_history() -> None:
    daily = posting_history([posted(DAY * days) for days in range(60)], NOW)

    assert daily.since == NOW - 59 * DAY
    assert posting_rate(daily, NOW) == pytest.approx(1, abs=0.1)
    assert velocity(daily, NOW) == pytest.approx(0.93, abs=0.05)


@pytest.mark.parametrize(
    ("days", "weight", "expected"),
    [(0.01, 2_000.0, True), (2, 1.0, True), (3, 1.0, False), (0.01, 0.0, False)],
)
def test_a_feed_is_new_while_its_mean_is_of_more_days_than_it_is_known(
    days: float, weight: float, *, expected: bool
) -> None:
    posting = Posting(since=NOW - days * DAY, weight=weight, at=NOW)
    assert is_new(posting, NOW) is expected


def test_undated_entries_are_no_history_and_future_ones_are_of_now() -> None:
    history = posting_history([an_entry("a"), posted(-DAY)], NOW)

    assert (history.weight, history.since) == (1.0, NOW)


def young(posts: int, minutes: float) -> Posting:
    """A feed that began so many posts ago, one each so many minutes, the last now."""
    times = [timedelta(minutes=minutes * number) for number in reversed(range(posts))]
    since = NOW - timedelta(minutes=minutes * posts)
    return count_posts(Posting(since=since), map(posted, times), since, NOW)


@pytest.mark.parametrize(
    ("posts", "minutes", "at_least", "at_most"),
    [(1, 3, 2, 4), (5, 3, 60, 90), (20, 3, 240, 480), (4, 60, 5, 24)],
)
def test_a_new_feed_is_believed_after_a_few_posts(
    posts: int, minutes: float, at_least: float, at_most: float
) -> None:
    assert at_least < posting_rate(young(posts, minutes), NOW) < at_most


def test_entries_that_came_at_once_make_no_new_feed_a_fast_one() -> None:
    assert posting_rate(young(50, 0), NOW) < 100


def test_a_burst_of_a_known_feed_hardly_changes_its_lasting_rate() -> None:
    month = posting_history([posted(DAY * days) for days in range(1, 30)], NOW - DAY)
    burst = [posted(timedelta(minutes=5 * number)) for number in range(10)]

    rate = posting_rate(count_posts(month, burst, NOW - DAY, NOW), NOW)

    assert rate == pytest.approx(posting_rate(month, NOW) + 10 / 18, rel=0.1)


def test_a_post_counts_less_with_every_day() -> None:
    posting = count_posts(Posting(), [posted(timedelta())], NOW, NOW)

    assert posting.weight == 1
    later = count_posts(posting, [], NOW, NOW + 21 * DAY)
    assert later.weight == pytest.approx(exp(-1))
    assert later.since == NOW


def test_entries_that_came_at_once_are_hardly_more_of_a_habit_than_one() -> None:
    at = NOW - timedelta(hours=1)
    imported = [an_entry(str(number), published=at) for number in range(50)]

    posting = count_posts(Posting(), imported, at - DAY, NOW)

    harmonic = sum(1 / number for number in range(1, 51))
    assert posting.weight == pytest.approx(50, rel=0.01)
    assert read_habits(posting.habits).total == pytest.approx(harmonic, rel=0.01)
    assert burst_of(posting, NOW) == pytest.approx(harmonic * exp(-0.5))


def test_entries_minutes_apart_count_each() -> None:
    dates = [NOW - timedelta(minutes=10 * number) for number in range(5)]
    entries = [an_entry(str(date), published=date) for date in dates]

    posting = count_posts(Posting(), entries, NOW - DAY, NOW)

    assert read_habits(posting.habits).total == 5


@pytest.mark.parametrize(
    ("published", "age"),
    [
        (NOW - timedelta(hours=2), timedelta(hours=2)),
        (NOW - DAY - timedelta(minutes=30), DAY + timedelta(minutes=30)),
        (NOW - 30 * DAY, DAY / 2),
        (NOW + timedelta(hours=1), DAY / 2),
        (None, DAY / 2),
    ],
    ids=["its own date", "a bit late", "far too old", "future", "none"],
)
def test_a_post_counts_at_its_own_date_if_that_can_be_true(
    published: datetime | None, age: timedelta
) -> None:
    new = [an_entry("a", published=published)]

    posting = count_posts(Posting(), new, NOW - DAY, NOW)

    assert posting.weight == pytest.approx(exp(-age / DAY / 21))


def test_without_a_fetch_before_it_a_post_counts_as_of_now() -> None:
    assert count_posts(Posting(), [an_entry("a")], None, NOW).weight == 1


@pytest.mark.parametrize("ahead", [timedelta(hours=2), 400 * DAY])
def test_posts_found_by_a_clock_that_was_ahead_count_as_of_now(
    ahead: timedelta,
) -> None:
    then = NOW + ahead
    known = count_posts(Posting(since=then), [an_entry("a")], then, then)

    posting = count_posts(known, [an_entry("b")], then, NOW)

    assert (posting.weight, posting.burst) == (2, 2)
    assert posting_rate(posting, NOW) == pytest.approx(9.0)
    assert watched_days(posting, NOW) == 0
