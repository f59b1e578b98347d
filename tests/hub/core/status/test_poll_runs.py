"""Polls that are alike are one row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hub.core.status.feed_timeline import runs_of
from storage.records import Poll, PollOutcome, PollReason

NOON = datetime(2026, 6, 2, 12, tzinfo=UTC)
ASKED, PLANNED = PollReason.ASKED_FOR, PollReason.PLANNED


def polls(reason: PollReason, count: int, entries: int = 0) -> list[tuple[Poll, str]]:
    return [
        (
            Poll(
                at=NOON - number * timedelta(seconds=1),
                reason=reason,
                outcome=PollOutcome.UNCHANGED,
                code=200,
                milliseconds=10 * number,
                entries=entries,
            ),
            "operator by cli" if reason is ASKED else "",
        )
        for number in range(count)
    ]


def test_three_of_the_same_reason_outside_the_schedule_without_entries_are_a_run() -> (
    None
):
    given = polls(ASKED, 3) + polls(PLANNED, 3) + polls(ASKED, 2) + polls(ASKED, 3, 1)

    runs = list(runs_of(given))

    assert [len(each.polls) for each in runs] == [3] + [1] * 8
    assert (runs[0].latest, runs[0].earliest) == (given[0][0], given[2][0])
    assert (runs[0].longest, runs[0].asked_by) == (20, "operator by cli")
