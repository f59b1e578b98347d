from __future__ import annotations

import pytest

from hub.core.durations import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (45, "45 s"),
        (60, "1 min"),
        (720, "12 min"),
        (900, "15 min"),
        (5_400, "1.5 h"),
        (172_800, "2 d"),
    ],
)
def test_durations_are_in_their_largest_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text
