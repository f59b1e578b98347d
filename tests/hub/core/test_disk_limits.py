"""As many bytes of the log go as the database has too many."""

from __future__ import annotations

import pytest

from hub.core.disk_limits import ByteLimits, retention_within
from storage.records import DatabaseStatus, Position, Retention

RETENTION = Retention(soft_age=60, soft_count=10, hard_age=120, hard_count=20)
LIMITS = ByteLimits(soft=100, hard=200)


@pytest.mark.parametrize(
    ("used", "log_bytes", "ends"),
    [
        (0, 0, (50, 50)),
        (100, 50, (50, 50)),
        (125, 100, (75, 50)),
        (400, 400, (125, 100)),
        pytest.param(400, 320, (143, 112), id="more of a smaller log"),
        pytest.param(400, 200, (50, 50), id="all else is too much by itself"),
        pytest.param(400, 250, (50, 130), id="all else is more than the soft limit"),
    ],
)
def test_the_end_of_what_goes_is_counted_from_the_log_s_beginning(
    used: int, log_bytes: int, ends: tuple[int, int]
) -> None:
    database = DatabaseStatus(
        engine="",
        location="",
        version=1,
        latest=1,
        epoch="",
        tail=Position(50),
        log_end=Position(150),
        size_bytes=used + 7,
        free_bytes=7,
    )
    found = retention_within(LIMITS, RETENTION, database, log_bytes)
    assert (found.soft_end, found.hard_end) == ends
    assert found.soft_count == RETENTION.soft_count
