from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.cursor import cursor_in_turn, read_cursor, read_cursor_of, turn_of
from protocols.protocol_errors import InvalidValue


@given(st.from_regex(r"[0-9A-Za-z]{1,32}", fullmatch=True), st.integers(0, 10**18 - 1))
def test_a_cursor_is_an_epoch_and_a_position(epoch: str, position: int) -> None:
    assert read_cursor(f"{epoch}-{position}") == (epoch, position)


@pytest.mark.parametrize(
    "value",
    [
        *("", "-", "1", "a-", "-1", "a-b", "a--1", "a-1-2"),
        *("a-1 ", " a-1", "a-1\n", "a-٣", "é-1"),
        *("a" * 33 + "-1", "a-" + "1" * 19),
        *("a-1~", "a-1~2", "a-1~" + "F" * 16, "a-1~" + "f" * 17),
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_field(value: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_cursor(value, "prev")
    assert refused.value.field == "prev"


texts = st.text(min_size=1)


@given(texts, st.integers(0, 10**18 - 1))
def test_a_plain_cursor_is_the_same_for_every_topic(topic: str, position: int) -> None:
    assert read_cursor_of(topic, f"a-{position}") == ("a", position)


@given(st.lists(texts, min_size=2, unique=True), st.integers(1, 10**18 - 1))
def test_a_cursor_in_turn_gives_a_record_to_the_topics_after_it(
    topics: list[str], position: int
) -> None:
    in_turn = sorted(topics, key=turn_of)
    for given_to, topic in enumerate(in_turn, 1):
        cursor = cursor_in_turn(f"a-{position}", topic)
        assert read_cursor(cursor) == ("a", position)
        found = [read_cursor_of(each, cursor) for each in in_turn]
        assert found[:given_to] == [("a", position)] * given_to
        assert set(found[given_to:]) <= {("a", position - 1)}


def test_nothing_comes_before_the_first_position() -> None:
    assert read_cursor_of("b", "a-0~" + "0" * 16) == ("a", 0)
