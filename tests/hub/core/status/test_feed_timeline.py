"""A feed's polls against its posts, and the week that is expected."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hub.core.schedule.forecast import foresee
from hub.core.schedule.posting_profile import prior_of, with_posts
from hub.core.status.feed_pauses import FeedPause
from hub.core.status.feed_timeline import (
    SeenPost,
    expected_week,
    has_known_hours,
    timeline,
)
from storage.records import EntryId, Poll, PollOutcome, PollReason, Posting

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)  # a Monday
MINUTE = timedelta(minutes=1)


def a_poll(minutes_ago: int) -> Poll:
    return Poll(
        at=NOW - minutes_ago * MINUTE,
        reason=PollReason.PLANNED,
        outcome=PollOutcome.UNCHANGED,
        code=304,
        milliseconds=20,
    )


def a_post(minutes_ago: int, *, late: int | None = 1) -> SeenPost:
    """``late``: minutes from its publication to its commit; None: it has no date."""
    committed = NOW - minutes_ago * MINUTE
    return SeenPost(
        entry_id=EntryId(minutes_ago),
        title="News",
        published=None if late is None else committed - late * MINUTE,
        committed=committed,
    )


def test_a_timeline_goes_from_the_first_of_the_polls_until_now() -> None:
    shown = timeline([a_poll(5), a_poll(30)], [a_post(4), a_post(31), a_post(29)], NOW)
    assert (shown.since, shown.until) == (NOW - 30 * MINUTE, NOW)
    assert [poll.at for poll in shown.polls] == [NOW - 30 * MINUTE, NOW - 5 * MINUTE]
    assert [post.entry_id for post in shown.posts] == [29, 4]


def test_a_timeline_has_the_pauses_that_reach_into_it() -> None:
    over, within, open_one = (
        FeedPause(
            paused_at=NOW - begin * MINUTE,
            paused_by="",
            resumed_at=None if end is None else NOW - end * MINUTE,
            resumed_by="",
        )
        for begin, end in ((50, 40), (40, 20), (5, None))
    )
    shown = timeline([a_poll(30)], [], NOW, [over, within, open_one])
    assert shown.pauses == (within, open_one)


def test_without_polls_there_is_nothing_to_show() -> None:
    shown = timeline([], [a_post(1)], NOW)
    assert (shown.since, shown.until, shown.polls, shown.posts) == (NOW, NOW, (), ())


@pytest.mark.parametrize(
    ("late", "delay"),
    [
        (3, timedelta(minutes=3)),
        (0, timedelta()),
        pytest.param(None, None, id="no date"),
        pytest.param(-1, None, id="a date in the future"),
        pytest.param(7 * 24 * 60 + 1, None, id="a date of more than a week ago"),
    ],
)
def test_the_delay_of_a_post_is_from_its_publication_to_its_commit(
    late: int | None, delay: timedelta | None
) -> None:
    assert a_post(1, late=late).delay == delay


def test_a_week_expects_what_the_feed_posts_at_the_hours_of_its_habits() -> None:
    posting = Posting()
    first = NOW - timedelta(weeks=30)
    for day in range(30 * 7):
        at = first + timedelta(days=day)
        posting = with_posts(posting, [at.timestamp()], at)

    forecast = foresee(posting, prior_of([]), NOW)
    week = expected_week(forecast)

    assert [len(hours) for hours in week] == [24] * 7
    assert sum(map(sum, week)) == pytest.approx(7 * forecast.per_day, rel=0.01)
    busiest = [hours.index(max(hours)) for hours in map(list, week)]
    assert busiest == [12] * 7


@pytest.mark.parametrize(
    ("posts", "watched", "is_known"),
    [
        (0, 30, False),
        (2, 30, False),
        pytest.param(12, 30, True, id="enough"),
        pytest.param(12, 0, False, id="all of today"),
    ],
)
def test_its_hours_are_known_of_a_feed_that_has_posted_enough_for_days(
    posts: int, watched: int, is_known: bool
) -> None:
    began = NOW - timedelta(days=watched)
    times = [(began + (NOW - began) / 13 * each).timestamp() for each in range(posts)]
    posting = with_posts(Posting(since=began), times, NOW)
    assert has_known_hours(posting, NOW) is is_known
