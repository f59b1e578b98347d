"""What a feed's history keeps of a poll."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.fetched import NOT_PARSED, Fetched, ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.schedule.poll_period import PollingRules
from protocols.model import Deletion, Entry
from protocols.protocol_errors import MalformedDocument
from storage.records import (
    FetchCommit,
    FetchTarget,
    Poll,
    PollOutcome,
    PollReason,
    Push,
    PushOffer,
    PushWay,
)
from tests.support.documents import a_document, an_entry, entries_named
from tests.support.fetch_targets import START, a_feed, a_target, an_answer

A, B = entries_named("a", "b")
NO_FEED = ParseOutcome(error=MalformedDocument("no feed"))


MARK = "urn:feed"
OFFER = PushOffer(
    way=PushWay.WEBSUB, hub="https://hub.example/", topic=a_feed().url, marks=(MARK,)
)


def document(*entries: Entry, **more: object) -> ParseOutcome:
    read = a_document(*entries, **more)
    return ParseOutcome(feed=replace(read, feed=replace(read.feed, id=MARK)))


def fetch(
    target: FetchTarget,
    fetched: Fetched,
    understood: ParseOutcome = NOT_PARSED,
    *,
    reason: PollReason = PollReason.PLANNED,
    at: datetime = START + timedelta(hours=1),
) -> FetchCommit:
    fetched = replace(fetched, at=at, started=at - timedelta(milliseconds=250))
    return decide(
        Decision(
            target=target,
            fetched=fetched,
            understood=understood,
            rules=PollingRules(push_url="https://me.example"),
            jitter=0.0,
            reason=reason,
        )
    )


def known(*entries: Entry, **more: object) -> FetchTarget:
    """A feed whose last document had these entries."""
    target = a_target(**more)
    commit = fetch(target, an_answer(200, b"1"), document(*entries), at=START)
    feed = replace(
        a_feed(),
        polling=commit.polling,
        next_fetch=commit.next_fetch,
        format=commit.format or "",
    )
    return replace(target, feed=feed, seen=commit.seen or b"")


def poll(commit: FetchCommit) -> Poll:
    assert commit.poll is not None
    return commit.poll


def test_a_poll_is_kept_with_its_time_reason_status_and_duration() -> None:
    commit = fetch(known(A), an_answer(304), reason=PollReason.PINGED)

    assert poll(commit) == Poll(
        at=START + timedelta(hours=1),
        reason=PollReason.PINGED,
        outcome=PollOutcome.UNCHANGED,
        code=304,
        milliseconds=250,
    )


@pytest.mark.parametrize(
    ("fetched", "understood", "outcome", "entries"),
    [
        (an_answer(200, b"2"), document(A), PollOutcome.UNCHANGED, 0),
        (an_answer(200, b"2"), document(A, B), PollOutcome.NEW, 1),
        (
            an_answer(200, b"2"),
            document(an_entry("a", title="another"), B),
            PollOutcome.NEW,
            1,
        ),
        (
            an_answer(200, b"2"),
            document(an_entry("a", title="another")),
            PollOutcome.CHANGED,
            1,
        ),
        (
            an_answer(200, b"2"),
            document(deletions=(Deletion(key="a", id="a"),)),
            PollOutcome.CHANGED,
            1,
        ),
        (an_answer(200, b"2"), NO_FEED, PollOutcome.UNREADABLE, 0),
        (an_answer(500), NOT_PARSED, PollOutcome.FAILED, 0),
        (an_answer(0, error="no such host"), NOT_PARSED, PollOutcome.FAILED, 0),
    ],
)
def test_what_a_poll_found_is_one_word_and_a_count(
    fetched: Fetched, understood: ParseOutcome, outcome: PollOutcome, entries: int
) -> None:
    found = poll(fetch(known(A), fetched, understood))

    assert (found.outcome, found.entries) == (outcome, entries)
    assert found.code == fetched.status


def test_the_first_poll_says_how_many_entries_there_were() -> None:
    found = poll(fetch(a_target(), an_answer(200, b"1"), document(A, B)))

    assert (found.outcome, found.entries) == (PollOutcome.FIRST, 2)
    assert found.reason is PollReason.FIRST_FETCH


def test_a_304_for_a_document_that_is_no_feed_is_unreadable_too() -> None:
    before = fetch(known(A), an_answer(200, b"2", etag='"2"'), NO_FEED)
    target = a_target(replace(a_feed(), polling=before.polling, format="atom"))

    assert poll(fetch(target, an_answer(304))).outcome is PollOutcome.UNREADABLE


def test_other_content_of_what_is_no_feed_is_a_change() -> None:
    target = a_target(keeps_body=True)
    first = fetch(target, an_answer(200, b"1"), NO_FEED, at=START)
    assert poll(first).outcome is PollOutcome.FIRST
    target = replace(target, feed=replace(a_feed(), polling=first.polling))

    found = poll(fetch(target, an_answer(200, b"2"), NO_FEED))

    assert (found.outcome, found.entries) == (PollOutcome.CHANGED, 0)


BROUGHT = replace(an_answer(200, b"2"), is_partial=True)
PUSHED = replace(BROUGHT, is_pushed=True)


@pytest.mark.parametrize(
    ("fetched", "reason"),
    [(BROUGHT, PollReason.PUBLISHED), (PUSHED, PollReason.PUSHED)],
)
def test_what_is_brought_is_told_from_what_is_asked_for(
    fetched: Fetched, reason: PollReason
) -> None:
    target = replace(known(A), push=Push(offer=OFFER))

    found = poll(fetch(target, fetched, document(B), reason=PollReason.ASKED_FOR))
    assert (found.reason, found.outcome) == (reason, PollOutcome.NEW)

    useless = poll(fetch(target, fetched, NO_FEED, reason=PollReason.ASKED_FOR))
    assert (useless.reason, useless.outcome) == (reason, PollOutcome.UNREADABLE)


def test_a_clock_that_went_back_during_a_poll_makes_no_negative_time() -> None:
    answer = an_answer(304)
    late = replace(answer, started=START + timedelta(hours=2))
    decision = Decision(
        target=known(A),
        fetched=late,
        understood=NOT_PARSED,
        rules=PollingRules(),
        jitter=0.0,
        reason=PollReason.PLANNED,
    )

    assert poll(decide(decision)).milliseconds == 0


# --- why the next poll is when it is ---


@pytest.mark.parametrize(
    ("fetched", "understood", "reason"),
    [
        (an_answer(304), NOT_PARSED, PollReason.PLANNED),
        (an_answer(500), NOT_PARSED, PollReason.RETRY_AFTER_FAILURE),
        (
            an_answer(200, b"2", cache_control="max-age=80000"),
            document(A),
            PollReason.HELD_BACK,
        ),
    ],
)
def test_the_reason_of_the_next_poll_is_kept_with_its_time(
    fetched: Fetched, understood: ParseOutcome, reason: PollReason
) -> None:
    assert fetch(known(A), fetched, understood).polling.next_reason is reason


def test_a_push_that_cannot_be_read_has_the_feed_polled_soon() -> None:
    target = replace(known(A), push=Push(offer=OFFER))
    before = replace(target.feed.polling, next_reason=PollReason.HELD_BACK)
    later = START + timedelta(hours=9)
    feed = replace(target.feed, polling=before, next_fetch=later)
    target = replace(target, feed=feed)

    after = fetch(target, PUSHED, NO_FEED).polling

    assert after.next_reason is PollReason.WOKEN_BY_PUSH


def test_what_a_publisher_brings_leaves_the_next_poll_as_it_was_planned() -> None:
    target = known(A)
    before = replace(target.feed.polling, next_reason=PollReason.BACKUP)
    target = replace(target, feed=replace(target.feed, polling=before))

    after = fetch(target, BROUGHT, document(B)).polling

    assert after.next_reason is PollReason.BACKUP
