"""Where polls, posts and hours are drawn, and what is said of them in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.status.feed_pauses import FeedPause
from hub.core.status.feed_timeline import FeedTimeline, SeenPost, timeline
from hub.web.admin.feed_picture import SHAPES, draw_timeline, draw_week
from storage.records import EntryId, Poll, PollOutcome, PollReason

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def shown(*posts: SeenPost, hours: int = 2) -> FeedTimeline:
    """A poll at the beginning and another one halfway."""
    polls = [
        Poll(
            at=NOW - ago * HOUR,
            reason=PollReason.HELD_BACK,
            outcome=PollOutcome.NEW,
            code=200,
            milliseconds=20,
        )
        for ago in (hours, hours / 2)
    ]
    return timeline(polls, posts, NOW)


def a_post(published: float | None, committed: float) -> SeenPost:
    """Hours before now."""
    return SeenPost(
        entry_id=EntryId(1),
        title="News",
        published=None if published is None else NOW - published * HOUR,
        committed=NOW - committed * HOUR,
    )


def test_polls_stand_where_they_were_made_and_say_why() -> None:
    drawn = draw_timeline(shown())
    assert [mark.x for mark in drawn.polls] == [60, 465]
    assert {mark.words for mark in drawn.polls} == {"new, held back"}


@pytest.mark.parametrize(
    ("post", "places", "is_earlier", "words"),
    [
        (a_post(1.5, 1), (262.5, 465), False, "seen 30 min after its publication"),
        (a_post(8, 1), (60, 465), True, "seen 7 h after its publication"),
        (a_post(None, 1), (465, 465), False, "seen, without a believable date"),
    ],
)
def test_a_post_leads_from_its_publication_to_where_it_was_seen(
    post: SeenPost, places: tuple[float, float], is_earlier: bool, words: str
) -> None:
    (mark,) = draw_timeline(shown(post)).posts
    assert (mark.x, mark.seen_x) == places
    assert (mark.is_earlier, mark.words) == (is_earlier, words)


@pytest.mark.parametrize(
    ("hours", "count", "is_in_days"),
    [(2, 4, False), (24, 4, False), (24 * 6, 6, True), (24 * 90, 3, True)],
)
def test_the_axis_has_round_times(hours: int, count: int, is_in_days: bool) -> None:
    drawn = draw_timeline(shown(hours=hours))
    assert len(drawn.ticks) == count
    assert drawn.is_in_days == is_in_days
    times = [each.at for each in drawn.ticks]
    assert all(at.minute % 15 == at.second == 0 for at in times)


def test_a_sentence_has_the_numbers_of_the_picture() -> None:
    posts = a_post(1.5, 1), a_post(1, 0.75), a_post(None, 0.5)
    assert draw_timeline(shown(*posts)).sentence == (
        "2 polls and 3 new entries in the last 2 h; of the 2 with a believable date"
        " half were seen within 15 min of their publication, all within 30 min."
    )
    first = replace(shown().polls[0], outcome=PollOutcome.FIRST, entries=20)
    drawn = draw_timeline(timeline([first], (), NOW))
    assert drawn.sentence == (
        "1 poll and 0 new entries in the last 2 h, besides what the first poll found"
        " (20)."
    )
    assert draw_timeline(shown()).sentence == (
        "2 polls and 0 new entries in the last 2 h."
    )


@pytest.mark.parametrize(
    ("paused", "resumed", "place", "words"),
    [
        (1.5, 0.5, (262.5, 405, True), "paused for 1 h, by ann, resumed by bob"),
        (9, 1.5, (60, 202.5, True), "paused for 7 h 30 min, by ann, resumed by bob"),
        (0.05, 0.04, (849.8, 4, False), "paused for 36 s, by ann, resumed by bob"),
        (0.01, 0.009, (866, 3, False), "paused for 3.6 s, by ann, resumed by bob"),
        (0.5, None, (667.5, 202.5, True), "paused, so far for 30 min, by ann"),
    ],
)
def test_a_pause_is_a_band_with_who_paused_and_resumed(
    paused: float, resumed: float | None, place: tuple[float, float, bool], words: str
) -> None:
    pause = FeedPause(
        paused_at=NOW - paused * HOUR,
        paused_by="ann",
        resumed_at=None if resumed is None else NOW - resumed * HOUR,
        resumed_by="" if resumed is None else "bob",
    )
    lanes = draw_timeline(replace(shown(), pauses=(pause,)))
    [band] = lanes.pauses
    assert (band.x, band.width, band.is_named) == place
    assert band.words == words
    assert lanes.sentence.endswith("in the last 2 h, in which it was paused once.")


def test_outcomes_are_told_apart_by_more_than_colour() -> None:
    assert set(SHAPES) == set(PollOutcome)
    good = {SHAPES[each] for each in (PollOutcome.NEW, PollOutcome.UNCHANGED)}
    assert SHAPES[PollOutcome.FAILED] not in good
    assert SHAPES[PollOutcome.FIRST] not in good


def test_hours_are_the_stronger_the_more_is_expected_against_the_mean() -> None:
    week = [[1.0] * 24 for _ in range(7)]
    week[1][9], week[6][23], week[0][0] = 9.0, 2.0, 0.0
    drawn = {(cell.day, cell.hour): cell for cell in draw_week(week)}
    places = (1, 9), (6, 23), (3, 3), (0, 0)
    assert [drawn[place].level for place in places] == [5, 3, 2, 0]
    assert drawn[1, 9].words == "Tue 09:00 UTC: 9 entries"


def test_nothing_is_expected_of_a_feed_that_never_posts() -> None:
    assert {cell.level for cell in draw_week([[0.0] * 24] * 7)} == {0}
