"""What a publisher brings along adds to its feed, and says nothing of its server."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from msgspec import structs
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.seen_set import KEPT_DAYS
from hub.core.schedule.poll_period import PollingRules
from protocols.feeds import ParseContext, parse
from protocols.model import Feed, FeedFormat, ParsedFeed
from protocols.protocol_errors import EmptyDocument, FeedError
from storage.records import FeedState, FetchCommit, FetchTarget, PollReason, RecordKind
from tests.support import creator
from tests.support.documents import a_document, entries_named
from tests.support.fetch_targets import START, a_feed, a_target, an_answer

HUBS = '<https://hub.example/>; rel="hub", <https://check.example/>; rel="validate"'
HOUR = timedelta(hours=1)


@dataclass
class Story:
    """A feed that is polled, and to which content is brought."""

    target: FetchTarget = field(default_factory=a_target)
    at: datetime = START

    def poll(self, document: ParsedFeed | None, after: timedelta = HOUR) -> FetchCommit:
        body = repr(document).encode()
        fetched = replace(an_answer(200, body, etag='"1"'), link=HUBS)
        return self._decide(fetched, ParseOutcome(feed=document), after)

    def fail(self, after: timedelta = HOUR) -> FetchCommit:
        return self._decide(an_answer(500), ParseOutcome(), after)

    def bring(
        self,
        document: ParsedFeed | None,
        *,
        error: FeedError | None = None,
        after: timedelta = timedelta(minutes=1),
    ) -> FetchCommit:
        body = f"brought {document!r}".encode()
        fetched = replace(an_answer(200, body), is_partial=True)
        return self._decide(fetched, ParseOutcome(feed=document, error=error), after)

    def _decide(
        self, fetched: Fetched, understood: ParseOutcome, after: timedelta
    ) -> FetchCommit:
        self.at += after
        commit = decide(
            Decision(
                target=self.target,
                fetched=replace(fetched, at=self.at, started=self.at),
                understood=understood,
                rules=PollingRules(),
                jitter=0.0,
                reason=PollReason.PINGED,
            )
        )
        self._apply(commit)
        return commit

    def _apply(self, commit: FetchCommit) -> None:
        before = self.target
        feed = replace(
            before.feed,
            polling=commit.polling,
            next_fetch=commit.next_fetch,
            state=commit.state or before.feed.state,
            title=before.feed.title if commit.title is None else commit.title,
            format=before.feed.format if commit.format is None else commit.format,
        )
        self.target = replace(
            before,
            feed=feed,
            seen=before.seen if commit.seen is None else commit.seen,
            slices=before.slices if commit.slices is None else commit.slices,
            inventory=before.inventory
            if commit.inventory is None
            else commit.inventory,
        )


def a_story_of(*keys: str) -> Story:
    story = Story()
    story.poll(a_document(*entries_named(*keys)))
    return story


def read_in_slices(*keys: str) -> ParsedFeed:
    items = "".join(f"<item><guid>{key}</guid></item>" for key in keys)
    body = f"<rss version='2.0'><channel>{items}</channel></rss>"
    context = ParseContext(url="https://feed.example/feed", now=START, known=b"")
    return parse(body.encode(), context)


def kinds(commit: FetchCommit) -> list[RecordKind]:
    return [record.kind for record in commit.records]


def test_it_tells_the_new_entries() -> None:
    commit = a_story_of("a").bring(a_document(*entries_named("b")))

    (record,) = commit.records
    assert (record.kind, record.entries) == (RecordKind.ENTRIES, (("b", True),))


def test_it_is_not_the_whole_list_of_a_format_that_lists_all() -> None:
    story = Story()
    slugs = ("one", "two", "three", "four")
    story.poll(creator.read(creator.a_creator_feed(*slugs)))

    commit = story.bring(creator.read(creator.a_creator_feed("new", *slugs[1:])))

    assert kinds(commit) == [RecordKind.ENTRIES]
    assert commit.raw is None
    later = story.poll(creator.read(creator.a_creator_feed("new", *slugs[1:])))
    assert kinds(later) == [RecordKind.DELETED]


def test_what_need_not_be_read_again_stays_known() -> None:
    story = Story()
    story.poll(read_in_slices("a", "b"))

    assert story.target.slices
    assert story.bring(read_in_slices("c")).slices is None


def test_what_is_known_of_the_server_stays() -> None:
    story = a_story_of("a")
    before = story.target.feed.polling
    assert (before.hubs, before.validator) == (
        ("https://hub.example/",),
        "https://check.example/",
    )
    assert before.validators is not None

    after = story.bring(a_document(*entries_named("b"))).polling

    for name in ("hubs", "validator", "validators", "last_fetch", "last_success"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.last_parse == story.at


def test_polls_go_on_as_they_were_planned() -> None:
    story = a_story_of("a")
    planned = story.target.feed.next_fetch

    just_before = planned - story.at - timedelta(seconds=1)
    story.bring(a_document(*entries_named("b")), after=just_before)

    assert story.target.feed.next_fetch == planned


def test_the_head_that_is_known_stays_and_one_that_is_not_is_taken() -> None:
    brought = structs.replace(
        a_document(*entries_named("b"), format=FeedFormat.ATOM),
        feed=Feed(title="A bare ping", unlisted=True),
    )
    known, unknown = a_story_of("a").bring(brought), Story().bring(brought)

    assert (known.head, known.title, known.format) == (None, None, None)
    assert (known.polling.entry_count, known.polling.unlisted) == (1, False)
    assert unknown.head is not None
    assert unknown.head.title == unknown.title == "A bare ping"
    assert unknown.format == FeedFormat.ATOM


def test_a_failing_feed_has_not_recovered_by_it() -> None:
    story = a_story_of("a")
    story.fail()

    commit = story.bring(a_document(*entries_named("b")))

    assert kinds(commit) == [RecordKind.ENTRIES]
    assert (commit.polling.failures, commit.polling.code) == (1, 500)
    assert kinds(story.poll(a_document(*entries_named("b")))) == [RecordKind.RECOVERED]


def test_a_feed_that_was_given_up_stays_so() -> None:
    story = a_story_of("a")
    story.fail()
    story.target = replace(
        story.target, feed=replace(story.target.feed, state=FeedState.GONE)
    )

    commit = story.bring(a_document(*entries_named("b")))

    assert (kinds(commit), commit.state) == ([RecordKind.ENTRIES], None)


def test_one_that_cannot_be_read_is_no_failure_of_its_feed() -> None:
    story = a_story_of("a")
    before = story.target.feed

    commit = story.bring(None, error=EmptyDocument())

    assert (commit.records, commit.next_fetch) == ((), before.next_fetch)
    assert "empty" in commit.polling.message
    assert replace(commit.polling, message="") == replace(before.polling, message="")


def test_entries_that_it_lacks_are_not_forgotten() -> None:
    """Else they were news again, when the feed's own document changes at last."""
    story = a_story_of(*"abcdef")
    day = timedelta(days=1)
    for number in range(KEPT_DAYS + 1):
        story.bring(a_document(*entries_named(f"n{number}")), after=day)

    assert kinds(story.poll(a_document(*entries_named(*"abcdef")))) == []


def test_the_first_document_is_no_news_though_entries_were_brought_before() -> None:
    story = Story(a_target(a_feed()))
    story.bring(a_document(*entries_named("b")))

    commit = story.poll(a_document(*entries_named(*"abc")))

    assert kinds(commit) == [RecordKind.BASELINE]


@pytest.mark.parametrize("brought", ["b", "z"])
def test_whatever_it_holds_there_is_no_gap(brought: str) -> None:
    commit = a_story_of("a").bring(a_document(*entries_named(brought)))

    assert commit.polling.gap_at is None
