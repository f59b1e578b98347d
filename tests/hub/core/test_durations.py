from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hub.core.durations import duration, read_moment, rounded_up


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (45, "45 s"),
        (60, "1 min"),
        (720, "12 min"),
        (900, "15 min"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (70.2, "1 min 10 s"),
        (484, "8 min 4 s"),
        (3_599.8, "1 h"),
        (7_530, "2 h 6 min"),
        (84_600, "23 h 30 min"),
        (172_800, "2 d"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations_are_in_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.025, "0.025 s"),
        (27.51, "27.6 s"),
        (59.91, "1 min"),
        (61.2, "1 min 2 s"),
        (3_661, "1 h 2 min"),
        (90_001, "1 d 2 h"),
    ],
)
def test_an_end_is_rounded_up_to_what_is_shown(seconds: float, text: str) -> None:
    assert duration(rounded_up(seconds)) == text
    assert rounded_up(seconds) >= seconds


NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        (" 15 min ", NOW - timedelta(minutes=15)),
        ("1.5h", NOW - timedelta(hours=1.5)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T10:00+02:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("999999w", None),
        ("0001-01-01T00:00+14:00", None),
        ("7", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_moment_is_read_as_a_time_or_as_long_ago(
    text: str, moment: datetime | None
) -> None:
    assert read_moment(text, NOW) == moment
