"""Times in whole milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from storage.sqlite.columns import from_milliseconds, to_milliseconds

START = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("microseconds", "milliseconds"),
    [
        *((0, 0), (1, 0), (999, 0), (1_000, 1), (1_999, 1), (1_000_000, 1_000)),
        *(
            (-1, -1),
            (-999, -1),
            (-1_000, -1),
            (-1_001, -2),
            (-86_400_000_001, -86_400_001),
        ),
        *((1_767_225_600_123_456, 1_767_225_600_123),),
    ],
)
def test_a_time_is_the_millisecond_it_lies_in(
    microseconds: int, milliseconds: int
) -> None:
    time = START + timedelta(microseconds=microseconds)

    assert to_milliseconds(time) == milliseconds
    assert from_milliseconds(milliseconds) <= time
    assert time < from_milliseconds(milliseconds + 1)


@pytest.mark.parametrize(
    "time", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_the_first_and_last_times_have_one(time: datetime) -> None:
    assert to_milliseconds(time) == (time - START) // timedelta(milliseconds=1)


def test_any_zone_is_understood() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))

    assert to_milliseconds(datetime(1970, 1, 1, 5, 30, tzinfo=zone)) == 0
