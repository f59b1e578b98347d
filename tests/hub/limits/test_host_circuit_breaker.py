from __future__ import annotations

from itertools import pairwise

from hub.limits.host_circuit_breaker import (
    FIRST_REST,
    LONGEST_REST,
    OPENS_AFTER,
    Circuit,
)


def rests(count: int) -> list[float]:
    circuit, found = Circuit(), []
    for _ in range(count):
        circuit = circuit.after_silence()
        found.append(circuit.rest)
    return found


def test_a_host_that_is_silent_once_or_twice_is_asked_as_ever() -> None:
    assert Circuit().rest == 0
    assert rests(OPENS_AFTER - 1) == [0] * (OPENS_AFTER - 1)


def test_a_host_that_stays_silent_is_asked_ever_less_but_never_forgotten() -> None:
    found = rests(2_000)[OPENS_AFTER - 1 :]
    assert found[:3] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST]
    assert all(earlier <= later for earlier, later in pairwise(found))
    assert found[-1] == LONGEST_REST
