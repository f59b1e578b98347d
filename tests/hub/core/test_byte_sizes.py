from __future__ import annotations

import pytest

from hub.core.byte_sizes import byte_size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 kB"),
        (3_512_345, "3.51 MB"),
        (999_999_999, "1 GB"),
        (64 * 10**9, "64 GB"),
        (2.5e12, "2.5 TB"),
    ],
)
def test_sizes_are_in_their_largest_unit(count: float, text: str) -> None:
    assert byte_size(count) == text
