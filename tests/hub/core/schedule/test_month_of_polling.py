"""A month with one origin that logs every request, as a strict publisher would.

The poller is played: fetch, decide, apply, wait until the next fetch. The origin keeps
what it was asked and when, and the tests judge that.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome, body_hash
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.fetch_commit import is_known_body
from hub.core.schedule.poll_period import PollingRules
from protocols.model import Entry, ParsedFeed
from storage.records import FetchCommit, FetchTarget, PollReason, RecordKind, Validators
from tests.support.documents import a_document, an_entry
from tests.support.fetch_targets import START, a_feed, a_target, an_answer

MONTH = timedelta(days=30)
HOUR = timedelta(hours=1)
SIZE = 10  # entries in a document
SETTLED = timedelta(minutes=16)
"""After the first request a feed is new no more."""


@dataclass(frozen=True)
class Request:
    at: datetime
    validators: Validators | None


@dataclass
class Origin:
    """Publishes an entry every so often; answers by its own rules."""

    every: timedelta
    sends_validators: bool = True
    cache_control: str = ""
    down: Callable[[datetime], int] = lambda at: 0  # the status while it is down
    retry_after: str = ""
    phase: timedelta = timedelta()  # how old the newest entry is at the first request
    requests: list[Request] = field(default_factory=list)

    def count(self, at: datetime) -> int:
        return (at - START + self.phase) // self.every + SIZE

    def document(self, at: datetime) -> ParsedFeed:
        newest = self.count(at)
        return a_document(*(self.entry(n) for n in range(newest, newest - SIZE, -1)))

    def entry(self, number: int) -> Entry:
        posted = START - self.phase + (number - SIZE) * self.every
        return an_entry(str(number), published=posted)

    def answer(self, request: Request) -> Fetched:
        self.requests.append(request)
        if status := self.down(request.at):
            return an_answer(status, at=request.at, retry_after=self.retry_after)
        etag = f'"{self.count(request.at)}"' if self.sends_validators else ""
        known = request.validators is not None and request.validators.etag == etag
        return an_answer(
            304 if known else 200,
            b"" if known else str(self.count(request.at)).encode(),
            at=request.at,
            etag=etag,
            cache_control=self.cache_control,
        )

    @property
    def gaps(self) -> list[timedelta]:
        return [later.at - earlier.at for earlier, later in pairwise(self.requests)]

    @property
    def settled_gaps(self) -> list[timedelta]:
        """Those that began when the feed was new no more."""
        return [
            gap
            for gap, request in zip(self.gaps, self.requests, strict=False)
            if request.at >= START + SETTLED
        ]


@dataclass
class Month:
    """Thirty days of polling one origin; restarts lose nothing, for all is stored."""

    origin: Origin
    target: FetchTarget = field(
        default_factory=lambda: a_target(a_feed(), subscribers=3)
    )
    told: dict[str, datetime] = field(default_factory=dict)
    kinds: list[RecordKind] = field(default_factory=list)

    def run(self, length: timedelta = MONTH) -> Month:
        draw = random.Random(1)
        while (now := self.target.feed.next_fetch) < START + length:
            validators = self.target.feed.polling.validators
            fetched = self.origin.answer(Request(now, validators))
            commit = decide(
                Decision(
                    target=self.target,
                    fetched=fetched,
                    understood=self._understand(fetched),
                    rules=PollingRules(),
                    jitter=draw.uniform(-1, 1),
                    reason=PollReason.PLANNED,
                )
            )
            self._apply(commit)
        return self

    def _understand(self, fetched: Fetched) -> ParseOutcome:
        known = is_known_body(self.target.feed.polling, body_hash(fetched.body))
        if fetched.status != 200 or known:
            return ParseOutcome()
        return ParseOutcome(feed=self.origin.document(fetched.at))

    def _apply(self, commit: FetchCommit) -> None:
        for record in commit.records:
            self.kinds.append(record.kind)
            for key, _ in record.entries:
                assert key not in self.told
                self.told[key] = commit.at
        feed = replace(
            self.target.feed, polling=commit.polling, next_fetch=commit.next_fetch
        )
        self.target = replace(
            self.target, feed=feed, seen=commit.seen or self.target.seen
        )


def test_only_the_first_request_is_unconditional() -> None:
    origin = Origin(every=6 * HOUR)
    Month(origin).run()

    assert [request.validators is None for request in origin.requests].count(True) == 1
    assert origin.requests[0].validators is None


def test_a_new_feed_settles_in_within_a_quarter_of_an_hour() -> None:
    origin = Origin(every=6 * HOUR, phase=3 * HOUR)
    month = Month(origin).run(timedelta(hours=3))

    minutes = [(each.at - START) / timedelta(minutes=1) for each in origin.requests]
    assert minutes[:4] == [0, *(pytest.approx(n, rel=0.05) for n in (1, 5, 15))]
    assert origin.gaps[3] > HOUR / 2
    assert month.target.feed.polling.answers_304


def test_no_request_comes_before_its_hour() -> None:
    for every in (HOUR / 4, HOUR, 6 * HOUR, 72 * HOUR):
        origin = Origin(every=every, cache_control="max-age=3600")
        Month(origin).run(timedelta(days=10))
        assert min(origin.gaps) >= HOUR


def test_every_entry_of_a_steady_feed_is_told_once_and_soon() -> None:
    origin = Origin(every=2 * HOUR)
    month = Month(origin).run()

    delays = [
        month.told[str(number)] - (START + (number - SIZE) * origin.every)
        for number in range(SIZE + 1, origin.count(START + MONTH) - 1)
    ]
    assert max(delays) < 4 * HOUR
    assert sum(delays, timedelta()) / len(delays) < HOUR


def test_a_quiet_feed_is_asked_less_and_less_down_to_hourly() -> None:
    origin = Origin(every=timedelta(days=400))
    Month(origin).run()

    assert 0.95 * HOUR <= origin.gaps[-1] <= HOUR


def test_a_busy_feed_is_polled_within_a_quarter_of_an_hour_at_most() -> None:
    origin = Origin(every=timedelta(minutes=5), cache_control="max-age=60")
    Month(origin).run(timedelta(days=3))

    assert timedelta(minutes=1) <= min(origin.gaps)
    assert origin.gaps[-1] < timedelta(minutes=16)


def test_a_server_without_validators_is_asked_every_three_hours_in_the_end() -> None:
    origin = Origin(every=timedelta(days=400), sends_validators=False)
    Month(origin).run()

    assert min(origin.settled_gaps) >= timedelta(minutes=15)
    assert 2.85 * HOUR <= origin.gaps[-1] <= 3 * HOUR


@pytest.mark.parametrize("max_age", [7200, 43_200])
def test_a_fresh_document_is_not_asked_for_again(max_age: int) -> None:
    origin = Origin(every=HOUR, cache_control=f"max-age={max_age}")
    Month(origin).run()

    assert min(origin.gaps) >= timedelta(seconds=max_age)


@pytest.mark.parametrize("status", [429, 503])
def test_no_request_comes_before_its_retry_after(status: int) -> None:
    def down(at: datetime) -> int:
        return status if at < START + timedelta(days=10) else 0

    origin = Origin(every=HOUR, down=down, retry_after="20000")
    month = Month(origin).run()

    troubled = [
        gap
        for gap, request in zip(origin.gaps, origin.requests, strict=False)
        if down(request.at)
    ]
    assert min(troubled) >= timedelta(seconds=20_000)
    assert month.kinds.count(RecordKind.ERROR) == 1
    assert month.kinds.count(RecordKind.RECOVERED) == 1


@pytest.mark.parametrize(("status", "most"), [(404, 36), (500, 90), (403, 34), (0, 90)])
def test_a_dead_host_is_not_hammered(status: int, most: int) -> None:
    def down(at: datetime) -> int:
        return status or 599

    origin = Origin(every=HOUR, down=down)
    month = Month(origin).run()

    assert len(origin.requests) <= most
    assert month.kinds == [RecordKind.ERROR]


def test_nothing_is_lost_or_told_twice_over_an_outage() -> None:
    def down(at: datetime) -> int:
        return 502 if timedelta(days=9) < at - START < timedelta(days=10) else 0

    origin = Origin(every=8 * HOUR, down=down)
    month = Month(origin).run()

    published = {str(n) for n in range(SIZE + 1, origin.count(START + MONTH) - 1)}
    assert published <= set(month.told)
    assert month.kinds.count(RecordKind.ERROR) == 1
    assert month.kinds.count(RecordKind.RECOVERED) == 1
