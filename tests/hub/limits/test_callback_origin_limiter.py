from __future__ import annotations

from collections import Counter

import pytest

from hub.limits.callback_origin_limiter import (
    FAILURES_TO_SLOW_LANE,
    LONGEST_ON_SLOW_LANE,
    LONGEST_POSTPONEMENT,
    LONGEST_PROBE_PAUSE,
    OriginLimiter,
    origin_of,
)

HERE = "https://callbacks.example"
THERE = "https://elsewhere.example"


def origins(*, probes: int = 16, capacity: int = 10_000) -> OriginLimiter:
    return OriginLimiter(
        lambda host: host == "127.0.0.1", probes=probes, capacity=capacity
    )


def places(of: OriginLimiter, origin: str = HERE, now: float = 0.0) -> int:
    """How many requests the origin takes at once, from idle."""
    taken = 0
    while taken < 1_000 and of.enter(origin, now):
        taken += 1
    for _ in range(taken):
        of.leave(origin)
    return taken


def put_on_the_slow_lane(
    of: OriginLimiter, origin: str = HERE, now: float = 0.0
) -> None:
    for _ in range(FAILURES_TO_SLOW_LANE):
        of.strained(origin, now)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Callbacks.Example/a?b=c", "https://callbacks.example"),
        ("http://callbacks.example:8080/", "http://callbacks.example:8080"),
        ("https://user:secret@callbacks.example/", "https://callbacks.example"),
        ("http://[::1]:8080/x", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_an_unknown_origin_gets_eight_at_once() -> None:
    assert places(origins()) == 8


def test_a_place_that_is_given_back_can_be_taken_again() -> None:
    of = origins()
    for _ in range(8):
        of.enter(HERE, 0.0)
    assert not of.enter(HERE, 0.0)
    of.leave(HERE)
    assert of.enter(HERE, 0.0)


def test_a_round_of_good_answers_earns_one_more() -> None:
    of = origins()
    for _ in range(9):
        of.succeeded(HERE)
    assert places(of) == 9


def test_it_never_grows_beyond_sixty_four() -> None:
    of = origins()
    for _ in range(10_000):
        of.succeeded(HERE)
    assert places(of) == 64


def test_trouble_halves_it_once_a_second_down_to_one() -> None:
    of = origins()
    of.strained(HERE, 0.0)
    of.strained(HERE, 0.5)
    assert places(of) == 4
    of.strained(HERE, 1.0)
    of.strained(HERE, 2.0)
    assert places(of) == 1


def test_one_origins_trouble_is_not_anothers() -> None:
    of = origins()
    put_on_the_slow_lane(of)
    assert places(of, THERE) == 8


def test_on_the_slow_lane_there_is_one_probe_at_a_time() -> None:
    of = origins()
    put_on_the_slow_lane(of)
    assert not of.enter(HERE, 0.5)
    assert of.enter(HERE, 1.0)
    assert not of.enter(HERE, 1.0)
    of.leave(HERE)
    assert of.enter(HERE, 1.0)


def test_each_failed_probe_doubles_the_pause_up_to_thirty_seconds() -> None:
    of = origins()
    put_on_the_slow_lane(of)
    of.strained(HERE, 1.0)
    assert not of.enter(HERE, 2.9)
    assert of.enter(HERE, 3.0)
    of.leave(HERE)
    for _ in range(50):
        of.strained(HERE, 10.0)
    assert not of.enter(HERE, 10.0 + LONGEST_PROBE_PAUSE - 0.1)
    assert of.enter(HERE, 10.0 + LONGEST_PROBE_PAUSE)


def test_one_good_answer_ends_the_trouble() -> None:
    of = origins()
    put_on_the_slow_lane(of)
    of.succeeded(HERE)
    assert places(of) >= 4


def test_all_origins_in_trouble_share_few_probes() -> None:
    of = origins(probes=1)
    put_on_the_slow_lane(of, HERE)
    put_on_the_slow_lane(of, THERE)
    assert of.enter(HERE, 1.0)
    assert not of.enter(THERE, 1.0)
    of.leave(HERE)
    assert of.enter(THERE, 1.0)


def test_an_exempt_host_has_no_caps() -> None:
    of = origins()
    put_on_the_slow_lane(of, "http://127.0.0.1:8080")
    assert places(of, "http://127.0.0.1:8080") == 1_000


def test_who_is_refused_is_told_another_time_each() -> None:
    of = origins()
    waits = [of.postponement(HERE, 100.0) for _ in range(5)]
    assert waits == sorted(set(waits))
    assert waits[0] >= 1.0
    assert waits[-1] < 2.0


@pytest.mark.parametrize(
    ("is_failing", "longest"),
    [(False, LONGEST_POSTPONEMENT), (True, LONGEST_ON_SLOW_LANE)],
)
def test_nobody_is_put_off_for_long_and_never_all_to_one_moment(
    is_failing: bool, longest: float
) -> None:
    of = origins()
    if is_failing:
        put_on_the_slow_lane(of)
    waits = [of.postponement(HERE, 0.0) for _ in range(20_000)]
    assert max(waits) <= longest
    asking = Counter(int(wait) for wait in waits)  # in each second
    assert max(asking.values()) <= 2 * 20_000 / longest


def test_hundreds_hear_within_a_minute_that_an_origin_is_back() -> None:
    of = origins()
    put_on_the_slow_lane(of)
    waits = [of.postponement(HERE, 0.0) for _ in range(500)]
    assert max(waits) <= 60.0


def test_whether_there_is_room_takes_no_place() -> None:
    of = origins()
    for _ in range(8):
        assert of.has_room(HERE, 0.0)
        assert of.enter(HERE, 0.0)
    assert not of.has_room(HERE, 0.0)
    assert of.has_room("http://127.0.0.1:8080", 0.0)


def test_memory_is_bounded_and_busy_origins_are_kept() -> None:
    of = origins(capacity=3)
    of.enter(HERE, 0.0)
    for number in range(10):
        of.succeeded(f"https://{number}.example")
    assert len(of) == 3
    of.leave(HERE)
