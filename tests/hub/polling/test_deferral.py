from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hub.polling.deferral import MOST_HOSTS, Deferrals

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_each_feed_of_a_host_gets_a_time_of_its_own() -> None:
    deferrals = Deferrals(1.0)

    times = [deferrals.next_time("a", 11, NOW, NOW) for _ in range(3)]

    assert times == [NOW + SECOND, NOW + 2 * SECOND, NOW + 3 * SECOND]
    assert deferrals.next_time("b", 11, NOW, NOW) == NOW + SECOND


def test_feeds_of_another_pace_stand_in_a_line_of_their_own() -> None:
    deferrals = Deferrals(1.0)
    for _ in range(100_000):
        deferrals.next_time("a", 16, NOW, NOW)

    fast = [deferrals.next_time("a", 5, NOW, NOW) for _ in range(2)]

    assert fast == [NOW + 2 * SECOND, NOW + 4 * SECOND]
    assert deferrals.next_time("a", 16, NOW, NOW) == NOW + 100_002 * SECOND


def test_a_line_whose_times_have_passed_takes_no_share() -> None:
    deferrals = Deferrals(1.0)
    deferrals.next_time("a", 16, NOW, NOW)
    later = NOW + 2 * SECOND

    assert deferrals.next_time("a", 5, later, later) == later + SECOND


def test_none_before_the_host_allows_it() -> None:
    deferrals = Deferrals(1.0)
    allowed = NOW + timedelta(hours=1)

    assert deferrals.next_time("a", 11, allowed, NOW) == allowed + SECOND
    assert deferrals.next_time("a", 11, allowed, NOW) == allowed + 2 * SECOND


def test_times_that_have_passed_are_not_given_again() -> None:
    deferrals = Deferrals(1.0)
    deferrals.next_time("a", 11, NOW, NOW)
    later = NOW + timedelta(hours=1)

    assert deferrals.next_time("a", 11, later, later) == later + SECOND


def test_it_remembers_a_bounded_number_of_hosts() -> None:
    deferrals = Deferrals(1.0)
    for number in range(MOST_HOSTS):
        deferrals.next_time(f"h{number}", 11, NOW, NOW)

    deferrals.next_time("one more", 11, NOW, NOW)
    assert len(deferrals) == MOST_HOSTS

    later = NOW + timedelta(hours=1)
    deferrals.next_time("later", 11, later, later)
    assert len(deferrals) == 1


def test_times_given_out_by_a_clock_that_was_ahead_are_forgotten() -> None:
    deferrals = Deferrals(1.0)
    ahead = NOW + timedelta(days=400)
    deferrals.next_time("a", 11, ahead, ahead)

    assert deferrals.next_time("a", 11, NOW, NOW) == NOW + SECOND
