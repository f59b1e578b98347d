"""What a forecast says, moment by moment: slow, and without a closed form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp, inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.core.schedule.forecast import (
    EXCITED,
    Forecast,
    entries_before_loss,
    foresee,
    seconds_until,
)
from hub.core.schedule.posting_profile import (
    BURST_MEMORY,
    NOTHING_KNOWN,
    Profile,
    count_habits,
    prior_of,
    step_of,
    with_posts,
)
from storage.records import Posting

_STEP = 10.0


def rate_at(forecast: Forecast, moment: float) -> float:
    """Entries a second expected at a time not before the start."""
    profile = forecast.profile
    steady = forecast.steady * profile.at(moment) * profile.steps()[step_of(moment)]
    return steady + forecast.excited * exp((forecast.start - moment) / BURST_MEMORY)


def expected_entries(forecast: Forecast, seconds: float) -> float:
    """How many entries will have been posted after so many seconds: ∫ λ."""
    return _summed(forecast, seconds, order=0)


def expected_waiting(forecast: Forecast, seconds: float) -> float:
    """The entry-seconds they will have waited by then: ∫ λ(s)(t - s) ds."""
    return _summed(forecast, seconds, order=1)


def _summed(forecast: Forecast, seconds: float, order: int) -> float:
    middles = [_STEP * (step + 0.5) for step in range(round(seconds / _STEP))]
    return sum(
        rate_at(forecast, forecast.start + middle) * _STEP * (seconds - middle) ** order
        for middle in middles
    )


NOW = datetime(2026, 3, 2, 12, 7, 30, tzinfo=UTC)
START = NOW.timestamp()
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
EVEN = prior_of(())


def forecast(
    a_day: float = 24.0, excited: float = 0.0, posts: tuple[float, ...] = ()
) -> Forecast:
    profile = Profile(own=count_habits(NOTHING_KNOWN, posts), prior=EVEN)
    return Forecast(start=START, steady=a_day / DAY, excited=excited, profile=profile)


def test_at_a_constant_rate_the_period_is_the_root_rule() -> None:
    for a_day in (0.5, 24, 2_000):
        wanted = seconds_until(forecast(a_day), 300, DAY)
        assert wanted == pytest.approx(sqrt(2 * 300 * DAY / a_day))


def test_a_price_that_is_not_reached_is_not_waited_for() -> None:
    assert seconds_until(forecast(0.1), 1e9, DAY) == DAY


def test_so_many_entries_are_expected_as_the_rate_says() -> None:
    assert expected_entries(forecast(24), 6.5 * HOUR) == pytest.approx(6.5)
    assert rate_at(forecast(24), START + HOUR) * HOUR == pytest.approx(1)


def test_an_excitement_is_over_within_hours() -> None:
    excited = forecast(0, excited=1 / HOUR)

    assert expected_entries(excited, 20 * HOUR) == pytest.approx(
        BURST_MEMORY / HOUR, rel=0.03
    )


def test_a_poll_is_placed_behind_the_hour_in_which_posts_are_expected() -> None:
    daily = tuple(START + 5 * HOUR - DAY * day for day in range(1, 60))

    wanted = seconds_until(forecast(1, posts=daily), 600, DAY)

    assert 4 * HOUR < wanted < 6 * HOUR
    assert seconds_until(forecast(1), 600, DAY) < 4 * HOUR


def test_a_timer_is_waited_for() -> None:
    on_the_hour = tuple(START - 450 - HOUR * hour for hour in range(200))

    wanted = seconds_until(forecast(24, posts=on_the_hour), 200, DAY)

    assert 52.5 * MINUTE < wanted < 60 * MINUTE


def test_no_more_entries_are_awaited_than_there_is_room_for() -> None:
    assert seconds_until(forecast(240), 1e9, DAY, room=10) == pytest.approx(HOUR)
    assert seconds_until(forecast(240), 1e9, DAY, room=15) == pytest.approx(1.5 * HOUR)
    assert seconds_until(forecast(240), 50, DAY, room=10) < HOUR


@pytest.mark.parametrize(("window", "room"), [(0, inf), (5, 1), (12, 4), (96, 64)])
def test_there_is_less_room_than_a_document_shows(window: int, room: float) -> None:
    assert entries_before_loss(window) == pytest.approx(room)


def test_a_post_a_moment_ago_makes_another_likelier() -> None:
    long = Posting(since=NOW - timedelta(days=90))
    before = with_posts(long, [START - DAY * day for day in range(1, 90)], NOW)
    after = with_posts(before, [START - 60], NOW)

    calm, excited = foresee(before, EVEN, NOW), foresee(after, EVEN, NOW)

    assert calm.excited * DAY < 0.001
    assert excited.excited * BURST_MEMORY == pytest.approx(EXCITED, rel=0.02)
    assert seconds_until(excited, 75, DAY) < seconds_until(calm, 75, DAY)


@given(
    st.floats(0.5, 100),
    st.floats(0, 1e-3),
    st.lists(st.integers(0, 500), max_size=20),
    st.floats(50, 5_000),
)
def test_the_closed_form_is_the_integral(
    a_day: float, excited: float, posted: list[int], price: float
) -> None:
    posts = tuple(START - HOUR * ago for ago in posted)
    expected = forecast(a_day, excited, posts)

    wanted = seconds_until(expected, price, DAY)

    if wanted < DAY:
        waiting = expected_waiting(expected, wanted)
        assert waiting == pytest.approx(price, rel=0.05, abs=5)
