from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hub.core.schedule.poll_period import (
    after_skipped,
    is_believed,
    ttl_seconds,
    update_period_seconds,
)
from protocols.model import Hints

SUNDAY = datetime(2026, 3, 1, 3, 30, tzinfo=UTC)
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [(None, 0), (0, 0), (-5, 0), (15, 900), (60, 3600), (1440, 3600)],
)
def test_a_ttl_is_a_wish_for_an_hour_at_most(
    minutes: int | None, seconds: float
) -> None:
    assert ttl_seconds(Hints(ttl_minutes=minutes)) == seconds


@pytest.mark.parametrize(
    ("period", "frequency", "seconds"),
    [
        ("hourly", 1, 0),
        ("hourly", None, 0),
        ("hourly", 2, 1800),
        (" Daily ", 1, 86_400),
        ("daily", 24, 0),
        ("weekly", 0, 604_800),
        ("sometimes", 1, 0),
        ("", 3, 0),
    ],
)
def test_the_syndication_module_names_a_period_and_a_frequency(
    period: str, frequency: int | None, seconds: float
) -> None:
    hints = Hints(update_period=period, update_frequency=frequency)

    assert update_period_seconds(hints) == seconds


def test_a_wish_is_ignored_when_the_feed_posts_three_times_as_often() -> None:
    assert is_believed(3600, 1200)
    assert not is_believed(3600, 1199)
    assert not is_believed(0, 1200)


@pytest.mark.parametrize(
    ("hints", "moment"),
    [
        (Hints(), SUNDAY),
        (Hints(skip_hours=(4,)), SUNDAY),
        (Hints(skip_hours=(3, 4)), datetime(2026, 3, 1, 5, tzinfo=UTC)),
        (Hints(skip_days=(6,)), MONDAY),
        (Hints(skip_days=(6,), skip_hours=(0,)), datetime(2026, 3, 2, 1, tzinfo=UTC)),
        (Hints(skip_hours=tuple(range(24))), SUNDAY),
    ],
)
def test_a_poll_moves_to_the_end_of_what_is_to_be_skipped(
    hints: Hints, moment: datetime
) -> None:
    assert after_skipped(hints, SUNDAY) == moment
