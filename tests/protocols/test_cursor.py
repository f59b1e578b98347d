from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.cursor import read_cursor
from protocols.errors import InvalidValue


@given(st.from_regex(r"[0-9A-Za-z]{1,32}", fullmatch=True), st.integers(0, 10**18 - 1))
def test_a_cursor_is_an_epoch_and_a_position(epoch: str, position: int) -> None:
    assert read_cursor(f"{epoch}-{position}") == (epoch, position)


@pytest.mark.parametrize(
    "value",
    [
        *("", "-", "1", "a-", "-1", "a-b", "a--1", "a-1-2"),
        *("a-1 ", " a-1", "a-1\n", "a-٣", "é-1"),
        *("a" * 33 + "-1", "a-" + "1" * 19),
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_field(value: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_cursor(value, "prev")
    assert refused.value.field == "prev"
