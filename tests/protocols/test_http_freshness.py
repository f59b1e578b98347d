from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.http import freshness, parse_retry_after

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("1000000000", 1e9),
        ("9" * 5_000, 2.0**31),
        ("3000000000", 2.0**31),
        ("Sat, 21 Nov 2026 12:02:00 GMT", 120.0),
        ("Saturday, 21-Nov-26 12:02:00 GMT", 120.0),
        ("Sat Nov 21 12:02:00 2026", 120.0),
        ("Sat, 21 Nov 2026 12:00:00 GMT", 0.0),
        ("Sat, 21 Nov 9999 12:02:00 GMT", 2.0**31),
        ("Sat, 21 Nov 2026 11:59:59 GMT", None),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("\u0661\u0662\u0660", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds


DATE = "Sat, 21 Nov 2026 12:00:00 GMT"
IN_AN_HOUR = "Sat, 21 Nov 2026 13:00:00 GMT"


def fresh_for(
    cache_control: str = "", expires: str = "", date: str = DATE, age: str = ""
) -> float | None:
    return freshness(cache_control=cache_control, expires=expires, date=date, age=age)


@pytest.mark.parametrize(
    ("cache_control", "seconds"),
    [
        ("max-age=600", 600),
        ("public, MAX-AGE=600, must-revalidate", 600),
        ('max-age="600"', 600),
        ("max-age = 600", 600),
        ("max-age=600, max-age=5", 600),
        ('no-cache="set-cookie, x", max-age=600', 600),
        ("s-maxage=600", None),
        ("max-age=60, s-maxage=600", 60),
        ("max-age=0", 0),
        ("max-age=9999999999999", 86_400),
        ("no-cache, max-age=600", None),
        ("max-age=600, no-store", None),
        ("max-age=-1", None),
        ("max-age=soon", None),
        ("max-age", None),
        ('"', None),
        ("", None),
    ],
)
def test_cache_control_says_for_how_long(
    cache_control: str, seconds: float | None
) -> None:
    assert fresh_for(cache_control) == seconds


def test_expires_counts_from_the_servers_own_date() -> None:
    assert fresh_for(expires=IN_AN_HOUR) == 3_600


def test_max_age_overrides_expires_even_when_it_is_garbage() -> None:
    assert fresh_for("max-age=60", expires=IN_AN_HOUR) == 60
    assert fresh_for("max-age=soon", expires=IN_AN_HOUR) is None


def test_other_directives_leave_expires_alone() -> None:
    assert fresh_for("public", expires=IN_AN_HOUR) == 3_600
    assert fresh_for("no-cache", expires=IN_AN_HOUR) is None


@pytest.mark.parametrize("expires", ["0", "-1", "now", ""])
def test_an_expires_that_is_no_date_says_nothing(expires: str) -> None:
    assert fresh_for(expires=expires) is None


def test_an_expires_in_the_past_is_over() -> None:
    assert fresh_for(expires=DATE, date=IN_AN_HOUR) == 0


def test_without_a_date_an_expires_says_nothing() -> None:
    assert fresh_for(expires=IN_AN_HOUR, date="") is None


@pytest.mark.parametrize(
    ("age", "seconds"), [("100", 500), ("600", 0), ("9" * 30, 0), ("x", 600)]
)
def test_the_age_of_the_answer_is_taken_off(age: str, seconds: float) -> None:
    assert fresh_for("max-age=600", age=age) == seconds


def test_the_cap_is_the_callers() -> None:
    capped = freshness(cache_control="max-age=9", expires="", date="", age="", cap=5.0)
    assert capped == 5.0


@given(st.text(), st.text(), st.text(), st.text())
def test_no_header_is_an_error(
    cache_control: str, expires: str, date: str, age: str
) -> None:
    seconds = fresh_for(cache_control, expires, date, age)
    assert seconds is None or 0 <= seconds <= 86_400
