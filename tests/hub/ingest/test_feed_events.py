"""What is logged of feeds: a sentence for each turn, with their URLs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.ingest.committer import Committer
from hub.runtime.metrics import Metrics
from protocols.model import Status
from storage.records import (
    FeedState,
    FetchCommit,
    Polling,
    RecordKind,
    RecordWrite,
    Stored,
)
from tests.support.clock import ManualClock
from tests.support.fetch_targets import a_feed, a_target

URL = "https://news.example/feed?key=geheim"
SHOWN = "https://news.example/feed?…"
START = ManualClock().now()
FAILING = Polling(failures=3, error="HTTP 500", failing_since=START)


class AnyLog:
    async def commit(self, commit: FetchCommit) -> Stored:
        return Stored((), 1)


def commit_of(polling: Polling, **more: object) -> FetchCommit:
    at = START + timedelta(hours=2)
    terms: dict[str, object] = {"next_fetch": at + timedelta(minutes=5), **more}
    return FetchCommit(feed_id=1, at=at, polling=polling, **terms)  # type: ignore[arg-type]


def news(kind: RecordKind, count: int) -> RecordWrite:
    entries = tuple((f"key-{number}", True) for number in range(count))
    return RecordWrite(kind=kind, status=Status(code=200), entries=entries)


async def told(
    before: Polling, commit: FetchCommit, *, private: bool = False
) -> list[tuple[str, str]]:
    feed = replace(a_feed(1, URL), polling=before, private=private)
    committer = Committer(
        log=AnyLog(),  # type: ignore[arg-type]  # all that is asked of it here
        clock=ManualClock(),
        metrics=Metrics(),
    )
    with capture_logs() as lines:
        await committer.commit(a_target(feed), commit, commit.at)
    assert all(line["feed"] == 1 for line in lines)
    return [(line["kind"], line["event"]) for line in lines]


@pytest.mark.parametrize(
    ("before", "commit", "line"),
    [
        (
            Polling(),
            commit_of(replace(FAILING, failures=1)),
            ("feed_failing", f"{SHOWN} began to fail: HTTP 500; polled again in 5 min"),
        ),
        (
            FAILING,
            commit_of(Polling()),
            ("feed_recovered", f"{SHOWN} works again after 2 h"),
        ),
        (
            FAILING,
            commit_of(FAILING, state=FeedState.DEAD),
            (
                "feed_stopped",
                f"{SHOWN} is no longer polled: it answered nothing but 404 for days",
            ),
        ),
        (
            Polling(),
            commit_of(Polling(), records=(news(RecordKind.ENTRIES, 2),)),
            ("news", f"{SHOWN} has 2 new entries"),
        ),
        (
            Polling(),
            commit_of(Polling(), records=(news(RecordKind.BASELINE, 1),)),
            ("news", f"{SHOWN} was fetched for the first time, with 1 entry"),
        ),
    ],
)
async def test_each_turn_of_a_feed_is_a_sentence(
    before: Polling, commit: FetchCommit, line: tuple[str, str]
) -> None:
    assert await told(before, commit) == [line]


async def test_a_feed_that_goes_on_failing_or_working_is_no_line() -> None:
    further = commit_of(replace(FAILING, failures=4))
    assert await told(FAILING, further) == []
    assert await told(Polling(), commit_of(Polling())) == []


async def test_of_a_private_feed_only_the_host_is_named() -> None:
    ((_, sentence),) = await told(FAILING, commit_of(Polling()), private=True)
    assert sentence == "a private feed of news.example works again after 2 h"
