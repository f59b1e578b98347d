"""When the memory of a process counts as growing."""

from __future__ import annotations

from random import Random

import pytest

from tests.soak.memory import EACH, Look, find_trend


def looks(
    seconds: float, *, leak: float = 0.0, warm_up: float = 0.0, file: float = 0.0
) -> list[Look]:
    """Looks at about 80 MB, with the noise of an allocator.

    ``leak``: bytes each second; ``file``: bytes by which the database grows each
    second.
    """
    random = Random(1)
    return [
        Look(
            at,
            round(
                80e6
                + leak * at
                - 30e6 * max(0.0, 1 - at / (warm_up or 1e-9))
                + random.uniform(0, 1e6)
            ),
            round(file * at),
        )
        for at in (EACH * number for number in range(int(seconds / EACH)))
    ]


@pytest.mark.parametrize("seconds", [80, 600, 2_400])
def test_a_process_that_warms_up_and_stays_does_not_grow(seconds: float) -> None:
    trend = find_trend(looks(seconds, warm_up=min(30.0, seconds / 3)))
    assert not trend.is_growing
    assert trend.before == pytest.approx(80e6, rel=0.02)


@pytest.mark.parametrize(("seconds", "leak"), [(80, 150e3), (600, 20e3), (2_400, 4e3)])
def test_one_that_leaks_does_and_the_sooner_the_longer_it_is_watched(
    seconds: float, leak: float
) -> None:
    assert find_trend(looks(seconds, leak=leak, warm_up=20.0)).is_growing


def test_what_it_keeps_of_its_database_is_no_leak_until_that_is_all_it_may_keep() -> (
    None
):
    assert not find_trend(looks(80, leak=160e3, file=40e3)).is_growing
    assert find_trend(looks(2_400, leak=160e3, file=40e3)).is_growing


def test_a_few_looks_are_no_trend() -> None:
    assert not find_trend(looks(3, leak=1e9)).is_growing
