from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.schedule.next_request import fresh_until, retry_after
from storage.records import Polling

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def answer(
    status: int = 200,
    *,
    cache_control: str = "",
    expires: str = "",
    date: str = "",
    age: str = "",
    retry: str = "",
) -> Fetched:
    return Fetched(
        at=NOW,
        started=NOW,
        url="https://feed.example/",
        status=status,
        cache_control=cache_control,
        expires=expires,
        date=date,
        age=age,
        retry_after=retry,
    )


def test_max_age_counts_from_the_answer_less_its_age() -> None:
    assert (
        fresh_until(Polling(), answer(cache_control="max-age=600")) == NOW + 10 * MINUTE
    )
    aged = answer(cache_control="max-age=600", age="60")
    assert fresh_until(Polling(), aged) == NOW + 9 * MINUTE


def test_expires_counts_from_the_server_s_own_date() -> None:
    fetched = answer(
        expires="Sun, 01 Mar 2026 20:30:00 GMT", date="Sun, 01 Mar 2026 20:00:00 GMT"
    )

    assert fresh_until(Polling(), fetched) == NOW + 30 * MINUTE


@pytest.mark.parametrize("cache_control", ["", "no-cache", "no-store", "max-age=0"])
def test_an_answer_may_name_no_time(cache_control: str) -> None:
    assert fresh_until(Polling(), answer(cache_control=cache_control)) is None


def test_a_304_renews_what_its_200_was_given() -> None:
    before = NOW - 60 * MINUTE
    known = Polling(last_success=before, fresh_until=before + 10 * MINUTE)

    assert fresh_until(known, answer(304)) == NOW + 10 * MINUTE
    assert fresh_until(known, answer(304, cache_control="no-cache")) is None
    assert fresh_until(Polling(), answer(304)) is None
    assert fresh_until(Polling(last_success=before), answer(304)) is None


@pytest.mark.parametrize(
    ("header", "until"),
    [
        ("120", NOW + 2 * MINUTE),
        ("Sun, 01 Mar 2026 12:05:00 GMT", NOW + 5 * MINUTE),
        ("", None),
        ("soon", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, until: datetime | None) -> None:
    assert retry_after(answer(503, retry=header)) == until


def test_a_429_is_believed_what_it_says_in_place_of_retry_after() -> None:
    reset = str(int((NOW + 5 * MINUTE).timestamp()))
    named = replace(answer(429), rate_limit_reset=reset)
    told = replace(answer(429), refusal=b'{"retry_after": 60}')

    assert retry_after(named) == NOW + 5 * MINUTE
    assert retry_after(told) == NOW + MINUTE
    assert retry_after(replace(named, retry_after="120")) == NOW + 2 * MINUTE
    assert retry_after(replace(named, status=503)) is None
