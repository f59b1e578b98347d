from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from msgspec import structs
from msgspec.structs import replace

from hub.core.fetched import Fetched, FollowedRedirect, ParseOutcome, body_hash
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.fetch_commit import is_known_body
from hub.core.schedule.poll_period import PollingRules
from protocols.model import Deletion, Entry, FeedFormat, IdSource, ParsedFeed
from protocols.protocol_errors import EmptyDocument, FeedError, MalformedDocument
from storage.records import (
    FeedHealth,
    FeedState,
    FeedStatistics,
    FetchCommit,
    FetchTarget,
    Polling,
    PollReason,
    RecordKind,
    Validators,
)
from tests.support.documents import a_document, an_entry, entries_named
from tests.support.fetch_targets import START, a_feed, a_target, an_answer

HOUR = timedelta(hours=1)
RULES = PollingRules()


@dataclass
class Poll:
    """One feed that is polled again and again, its commits applied as storage would."""

    target: FetchTarget = field(default_factory=a_target)
    at: datetime = START
    commits: list[FetchCommit] = field(default_factory=list)

    @property
    def polling(self) -> Polling:
        return self.target.feed.polling

    @property
    def told(self) -> list[RecordKind]:
        return [record.kind for commit in self.commits for record in commit.records]

    def fetch(
        self,
        fetched: Fetched,
        document: ParsedFeed | None = None,
        *,
        error: FeedError | None = None,
        reason: PollReason = PollReason.PLANNED,
        jitter: float = 0.0,
        after: timedelta = HOUR,
    ) -> FetchCommit:
        self.at += after
        commit = decide(
            Decision(
                target=self.target,
                fetched=replace(fetched, at=self.at, started=self.at),
                understood=ParseOutcome(feed=document, error=error),
                rules=RULES,
                jitter=jitter,
                reason=reason,
            )
        )
        self._apply(commit)
        return commit

    def read(self, *entries: Entry, after: timedelta = HOUR) -> FetchCommit:
        """A 200 whose body is another for other entries, parsed only if need be."""
        body = repr(entries).encode()
        known = is_known_body(self.polling, body_hash(body))
        document = None if known else a_document(*entries)
        return self.fetch(an_answer(200, body, etag='"1"'), document, after=after)

    def _apply(self, commit: FetchCommit) -> None:
        self.commits.append(commit)
        feed = self.target.feed
        feed = replace(
            feed,
            polling=commit.polling,
            next_fetch=commit.next_fetch,
            state=commit.state or feed.state,
            condition=commit.condition or feed.condition,
            title=commit.title if commit.title is not None else feed.title,
            format=commit.format if commit.format is not None else feed.format,
        )
        seen = commit.seen if commit.seen is not None else self.target.seen
        self.target = replace(self.target, feed=feed, seen=seen)


def a_poll_of(*names: str) -> Poll:
    poll = Poll()
    poll.read(*entries_named(*names))
    poll.commits.clear()
    return poll


def test_the_hash_of_a_document_is_taken_once() -> None:
    """By who looked whether it is the last one."""
    poll = Poll()
    decision = Decision(
        target=poll.target,
        fetched=an_answer(200, b"a document"),
        understood=ParseOutcome(feed=a_document(an_entry("a")), body_hash="ab"),
        rules=RULES,
        jitter=0.0,
        reason=PollReason.PLANNED,
    )
    assert decide(decision).polling.body_hash == "ab"


# --- news ----------------------------------------------------------------------


def test_a_first_fetch_logs_a_baseline() -> None:
    commit = Poll().read(*entries_named("a", "b"))

    (record,) = commit.records
    assert record.kind is RecordKind.BASELINE
    assert record.entries == (("a", True), ("b", True))
    assert [each.key for each in commit.entries] == ["a", "b"]
    assert commit.entries[0] == an_entry("a")
    assert commit.head is not None
    assert commit.head.title == commit.title == "A feed"
    assert commit.format == FeedFormat.RSS


def test_a_first_fetch_of_an_empty_feed_logs_nothing() -> None:
    poll = Poll()

    assert poll.read().records == ()
    assert [record.kind for record in poll.read(an_entry("a")).records] == ["entries"]


def test_all_new_entries_of_a_fetch_are_one_record() -> None:
    names = [f"n{number}" for number in range(500)]
    commit = a_poll_of("a").read(*entries_named(*names, "a"))

    (record,) = commit.records
    assert record.kind is RecordKind.ENTRIES
    assert [key for key, _ in record.entries] == names
    assert len(commit.entries) == 500


def test_an_update_is_stored_and_logged() -> None:
    commit = a_poll_of("a", "b").read(an_entry("a", text="new"), an_entry("b"))

    (record,) = commit.records
    assert (record.kind, record.entries) == (RecordKind.UPDATED, (("a", False),))
    assert [each.key for each in commit.entries] == ["a"]


def test_records_come_in_the_order_recovered_deleted_updated_entries() -> None:
    poll = a_poll_of("a", "b")
    poll.fetch(an_answer(500))
    document = a_document(
        an_entry("n"),
        an_entry("a", text="new"),
        deletions=[Deletion(key="b", id="b")],
    )

    commit = poll.fetch(an_answer(200, b"other"), document)

    kinds = [record.kind.value for record in commit.records]
    assert kinds == ["recovered", "deleted", "updated", "entries"]
    assert [each.key for each in commit.deletions] == ["b"]
    assert [each.key for each in commit.entries] == ["a", "n"]


def test_a_feed_that_returns_after_its_removal_is_no_first_fetch() -> None:
    before = a_poll_of("a")
    returned = Poll(target=a_target(seen=before.target.seen), at=before.at)

    assert [r.kind for r in returned.read(*entries_named("n", "a")).records] == [
        "entries"
    ]


def test_an_unlogged_update_is_stored_without_a_record() -> None:
    poll = Poll()
    for number in range(6):
        commit = poll.read(an_entry("a", text=str(number)))

    assert commit.records == ()
    assert [each.key for each in commit.entries] == ["a"]


def test_a_change_of_format_is_seen_through_by_links() -> None:
    poll = Poll()
    link = "https://feed.example/1"
    poll.read(an_entry("guid", link=link, published=START))
    moved = an_entry("tag:1", link=link, published=START)
    atom = a_document(moved, format=FeedFormat.ATOM)

    commit = poll.fetch(an_answer(200, b"atom"), atom)

    assert commit.records == ()
    assert commit.format == "atom"
    assert commit.polling.bozo_rank == 0.5
    assert poll.read(structs.replace(moved, title="edited")).polling.bozo_rank == 0.25


def test_generated_ids_are_noted() -> None:
    generated = structs.replace(an_entry("a"), id_source=IdSource.LINK)

    assert Poll().read(generated).records[0].status.generated_ids
    assert not Poll().read(an_entry("a")).records[0].status.generated_ids


def test_the_document_is_kept_as_it_came_when_it_has_news_and_is_wanted() -> None:
    poll = a_poll_of("a")
    assert poll.read(*entries_named("b", "a")).body is None

    poll.target = replace(poll.target, keeps_body=True)
    assert poll.read(*entries_named("a", "b")).body is None
    body = poll.read(*entries_named("c", "a", "b")).body

    assert body is not None
    assert body.content_type == "application/rss+xml"
    assert body.body == repr(entries_named("c", "a", "b")).encode()


@pytest.mark.parametrize(
    ("format", "media_type"),
    [
        (FeedFormat.RSS, "application/rss+xml"),
        (FeedFormat.RDF, "application/rdf+xml"),
        (FeedFormat.ATOM, "application/atom+xml"),
        (FeedFormat.JSON_FEED, "application/feed+json"),
    ],
)
def test_a_document_without_a_type_is_kept_under_that_of_its_format(
    format: FeedFormat, media_type: str
) -> None:
    poll = a_poll_of("a")
    poll.target = replace(
        poll.target,
        keeps_body=True,
        feed=replace(poll.target.feed, format=format),
    )
    untyped = replace(an_answer(200, b"<feed/>"), content_type="")
    document = structs.replace(a_document(*entries_named("b", "a")), format=format)
    body = poll.fetch(untyped, document).body
    assert body is not None
    assert body.content_type == media_type


# --- nothing new ---------------------------------------------------------------


def test_a_304_changes_nothing_but_the_state_of_polling() -> None:
    poll = a_poll_of("a")

    commit = poll.fetch(an_answer(304))

    assert commit == FetchCommit(
        feed_id=commit.feed_id,
        at=poll.at,
        next_fetch=commit.next_fetch,
        polling=commit.polling,
        poll=commit.poll,
    )
    assert commit.polling.answers_304
    assert commit.polling.last_parse == commit.polling.last_success == poll.at
    assert commit.polling.unchanged == 1


def test_the_same_bytes_again_are_the_same_as_a_304() -> None:
    poll = a_poll_of("a")

    commit = poll.read(*entries_named("a"))

    assert (commit.records, commit.entries, commit.seen) == ((), (), None)
    assert commit.polling.unchanged == 1
    assert not commit.polling.answers_304


def test_validators_are_stored_even_if_the_bytes_are_the_same() -> None:
    poll = a_poll_of("a")
    body = repr(entries_named("a")).encode()

    touched = poll.fetch(an_answer(200, body, etag='"2"'))

    assert touched.polling.validators is not None
    assert touched.polling.validators.etag == '"2"'


def test_a_server_that_drops_its_validators_no_longer_answers_304() -> None:
    poll = a_poll_of("a")
    poll.fetch(an_answer(304))

    commit = poll.fetch(an_answer(200, b"other"), a_document())

    assert commit.polling.validators is None
    assert not commit.polling.answers_304


def test_the_hubs_of_a_header_are_kept_while_the_document_is_the_same() -> None:
    poll = a_poll_of("a")
    link = '<https://hub.example/>; rel="hub"'
    poll.fetch(replace(an_answer(200, b"b", etag='"2"'), link=link), a_document())
    assert poll.polling.hubs == ("https://hub.example/",)

    assert poll.fetch(an_answer(304)).polling.hubs == ("https://hub.example/",)
    assert poll.fetch(an_answer(500)).polling.hubs == ("https://hub.example/",)
    assert poll.fetch(an_answer(200, b"c"), a_document()).polling.hubs == ()


# --- health --------------------------------------------------------------------


def test_a_commit_names_how_polls_go_only_when_that_has_changed() -> None:
    poll = a_poll_of("a")
    answers = (500, 404, 304, 304)

    found = [poll.fetch(an_answer(each)).condition for each in answers]

    assert found == [FeedHealth.FAILING, None, FeedHealth.OK, None]


# --- trouble -------------------------------------------------------------------


def test_an_error_is_told_once_when_it_begins_and_once_when_it_ends() -> None:
    poll = a_poll_of("a")

    for status in (500, 0, 404):
        poll.fetch(an_answer(status, error=f"answered {status}"))
    poll.fetch(an_answer(304))
    poll.fetch(an_answer(304))

    assert poll.told == [RecordKind.ERROR, RecordKind.RECOVERED]


def test_trouble_that_goes_on_is_told_to_who_came_when_the_log_had_it_no_more() -> None:
    poll = a_poll_of("a")
    for is_awaited in (False, False, True, False):
        poll.target = replace(poll.target, is_error_awaited=is_awaited)
        poll.fetch(an_answer(500))
    assert [len(each.records) for each in poll.commits] == [1, 0, 1, 0]
    assert poll.told == [RecordKind.ERROR, RecordKind.ERROR]


def test_trouble_counts_from_where_it_began() -> None:
    poll = a_poll_of("a")
    poll.fetch(an_answer(500))
    began = poll.at
    poll.fetch(an_answer(0, error="timed out"))

    polling = poll.polling
    assert (polling.failures, polling.failing_since) == (2, began)
    assert (polling.code, polling.error) == (0, "timed out")
    assert poll.fetch(an_answer(304)).polling.failing_since is None


@pytest.mark.parametrize(
    "error", [EmptyDocument(), MalformedDocument("no element", line=3)]
)
def test_a_200_that_is_no_feed_is_an_error_and_loses_nothing(error: FeedError) -> None:
    poll = a_poll_of("a", "b")
    seen = poll.target.seen
    last_parse = poll.polling.last_parse

    commit = poll.fetch(an_answer(200, b"<html>", etag='"page"'), error=error)

    assert [record.kind for record in commit.records] == [RecordKind.ERROR]
    assert poll.target.seen == seen
    assert commit.polling.last_parse == last_parse
    assert commit.polling.error == str(error)
    assert commit.polling.message == f"Parser Error {error}"
    back = poll.read(*entries_named("a", "b"))
    assert [record.kind for record in back.records] == [RecordKind.RECOVERED]


def test_a_304_for_a_document_that_is_no_feed_ends_no_trouble() -> None:
    poll = a_poll_of("a")
    poll.fetch(an_answer(200, b"<html>", etag='"page"'), error=EmptyDocument())
    poll.fetch(an_answer(500))

    commit = poll.fetch(an_answer(304))

    assert commit.records == ()
    assert commit.polling.error == "the document is empty"
    assert commit.polling.validators == Validators(
        url="https://feed.example/feed", etag='"page"'
    )


def test_two_410_in_a_row_end_polling() -> None:
    poll = a_poll_of("a")

    assert poll.fetch(an_answer(410)).state is None
    assert poll.fetch(an_answer(410)).state is FeedState.GONE
    assert poll.told == [RecordKind.ERROR]


def test_a_410_between_other_answers_ends_nothing() -> None:
    poll = a_poll_of("a")

    for status in (410, 500, 410):
        assert poll.fetch(an_answer(status)).state is None


def a_dead_feed() -> Poll:
    """Asked when it was due, and answered 404 each time."""
    poll = a_poll_of("a")
    while poll.target.feed.state is FeedState.ACTIVE:
        poll.fetch(an_answer(404), after=poll.target.feed.next_fetch - poll.at)
    return poll


def test_a_feed_that_is_not_found_for_days_is_asked_ever_less_and_is_dead() -> None:
    poll = a_dead_feed()

    since = poll.polling.missing_since
    assert since is not None
    assert poll.target.feed.state is FeedState.DEAD
    assert timedelta(days=7) <= poll.at - since < timedelta(days=8)
    assert len(poll.commits) <= 13
    waits = [commit.next_fetch - commit.at for commit in poll.commits]
    assert waits == sorted(waits)
    assert waits[0] >= HOUR
    assert waits[-1] >= 24 * HOUR


def test_a_death_is_told_with_the_trouble_that_led_to_it_and_not_again() -> None:
    poll = a_dead_feed()

    for _ in range(3):
        poll.fetch(an_answer(404))

    assert poll.told == [RecordKind.ERROR]
    assert poll.target.feed.state is FeedState.DEAD


@pytest.mark.parametrize("state", [FeedState.GONE, FeedState.DEAD])
@pytest.mark.parametrize("answer", [an_answer(304), an_answer(200, b"other")])
def test_a_feed_that_was_given_up_and_answers_again_is_polled_again(
    state: FeedState, answer: Fetched
) -> None:
    poll = a_dead_feed()
    poll.target = replace(poll.target, feed=replace(poll.target.feed, state=state))
    document = a_document(an_entry("n")) if answer.status == 200 else None

    commit = poll.fetch(answer, document)

    assert commit.state is FeedState.ACTIVE
    assert commit.records[0].kind is RecordKind.RECOVERED
    polling = commit.polling
    assert (polling.missing_sightings, polling.missing_since) == (0, None)


def test_a_paused_feed_that_answers_stays_paused() -> None:
    poll = a_poll_of("a")
    poll.target = replace(
        poll.target, feed=replace(poll.target.feed, state=FeedState.PAUSED)
    )

    assert poll.fetch(an_answer(304)).state is None


def test_a_410_at_a_believed_redirect_sends_the_poller_back() -> None:
    polling = Polling(fetch_url="https://new.example/")
    poll = Poll(target=a_target(a_feed(polling=polling)))

    commit = poll.fetch(an_answer(410, url="https://new.example/"))

    assert (commit.polling.fetch_url, commit.polling.gone_sightings) == ("", 0)


def test_a_permanent_redirect_is_adopted_after_a_day() -> None:
    poll = a_poll_of("a")
    target = "https://new.example/"
    followed = FollowedRedirect(status=301, source=poll.target.feed.url, target=target)
    redirected = replace(an_answer(304, url=target), redirects=(followed,))

    for _ in range(3):
        assert poll.polling.fetch_url == ""
        poll.fetch(redirected, after=12 * HOUR)

    assert poll.polling.fetch_url == target


def test_retry_after_is_a_floor_even_on_a_200() -> None:
    commit = a_poll_of("a").fetch(an_answer(304, retry_after="432000"))

    assert commit.next_fetch - commit.at == timedelta(days=5)


# --- what people are told ------------------------------------------------------


@pytest.mark.parametrize(
    ("fetched", "line"),
    [
        (an_answer(304), "Fetched (ring) 304"),
        (an_answer(404), "Fetched (ring) 404 3600"),
        (an_answer(0, error="timed out"), "Fetched (ring) 0 600: timed out"),
        (an_answer(200, error="too large"), "Fetched (ring) 200 3600: too large"),
    ],
)
def test_the_status_line_says_how_it_went(fetched: Fetched, line: str) -> None:
    assert a_poll_of("a").fetch(fetched).polling.message == line


def test_the_status_line_counts_new_entries_of_all() -> None:
    poll = a_poll_of("a", "b")
    document = a_document(*entries_named("n", "a", "b"))

    commit = poll.fetch(an_answer(200, b"x"), document, reason=PollReason.PINGED)

    period = round(commit.polling.period)
    assert commit.polling.message == (
        f"Fetched (ping) 200 {period} and parsed 1/3 entries"
    )
    (record,) = commit.records
    assert record.status.http == commit.polling.message
    assert record.status.code == 200
    assert record.status.period == period
    assert record.status.next_fetch == commit.next_fetch
    assert record.status.last_fetch == record.status.last_parse == poll.at
    assert record.status.title == "A feed"


def test_a_baseline_counts_as_no_new_entries() -> None:
    poll = Poll()
    poll.read(*entries_named("a", "b"))

    assert poll.polling.message.endswith("and parsed 0/2 entries")
    assert poll.polling.entries_since_maintenance == 0


def test_entries_are_counted_from_one_maintenance_to_the_next() -> None:
    poll = Poll()
    poll.read()
    first = poll.polling.last_maintenance_at
    poll.read(*entries_named("a", "b"))
    poll.read(*entries_named("a", "b", "c"), after=22 * HOUR)

    assert poll.polling.entries_since_maintenance == 3
    assert poll.polling.last_maintenance_at == first == START + HOUR

    maintained_at = poll.at + HOUR / 2
    poll.target = replace(
        poll.target, statistics=FeedStatistics(maintained_at=maintained_at)
    )
    poll.read(*entries_named("a", "b", "c", "d"))
    poll.read(*entries_named("a", "b", "c", "d", "e"))
    assert poll.polling.entries_since_maintenance == 2
    assert poll.polling.last_maintenance_at == maintained_at


def test_what_maintenance_found_is_in_the_status() -> None:
    poll = a_poll_of("a")
    statistics = FeedStatistics(maintained_at=START, popularity=1.5, porn_rank=0.25)
    poll.target = replace(poll.target, statistics=statistics)

    [record] = poll.read(*entries_named("b", "a")).records

    assert record.status.popularity == 1.5
    assert record.status.porn_rank == 0.25
    assert record.status.last_maintenance_at == START


def test_before_any_maintenance_the_status_has_no_rank() -> None:
    [record] = a_poll_of("a").read(*entries_named("b", "a")).records

    assert record.status.popularity is None
    assert record.status.porn_rank is None


def test_velocity_rises_with_news_and_falls_with_silence() -> None:
    poll = a_poll_of("a")
    at_first = poll.polling.velocity
    after_news = poll.read(*entries_named("b", "a")).polling.velocity
    days = timedelta(days=30)
    after_silence = poll.fetch(an_answer(304), after=days).polling.velocity

    assert at_first == 0
    assert after_news > 0.3
    assert after_silence < 0.1


def test_the_subscribers_that_weighed_the_period_are_remembered() -> None:
    poll = Poll(target=a_target(subscribers=12))

    assert poll.fetch(an_answer(500)).polling.subscribers == 12
    assert poll.read().polling.subscribers == 12


def test_deciding_again_on_the_same_bytes_changes_nothing_more() -> None:
    poll = a_poll_of("a", "b")
    poll.read(*entries_named("c", "a", "b"))
    seen = poll.target.seen

    commit = poll.fetch(
        an_answer(200, b"another"), a_document(*entries_named("c", "a", "b"))
    )

    assert (commit.records, commit.entries, commit.seen) == ((), (), None)
    assert poll.target.seen == seen
