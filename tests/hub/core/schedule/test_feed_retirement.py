"""When a feed that is not there any more is given up, and what brings it back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.schedule.feed_retirement import (
    Absence,
    absence_after,
    state_after_absence,
)
from hub.core.schedule.poll_period import PollingRules
from storage.records import FeedState, StoredFeed
from tests.support.fetch_targets import START, a_feed, an_answer

DAY = timedelta(days=1)
RULES = PollingRules(gone_sightings=2, dead_sightings=5, dead_after=7 * 86_400)


def answered(status: int, at: datetime = START) -> Fetched:
    return an_answer(status, at=at)


def after(feed: StoredFeed, *statuses: int, every: timedelta = DAY) -> StoredFeed:
    """The feed once it was answered so, the first time at the start."""
    for number, status in enumerate(statuses):
        at = START + number * every
        absence = absence_after(feed, answered(status, at), RULES)
        polling = replace(
            feed.polling,
            last_fetch=at,
            gone_sightings=absence.gone,
            missing_sightings=absence.missing,
            missing_since=absence.since,
        )
        state = state_after_absence(feed.state, absence, at, RULES)
        feed = replace(feed, polling=polling, state=state or feed.state)
    return feed


def absence_of(feed: StoredFeed) -> Absence:
    return Absence(
        gone=feed.polling.gone_sightings,
        missing=feed.polling.missing_sightings,
        since=feed.polling.missing_since,
    )


def test_a_404_is_counted_from_the_first_of_them() -> None:
    assert absence_of(after(a_feed(), 404, 404)) == Absence(missing=2, since=START)


@pytest.mark.parametrize("status", [0, 200, 403, 429, 500, 503])
def test_any_other_answer_starts_the_count_anew(status: int) -> None:
    assert absence_of(after(a_feed(), 404, 410, status)) == Absence()


def test_it_takes_days_of_404_until_a_feed_is_dead() -> None:
    assert after(a_feed(), *[404] * 7).state is FeedState.ACTIVE
    assert after(a_feed(), *[404] * 8).state is FeedState.DEAD


def test_many_404_within_a_day_are_no_death() -> None:
    feed = after(a_feed(), *[404] * 100, every=timedelta(minutes=1))
    assert feed.state is FeedState.ACTIVE


def test_few_404_over_many_days_are_no_death() -> None:
    feed = after(a_feed(), *[404] * 4, every=30 * DAY)
    assert feed.state is FeedState.ACTIVE


def test_a_410_counts_among_the_404() -> None:
    assert after(a_feed(), *[410, 404] * 4).state is FeedState.DEAD


def test_two_410_in_a_row_are_enough() -> None:
    assert after(a_feed(), 410).state is FeedState.ACTIVE
    assert after(a_feed(), 410, 410).state is FeedState.GONE
    assert after(a_feed(), 410, 404, 410).state is FeedState.ACTIVE


@pytest.mark.parametrize("status", [404, 410])
def test_the_target_of_a_redirect_says_nothing_of_the_feed(status: int) -> None:
    moved = a_feed()
    moved = replace(moved, polling=replace(moved.polling, fetch_url="https://new/"))
    assert absence_after(moved, answered(status), RULES) == Absence()


@pytest.mark.parametrize(
    ("statuses", "state"), [([404] * 8, FeedState.DEAD), ([410] * 2, FeedState.GONE)]
)
def test_a_feed_that_was_brought_back_is_believed_anew(
    statuses: list[int], state: FeedState
) -> None:
    stopped = after(a_feed(), *statuses)
    assert stopped.state is state
    back = replace(stopped, state=FeedState.ACTIVE)
    later = START + 60 * DAY

    absence = absence_after(back, answered(statuses[0], later), RULES)

    assert (absence.missing, absence.since) == (1, later)
    assert state_after_absence(back.state, absence, later, RULES) is None


@pytest.mark.parametrize(
    "state", [FeedState.PAUSED, FeedState.GONE, FeedState.DEAD, FeedState.REMOVED]
)
def test_only_an_active_feed_is_given_up(state: FeedState) -> None:
    assert after(a_feed(state=state), *[404] * 20).state is state
    assert after(a_feed(state=state), *[410] * 20).state is state
