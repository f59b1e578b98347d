"""A part of a resource, in one state after another."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from hub.core.fetched import ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.schedule.poll_period import RESOURCE_FLOOR, PollingRules, plan
from protocols.feeds import ParseContext, parse
from protocols.protocol_errors import InvalidDocument
from protocols.urls import selector_of
from storage.records import FetchCommit, FetchTarget, Polling, PollReason, RecordKind
from tests.support.fetch_targets import START, a_feed, a_target, an_answer


class Watch:
    """One part, fetched every hour; ``texts`` are what each fetch told."""

    def __init__(self, fragment: str) -> None:
        self.url = f"https://a.example/x#{fragment}"
        self.target: FetchTarget = a_target(a_feed(1, self.url), keeps_body=True)
        self.at = START
        self.commit: FetchCommit

    def fetch(self, body: Any) -> list[str]:
        written = body if isinstance(body, bytes) else json.dumps(body).encode()
        selector = selector_of(self.url)
        context = ParseContext(
            url="https://a.example/x", now=self.at, selector=selector
        )
        answer = an_answer(200, written, at=self.at, url="https://a.example/x")
        try:
            understood = ParseOutcome(feed=parse(written, context))
        except InvalidDocument as error:
            understood = ParseOutcome(error=error)
        self.commit = commit = decide(
            Decision(
                target=self.target,
                fetched=answer,
                understood=understood,
                rules=PollingRules(),
                jitter=0.0,
                reason=PollReason.PLANNED,
            )
        )
        feed = replace(
            self.target.feed,
            polling=commit.polling,
            format=commit.format or self.target.feed.format,
        )
        seen = commit.seen or self.target.seen
        self.target = replace(self.target, feed=feed, seen=seen)
        self.at += timedelta(hours=1)
        told = {
            key
            for record in commit.records
            if record.kind is RecordKind.ENTRIES
            for key, _ in record.entries
        }
        return [
            entry.content.value
            for entry in commit.entries
            if entry.key in told and entry.content
        ]


def test_a_part_is_told_when_it_changes_and_only_then() -> None:
    watch = Watch("%24.price")

    assert watch.fetch({"price": 1}) == []  # the baseline
    assert watch.fetch({"price": 1, "stock": 5}) == []
    assert watch.commit.entries == watch.commit.records == ()
    assert watch.fetch({"price": 2, "stock": 5}) == ["2"]
    assert watch.fetch({"stock": 4, "price": 2}) == []
    assert watch.fetch({"price": 1}) == ["1"]
    assert watch.commit.polling.gap_at is None
    assert watch.commit.polling.is_resource


def test_as_it_is_a_part_comes_without_what_is_around_it() -> None:
    watch = Watch(".n")
    watch.fetch(b"<p class=n>1</p><p>2</p>")
    watch.fetch(b"<p class=n>3</p><p>4</p>")

    assert watch.commit.body is not None
    assert watch.commit.body.body == b'<p class="n">3</p>'
    assert watch.commit.body.content_type == "text/html; charset=utf-8"

    watch = Watch("$.a")
    watch.fetch({"a": 1})
    watch.fetch({"a": [2]})
    assert watch.commit.body is not None
    assert watch.commit.body.content_type == "application/json"


def test_white_space_around_markup_is_no_change() -> None:
    watch = Watch(".n")
    watch.fetch(b"<p class=n>a b</p>")

    assert watch.fetch(b"<html>\n<p   class='n'>a\n  b</p>") == []


def test_a_part_that_is_not_there_is_an_error_and_never_the_whole() -> None:
    watch = Watch("$.a")

    assert watch.fetch({"b": 1}) == []
    assert watch.commit.polling.error == "#$.a: nothing in the document matches it"
    assert watch.commit.body is None


def test_what_is_no_feed_is_asked_for_every_five_minutes_at_most() -> None:
    rules = PollingRules(min_period=1, default_floor=60, earned_floor=60)

    for is_resource, floor in ((True, RESOURCE_FLOOR), (False, 60.0)):
        planned = plan(Polling(is_resource=is_resource), 1, rules, START)
        (found,) = [term.value for term in planned.terms if term.name == "floor"]
        assert found == floor
