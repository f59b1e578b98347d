"""When a feed was paused, by what is known of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.status.feed_pauses import (
    FeedPause,
    PauseChange,
    change_of_plan,
    first_polls,
    pauses_of,
)
from storage.records import (
    Account,
    AccountId,
    BulkPlan,
    FeedFilter,
    FeedId,
    FeedState,
    PlanAction,
    PlanId,
    Poll,
    PollOutcome,
    PollReason,
    StoredFeed,
    SubscriptionFilter,
)
from tests.support.fetch_targets import a_feed

NOON = datetime(2026, 6, 2, 12, tzinfo=UTC)


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


FEED = replace(a_feed(), created_at=at(-9), turned_at=at(8))
PAUSED = replace(FEED, state=FeedState.PAUSED)


def paused(hours: float, *, is_sure: bool = True) -> PauseChange:
    return PauseChange(at=at(hours), is_pause=True, by="ann", is_sure=is_sure)


def resumed(hours: float) -> PauseChange:
    return PauseChange(at=at(hours), is_pause=False, by="bob")


def pause(since: float, until: float | None, *by: str) -> FeedPause:
    paused_by, resumed_by = (*by, "", "")[:2]
    return FeedPause(
        paused_at=at(since),
        paused_by=paused_by,
        resumed_at=None if until is None else at(until),
        resumed_by=resumed_by,
    )


@pytest.mark.parametrize(
    ("feed", "changes", "polled", "expected"),
    [
        (FEED, [], [1], []),
        (FEED, [resumed(2), paused(1)], [0, 1.01, 3], [pause(1, 2, "ann", "bob")]),
        (FEED, [paused(1), paused(1.5), resumed(2)], [], [pause(1, 2, "ann", "bob")]),
        (FEED, [resumed(1)], [], []),  # of a feed that was given up
        (FEED, [paused(1), resumed(5)], [3, 4], [pause(1, 3, "ann")]),
        (FEED, [paused(1)], [4, 3], [pause(1, 3, "ann")]),
        (FEED, [paused(1)], [], [pause(1, 8, "ann")]),
        (FEED, [paused(1, is_sure=False), resumed(2)], [], [pause(1, 2, "ann", "bob")]),
        (FEED, [paused(1, is_sure=False), resumed(5)], [3], []),
        (FEED, [paused(1, is_sure=False)], [], []),
        (
            FEED,
            [paused(0, is_sure=False), paused(1), resumed(2)],
            [0.5],
            [pause(1, 2, "ann", "bob")],
        ),
        (PAUSED, [paused(8)], [1], [pause(8, None, "ann")]),
        (PAUSED, [], [1], [pause(8, None)]),
    ],
)
def test_a_pause_lasts_until_somebody_resumes_the_feed_or_it_is_polled_by_its_schedule(
    feed: StoredFeed,
    changes: list[PauseChange],
    polled: list[float],
    expected: list[FeedPause],
) -> None:
    assert pauses_of(feed, changes, [at(each) for each in polled]) == expected


@pytest.mark.parametrize(
    ("each", "since", "until", "expected"),
    [
        (pause(1, 2), None, None, True),
        (pause(1, 2), at(1.5), at(3), True),
        (pause(1, 2), at(2), None, False),
        (pause(1, 2), None, at(1), False),
        (pause(1, None), at(5), None, True),
    ],
)
def test_a_pause_is_found_in_a_span_of_time_that_it_reaches_into(
    each: FeedPause, since: datetime | None, until: datetime | None, expected: bool
) -> None:
    assert each.overlaps(since, until) is expected


PLAN = BulkPlan(
    id=PlanId(7),
    account=Account(id=AccountId(1), name="ann"),
    action=PlanAction.PAUSE,
    wanted=FeedFilter(ids=(FEED.id,)),
    created_at=at(0),
    expires_at=at(1),
    confirmed_at=at(0.5),
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (True, True)),
        ({"action": PlanAction.RESUME, "wanted": FeedFilter()}, (False, False)),
        ({"confirmed_at": None}, None),
        ({"action": PlanAction.REMOVE}, None),
        ({"wanted": SubscriptionFilter()}, None),
        ({"wanted": FeedFilter(ids=(FeedId(99),))}, None),
        ({"created_at": at(-10)}, None),
    ],
)
def test_a_plan_may_have_paused_or_resumed_a_feed(
    changes: dict[str, object], expected: tuple[bool, bool] | None
) -> None:
    found = change_of_plan(replace(PLAN, **changes), FEED, "bob, plan 7")
    if expected is None:
        assert found is None
    else:
        assert found == PauseChange(
            at=at(0.5), is_pause=expected[0], by="bob, plan 7", is_sure=expected[1]
        )


def poll(hours: float, reason: PollReason = PollReason.PLANNED) -> Poll:
    return Poll(
        at=at(hours), reason=reason, outcome=PollOutcome.NEW, code=200, milliseconds=9
    )


@pytest.mark.parametrize(
    ("pauses", "polled", "expected"),
    [
        ([pause(1, 2)], [0.5, 2.5, 3], {2.5: pause(1, 2)}),
        ([pause(1, 2)], [0.5, 1.9999, 3], {1.9999: pause(1, 2)}),
        ([pause(1, 1.001)], [0.9999, 3], {3: pause(1, 1.001)}),
        ([pause(1, 2), pause(4, 5)], [3, 6], {3: pause(1, 2), 6: pause(4, 5)}),
        ([pause(1, 2)], [0.5], {}),
        ([pause(1, None)], [3], {}),
    ],
)
def test_the_first_poll_after_a_pause_is_known(
    pauses: list[FeedPause], polled: list[float], expected: dict[float, FeedPause]
) -> None:
    polls = [poll(2.2, PollReason.ASKED_FOR), *map(poll, reversed(polled))]
    found = first_polls(pauses, polls)
    assert found == {at(hours): each for hours, each in expected.items()}
