from __future__ import annotations

from itertools import pairwise

from hub.limits.host_circuit_breaker import (
    FIRST_REST,
    LONGEST_REST,
    OPENS_AFTER,
    HostCircuitBreaker,
)


def rests(count: int) -> list[float]:
    hosts = HostCircuitBreaker()
    return [hosts.silent("dead.example", now=0.0) for _ in range(count)]


def test_a_host_that_is_silent_once_or_twice_is_asked_as_ever() -> None:
    assert rests(OPENS_AFTER - 1) == [0] * (OPENS_AFTER - 1)


def test_a_host_that_stays_silent_is_asked_ever_less_but_never_forgotten() -> None:
    found = rests(2_000)[OPENS_AFTER - 1 :]
    assert found[:3] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST]
    assert all(earlier <= later for earlier, later in pairwise(found))
    assert found[-1] == LONGEST_REST


def test_a_host_that_answers_is_asked_as_ever() -> None:
    hosts = HostCircuitBreaker()
    for _ in range(OPENS_AFTER):
        hosts.silent("dead.example", now=0.0)
    assert hosts.rest("dead.example", now=100.0) == FIRST_REST - 100

    hosts.answered("dead.example")

    assert hosts.rest("dead.example", now=100.0) == 0
    assert hosts.silent("dead.example", now=100.0) == 0
