from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hub.ingest.committer import load_detector, name_languages
from protocols.feeds import ParseContext
from protocols.model import Entry, Feed, ParsedFeed
from storage.records import FetchCommit, Polling, PollReason
from tests.support.clock import ManualClock
from tests.support.documents import a_document
from tests.support.fake_fetcher import FakeFetcher
from tests.support.fetch_pipelines import a_pipeline
from tests.support.fetch_targets import START, a_feed, a_target
from tests.support.language_extra import LanguageIdentifier
from tests.support.polled import PolledStorage

GERMAN = "Laurel und Hardy " * 20


@pytest.fixture
def detector() -> LanguageIdentifier:
    return LanguageIdentifier()


def a_commit(*entries: Entry, head: Feed | None = None) -> FetchCommit:
    return FetchCommit(
        feed_id=a_feed().id,
        at=START,
        next_fetch=START,
        polling=Polling(),
        head=head,
        entries=entries,
    )


def a_titled_entry(title: str, language: str = "") -> Entry:
    return Entry(key=title, id=title, title=title, language=language)


def languages(commit: FetchCommit) -> list[str]:
    return [each.language for each in commit.entries]


async def test_what_does_not_say_its_language_is_guessed_if_it_is_sure(
    detector: LanguageIdentifier,
) -> None:
    commit = a_commit(
        a_titled_entry(GERMAN),
        a_titled_entry(GERMAN + "!", language="en"),
        a_titled_entry("short und sweet"),
        a_titled_entry("Laurel and Hardy " * 20),
        head=Feed(title="A feed"),
    )

    found = await name_languages(commit, detector)

    assert languages(found) == ["de", "en", "", ""]
    assert len(detector.asked) == 2
    assert found.entries[1:] == commit.entries[1:]


async def test_the_language_of_the_feed_counts_for_its_entries(
    detector: LanguageIdentifier,
) -> None:
    commit = a_commit(a_titled_entry(GERMAN), head=Feed(language="nl"))

    assert await name_languages(commit, detector) is commit
    assert detector.asked == []


async def test_without_entries_nothing_is_done(detector: LanguageIdentifier) -> None:
    nothing = a_commit()

    assert await name_languages(nothing, detector) is nothing


def test_without_the_extra_there_is_no_detector() -> None:
    assert load_detector("tests.support.not_installed") is None


def test_the_extra_is_loaded_with_the_model_that_comes_with_it() -> None:
    with capture_logs() as lines:
        detector = load_detector("tests.support.language_extra")

    assert detector is not None
    assert detector.classify("und " * 5) == ("de", 0.5)
    assert [each["event"] for each in lines] == ["language_detector_loaded"]


class GermanParser:
    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return a_document(a_titled_entry(GERMAN))


async def test_it_is_stored_with_the_fetch(detector: LanguageIdentifier) -> None:
    clock, storage = ManualClock(), PolledStorage()
    storage.put(a_feed())
    pipeline = a_pipeline(
        storage,
        storage,
        FakeFetcher(clock),
        GermanParser(),
        clock,
        detector=detector,
    )

    await pipeline.run(a_target(), PollReason.PLANNED)

    [commit] = storage.commits
    assert languages(commit) == ["de"]
