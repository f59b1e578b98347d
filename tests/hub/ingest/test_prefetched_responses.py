from __future__ import annotations

from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from hub.ingest import prefetched_responses
from hub.ingest.fetcher import FetchRequest
from hub.ingest.prefetched_responses import PrefetchedResponses
from storage.records import Credentials, Validators
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher
from tests.support.fetch_targets import an_answer

URL = "http://host.example/feed"
SEEN = an_answer(200, b"seen already")
NEWER = an_answer(200, b"seen a little later")
ASKED = an_answer(200, b"asked for")
REQUEST = FetchRequest(url=URL, user_agent="Fanfare")
POLL = replace(REQUEST, subscribers=0)


def an_origin() -> FakeFetcher:
    return FakeFetcher(ManualClock(), lambda request: ASKED)


async def test_an_answer_that_is_there_is_taken_once_and_not_asked_for() -> None:
    origin = an_origin()
    fetcher = PrefetchedResponses(origin)

    with fetcher.provide("HTTP://HOST.example/feed#top", SEEN):
        assert await fetcher.fetch(REQUEST) is SEEN
        assert origin.requests == []
        assert (await fetcher.fetch(REQUEST)).body == ASKED.body


async def test_what_was_not_taken_is_forgotten() -> None:
    fetcher = PrefetchedResponses(an_origin())

    with fetcher.provide(URL, SEEN):
        pass

    assert (await fetcher.fetch(REQUEST)).body == ASKED.body


async def test_without_an_answer_the_server_is_asked() -> None:
    fetcher = PrefetchedResponses(an_origin())

    with fetcher.provide(URL, None):
        assert (await fetcher.fetch(REQUEST)).body == ASKED.body


@pytest.mark.parametrize(
    "request_",
    [
        replace(REQUEST, url=f"{URL}/other"),
        replace(REQUEST, validators=Validators(url=URL, etag='"1"')),
        replace(REQUEST, credentials=Credentials(username="ann")),
    ],
)
async def test_another_request_is_made_all_the_same(request_: FetchRequest) -> None:
    fetcher = PrefetchedResponses(an_origin())

    with fetcher.provide(URL, SEEN):
        assert (await fetcher.fetch(request_)).body == ASKED.body


async def test_what_waits_to_be_taken_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetched_responses, "MOST_BYTES", len(SEEN.body))
    fetcher = PrefetchedResponses(an_origin())
    other = replace(REQUEST, url=f"{URL}/other")

    with fetcher.provide(URL, SEEN), fetcher.provide(other.url, SEEN):
        assert (await fetcher.fetch(other)).body == ASKED.body
        assert await fetcher.fetch(REQUEST) is SEEN
    with fetcher.provide(other.url, SEEN):
        assert await fetcher.fetch(other) is SEEN


@pytest.mark.parametrize(
    "request_",
    [
        POLL,
        replace(POLL, validators=Validators(url=URL, etag='"1"')),
        replace(POLL, credentials=Credentials(username="ann")),
    ],
)
async def test_what_a_publisher_brought_answers_any_poll_once(
    request_: FetchRequest,
) -> None:
    fetcher = PrefetchedResponses(an_origin())

    with fetcher.provide_pushed(URL, SEEN) as is_taken:
        assert not is_taken()
        assert fetcher.is_pushed(f"{URL}#top")
        assert await fetcher.fetch(request_) is SEEN
        assert is_taken()
        assert not fetcher.is_pushed(URL)
        assert (await fetcher.fetch(request_)).body == ASKED.body


async def test_who_looks_what_a_stranger_is_shown_is_not_answered_with_it() -> None:
    fetcher = PrefetchedResponses(an_origin())

    with fetcher.provide_pushed(URL, SEEN) as is_taken:
        assert (await fetcher.fetch(REQUEST)).body == ASKED.body
        assert not is_taken()


async def test_what_was_brought_and_not_taken_is_forgotten() -> None:
    fetcher = PrefetchedResponses(an_origin())

    with fetcher.provide_pushed(URL, SEEN) as is_taken:
        assert not is_taken()

    assert (await fetcher.fetch(REQUEST)).body == ASKED.body


async def test_what_is_brought_is_bounded_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetched_responses, "MOST_BYTES", len(SEEN.body))
    fetcher = PrefetchedResponses(an_origin())
    other = f"{URL}/other"

    with (
        fetcher.provide_pushed(URL, SEEN),
        fetcher.provide_pushed(other, SEEN) as is_taken,
    ):
        assert (await fetcher.fetch(replace(REQUEST, url=other))).body == ASKED.body
        assert not is_taken()


async def test_one_that_ends_takes_no_later_answer_with_it() -> None:
    fetcher = PrefetchedResponses(an_origin())
    earlier, later = fetcher.provide(URL, SEEN), fetcher.provide(URL, NEWER)

    with ExitStack() as stack:
        with earlier:
            stack.enter_context(later)
        assert await fetcher.fetch(REQUEST) is NEWER
