"""When the log is at its limit, and when the disk is full, by how both grew lately."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from hub.core.disk_forecast import DiskForecast, forecast_disk, forecast_words
from storage.records import DiskSample

GB = 10**9
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def samples(
    used: Callable[[float], float], free: Callable[[float], float], hours: int = 24
) -> list[DiskSample]:
    """One an hour until now, of functions of days before now, in GB."""
    return [
        DiskSample(
            at=NOW - timedelta(hours=ago),
            used_bytes=round(used(ago / 24) * GB),
            free_bytes=round(free(ago / 24) * GB),
        )
        for ago in range(hours, -1, -1)
    ]


def grown(
    used: float, rate: float, free: float, loss: float | None = None, hours: int = 24
) -> list[DiskSample]:
    """As it is now, in GB, with steady rates in GB a day."""
    lost = rate if loss is None else loss
    return samples(
        lambda days: used - rate * days, lambda days: free + lost * days, hours
    )


def days_until(moment: datetime | None) -> float | None:
    return None if moment is None else round((moment - NOW) / timedelta(days=1), 2)


@pytest.mark.parametrize(
    "found", [[], grown(1, 1, 9, hours=0), grown(1, 1, 9, hours=5)]
)
def test_little_time_makes_no_rate(found: list[DiskSample]) -> None:
    assert forecast_disk(found, 8 * GB) is None


@pytest.mark.parametrize(
    ("found", "limit", "full"),
    [
        pytest.param(grown(2, 1, 100), 6, None, id="its own growth ends at the limit"),
        pytest.param(grown(2, 1, 3), 6, 3, id="the disk ends before the limit"),
        pytest.param(grown(2, 1, 20, loss=3), 6, 7, id="something else grows as well"),
        pytest.param(
            grown(2, 0, 20, loss=2), None, 10, id="nothing but something else"
        ),
        pytest.param(grown(2, -1, 20), None, None, id="it shrinks"),
        pytest.param(grown(8, 1, 20, loss=1), 0, None, id="at its limit"),
        pytest.param(
            grown(9, 1, 20, loss=1), 0, 20, id="beyond its limit, and growing"
        ),
        pytest.param(grown(2, 0.001, 20), None, None, id="farther ahead than foreseen"),
        pytest.param(grown(2, 1, 0), 6, 0, id="full by now"),
    ],
)
def test_a_database_that_reaches_its_limit_fills_no_disk(
    found: list[DiskSample], limit: float | None, full: float | None
) -> None:
    forecast = forecast_disk(found, 8 * GB)
    assert forecast is not None
    assert days_until(forecast.limit_at) == limit
    assert days_until(forecast.full_at) == full


def test_what_comes_once_or_comes_and_goes_is_no_growth() -> None:
    def imported(days: float) -> float:
        return 2 - days + (3 if days < 0.3 else 0)

    def with_snapshots(days: float) -> float:
        return 50 + days - (5 if round(days * 24) % 6 == 0 else 0)

    forecast = forecast_disk(samples(imported, with_snapshots), 80 * GB)
    assert forecast is not None
    assert forecast.growth / GB == pytest.approx(1, rel=0.35)
    assert forecast.loss / GB == pytest.approx(1, rel=0.2)


def test_samples_of_one_moment_do_not_matter() -> None:
    found = grown(2, 1, 100)
    assert forecast_disk([*found, found[-1]], 8 * GB) == forecast_disk(found, 8 * GB)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            grown(1, 1, 100, hours=2),
            "Not known yet: growth has to be measured for another 4 h.",
        ),
        (
            grown(2, 1, 100),
            "At this rate (1 GB a day) the log reaches its limit of 8 GB in 6 days;"
            " then the oldest entries are deleted.",
        ),
        (
            grown(2, 4, 20, loss=6),
            "At this rate (4 GB a day) the log reaches its limit of 8 GB in 36 h;"
            " then the oldest entries are deleted."
            " At this rate (free space shrinks by 6 GB a day) the disk is full in"
            " 7 days.",
        ),
        (
            grown(2, 1, 3),
            "The database grows by 1 GB a day; its limit is 8 GB."
            " At this rate (free space shrinks by 1 GB a day) the disk is full in"
            " 3 days.",
        ),
        (
            grown(2, 1, 0.5),
            "The database grows by 1 GB a day; its limit is 8 GB."
            " At this rate (free space shrinks by 1 GB a day) the disk is full in"
            " 12 h.",
        ),
        (
            grown(2, -1, 20),
            "The database does not grow; its limit is 8 GB.",
        ),
        (
            grown(7.9, 0.1, 20, loss=0),
            "The log is at its limit of 8 GB:"
            " the oldest entries are deleted as new ones come.",
        ),
        (
            grown(9, 0, 20),
            "The database is larger than its limit of 8 GB: entries of the last day"
            " stay, however many.",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_forecast_is_told_in_sentences(found: list[DiskSample], words: str) -> None:
    assert forecast_words(forecast_disk(found, 8 * GB), found, 8 * GB) == words


def test_a_forecast_says_its_rates() -> None:
    forecast = forecast_disk(grown(2, 1, 100, loss=2), 8 * GB)
    assert isinstance(forecast, DiskForecast)
    assert forecast.growth == pytest.approx(GB)
    assert forecast.loss == pytest.approx(2 * GB)
