from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hub.core.fetched import Fetched
from hub.core.schedule.next_request import next_validators
from storage.records import Polling, Validators

NOW = datetime(2026, 3, 1, tzinfo=UTC)
URL = "https://feed.example/"
KNOWN = Validators(url=URL, etag='W/"1-gzip"', last_modified="Sun, 1 Mar 2026")


def answer(
    status: int = 200,
    etag: str = "",
    last_modified: str = "",
    *,
    url: str = URL,
    error: str = "",
    at: datetime = NOW,
) -> Fetched:
    return Fetched(
        at=at,
        started=at,
        url=url,
        status=status,
        etag=etag,
        last_modified=last_modified,
        error=error,
    )


@pytest.mark.parametrize("etag", ['"1"', 'W/"1"', '"1-gzip"', "unquoted", '""'])
def test_validators_are_kept_byte_for_byte(etag: str) -> None:
    known = next_validators(Polling(), answer(200, etag, "yesterday, or so"))

    assert known == Validators(url=URL, etag=etag, last_modified="yesterday, or so")


@pytest.mark.parametrize("url", [URL, "https://other.example/"])
def test_a_200_replaces_all_with_what_it_sends_and_the_url_that_sent_it(
    url: str,
) -> None:
    known = next_validators(Polling(validators=KNOWN), answer(200, '"2"', url=url))

    assert known == Validators(url=url, etag='"2"')


def test_a_200_without_any_removes_them() -> None:
    assert next_validators(Polling(validators=KNOWN), answer(200)) is None


@pytest.mark.parametrize(
    ("fetched", "expected"),
    [
        (answer(304), KNOWN),
        (
            answer(304, '"2"'),
            Validators(url=URL, etag='"2"', last_modified="Sun, 1 Mar 2026"),
        ),
        (
            answer(304, "", "later"),
            Validators(url=URL, etag='W/"1-gzip"', last_modified="later"),
        ),
    ],
)
def test_a_304_updates_what_it_sends(fetched: Fetched, expected: Validators) -> None:
    assert next_validators(Polling(validators=KNOWN), fetched) == expected


def test_a_304_that_nobody_asked_for_brings_none() -> None:
    assert next_validators(Polling(), answer(304, '"2"')) is None


@pytest.mark.parametrize("status", [0, 200, 404, 500])
def test_an_answer_that_was_not_read_changes_none(status: int) -> None:
    failed = answer(status, '"2"', error="cut short")

    assert next_validators(Polling(validators=KNOWN), failed) == KNOWN


def test_never_an_older_validator_after_a_newer_one() -> None:
    polling = Polling(validators=KNOWN, last_fetch=NOW + timedelta(seconds=1))

    assert next_validators(polling, answer(200, '"0"')) == KNOWN
