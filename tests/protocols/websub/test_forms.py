from __future__ import annotations

import re
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import InvalidValue
from protocols.websub.websub_parameters import MOST_PARAMETERS, read_form

ANY = re.compile(".*")


def test_parameters_of_the_query_follow_those_of_the_body() -> None:
    form = read_form(b"a=1&b=%C3%A9+x", "a=2")
    assert form.parameters == (("a", "1"), ("b", "é x"), ("a", "2"))
    assert form.all(re.compile("a")) == ["1", "2"]


@pytest.mark.parametrize("body", [b"a=", b"a", b"a=+", b"a=%20&&"])
def test_an_empty_parameter_is_an_absent_one(body: bytes) -> None:
    assert read_form(body).all(ANY) == []


@pytest.mark.parametrize(
    ("body", "query", "field"),
    [
        (b"a=\xff", "", "body"),
        (b"a=%FF", "", "body"),
        (b"", "a=%FF", "query"),
        (b"&".join([b"a=1"] * (MOST_PARAMETERS + 1)), "", "body"),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, query: str, field: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        read_form(body, query)
    assert refusal.value.field == field


def test_one_value_said_twice_is_one_value() -> None:
    assert read_form(b"a=1&a=1").one("a") == "1"
    assert read_form(b"").one("a", "default") == "default"


def test_values_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidValue, match="one value"):
        read_form(b"a=1", "a=2").one("a")


def test_a_missing_required_parameter_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"a: expected a letter; it is missing"):
        read_form(b"b=1").required("a", "a letter")


@given(st.text(st.sampled_from("ab=&+%20C3A9é ;"), max_size=40))
def test_a_form_is_read_as_browsers_write_it(body: str) -> None:
    try:
        expected = parse_qsl(body, errors="strict")
    except UnicodeDecodeError:
        with pytest.raises(InvalidValue):
            read_form(body.encode())
        return
    written = tuple((name, value) for name, value in expected if value.strip())
    assert read_form(body.encode()).parameters == written
