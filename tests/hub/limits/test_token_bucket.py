"""How many requests somebody may make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.limits.token_bucket import Bucket, Rate, per_minute, take

RATE = Rate(per_second=2.0, burst=3.0)


def test_a_burst_is_allowed_and_then_the_wait_for_the_next_is_told() -> None:
    bucket = None
    for _ in range(3):
        bucket, wait = take(bucket, RATE, 100.0)
        assert wait == 0.0
    bucket, wait = take(bucket, RATE, 100.0)
    assert wait == 0.5
    assert take(bucket, RATE, 100.5)[1] == 0.0


def test_a_refused_request_costs_nothing() -> None:
    empty = Bucket(0.5, 0.0)
    refused, _ = take(empty, RATE, 0.0)
    assert refused == empty


def test_quiet_fills_the_bucket_no_further_than_its_burst() -> None:
    bucket, _ = take(Bucket(0.0, 0.0), RATE, 1e6)
    assert bucket.left == RATE.burst - 1


def test_what_costs_more_waits_until_all_of_it_is_there() -> None:
    bucket, wait = take(Bucket(1.0, 0.0), RATE, 0.0, requests=2)
    assert bucket == Bucket(1.0, 0.0)
    assert wait == 1 / RATE.per_second
    assert take(bucket, RATE, wait, requests=2) == (Bucket(0.0, wait), 0.0)


@pytest.mark.parametrize("bucket", [None, Bucket(RATE.burst, 0.0)])
def test_what_costs_more_than_there_ever_is_takes_all_of_it(
    bucket: Bucket | None,
) -> None:
    assert take(bucket, RATE, 0.0, requests=1_000) == (Bucket(0.0, 0.0), 0.0)


def test_a_clock_that_went_back_takes_nothing_away() -> None:
    assert take(Bucket(2.0, 10.0), RATE, 5.0) == (Bucket(1.0, 5.0), 0.0)


@pytest.mark.parametrize(
    ("requests", "rate"),
    [(60, Rate(per_second=1, burst=10)), (1, Rate(per_second=1 / 60, burst=1))],
)
def test_a_rate_a_minute_allows_a_sixth_of_it_at_once(
    requests: int, rate: Rate
) -> None:
    assert per_minute(requests) == rate


@given(st.lists(st.floats(0, 3), max_size=200))
def test_no_more_pass_than_the_burst_and_the_rate_allow(gaps: list[float]) -> None:
    bucket, now, passed = None, 0.0, 0
    for gap in gaps:
        now += gap
        bucket, wait = take(bucket, RATE, now)
        passed += wait == 0.0
    assert passed <= RATE.burst + now * RATE.per_second + 1e-6
