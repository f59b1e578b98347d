"""Feeds' own times after a clock that went back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from storage.clock_steps import (
    LONGEST_RETRY_AFTER,
    LONGEST_WAIT,
    FeedTimes,
    capped_times,
    correct_times,
)
from storage.records import Polling, Posting, PushRecord, Redirect

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FAR = NOW + 400 * DAY
NO_TIME = timedelta(0)


def filled(cls: type[Any], time: datetime) -> Any:
    """A value of the class whose times, and those of its parts, are all the same."""
    values: dict[str, object] = {}
    hints = get_type_hints(cls)
    for each in fields(cls):
        kinds = [kind for kind in get_args(hints[each.name]) or (hints[each.name],)]
        kinds = [kind for kind in kinds if kind is not NoneType]
        if datetime in kinds:
            values[each.name] = time
        elif kinds and isinstance(kinds[0], type) and issubclass(kinds[0], Struct):
            values[each.name] = filled(kinds[0], time)
        elif each.name in ("target", "url"):
            values[each.name] = "https://a.example/"
        elif each.name == "sightings":
            values[each.name] = 1
    return cls(**values)


def times(value: Any) -> Iterator[tuple[str, datetime]]:
    for each in fields(value):
        found = getattr(value, each.name)
        if isinstance(found, datetime):
            yield each.name, found
        elif isinstance(found, Struct):
            yield from times(found)


@pytest.mark.parametrize("cls", [Polling, PushRecord])
def test_no_time_of_a_stored_state_lies_farther_ahead_than_it_may(
    cls: type[Any],
) -> None:
    state = filled(cls, FAR)
    assert {time for _, time in times(state)} == {FAR}

    held = dict(times(capped_times(state, NOW, NO_TIME)))

    may_be = {"retry_after": LONGEST_RETRY_AFTER, "fresh_until": DAY}
    assert held == {name: NOW + may_be.get(name, NO_TIME) for name in held}
    assert len(held) >= 2


def test_a_state_without_a_time_ahead_is_left_as_it_is() -> None:
    state = filled(Polling, NOW)
    assert capped_times(state, NOW, NO_TIME) is state


def test_a_redirect_and_a_history_of_posts_have_been_as_well() -> None:
    state = Polling(
        redirect=Redirect(target="https://b.example/", sightings=1, first_seen=FAR),
        posting=Posting(at=FAR, since=NOW - DAY),
    )

    held = capped_times(state, NOW, NO_TIME)

    assert held.redirect == replace(state.redirect, first_seen=NOW)
    assert held.posting == Posting(at=NOW, since=NOW - DAY)


def feed(next_fetch: datetime, created_at: datetime = NOW, **polling: Any) -> FeedTimes:
    return FeedTimes(
        polling=Polling(**polling), created_at=created_at, next_fetch=next_fetch
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param(
            feed(FAR + HOUR, last_fetch=FAR), NOW + HOUR, id="asked ahead: its period"
        ),
        pytest.param(
            feed(FAR + 3 * DAY, last_fetch=FAR, retry_after=FAR + 3 * DAY),
            NOW + 3 * DAY,
            id="told ahead to wait: as long",
        ),
        pytest.param(feed(FAR, created_at=FAR), NOW, id="added ahead: at once"),
        pytest.param(
            feed(NOW + 2 * HOUR, last_fetch=NOW - HOUR),
            NOW,
            id="put off ahead: at once",
        ),
        pytest.param(
            feed(NOW + 3 * DAY, last_fetch=NOW, retry_after=NOW + 3 * DAY),
            NOW + 3 * DAY,
            id="told before to wait: not earlier",
        ),
        pytest.param(
            feed(NOW + 3 * DAY, last_fetch=NOW, fresh_until=NOW + DAY),
            NOW + 3 * DAY - 2 * HOUR,
            id="by whichever clock: earlier by the step",
        ),
        pytest.param(feed(NOW - HOUR), NOW - HOUR, id="due: stays due"),
        pytest.param(
            feed(FAR, last_fetch=NOW, retry_after=FAR),
            NOW + LONGEST_WAIT,
            id="never farther than any wait",
        ),
    ],
)
def test_a_feed_is_fetched_when_it_would_have_been_by_the_right_clock(
    times: FeedTimes, expected: datetime
) -> None:
    assert correct_times(times, NOW, 2 * HOUR).next_fetch == expected


def test_what_a_server_asked_for_is_as_long_as_it_was() -> None:
    times = feed(
        FAR + HOUR, last_fetch=FAR, last_success=FAR, fresh_until=FAR + 2 * HOUR
    )

    polling = correct_times(times, NOW, 2 * HOUR).polling

    assert (polling.last_fetch, polling.last_success) == (NOW, NOW)
    assert polling.fresh_until == NOW + 2 * HOUR
