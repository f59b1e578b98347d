from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hub.core.status.feed_health import events_of_fetch
from protocols.operational_events import EventType
from storage.records import (
    FeedState,
    FetchCommit,
    OperationalEvent,
    Polling,
    Redirect,
    StoredFeed,
)
from tests.support.fetch_targets import START, a_feed

FAILED = START - timedelta(minutes=5)
TARGET = "https://new.example/feed"
FAILING, RECOVERED, GONE, MOVED = (
    EventType.FEED_FAILING,
    EventType.FEED_RECOVERED,
    EventType.FEED_GONE,
    EventType.FEED_MOVED,
)


def failing(failures: int) -> Polling:
    if not failures:
        return Polling(code=200)
    return Polling(
        code=503, error="answered 503", failures=failures, failing_since=FAILED
    )


def commit(after: Polling, state: FeedState | None = None) -> FetchCommit:
    feed = a_feed()
    return FetchCommit(
        feed_id=feed.id, at=START, next_fetch=START, polling=after, state=state
    )


@pytest.mark.parametrize(
    ("before", "after", "state", "expected"),
    [
        (0, 0, None, []),
        (0, 1, None, []),
        (1, 0, None, []),
        (1, 2, None, [FAILING]),
        (2, 3, None, []),
        (2, 0, None, [RECOVERED]),
        (9, 0, None, [RECOVERED]),
        (1, 2, FeedState.GONE, [GONE]),
        (30, 31, FeedState.DEAD, [GONE]),
        (31, 0, FeedState.ACTIVE, [RECOVERED]),
        (0, 1, FeedState.REMOVED, []),
    ],
)
def test_a_feed_is_told_of_when_it_turns(
    before: int, after: int, state: FeedState | None, expected: list[EventType]
) -> None:
    feed = a_feed(polling=failing(before))
    found = events_of_fetch(feed, commit(failing(after), state))
    assert [each.type for each in found] == expected


def event(type: EventType, feed: StoredFeed, **more: object) -> OperationalEvent:
    members = {"at": START, "subject": feed.id, "url": feed.url, "since": FAILED}
    return OperationalEvent(type=type, **{**members, **more})


def test_an_event_says_since_when_and_why() -> None:
    feed = replace(a_feed(polling=failing(1)), private=True)
    (told,) = events_of_fetch(feed, commit(failing(2)))
    assert told == event(
        FAILING, feed, is_private=True, reason="answered 503", code=503
    )


def test_one_that_works_again_says_since_when_it_had_failed() -> None:
    feed = a_feed(polling=failing(2))
    (told,) = events_of_fetch(feed, commit(failing(0)))
    assert told == event(RECOVERED, feed, code=200)


def test_one_that_is_gone_says_why() -> None:
    feed = a_feed(polling=failing(1))
    (told,) = events_of_fetch(feed, commit(failing(2), FeedState.GONE))
    assert told.reason == "it answered 410 Gone twice in a row"


@pytest.mark.parametrize(
    ("watched", "before", "after", "is_told"),
    [
        (TARGET, "", TARGET, True),
        (TARGET, "https://former.example/", TARGET, True),
        (TARGET, "", "", False),  # not believed yet
        (TARGET, TARGET, TARGET, False),
        (TARGET, TARGET, "", False),  # lost again
        ("", "", "https://feed.example/version-1", False),  # no redirect led there
    ],
)
def test_a_feed_has_moved_when_its_redirect_is_believed(
    watched: str, before: str, after: str, is_told: bool
) -> None:
    redirect = Redirect(target=watched, sightings=3, first_seen=FAILED)
    known = Polling(fetch_url=before, redirect=redirect if watched else None)
    feed = a_feed(polling=known)

    found = events_of_fetch(feed, commit(Polling(fetch_url=after)))

    assert found == ((event(MOVED, feed, target=TARGET),) if is_told else ())


def test_one_that_moved_and_works_again_is_told_of_as_both() -> None:
    redirect = Redirect(target=TARGET, sightings=3, first_seen=FAILED)
    feed = a_feed(polling=replace(failing(2), redirect=redirect))
    found = events_of_fetch(feed, commit(Polling(code=200, fetch_url=TARGET)))
    assert [each.type for each in found] == [RECOVERED, MOVED]
