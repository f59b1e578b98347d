"""Random operations on every engine and on the model leave equal observable states."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from protocols.model import Deletion
from protocols.operational_events import EventType
from storage.contract import Storage
from storage.errors import NotFound, StorageBusy, SubscriptionPaused
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Attempt,
    AttemptFilter,
    ChunkOutcome,
    ClaimedChunk,
    ClaimTerms,
    Credentials,
    DeliveryFlush,
    DocumentWrite,
    FeedChange,
    FeedFilter,
    FeedHealth,
    FeedSort,
    FeedState,
    Format,
    NewDeadLetter,
    NewFeed,
    NewSubscription,
    OperationalEvent,
    Polling,
    Position,
    RecordKind,
    Retention,
    RetryingSubscription,
    RetryMoved,
    RetryOpened,
    SubscriberGroup,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionSort,
    Updates,
    WorkKind,
)
from storage.sqlite.columns import to_milliseconds
from tests.support.documents import an_entry
from tests.support.failures import ANSWER, details
from tests.support.memory.state import State
from tests.support.memory.storage import MemoryStorage
from tests.support.new_database import open_in_loop, open_new_postgres
from tests.support.storage_scene import NODE, START, record
from tests.support.storage_scene import fetch as fetch_of

FEEDS = st.integers(1, 3)
SUBSCRIPTIONS = st.integers(1, 12)
KEYS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=3, unique=True)
LIMITS = st.integers(1, 3)
TOPICS_OF_EVENTS = ("events:*", "events:subscription.failing,hub.*")
FATES = ["ok", "ahead", "late", "dead", "gone", "later"]
SECONDS = st.sampled_from([0, 1, 5, 61])
KINDS = st.sampled_from(
    [each for each in RecordKind if each not in (RecordKind.BASELINE, RecordKind.EVENT)]
)

pytestmark = pytest.mark.bulk


class Comparison(RuleBasedStateMachine):
    """Each rule is done to both; results and then all readable state must agree."""

    leaves_gaps = True

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._engine = self._runner.run(self._open())
        self._model: Storage = MemoryStorage(State(leaves_gaps=self.leaves_gaps))
        self._now = START
        self._leases = 0
        self._chunks: list[ClaimedChunk] = []
        self._retries: list[RetryingSubscription] = []
        self._denials: list[tuple[int, int]] = []

    async def _open(self) -> Storage:
        directory = self._stack.enter_context(tempfile.TemporaryDirectory())
        storage = await open_in_loop(Path(directory) / "hub.db")
        self._stack.push_async_callback(storage.close)
        return storage

    @initialize()
    def begin(self) -> None:
        for feed in (1, 2):
            self.add_feed(feed, private=False, category="")
            for number, format in enumerate((Format.JSON, Format.AS_IS), 1):
                self.subscribe(feed, number, ANONYMOUS, format, Updates.FRESH, None)

    def teardown(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def _do(self, operation: Callable[[Storage], Awaitable[object]]) -> object:
        expected = self._runner.run(_attempt(operation, self._model))
        found = self._runner.run(_attempt(operation, self._engine))
        assert found == expected
        return found

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: int) -> None:
        self._now += timedelta(seconds=seconds, microseconds=1_500)

    # --- feeds and the log ---

    @rule(number=FEEDS, private=st.booleans(), category=st.sampled_from(["", "news"]))
    def add_feed(self, number: int, private: bool, category: str) -> None:
        new = NewFeed(
            url=f"https://{number}.example/",
            private=private,
            category=category,
            credentials=Credentials(username="u") if category else None,
        )
        self._do(lambda storage: storage.feeds.add(new, self._now))

    @rule(
        feed=FEEDS,
        private=st.sampled_from([None, True, False]),
        login=st.sampled_from([None, Credentials(), Credentials(username="u")]),
        shuts_out=st.sampled_from([None, *SubscriberGroup]),
    )
    def edit(
        self,
        feed: int,
        private: bool | None,
        login: Credentials | None,
        shuts_out: SubscriberGroup | None,
    ) -> None:
        change = FeedChange(private=private, credentials=login, shuts_out=shuts_out)
        self._do(lambda it: it.feeds.edit(feed, change, "shut out", self._now))

    @rule(feed=FEEDS, state=st.sampled_from(FeedState))
    def set_state(self, feed: int, state: FeedState) -> None:
        self._do(lambda storage: storage.feeds.set_state(feed, state, self._now))

    @rule(feed=FEEDS, seconds=SECONDS)
    def defer(self, feed: int, seconds: int) -> None:
        later = self._now + timedelta(seconds=seconds)
        self._do(lambda storage: storage.feeds.defer([(feed, later), (99, later)]))

    @rule()
    def purge(self) -> None:
        before = self._now - timedelta(seconds=30)
        self._do(lambda storage: storage.feeds.purge_removed(before, 1))

    @rule(
        feed=FEEDS,
        keys=KEYS,
        kinds=st.lists(KINDS, max_size=2),
        fresh=st.booleans(),
        condition=st.sampled_from([None, FeedHealth.OK, FeedHealth.FAILING]),
        behind=st.sampled_from([None, 0, 0, 1]),
    )
    def commit(
        self,
        feed: int,
        keys: list[str],
        kinds: list[RecordKind],
        fresh: bool,
        condition: FeedHealth | None,
        behind: int | None,
    ) -> None:
        """``behind``: how many changes it was decided before; None: it does not say."""
        is_deletion = kinds == [RecordKind.DELETED]
        stored = self._runner.run(self._model.feeds.get(feed))
        if stored is None:
            return
        commit = fetch_of(
            stored,
            when=self._now,
            polling=Polling(
                code=200,
                fetch_url="https://moved.example/" * fresh,
                period=3_600.0 if fresh else 60.0,
            ),
            condition=condition,
            events=self._events(EventType.FEED_FAILING)[: len(kinds)],
            seen=keys[0].encode(),
            version=None if behind is None else self._version(feed) - behind,
            body=DocumentWrite(content_type="text/xml", body=keys[0].encode()),
            deletions=tuple(Deletion(key=key, id=key) for key in keys if is_deletion),
            entries=tuple(
                an_entry(
                    key,
                    published=self._now - timedelta(hours=ord(key)) if fresh else None,
                )
                for key in keys
                if not is_deletion
            ),
            records=tuple(record(*keys, kind=kind, is_fresh=fresh) for kind in kinds),
        )
        self._do(lambda storage: storage.log.commit(commit))

    def _version(self, feed: int) -> int:
        targets = self._runner.run(self._model.feeds.targets([feed]))
        return targets[0].version if targets else 0

    def _events(self, *types: EventType) -> tuple[OperationalEvent, ...]:
        return tuple(
            OperationalEvent(type=each, at=self._now, condition=each.name)
            for each in types
        )

    @rule(feed=FEEDS)
    def commit_a_baseline(self, feed: int) -> None:
        stored = self._runner.run(self._model.feeds.get(feed))
        if stored is not None:
            baseline = fetch_of(
                stored, when=self._now, records=(record(kind=RecordKind.BASELINE),)
            )
            self._do(lambda storage: storage.log.commit(baseline))

    @rule(
        count=st.sampled_from([0, 2, 5]),
        hard=st.sampled_from([0, 4, 50]),
        ends=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    )
    def trim(self, count: int, hard: int, ends: tuple[int, int]) -> None:
        retention = Retention(
            soft_age=float("inf"),
            soft_count=count,
            hard_age=float("inf"),
            hard_count=max(hard, count),
            soft_end=Position(max(ends)),
            hard_end=Position(min(ends)),
            spared_age=5,
        )
        self._do(lambda storage: storage.log.trim(retention, self._now, 3))

    # --- subscriptions ---

    @rule(
        feed=FEEDS,
        number=st.integers(1, 3),
        account=st.sampled_from([ANONYMOUS, OPERATOR]),
        format=st.sampled_from(Format),
        updates=st.sampled_from(Updates),
        lease=st.sampled_from([None, 10, 100]),
        secret=st.sampled_from(["", "secret", "secret", "another"]),
        overlap=st.sampled_from([None, 0, 30]),
    )
    def subscribe(
        self,
        feed: int,
        number: int,
        account: int,
        format: Format,
        updates: Updates,
        lease: int | None,
        secret: str = "",
        overlap: int | None = None,
    ) -> None:
        new = NewSubscription(
            account=account,
            topic=f"https://{feed}.example/",
            feed_id=feed,
            callback=f"https://subscriber.example/{number}",
            secret=secret,
            former_until=None
            if overlap is None
            else self._now + timedelta(seconds=overlap),
            format=format,
            updates=updates,
            lease_end=lease and self._now + timedelta(seconds=lease),
        )
        self._do(lambda storage: storage.subscriptions.add(new, self._now))

    @rule(topic=st.sampled_from(TOPICS_OF_EVENTS))
    def subscribe_to_events(self, topic: str) -> None:
        async def subscribe(storage: Storage) -> object:
            feed = await storage.events.topic(topic, self._now)
            new = NewSubscription(
                account=OPERATOR,
                topic=topic,
                feed_id=feed.id,
                callback="https://operator.example/",
            )
            return await storage.subscriptions.add(new, self._now)

        self._do(subscribe)

    @rule(limit=LIMITS)
    def publish_events(self, limit: int) -> None:
        self._do(lambda storage: storage.events.publish(self._now, limit))

    @rule(types=st.sets(st.sampled_from([EventType.HUB_DISK, EventType.HUB_BACKLOG])))
    def note_conditions(self, types: set[EventType]) -> None:
        holding = self._events(*sorted(types))
        self._do(lambda storage: storage.events.note_conditions(holding, self._now))

    @rule(limit=LIMITS)
    def forget_secrets(self, limit: int) -> None:
        self._do(lambda storage: storage.subscriptions.forget_secrets(self._now, limit))

    @rule(each=SUBSCRIPTIONS, tell=st.booleans())
    def end(self, each: int, tell: bool) -> None:
        self._do(
            lambda storage: storage.subscriptions.end(each, "x", self._now, tell=tell)
        )

    @rule(feed=FEEDS, limit=LIMITS)
    def end_all(self, feed: int, limit: int) -> None:
        self._do(
            lambda storage: storage.subscriptions.end_all(feed, "x", self._now, limit)
        )

    @rule(limit=LIMITS)
    def expire(self, limit: int) -> None:
        self._do(lambda storage: storage.subscriptions.expire(self._now, limit))

    @rule(each=SUBSCRIPTIONS)
    def claim_denial(self, each: int) -> None:
        self._leases += 1
        self._do(
            lambda storage: storage.claims.claim(
                WorkKind.DENIALS,
                [each],
                lease_id=self._leases,
                seconds=60,
                now=self._now,
            )
        )
        self._denials.append((each, self._leases))

    @rule(data=st.data())
    def renew_denial(self, data: st.DataObject) -> None:
        if not self._denials:
            return
        each, lease_id = data.draw(st.sampled_from(self._denials))
        self._do(
            lambda storage: storage.claims.renew(
                WorkKind.DENIALS, [each], lease_id=lease_id, seconds=60, now=self._now
            )
        )

    @rule(data=st.data(), is_told=st.booleans())
    def end_denial(self, data: st.DataObject, is_told: bool) -> None:
        if not self._denials:
            return
        each, lease_id = data.draw(st.sampled_from(self._denials))
        if is_told:
            self._do(
                lambda storage: storage.subscriptions.mark_denied(
                    [each], lease_id=lease_id
                )
            )
        else:
            self._do(
                lambda storage: storage.claims.release(
                    WorkKind.DENIALS, [each], lease_id=lease_id
                )
            )

    @rule(each=SUBSCRIPTIONS)
    def pause(self, each: int) -> None:
        self._do(lambda storage: storage.subscriptions.pause(each, self._now))

    @rule(each=SUBSCRIPTIONS)
    def resume(self, each: int) -> None:
        self._do(lambda storage: storage.subscriptions.resume(each, self._now))

    # --- deliveries ---

    @rule(limit=LIMITS)
    def claim_chunks(self, limit: int) -> None:
        self._chunks += self._claim("claim_chunks", limit)

    @rule(limit=LIMITS)
    def claim_retrying(self, limit: int) -> None:
        self._retries += self._claim("claim_retrying", limit)

    def _claim(self, method: str, limit: int) -> list:
        self._leases += 1
        terms = ClaimTerms(
            lease_id=self._leases,
            seconds=60,
            now=self._now,
            limit=limit,
        )
        return self._do(lambda storage: getattr(storage.deliveries, method)(terms))

    @rule(data=st.data())
    def settle_members(self, data: st.DataObject) -> None:
        """Of one chunk, each member still pending: what came of it."""
        if not self._chunks:
            return
        chunk = data.draw(st.sampled_from(self._chunks))
        flush = DeliveryFlush(at=self._now)
        for index, subscription in chunk.pending:
            fate = data.draw(st.sampled_from(FATES))
            if fate != "later":
                flush = self._settled(flush, chunk, index, subscription.id, fate)
        self._do(lambda storage: storage.deliveries.flush(flush))

    def _settled(
        self, flush: DeliveryFlush, chunk: ClaimedChunk, index: int, of: int, fate: str
    ) -> DeliveryFlush:
        position = chunk.record.position
        outcome = ChunkOutcome(
            chunk_id=chunk.id,
            lease_id=chunk.lease_id,
            index=index,
            status=200 if fate in ("ok", "ahead") else 500,
            milliseconds=70_000,
            at=to_milliseconds(self._now) - 1_000 if fate == "ok" else 0,
        )
        flush = replace(flush, outcomes=(*flush.outcomes, outcome))
        if fate == "late":
            opened = RetryOpened(
                subscription_id=of,
                position=Position(position - 1),
                attempts=1,
                next_try=self._now + timedelta(seconds=5),
                failing_since=self._now,
                tried_to=position,
                news_from=self._now + timedelta(seconds=2),
            )
            failed = Attempt(
                subscription_id=of,
                position=position,
                at=self._now,
                status=500,
                milliseconds=1,
                error="answered 500",
                details=details(answer=ANSWER),
            )
            return replace(
                flush,
                opened=(*flush.opened, opened),
                attempts=(*flush.attempts, failed),
            )
        if fate == "dead":
            lost = self._given_up(of, 0, position, position)
            return replace(flush, given_up=(*flush.given_up, lost))
        if fate == "gone":
            return replace(flush, ended=(*flush.ended, (of, "gone")))
        if fate == "ahead":
            return replace(flush, advanced=(*flush.advanced, (of, position + 1)))
        return replace(flush, recovered=(*flush.recovered, of))

    @rule(
        data=st.data(),
        step=st.integers(0, 3),
        status=st.sampled_from([0, 200, 500]),
        release=st.booleans(),
        finished=st.booleans(),
        pause=st.sampled_from([None, 0, 10]),
    )
    def move_retry(
        self,
        data: st.DataObject,
        step: int,
        status: int,
        release: bool,
        finished: bool,
        pause: int | None,
    ) -> None:
        if not self._retries:
            return
        retrying = data.draw(st.sampled_from(self._retries))
        moved = RetryMoved(
            subscription_id=retrying.subscription.id,
            lease_id=retrying.lease_id,
            position=Position(retrying.position + step),
            attempts=step,
            next_try=self._now + timedelta(seconds=60),
            last_status=status,
            release=release,
            finished=finished,
            tried_to=Position(retrying.position + step) if status == 500 else None,
            news_from=None if pause is None else self._now + timedelta(seconds=pause),
            due=self._now + timedelta(seconds=30) if pause == 0 else None,
        )
        flush = DeliveryFlush(at=self._now, moved=(moved,))
        self._do(lambda storage: storage.deliveries.flush(flush))

    @rule(data=st.data(), length=st.integers(0, 3))
    def give_up(self, data: st.DataObject, length: int) -> None:
        if not self._retries:
            return
        retrying = data.draw(st.sampled_from(self._retries))
        first = retrying.position + 1
        lost = self._given_up(
            retrying.subscription.id, retrying.lease_id, first, first + length
        )
        flush = DeliveryFlush(at=self._now, given_up=(lost,))
        self._do(lambda storage: storage.deliveries.flush(flush))

    def _given_up(self, of: int, lease: int, first: int, last: int) -> NewDeadLetter:
        return NewDeadLetter(
            subscription_id=of,
            lease_id=lease,
            first=Position(first),
            last=Position(last),
            reason="too often",
            at=self._now,
            was_untried=last % 2 == 0,
        )

    @rule(data=st.data())
    def retry_dead_letter(self, data: st.DataObject) -> None:
        dead = self._runner.run(self._model.deliveries.dead_letters(after=0, limit=9))
        each = data.draw(st.sampled_from([each.id for each in dead] or [99]))
        self._do(lambda storage: storage.deliveries.retry_dead_letter(each, self._now))

    @rule(each=SUBSCRIPTIONS, after=st.integers(0, 12))
    def replay(self, each: int, after: int) -> None:
        self._do(lambda storage: storage.deliveries.replay(each, after, self._now))

    @rule(each=SUBSCRIPTIONS)
    def retry_now(self, each: int) -> None:
        self._do(lambda storage: storage.deliveries.retry_now(each, self._now))

    @rule(each=SUBSCRIPTIONS)
    def discard_retry(self, each: int) -> None:
        self._do(lambda storage: storage.deliveries.discard_retry(each, self._now))

    @rule(data=st.data())
    def discard_dead_letter(self, data: st.DataObject) -> None:
        dead = self._runner.run(self._model.deliveries.dead_letters(after=0, limit=9))
        each = data.draw(st.sampled_from([each.id for each in dead] or [99]))
        self._do(lambda storage: storage.deliveries.discard_dead_letter(each))

    @rule()
    def void_leases(self) -> None:
        self._do(lambda storage: storage.membership.join(NODE))

    @rule()
    def trim_attempts(self) -> None:
        before = self._now - timedelta(seconds=60)
        self._do(lambda storage: storage.deliveries.trim_attempts(before, 2, kept=30))

    # --- what can be read ---

    def _agree(self, *reads: Callable[[Storage], Awaitable[object]]) -> None:
        async def read_all(storage: Storage) -> list[object]:
            return [await _attempt(read, storage) for read in reads]

        self._do(read_all)

    @invariant()
    def feeds_agree(self) -> None:
        removed = FeedState.REMOVED
        self._agree(
            lambda storage: storage.feeds.page(after=0, limit=9),
            lambda storage: storage.feeds.page(after=0, limit=9, state=removed),
            lambda storage: storage.feeds.due(self._now, after={}, limit=9),
            lambda storage: storage.feeds.targets([3, 1, 2]),
            lambda storage: storage.feed_selections.counts(),
            *(partial(_feeds_by, sort) for sort in FeedSort),
            *(partial(_body, feed) for feed in (1, 2, 3)),
            *(partial(_latest_entries, feed) for feed in (1, 2, 3)),
        )

    @invariant()
    def the_log_agrees(self) -> None:
        self._agree(
            lambda storage: storage.log.records(after=0, limit=99),
            lambda storage: storage.log.entries(range(1, 80)),
        )

    @invariant()
    def subscriptions_agree(self) -> None:
        self._agree(
            lambda storage: storage.subscriptions.page(after=0, limit=99),
            lambda storage: storage.subscriptions.ending(self._now, 9),
            lambda storage: storage.subscription_selections.counts(),
            *(partial(_subscriptions_by, sort) for sort in SubscriptionSort),
            *(partial(_subscription, each) for each in range(1, 12)),
            *(partial(_attempts, each) for each in range(1, 12)),
        )

    @invariant()
    def deliveries_agree(self) -> None:
        self._agree(
            lambda storage: storage.deliveries.retrying(after=0, limit=99),
            lambda storage: storage.deliveries.next_retry(),
            lambda storage: storage.deliveries.dead_letters(after=0, limit=99),
            lambda storage: storage.deliveries.failed_attempts(
                AttemptFilter(host="you.example"), limit=99
            ),
            *(partial(_lag, each) for each in range(1, 12)),
            lambda storage: storage.backlog(),
        )


async def _attempt(
    operation: Callable[[Storage], Awaitable[object]], storage: Storage
) -> object:
    try:
        return await operation(storage)
    except (NotFound, StorageBusy, SubscriptionPaused) as error:
        return type(error)


async def _feeds_by(sort: FeedSort, storage: Storage) -> object:
    """The first two pages of all feeds there are."""
    wanted, select = FeedFilter(health=tuple(FeedHealth)), storage.feed_selections
    first = await select.page(wanted, sort, after=None, limit=2)
    return first, await select.page(wanted, sort, after=first.next, limit=2)


async def _subscriptions_by(sort: SubscriptionSort, storage: Storage) -> object:
    wanted = SubscriptionFilter(health=tuple(SubscriptionHealth))
    select = storage.subscription_selections
    first = await select.page(wanted, sort, after=None, limit=4)
    return first, await select.page(wanted, sort, after=first.next, limit=4)


async def _body(feed: int, storage: Storage) -> object:
    return await storage.log.body(feed)


async def _latest_entries(feed: int, storage: Storage) -> object:
    return await storage.log.latest_entries(feed, 9)


async def _subscription(each: int, storage: Storage) -> object:
    return await storage.subscriptions.get(each)


async def _lag(each: int, storage: Storage) -> object:
    return await storage.deliveries.lag(each, 3)


async def _attempts(each: int, storage: Storage) -> object:
    return await storage.deliveries.attempts(each, 5)


class ComparisonOnPostgres(Comparison):
    leaves_gaps = False

    async def _open(self) -> Storage:
        directory = self._stack.enter_context(tempfile.TemporaryDirectory())
        opening = open_new_postgres(Path(directory) / "key")
        return await self._stack.enter_async_context(opening)


TestComparison = Comparison.TestCase
TestComparisonOnPostgres = ComparisonOnPostgres.TestCase
TestComparison.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestComparisonOnPostgres.settings = settings(
    TestComparison.settings, max_examples=3, stateful_step_count=20
)
"""Fewer, for each question is asked of a server."""
