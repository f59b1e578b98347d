"""A document of a version that nobody here reads, and an older one beside it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FetchRequest
from protocols.feeds import ParseContext, parse
from protocols.model import ParsedFeed
from storage.records import FeedId, FetchCommit, PollReason
from tests.support.clock import ManualClock
from tests.support.creator import a_creator_feed
from tests.support.fake_fetcher import FakeFetcher
from tests.support.fetch_pipelines import a_pipeline
from tests.support.fetch_targets import a_feed, an_answer
from tests.support.polled import PolledStorage

SITE = "https://mara.example"


class RealParser:
    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return parse(body, context)


async def visit(
    documents: dict[str, object], feed: str = "/feed.json", fetch_url: str = ""
) -> tuple[FetchCommit, list[str]]:
    """One visit to a site of these documents; its commit, and the paths asked for."""

    def answer(request: FetchRequest) -> Fetched:
        document = documents.get(request.url.removeprefix(SITE))
        if document is None:
            return an_answer(404)
        body = json.dumps(document).encode()
        return replace(an_answer(200, body), url=request.url, etag='"a"')

    storage, clock = PolledStorage(), ManualClock()
    known = a_feed(1, SITE + feed)
    storage.put(replace(known, polling=replace(known.polling, fetch_url=fetch_url)))
    fetcher = FakeFetcher(clock, answers=answer)
    pipeline = a_pipeline(storage, storage, fetcher, RealParser(), clock)
    await pipeline.run(storage.known[FeedId(1)], PollReason.PLANNED)
    return storage.commits[-1], [url.removeprefix(SITE) for url in fetcher.urls]


LATER = a_creator_feed("a", "b", version=2)


RENAMED = a_creator_feed(version=2, items=..., entries=[])


@pytest.mark.parametrize("later", [LATER, RENAMED], ids=["same shape", "renamed"])
async def test_the_older_one_is_read_and_asked_for_from_then_on(later: object) -> None:
    commit, asked = await visit(
        {"/feed.json": later, "/feed.v1.json": a_creator_feed("a")}
    )

    assert asked == ["/feed.json", "/feed.v1.json"]
    assert commit.polling.fetch_url == f"{SITE}/feed.v1.json"
    assert commit.polling.validators is not None
    assert commit.polling.validators.url == f"{SITE}/feed.v1.json"
    assert (commit.polling.error, commit.polling.entry_count) == ("", 1)


@pytest.mark.parametrize("older", [None, LATER, {"a": 1}])
async def test_without_one_that_can_be_read_the_later_one_is_an_error(
    older: object,
) -> None:
    commit, asked = await visit({"/feed.json": LATER, "/feed.v1.json": older})

    assert asked == ["/feed.json", "/feed.v1.json"]
    assert commit.polling.error == "version 2 of feed.json is not supported"
    assert commit.polling.fetch_url == ""


async def test_a_version_that_cannot_be_read_is_asked_for_whole_the_next_time() -> None:
    """Unchanged as it is, an older one may stand beside it by then."""
    commit, _ = await visit({"/feed.json": LATER})

    assert commit.polling.validators is None


async def test_none_is_looked_for_beside_what_should_be_the_older_one() -> None:
    commit, asked = await visit({"/feed.v1.json": LATER}, "/feed.v1.json")

    assert asked == ["/feed.v1.json"]
    assert commit.polling.error == "version 2 of feed.json is not supported"
