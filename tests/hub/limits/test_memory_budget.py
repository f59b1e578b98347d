"""Many answers that share a memory: large ones give way, small ones never do."""

from __future__ import annotations

import gzip
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.http.network_errors import TooManyLargeAnswers
from hub.http.response_parser import ResponseParser
from hub.limits.memory_budget import MemoryBudget


def test_one_document_may_have_all_of_it_and_more_than_that_is_refused() -> None:
    budget = MemoryBudget(100, TooManyLargeAnswers)
    with budget.reserve() as share:
        share.take(100)
        with pytest.raises(TooManyLargeAnswers):
            share.take(1)
    assert budget.taken == 0


def test_who_holds_more_than_an_equal_share_gives_way_to_who_does_not() -> None:
    budget = MemoryBudget(100, TooManyLargeAnswers)
    with budget.reserve() as large, budget.reserve() as small:
        large.take(90)
        small.take(40)
        with pytest.raises(TooManyLargeAnswers):
            large.take(1)
        small.take(10)
        with pytest.raises(TooManyLargeAnswers):
            small.take(1)


def test_what_a_document_took_is_free_when_it_is_not_held_any_more() -> None:
    budget = MemoryBudget(100, TooManyLargeAnswers)
    for _ in range(5):
        with suppress(TooManyLargeAnswers), budget.reserve() as share:
            share.take(150)
        assert budget.taken == 0


@given(
    most=st.integers(1, 1_000),
    takes=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 20)), max_size=300),
)
def test_twice_the_room_is_never_exceeded_by_more_than_what_is_taken_at_once(
    most: int, takes: list[tuple[int, int]]
) -> None:
    budget = MemoryBudget(most, TooManyLargeAnswers)
    with ExitStack() as visits:
        shares = [visits.enter_context(budget.reserve()) for _ in range(10)]
        refused: set[int] = set()
        for number, count in takes:
            if number in refused:
                continue
            try:
                shares[number].take(count)
            except TooManyLargeAnswers:
                refused.add(number)
                assert shares[number].taken > budget.fair_share
        assert budget.taken <= 2 * most + 10 * 20
    assert budget.taken == 0


@pytest.mark.parametrize("coding", ["", "gzip", "br"])
def test_an_answer_is_taken_in_as_far_as_there_is_room(coding: str) -> None:
    body = gzip.compress(bytes(50_000)) if coding == "gzip" else b"<" + bytes(49_999)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n".encode()
    reception = ResponseParser()
    budget = MemoryBudget(10_000, TooManyLargeAnswers)
    with budget.reserve() as share:
        reception.expect(cut=0, limit=1 << 20, allowance=share)
        with pytest.raises(TooManyLargeAnswers) as refused:
            received(reception, head + body)
        assert refused.value.status == 200
    budget = MemoryBudget(60_000, TooManyLargeAnswers)
    with budget.reserve() as share:
        reception = ResponseParser()
        reception.expect(cut=0, limit=1 << 20, allowance=share)
        received(reception, head + body)
        assert len(reception.body) == 50_000
        assert 50_000 <= share.taken <= 55_000  # and what may have been mislabelled


def received(reception: ResponseParser, answer: bytes) -> None:
    reception.feed(answer)
    reception.end()
