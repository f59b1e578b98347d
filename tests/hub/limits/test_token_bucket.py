"""How often something may be done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.limits.token_bucket import Rate, TokenBucket, TokenBuckets, per_minute

RATE = Rate(per_second=2.0, burst=3.0)


def a_bucket(left: float | None = None, at: float = 0.0) -> TokenBucket:
    return TokenBucket(RATE, at, left)


def test_a_burst_is_allowed_and_then_the_wait_for_the_next_is_told() -> None:
    bucket = a_bucket(at=100.0)
    assert [bucket.take(100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(100.5) == 0.0


def test_a_refused_request_costs_nothing() -> None:
    bucket = a_bucket(0.5)
    assert bucket.take(0.0) == 0.25
    assert bucket.left(0.0) == 0.5


def test_quiet_fills_the_bucket_no_further_than_its_burst() -> None:
    assert a_bucket(0.0).left(1e6) == RATE.burst


def test_what_costs_more_waits_until_all_of_it_is_there() -> None:
    bucket = a_bucket(1.0)
    assert bucket.take(0.0, 2) == 0.5
    assert bucket.take(0.5, 2) == 0.0
    assert bucket.left(0.5) == 0.0


def test_what_costs_more_than_there_ever_is_takes_all_of_it() -> None:
    bucket = a_bucket()
    assert bucket.take(0.0, 1_000) == 0.0
    assert bucket.left(0.0) == 0.0


def test_what_is_reserved_comes_later_one_after_the_other() -> None:
    bucket = a_bucket(1.0)
    assert [bucket.reserve(0.0) for _ in range(3)] == [0.0, 0.5, 1.0]
    assert bucket.take(1.0) == 0.5


def test_a_clock_that_went_back_takes_nothing_away() -> None:
    assert a_bucket(2.0, at=10.0).left(5.0) == 2.0


@pytest.mark.parametrize(
    ("requests", "rate"),
    [(60, Rate(per_second=1, burst=10)), (1, Rate(per_second=1 / 60, burst=1))],
)
def test_a_rate_a_minute_allows_a_sixth_of_it_at_once(
    requests: int, rate: Rate
) -> None:
    assert per_minute(requests) == rate


def test_of_too_many_keys_the_one_longest_unseen_has_a_full_bucket_again() -> None:
    buckets: TokenBuckets[str] = TokenBuckets(capacity=2)
    for key in ("a", "b", "a", "c"):
        buckets.of(key, RATE, 0.0).take(0.0)
    assert [buckets.of(key, RATE, 0.0).left(0.0) for key in "ac"] == [1.0, 2.0]
    assert buckets.of("b", RATE, 0.0).left(0.0) == RATE.burst
    assert len(buckets) == 2


def test_a_rate_that_has_changed_holds_from_then_on() -> None:
    buckets: TokenBuckets[str] = TokenBuckets(capacity=2)
    buckets.of("a", RATE, 0.0).take(0.0, 3)
    slower = Rate(per_second=0.1, burst=1.0)
    assert buckets.of("a", slower, 0.0).wait(0.0) == 10.0


@given(st.lists(st.floats(0, 3), max_size=200))
def test_no_more_pass_than_the_burst_and_the_rate_allow(gaps: list[float]) -> None:
    bucket, now, passed = a_bucket(), 0.0, 0
    for gap in gaps:
        now += gap
        passed += bucket.take(now) == 0.0
    assert passed <= RATE.burst + now * RATE.per_second + 1e-6


@given(st.floats(-5, 2), st.floats(0.001, 1_000), st.floats(0, 1e5))
def test_after_the_wait_it_is_there(left: float, per_second: float, at: float) -> None:
    bucket = TokenBucket(Rate(per_second=per_second, burst=3.0), at, left)
    later = at + bucket.wait(at)
    assert bucket.left(later) > 0.999
