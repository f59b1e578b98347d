"""When a limit of requests ends, in the ways of those that send no Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.http.headers import parse_reset

NOW = datetime(2026, 5, 1, tzinfo=UTC)
UNIX = int(NOW.timestamp())


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        (f"{UNIX + 90}", b"", 90),
        (f" {UNIX + 90}.5", b"", 90.5),
        ("30", b"", 30),
        ("", b'{"error":"RATE_LIMIT_EXCEEDED","retry_after":"%d"}' % (UNIX + 60), 60),
        ("", b'{"retry_after": 12.5}', 12.5),
        ("x", b'{"retry_after": 7}', 7),
        (f"{UNIX - 1}", b"", None),
        ("0", b"", None),
        ("9" * 15, b"", 2**31),
        ("9" * 16, b"", None),
        ("12.", b"", 12),
        ("12.x", b"", None),
        ("-5", b"", None),
        ("", b"", None),
        ("", b"[1]", None),
        ("", b'{"retry_after": true}', None),
        ("", b'{"retry_after": null}', None),
        ("", b'{"retry_after": 5, "more": "%s"}' % (b"x" * 70_000), None),
    ],
)
def test_a_reset_is_a_time_or_seconds_in_the_header_or_in_the_body(
    header: str, body: bytes, seconds: float | None
) -> None:
    assert parse_reset(header, body, NOW) == seconds


@given(st.text(), st.binary())
def test_whatever_is_said_it_is_a_bounded_time_or_none(
    header: str, body: bytes
) -> None:
    seconds = parse_reset(header, body, NOW)

    assert seconds is None or 0 < seconds <= 2**31
