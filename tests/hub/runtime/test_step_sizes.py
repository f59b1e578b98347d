from __future__ import annotations

import pytest

from hub.runtime.paced_steps import StepSize

SIZE = StepSize(count=40, most=100, seconds=0.02)


@pytest.mark.parametrize(
    ("done", "took", "count"),
    [
        pytest.param(
            40, 0.08, 10, id="slow: a quarter of what takes four times as long"
        ),
        pytest.param(40, 0.001, 80, id="fast: twice as much"),
        pytest.param(400, 0.001, 80, id="fast, and more than it was told"),
        pytest.param(39, 0.001, 40, id="fast, but there was less to do"),
        pytest.param(40, 0.015, 40, id="as it is to be"),
        pytest.param(1, 90.0, 1, id="never nothing"),
    ],
)
def test_a_step_takes_on_what_fits_into_its_time(
    done: int, took: float, count: int
) -> None:
    assert SIZE.after(done, took).count == count


def test_a_step_never_takes_on_more_than_the_most() -> None:
    size = SIZE
    for _ in range(9):
        size = size.after(size.count, 0.0)
    assert size.count == 100
