"""The system's clock is followed, but never all at once."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from hub.runtime.clock import SystemClock

START = 1_767_225_600.0
HOUR = 3_600.0


class Machine:
    """Its two clocks: one is set now and then, the other goes on."""

    def __init__(self) -> None:
        self.wall = START
        self.steady = 50.0
        self.clock = SystemClock(lambda: self.wall, lambda: self.steady)

    def wait(self, seconds: float) -> float:
        """The time it shows after so many seconds, since the start."""
        self.wall += seconds
        self.steady += seconds
        return self.clock.now().timestamp() - START


def test_an_undisturbed_clock_shows_the_time() -> None:
    machine = Machine()
    assert machine.clock.now() == datetime.fromtimestamp(START, UTC)
    assert [machine.wait(60) for _ in range(3)] == [60, 120, 180]


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_step_is_made_up_for_in_ten_times_its_length(step: float) -> None:
    machine = Machine()
    machine.wall += step
    shown = [machine.wait(60) for _ in range(700)]
    assert shown[0] == pytest.approx(60 + 6 * (1 if step > 0 else -1))
    assert shown[-1] == pytest.approx(700 * 60 + step)


def test_the_time_never_goes_back_when_the_clock_is_put_back() -> None:
    machine = Machine()
    shown = [machine.wait(1)]
    machine.wall -= HOUR
    shown += [machine.wait(1) for _ in range(100)]
    assert all(earlier < later for earlier, later in pairwise(shown))


def test_no_time_passes_between_two_looks_at_once_after_a_step() -> None:
    machine = Machine()
    shown = machine.wait(1)
    machine.wall += HOUR
    assert machine.wait(0) == shown


@pytest.mark.parametrize("years", [30, -30])
def test_a_clock_that_was_all_wrong_is_followed_at_once(years: int) -> None:
    machine = Machine()
    machine.wall += years * 365 * 24 * HOUR
    assert machine.wait(1) == pytest.approx(1 + years * 365 * 24 * HOUR)


def test_the_real_one_runs() -> None:
    clock = SystemClock()
    assert clock.now() <= clock.now()
    assert clock.monotonic() <= clock.monotonic()


def test_a_clock_that_was_set_back_is_led_by_the_hub_until_it_has_caught_up() -> None:
    machine = Machine()
    machine.wall -= HOUR
    leads = [machine.clock.lead()]
    for _ in range(2):
        machine.wait(5 * HOUR)
        leads.append(machine.clock.lead())

    assert leads == pytest.approx([HOUR, HOUR / 2, 0])
