"""What changes in a watched list, and when it is read again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hub.core.schedule.poll_period import JITTER
from hub.core.watched_lists import ListChanges, changes_of, next_reading
from protocols.opml import ListedFeed
from storage.records import WatchedFate, WatchedFeed
from tests.support.fetch_targets import START, an_answer

HOUR, DAY = 3_600.0, 86_400.0


def known(
    name: str, category: str = "", fate: WatchedFate = WatchedFate.ADDED
) -> WatchedFeed:
    return WatchedFeed(url=f"https://{name}.example/", category=category, fate=fate)


def listed(name: str, category: str = "") -> ListedFeed:
    return ListedFeed(url=f"https://{name}.example/", category=category)


def compare(
    before: list[WatchedFeed], now: list[ListedFeed], **more: bool
) -> ListChanges:
    terms = {"is_whole": True, "is_confirmed": False, **more}
    return changes_of(before, now, **terms)


def test_feeds_appear_leave_and_go_to_other_folders() -> None:
    stays, moves, leaves = known("a"), known("b", "news"), known("c")

    changes = compare(
        [stays, moves, leaves], [listed("A"), listed("b", "sport"), listed("d")]
    )

    assert changes == ListChanges(
        added=(listed("d"),), moved=((moves, "sport"),), left=(leaves,)
    )


@pytest.mark.parametrize(
    ("fate", "is_added"),
    [
        (WatchedFate.PENDING, True),
        (WatchedFate.REFUSED, True),
        (WatchedFate.ADDED, False),
        (WatchedFate.KNOWN, False),
        (WatchedFate.CATEGORIZED, False),
    ],
)
def test_what_was_not_added_is_tried_again(fate: WatchedFate, is_added: bool) -> None:
    """In the folder where it is now, which is no move."""
    changes = compare([known("a", fate=fate)], [listed("a", "sport")])

    assert bool(changes.added) == is_added
    assert bool(changes.moved) != is_added


def test_nothing_leaves_a_list_with_gaps() -> None:
    before = [known(name) for name in "abcd"]

    assert compare(before, [listed("a"), listed("b"), listed("c")], is_whole=False) == (
        ListChanges()
    )


def test_more_than_half_leave_only_when_that_is_said_twice() -> None:
    before = [known(name) for name in "abcd"]

    assert compare(before, [listed("a"), listed("b")]).left == tuple(before[2:])
    doubted = compare(before, [listed("a")])
    assert (doubted.left, doubted.doubt) == ((), "3 of its 4 feeds are missing")
    assert compare(before, [listed("a")], is_confirmed=True).left == tuple(before[1:])


@pytest.mark.parametrize(
    ("status", "headers", "failures", "seconds"),
    [
        (200, {}, 0, HOUR),
        (304, {}, 0, HOUR),
        (500, {}, 1, HOUR),
        (500, {}, 5, 9_600),
        (404, {}, 1, HOUR),
        (404, {}, 9, DAY),
        (200, {"cache_control": "max-age=7200"}, 0, 7_200),
        (200, {"cache_control": "max-age=60"}, 0, HOUR),
        (200, {"cache_control": "max-age=999999"}, 0, DAY),
        (429, {"retry_after": "9000"}, 1, 9_000),
        (503, {"retry_after": "99999999"}, 1, 7 * DAY),
    ],
)
def test_a_list_is_read_again_by_the_hour_or_less_often(
    status: int, headers: dict[str, str], failures: int, seconds: float
) -> None:
    fetched = replace(an_answer(status), at=START, **headers)

    due = next_reading(fetched, failures, HOUR, -1.0)

    assert (due - START).total_seconds() == seconds


def test_lists_are_not_all_read_at_the_same_moment() -> None:
    fetched = replace(an_answer(200), at=START)

    latest = next_reading(fetched, 0, HOUR, 1.0)

    assert (latest - START).total_seconds() == HOUR * (1 + JITTER)
