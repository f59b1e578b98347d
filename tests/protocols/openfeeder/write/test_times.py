from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.openfeeder.write.content_queries import (
    ErrorCode,
    OpenFeederError,
    SyncPoint,
    encode_token,
    format_moment,
    parse_moment,
    parse_since,
    parse_until,
)

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(-(10**12), 10**14).map(
    lambda milliseconds: BEGINNING + timedelta(milliseconds=milliseconds)
)


@given(MOMENTS, st.integers(0, 10**15))
def test_a_token_leads_to_where_it_was_made(moment: datetime, change: int) -> None:
    point = SyncPoint(moment=moment, epoch="ab" if change else "", change=change)
    assert parse_since(encode_token(point)) == point
    assert parse_since(format_moment(moment)).moment == moment


def test_a_token_is_what_the_specification_says() -> None:
    moment = datetime(2026, 2, 23, 2, 0, tzinfo=UTC)
    token = encode_token(SyncPoint(moment=moment))
    assert base64.b64decode(token) == b'{"t":"2026-02-23T02:00:00.000Z"}'


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-20T01:02:03Z", datetime(2026, 2, 20, 1, 2, 3, tzinfo=UTC)),
        ("2026-02-20t01:02:03z", datetime(2026, 2, 20, 1, 2, 3, tzinfo=UTC)),
        ("2026-02-20 01:02:03Z", datetime(2026, 2, 20, 1, 2, 3, tzinfo=UTC)),
        ("2026-02-20T01:02:03+01:30", datetime(2026, 2, 19, 23, 32, 3, tzinfo=UTC)),
        ("2026-02-20T01:02:03 01:30", datetime(2026, 2, 19, 23, 32, 3, tzinfo=UTC)),
        ("2026-02-20T01:02:03-00:30", datetime(2026, 2, 20, 1, 32, 3, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (
            "2026-02-20T01:02:03.4567891Z",
            datetime(2026, 2, 20, 1, 2, 3, 456_000, tzinfo=UTC),
        ),
        ("2026-02-20T01:02:61Z", None),
        ("2026-02-20T01:02:03+99:00", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("2026-13-20T01:02:03Z", None),
        ("2026-02-20T01:02Z", None),
        ("2026-02-20T01:02:03", None),
        ("", None),
    ],
)
def test_moments_are_those_of_rfc_3339(text: str, moment: datetime | None) -> None:
    assert parse_moment(text) == moment


def _token(members: object) -> str:
    return base64.b64encode(orjson.dumps(members)).decode()


def test_tokens_of_others_are_taken_whatever_else_they_hold() -> None:
    day = SyncPoint(moment=datetime(2026, 2, 23, tzinfo=UTC))
    assert parse_since("eyJ0IjoiMjAyNi0wMi0yMyJ9") == day  # of the specification
    assert parse_since(_token({"t": "2026-02-23"}).rstrip("=")) == day
    for place in (7, "x", "x-", "-5", "x-five", f"x-{'9' * 19}"):
        assert parse_since(_token({"t": "2026-02-23", "c": place})) == day
    known = parse_since(_token({"t": "2026-02-23", "c": "e-p-5"}))
    assert (known.epoch, known.change) == ("e-p", 5)


@pytest.mark.parametrize(
    "text",
    [
        *("soon", "=", "aGFsbG8=", _token([]), _token({}), _token({"t": 5})),
        *(_token({"t": "soon"}), "A" * 513, "ä" * 8),
    ],
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(OpenFeederError) as caught:
        parse_since(text)
    assert caught.value.code is ErrorCode.INVALID_PARAM


def test_until_takes_no_token() -> None:
    moment = datetime(2026, 2, 23, tzinfo=UTC)
    assert parse_until(format_moment(moment)) == moment
    with pytest.raises(OpenFeederError, match="until: expected a date and time"):
        parse_until(encode_token(SyncPoint(moment=moment)))


def test_other_zones_are_written_in_utc() -> None:
    moment = datetime(2026, 2, 23, 1, tzinfo=UTC) + timedelta(microseconds=1_999)
    assert format_moment(moment) == "2026-02-23T01:00:00.001Z"
