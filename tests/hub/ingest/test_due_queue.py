"""Due feeds come in turns, those of one host a second apart; what is too much for a
host is put off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hub.ingest.due_queue import MOST_HOSTS, Deferrals, Due, DueQueue
from storage.records import FeedId

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_each_feed_of_a_host_gets_a_time_of_its_own() -> None:
    deferrals = Deferrals(1.0)

    times = [deferrals.next_time("a", 11, NOW, NOW) for _ in range(3)]

    assert times == [NOW + SECOND, NOW + 2 * SECOND, NOW + 3 * SECOND]
    assert deferrals.next_time("b", 11, NOW, NOW) == NOW + SECOND


def test_feeds_of_another_pace_stand_in_a_line_of_their_own() -> None:
    deferrals = Deferrals(1.0)
    for _ in range(100_000):
        deferrals.next_time("a", 16, NOW, NOW)

    fast = [deferrals.next_time("a", 5, NOW, NOW) for _ in range(2)]

    assert fast == [NOW + 2 * SECOND, NOW + 4 * SECOND]
    assert deferrals.next_time("a", 16, NOW, NOW) == NOW + 100_002 * SECOND


def test_a_line_whose_times_have_passed_takes_no_share() -> None:
    deferrals = Deferrals(1.0)
    deferrals.next_time("a", 16, NOW, NOW)
    later = NOW + 2 * SECOND

    assert deferrals.next_time("a", 5, later, later) == later + SECOND


def test_none_before_the_host_allows_it() -> None:
    deferrals = Deferrals(1.0)
    allowed = NOW + timedelta(hours=1)

    assert deferrals.next_time("a", 11, allowed, NOW) == allowed + SECOND
    assert deferrals.next_time("a", 11, allowed, NOW) == allowed + 2 * SECOND


def test_times_that_have_passed_are_not_given_again() -> None:
    deferrals = Deferrals(1.0)
    deferrals.next_time("a", 11, NOW, NOW)
    later = NOW + timedelta(hours=1)

    assert deferrals.next_time("a", 11, later, later) == later + SECOND


def test_it_remembers_a_bounded_number_of_hosts() -> None:
    deferrals = Deferrals(1.0)
    for number in range(MOST_HOSTS):
        deferrals.next_time(f"h{number}", 11, NOW, NOW)

    deferrals.next_time("one more", 11, NOW, NOW)
    assert len(deferrals) == MOST_HOSTS

    later = NOW + timedelta(hours=1)
    deferrals.next_time("later", 11, later, later)
    assert len(deferrals) == 1


def test_times_given_out_by_a_clock_that_was_ahead_are_forgotten() -> None:
    deferrals = Deferrals(1.0)
    ahead = NOW + timedelta(days=400)
    deferrals.next_time("a", 11, ahead, ahead)

    assert deferrals.next_time("a", 11, NOW, NOW) == NOW + SECOND


def due(number: int, host: str, pace: int = 11) -> Due:
    return Due(FeedId(number), host, pace)


def a_wheel(*dues: Due, per_host: int = 10) -> DueQueue:
    wheel = DueQueue(capacity=100, per_host=per_host)
    for each in dues:
        assert wheel.add(each) is None
    return wheel


def numbers(dues: list[Due]) -> list[int]:
    return [each.feed_id for each in dues]


def test_hosts_take_turns_and_have_one_feed_under_way() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "a"), due(3, "b"))

    assert numbers(wheel.take(0, 9)) == [1, 3]
    assert wheel.take(0, 9) == []


def test_a_host_is_ready_again_at_its_time() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "a"))
    wheel.take(0, 9)

    assert wheel.next_ready() is None
    assert wheel.release("a", 1.0)
    assert wheel.next_ready() == 1.0
    assert wheel.take(0.9, 9) == []
    assert numbers(wheel.take(1.0, 9)) == [2]
    assert not wheel.release("a", 2.0)
    assert len(wheel) == 0


def test_a_feed_that_comes_while_its_host_is_asked_waits() -> None:
    wheel = a_wheel(due(1, "a"))
    wheel.take(0, 9)
    wheel.add(due(2, "a"))

    assert wheel.take(0, 9) == []
    wheel.release("a", 1.0)
    assert numbers(wheel.take(1.0, 9)) == [2]


def test_a_host_has_its_share_and_no_more() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "a"), per_host=2)

    assert wheel.add(due(3, "a")) == due(3, "a")
    assert wheel.add(due(3, "b")) is None
    assert FeedId(3) in wheel
    assert wheel.room == 97


def test_a_faster_feed_takes_the_place_of_the_slowest_of_its_host() -> None:
    wheel = a_wheel(due(1, "a", 16), due(2, "a", 17), due(3, "b", 20), per_host=2)

    assert wheel.add(due(4, "a", 9)) == due(2, "a", 17)
    assert wheel.add(due(5, "a", 16)) == due(5, "a", 16)
    assert numbers(wheel.take(0, 9)) == [1, 3]
    wheel.release("a", 0)
    assert numbers(wheel.take(0, 9)) == [4]
    assert len(wheel) == 0


def test_what_was_asked_for_keeps_its_place() -> None:
    wheel = a_wheel(due(1, "a", 16), per_host=1)
    wheel.add_first(due(1, "a"))

    assert wheel.add(due(2, "a", 1)) == due(2, "a", 1)
    assert numbers(wheel.take(0, 9)) == [1]


def test_unpaced_feeds_and_hosts_alternate() -> None:
    wheel = a_wheel(due(1, ""), due(2, ""), due(3, ""), due(4, "a"), due(5, "b"))

    assert numbers(wheel.take(0, 3)) == [1, 4, 2]
    assert wheel.next_ready() == 0.0
    assert numbers(wheel.take(0, 9)) == [3, 5]


def test_the_first_goes_before_all_other_hosts() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "b"), due(3, "c"))

    wheel.add_first(due(4, "c"))

    assert numbers(wheel.take(0, 1)) == [4]


def test_the_first_goes_before_all_others_of_its_host() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "a"), due(3, ""), per_host=2)
    wheel.add_first(due(2, "a"))
    wheel.add_first(due(4, "a"))
    wheel.add_first(due(5, ""))

    assert len(wheel) == 5
    assert numbers(wheel.take(0, 9)) == [5, 4, 3]
    wheel.release("a", 0)
    assert numbers(wheel.take(0, 9)) == [2]


def test_the_first_leaves_its_host_if_it_comes_without_one() -> None:
    wheel = a_wheel(due(1, "a"))
    assert numbers(wheel.take(0, 9)) == [1]
    wheel.add(due(2, "a"))
    wheel.add_first(due(2, ""))

    assert numbers(wheel.take(0, 9)) == [2], "its host is still asked for another"
    assert not wheel.release("a", 0)
    wheel.add(due(3, "a"))
    assert numbers(wheel.take(0, 9)) == [3]


def test_the_first_leaves_its_line_for_the_one_it_comes_with() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "a"))
    assert numbers(wheel.take(0, 9)) == [1]

    wheel.add_first(due(2, "b"))

    assert numbers(wheel.take(0, 9)) == [2]


def test_all_feeds_of_a_host_can_be_withdrawn_at_any_time() -> None:
    wheel = a_wheel(due(1, "a"), due(2, "a"), due(3, "b"))

    assert numbers(wheel.withdraw("a")) == [1, 2]
    assert wheel.withdraw("a") == []
    wheel.add(due(4, "a"))
    assert sorted(numbers(wheel.take(0, 9))) == [3, 4]


def test_a_withdrawn_host_lines_up_no_more() -> None:
    wheel = a_wheel(due(1, "a"))
    wheel.withdraw("a")

    assert wheel.take(0, 9) == []
    assert wheel.next_ready() is None


hosts = st.sampled_from(["", "a", "b", "c"])
steps = st.lists(
    st.tuples(st.sampled_from(["add", "first", "take", "done", "drop"]), hosts)
)


@given(steps)
def test_no_host_is_ever_asked_twice_at_once(script: list[tuple[str, str]]) -> None:
    wheel = DueQueue(capacity=100, per_host=3)
    under_way: list[Due] = []
    for number, (step, host) in enumerate(script):
        if step == "add":
            wheel.add(due(number, host))
        elif step == "first":
            wheel.add_first(due(number, host))
        elif step == "take":
            under_way += wheel.take(number, 2)
        elif step == "done" and under_way:
            wheel.release(under_way.pop(0).host, number)
        elif step == "drop":
            wheel.withdraw(host)
        paced = [each.host for each in under_way if each.host]
        assert len(paced) == len(set(paced))
    while under_way:
        wheel.release(under_way.pop().host, 0)
    left = len(wheel)
    taken: list[Due] = []
    while more := wheel.take(10**6, 10):
        taken += more
        for each in more:
            wheel.release(each.host, 0)
    assert len(taken) == left
