from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hub.core.schedule.posting_profile import (
    MOST_COUNTED,
    NOTHING_KNOWN,
    WEEKS_SEEN,
    Profile,
    count_habits,
    hour_of,
    pack_habits,
    prior_of,
    read_habits,
    step_of,
    weekday_of,
)

TUESDAY = datetime(2026, 3, 3, 8, 1, tzinfo=UTC).timestamp()
HOUR, DAY = 3_600, 86_400
EVEN = prior_of(())


def test_a_moment_has_an_hour_a_weekday_and_a_part_of_its_hour() -> None:
    moment = datetime(2026, 3, 8, 23, 59, 59, tzinfo=UTC).timestamp()

    assert (hour_of(moment), weekday_of(moment), step_of(moment)) == (23, 6, 11)
    assert (hour_of(TUESDAY), weekday_of(TUESDAY), step_of(TUESDAY)) == (8, 1, 0)


def test_counts_survive_packing() -> None:
    habits = count_habits(NOTHING_KNOWN, [TUESDAY, TUESDAY + HOUR, TUESDAY + DAY])

    assert read_habits(pack_habits(habits)) == habits
    assert len(pack_habits(habits)) == 92
    assert habits.total == 3


def test_the_state_of_before_there_were_habits_has_none() -> None:
    assert read_habits(b"") == NOTHING_KNOWN


def test_old_habits_fade() -> None:
    habits = count_habits(NOTHING_KNOWN, [TUESDAY] * int(MOST_COUNTED + 1))

    assert habits.total == sum(habits.hours) == pytest.approx((MOST_COUNTED + 1) / 2)


def test_a_feed_counts_among_all_by_the_root_of_its_posts() -> None:
    busy = count_habits(NOTHING_KNOWN, [TUESDAY] * 100)
    calm = count_habits(NOTHING_KNOWN, [TUESDAY + 3 * HOUR + DAY] * 4)

    prior = prior_of([(busy, 20), (NOTHING_KNOWN, 20), (calm, 20)])

    even = (prior.hours[0], prior.days[0])
    assert prior.hours[8] - even[0] == pytest.approx(5 * (prior.hours[11] - even[0]))
    assert prior.days[1] - even[1] == pytest.approx(5 * (prior.days[2] - even[1]))


def test_where_nobody_posted_nothing_is_known_of_all() -> None:
    assert prior_of([(NOTHING_KNOWN, 20)]) == EVEN


def test_a_few_feeds_are_not_everybody() -> None:
    early = count_habits(NOTHING_KNOWN, [TUESDAY] * 5)
    few, many = prior_of([(early, 20)] * 4), prior_of([(early, 20)] * 400)

    assert few.hours[8] < 6 * few.hours[0]
    assert many.hours[8] > 100 * many.hours[0]
    assert sum(few.hours) == pytest.approx(sum(many.hours))


def test_hours_that_nobody_was_watched_in_are_not_taken_for_silent() -> None:
    """A hub of some hours: what all feeds did not do yet, they may do tomorrow."""
    fast = count_habits(NOTHING_KNOWN, [TUESDAY] * 100)
    young, old = prior_of([(fast, 0.3)] * 12), prior_of([(fast, 20)] * 12)

    assert young.hours[20] > 2 * old.hours[20]
    assert young.days[4] > 3 * old.days[4]


def test_who_has_no_habits_has_those_of_all() -> None:
    early = prior_of([(count_habits(NOTHING_KNOWN, [TUESDAY] * 100), 20)] * 100)

    assert Profile(own=NOTHING_KNOWN, prior=EVEN).at(TUESDAY) == pytest.approx(1)
    assert Profile(own=NOTHING_KNOWN, prior=early).at(TUESDAY) > 10


def test_the_more_posts_the_more_a_feed_is_believed() -> None:
    factors = [
        Profile(own=count_habits(NOTHING_KNOWN, [TUESDAY] * posts), prior=EVEN).at(
            TUESDAY
        )
        for posts in (0, 3, 12, 100)
    ]

    assert factors == sorted(factors)
    assert factors[0] == pytest.approx(1)


def test_what_is_posted_at_one_hour_is_half_expected_beside_it() -> None:
    profile = Profile(own=count_habits(NOTHING_KNOWN, [TUESDAY] * 400), prior=EVEN)
    before, at, after, later = (
        profile.at(TUESDAY + HOUR * hours) for hours in (-1, 0, 1, 2)
    )

    assert before == pytest.approx(after)
    assert at == pytest.approx(2 * before, rel=0.1)
    assert later < 0.1 * before


def test_hours_that_were_not_seen_yet_are_not_taken_for_silent() -> None:
    """A fast feed's first document: sixty entries, of the last eight hours."""
    posts = [TUESDAY + HOUR * 8 * number / 60 for number in range(60)]
    own = count_habits(NOTHING_KNOWN, posts)
    tomorrow = TUESDAY + DAY + 12 * HOUR

    assert Profile(own=own, prior=EVEN, days=1 / 3).at(tomorrow) > 0.5
    assert Profile(own=own, prior=EVEN, days=WEEKS_SEEN).at(tomorrow) < 0.05


@pytest.mark.parametrize("days", [0.0, 0.3, 5.0, 100.0])
def test_factors_have_the_mean_one(days: float) -> None:
    own = count_habits(NOTHING_KNOWN, [TUESDAY] * 40)
    profile = Profile(own=own, prior=EVEN, days=days)
    week = [profile.at(TUESDAY + HOUR * hour) for hour in range(168)]

    assert sum(week) / 168 == pytest.approx(1)
    assert sum(profile.steps()) / 12 == pytest.approx(1)


def test_a_timer_shows_in_the_minutes() -> None:
    steps = Profile(own=count_habits(NOTHING_KNOWN, [TUESDAY] * 40), prior=EVEN).steps()

    assert steps[0] > 7
    assert max(steps[1:]) < 0.4
