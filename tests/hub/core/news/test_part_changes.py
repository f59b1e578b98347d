from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.part_changes import is_content, resource_hash
from hub.core.schedule.poll_period import PollingRules
from hub.core.schedule.posting_profile import velocity
from protocols.protocol_errors import (
    EmptyDocument,
    FeedError,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from storage.records import FetchCommit, FetchTarget, PollReason, RecordKind
from tests.support.documents import a_document
from tests.support.fetch_targets import START, a_feed, a_target, an_answer

PLAIN = NotAFeed("plain text")
WANTED = a_target(keeps_body=True, subscribers=1)


def fetch(
    target: FetchTarget, fetched: Fetched, error: FeedError | None = PLAIN
) -> tuple[FetchCommit, FetchTarget]:
    """The commit, and the target as storage has it afterwards."""
    at = (target.feed.polling.last_fetch or START) + timedelta(hours=1)
    commit = decide(
        Decision(
            target=target,
            fetched=replace(fetched, at=at, started=at),
            understood=ParseOutcome(error=error),
            rules=PollingRules(),
            jitter=0.0,
            reason=PollReason.PLANNED,
        )
    )
    return commit, replace(target, feed=replace(target.feed, polling=commit.polling))


def kinds(commit: FetchCommit) -> list[RecordKind]:
    return [record.kind for record in commit.records]


def test_the_first_document_is_no_news() -> None:
    commit, _ = fetch(WANTED, an_answer(200, b"one"))
    assert (kinds(commit), commit.polling.error) == ([], "")
    assert commit.body is not None
    assert commit.body.body == b"one"


def test_a_changed_body_is_content_with_the_body() -> None:
    _, target = fetch(WANTED, an_answer(200, b"one"))
    commit, _ = fetch(target, an_answer(200, b"two"))
    assert kinds(commit) == [RecordKind.CONTENT]
    assert commit.records[0].status.code == 200
    assert commit.body is not None
    assert commit.body.body == b"two"


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("text/plain; title=é", "text/plain"),
        ("", "application/octet-stream"),
    ],
)
def test_the_body_is_kept_under_a_type_that_can_be_sent(header: str, kept: str) -> None:
    commit, _ = fetch(WANTED, replace(an_answer(200, b"one"), content_type=header))
    assert commit.body is not None
    assert commit.body.content_type == kept


def test_every_change_counts_as_a_post_and_shortens_the_period() -> None:
    first, target = fetch(WANTED, an_answer(200, b"one"))
    assert velocity(target.feed.polling.posting, START) == 0.0
    for number in range(20):
        commit, target = fetch(target, an_answer(200, str(number).encode()))
    assert commit.polling.velocity > 4  # of 20 in 20 hours, and days of doubt
    assert commit.polling.period < first.polling.period


def test_a_topic_that_never_changes_is_fetched_ever_less_often() -> None:
    first, target = fetch(WANTED, an_answer(200, b"one"))
    for _ in range(24 * 20):
        commit, target = fetch(target, an_answer(200, b"one"))
    assert commit.polling.period > first.polling.period


@pytest.mark.parametrize("again", [an_answer(200, b"one"), an_answer(304)])
def test_what_has_not_changed_is_no_news(again: Fetched) -> None:
    _, target = fetch(WANTED, an_answer(200, b"one"))
    commit, _ = fetch(target, again, None if again.status == 304 else PLAIN)
    assert (kinds(commit), commit.body, commit.polling.unchanged) == ([], None, 1)


@pytest.mark.parametrize("again", [an_answer(200, b"one"), an_answer(304)])
def test_trouble_ends_when_somebody_wants_the_topic_as_it_is(again: Fetched) -> None:
    commit, target = fetch(a_target(), an_answer(200, b"one"))
    assert kinds(commit) == [RecordKind.ERROR]
    target = replace(target, keeps_body=True, subscribers=1)
    commit, target = fetch(target, again, None if again.status == 304 else PLAIN)
    assert kinds(commit) == [RecordKind.RECOVERED]
    assert (commit.polling.error, commit.polling.body_error) == ("", "")
    commit, _ = fetch(target, an_answer(200, b"two"))
    assert kinds(commit) == [RecordKind.CONTENT]


def test_the_same_json_is_no_news_when_somebody_wants_it_as_it_is() -> None:
    """In trouble it was known by its bytes, and from now on by what it says."""
    spaced = an_answer(200, b'{"b": 1, "a": 2}')
    _, target = fetch(a_target(), spaced)
    target = replace(target, keeps_body=True, subscribers=1)
    commit, target = fetch(target, spaced)
    assert kinds(commit) == [RecordKind.RECOVERED]
    assert commit.body is not None
    commit, _ = fetch(target, an_answer(200, b'{"a":2,"b":1}'))
    assert kinds(commit) == []


def test_what_came_while_nobody_wanted_it_as_it_is_is_kept_then() -> None:
    _, target = fetch(a_target(), an_answer(200, b"one"))
    target = replace(target, keeps_body=True, subscribers=1)
    commit, target = fetch(target, an_answer(200, b"one"))
    assert commit.body is not None
    assert target.feed.polling.is_resource


def test_without_as_is_subscriptions_it_is_an_error() -> None:
    _, target = fetch(WANTED, an_answer(200, b"one"))
    commit, _ = fetch(replace(target, keeps_body=False), an_answer(200, b"two"))
    assert kinds(commit) == [RecordKind.ERROR]


def test_a_feed_that_turns_into_something_else_is_in_trouble() -> None:
    target = a_target(a_feed(format="rss"), keeps_body=True)
    assert not is_content(target, an_answer(200, b"one"), ParseOutcome(error=PLAIN))


@pytest.mark.parametrize(
    ("fetched", "understood", "expected"),
    [
        (an_answer(200, b"one"), ParseOutcome(error=PLAIN), True),
        (an_answer(200, b"{"), ParseOutcome(error=MalformedDocument("no")), True),
        (an_answer(200, b""), ParseOutcome(error=EmptyDocument()), False),
        (an_answer(200, b"1"), ParseOutcome(error=LimitExceeded("size", 1)), False),
        (an_answer(404), ParseOutcome(), False),
        (an_answer(200, b"one"), ParseOutcome(feed=a_document()), False),
    ],
)
def test_a_readable_answer_that_is_no_feed_is_content(
    fetched: Fetched, understood: ParseOutcome, expected: bool
) -> None:
    assert is_content(WANTED, fetched, understood) is expected


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (b'{"a": 1, "b": [2]}', b'{"b":[2],"a":1}', True),
        (b'{"a": 1}', b'{"a": 2}', False),
        (b'{"a": 1', b'{"a":1', False),
        (b"[" * 500 + b"]" * 500, b"[ " + b"[" * 499 + b"]" * 500, False),
        (b"a b", b"a  b", False),
        (b"", b"", True),
    ],
)
def test_json_says_the_same_in_any_order_and_spacing(
    one: bytes, other: bytes, is_same: bool
) -> None:
    assert (resource_hash(one) == resource_hash(other)) is is_same
