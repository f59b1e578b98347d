from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched, FollowedRedirect
from hub.core.schedule.next_request import (
    next_request_after_failure,
    next_request_after_success,
)
from storage.records import Polling, Redirect

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
OLD, NEW, NEWER = (
    "https://old.example/",
    "https://new.example/",
    "https://er.example/",
)


def redirected(
    *redirects: tuple[int, str], at: datetime = NOW, status: int = 200
) -> Fetched:
    sources = [OLD, *(target for _, target in redirects)]
    return Fetched(
        at=at,
        started=at,
        url=sources[-1],
        status=status,
        redirects=tuple(
            FollowedRedirect(status=code, source=source, target=target)
            for source, (code, target) in zip(sources, redirects, strict=False)
        ),
    )


def follow(*fetches: Fetched, polling: Polling | None = None) -> Polling:
    polling = polling or Polling()
    for fetched in fetches:
        course = next_request_after_success(polling, fetched)
        polling = replace(polling, fetch_url=course.fetch_url, redirect=course.redirect)
    return polling


@pytest.mark.parametrize("code", [301, 308])
def test_a_permanent_redirect_is_believed_after_three_sightings_in_a_day(
    code: int,
) -> None:
    times = [NOW, NOW + 12 * HOUR, NOW + 24 * HOUR]
    sightings = [redirected((code, NEW), at=at) for at in times]

    assert follow(*sightings[:2]).fetch_url == ""
    assert follow(*sightings).fetch_url == NEW
    assert follow(*sightings).redirect is None


def test_many_sightings_within_a_day_are_not_enough() -> None:
    polling = follow(*(redirected((301, NEW), at=NOW + n * HOUR) for n in range(24)))

    assert polling.fetch_url == ""
    assert polling.redirect == Redirect(target=NEW, sightings=24, first_seen=NOW)


def test_two_sightings_a_day_apart_are_not_enough() -> None:
    assert not follow(
        redirected((301, NEW)), redirected((301, NEW), at=NOW + 48 * HOUR)
    ).fetch_url


@pytest.mark.parametrize("code", [302, 303, 307])
def test_a_temporary_redirect_is_never_believed(code: int) -> None:
    days = [redirected((code, NEW), at=NOW + n * 24 * HOUR) for n in range(9)]

    assert follow(*days) == Polling()


def test_only_the_permanent_redirects_at_the_start_count() -> None:
    polling = follow(redirected((301, NEW), (302, NEWER)))

    assert polling.redirect is not None
    assert polling.redirect.target == NEW


def test_another_target_is_watched_anew() -> None:
    polling = follow(redirected((301, NEW)), redirected((301, NEWER), at=NOW + HOUR))

    assert polling.redirect == Redirect(
        target=NEWER, sightings=1, first_seen=NOW + HOUR
    )


def test_a_redirect_that_ends_is_forgotten() -> None:
    assert follow(redirected((301, NEW)), redirected(at=NOW + HOUR)).redirect is None


def test_a_redirect_into_trouble_is_neither_sighted_nor_forgotten() -> None:
    polling = follow(redirected((301, NEW)))

    course = next_request_after_failure(polling, redirected((301, NEW), status=500))

    assert course.redirect == polling.redirect


@pytest.mark.parametrize("status", [404, 410])
def test_a_believed_target_that_is_gone_is_given_up(status: int) -> None:
    polling = Polling(fetch_url=NEW)

    course = next_request_after_failure(polling, redirected(status=status))

    assert (course.fetch_url, course.redirect) == ("", None)
    assert next_request_after_failure(polling, redirected(status=500)).fetch_url == NEW
