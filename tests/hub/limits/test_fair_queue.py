from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.limits.fair_queue import FairQueue


def turns(*words: str) -> FairQueue[str]:
    """Whose each is, its first letter says."""
    made: FairQueue[str] = FairQueue(lambda word: ord(word[0]))
    made.add(words)
    return made


def all_of(queue: FairQueue[str]) -> list[str]:
    return [queue.take() for _ in range(len(queue))]


def test_parties_take_turns_and_each_keeps_its_order() -> None:
    queue = turns("a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert all_of(queue) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_whoever_comes_waits_for_one_of_each_party_only() -> None:
    queue = turns("a1", "a2", "a3")
    assert queue.take() == "a1"
    queue.add(["b1"])
    assert all_of(queue) == ["a2", "b1", "a3"]


def test_what_is_put_back_is_the_first_of_its_party() -> None:
    queue = turns("a1", "a2", "b1")
    queue.put_back(queue.take())
    assert all_of(queue) == ["b1", "a1", "a2"]


def test_of_none_none_can_be_taken() -> None:
    queue = turns()
    assert not queue
    with pytest.raises(IndexError):
        queue.take()


@given(st.lists(st.sampled_from([f"{party}{n}" for party in "abc" for n in range(5)])))
def test_each_comes_once_in_the_order_of_its_party(words: list[str]) -> None:
    taken = all_of(turns(*words))
    for party in "abc":
        assert [word for word in taken if word[0] == party] == [
            word for word in words if word[0] == party
        ]
