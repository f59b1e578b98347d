from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hub.limits.host_limiter import HostLimiter


def test_the_first_request_to_a_host_starts_at_once() -> None:
    assert HostLimiter().reserve("a.example", 100.0) == 100.0


def test_requests_to_one_host_start_a_second_apart() -> None:
    pacer = HostLimiter()
    assert [pacer.reserve("a.example", 100.0) for _ in range(3)] == [100, 101, 102]


def test_hosts_do_not_wait_for_each_other() -> None:
    pacer = HostLimiter()
    pacer.reserve("a.example", 100.0)
    assert pacer.reserve("b.example", 100.0) == 100.0


def test_a_host_that_rested_starts_at_once_again() -> None:
    pacer = HostLimiter()
    pacer.reserve("a.example", 100.0)
    assert pacer.reserve("a.example", 101.0) == 101.0


def test_ten_pings_run_ahead_and_the_eleventh_is_paced() -> None:
    pacer = HostLimiter()
    starts = [pacer.reserve("a.example", 100.0, is_ping=True) for _ in range(12)]
    assert starts == [*[100.0] * 10, 101.0, 102.0]


def test_what_pings_took_is_missing_to_later_requests() -> None:
    pacer = HostLimiter()
    for _ in range(10):
        pacer.reserve("a.example", 100.0, is_ping=True)
    assert pacer.reserve("a.example", 100.0) == 110.0


def test_a_hold_applies_to_the_whole_host_and_to_pings_as_well() -> None:
    pacer = HostLimiter()
    pacer.hold("a.example", 160.0, 100.0)
    assert pacer.held_until("a.example") == 160.0
    assert pacer.reserve("a.example", 100.0, is_ping=True) == 160.0
    assert pacer.reserve("b.example", 100.0) == 100.0


def test_a_later_hold_never_shortens_an_earlier_one() -> None:
    pacer = HostLimiter()
    pacer.hold("a.example", 160.0, 100.0)
    pacer.hold("a.example", 130.0, 100.0)
    assert pacer.held_until("a.example") == 160.0


def test_a_host_without_a_hold_is_not_held() -> None:
    assert HostLimiter().held_until("a.example") == 0.0


def test_idle_hosts_are_forgotten() -> None:
    pacer = HostLimiter()
    for number in range(100):
        pacer.reserve(f"{number}.example", 100.0)
    assert len(pacer) == 100
    pacer.reserve("last.example", 102.0)
    assert len(pacer) == 1


def test_no_more_hosts_are_kept_than_agreed_whatever_they_asked_for() -> None:
    pacer = HostLimiter(most_hosts=10)
    for number in range(100):
        pacer.hold(f"{number}.example", 1e9, 100.0)
    assert len(pacer) == 10
    assert pacer.held_until("99.example") == 1e9


@given(
    st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=60),
    st.integers(1, 10),
)
def test_no_second_sees_more_than_the_burst_and_one_more(
    steps: list[tuple[float, bool]], burst: int
) -> None:
    pacer = HostLimiter(burst=burst)
    now = 0.0
    starts = []
    for pause, is_ping in steps:
        now += pause
        starts.append(pacer.reserve("a.example", now, is_ping=is_ping))
        assert starts[-1] >= now
    for first in starts:
        within = [start for start in starts if first <= start < first + 1.0]
        assert len(within) <= burst + 1
