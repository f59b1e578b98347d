"""`scripts/soak backlog`: one subscriber with 100,000 records to catch up.

Two hundred others get news every second. How late are they, before it begins and while
it catches up?
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

from protocols.model import Entry, Feed, Status
from storage.records import (
    DeliveryFlush,
    FeedId,
    FetchCommit,
    Polling,
    RecordKind,
    RecordWrite,
    RetryOpened,
    SubscriptionId,
)
from tests.soak.callbacks import Callbacks, numbered, published_now, running_callbacks
from tests.soak.crowd import until_settled
from tests.soak.latencies import Lateness
from tests.support.chosen_engine import open_chosen
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher

RECORDS, OTHERS = 100_000, 200
MEASURED, PAUSE = 30.0, 1.0
AT_ONCE = 500
MOST_LATE = 2_000.0
MOST_MORE, NOISE = 1.2, 50.0
"""How many times as late as without the backlog 99 in 100 may be, and a margin.

The margin is in milliseconds, since the ratio of two small figures says nothing.
"""
_YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``seconds``: the time of the whole catch-up; ``reached``: up to which number."""

    records: int
    others: int
    reached: int
    disorders: int
    seconds: float
    alone: Lateness
    beside: Lateness
    missing: int

    @property
    def complaints(self) -> list[str]:
        found = []
        if self.reached != self.records or self.disorders:
            found.append(f"{self.reached} came, {self.disorders} out of order")
        most = min(MOST_LATE, max(MOST_MORE * self.alone.p99, self.alone.p99 + NOISE))
        if self.beside.p99 > most or self.missing:
            found.append(
                f"others: {self.beside}, {most:.0f} ms allowed;"
                f" {self.missing} missing or twice"
            )
        return found


def report(outcome: Outcome) -> str:
    lines = [
        f"caught up  {outcome.reached} of {outcome.records} records in"
        f" {outcome.seconds:.0f} s, {outcome.disorders} out of order",
        f"{outcome.others} others alone  {outcome.alone}",
        f"{outcome.others} others beside {outcome.beside}; {outcome.missing} missing"
        " or twice",
        *(f"BROKEN     {complaint}" for complaint in outcome.complaints),
        "verdict    "
        + ("promises broken" if outcome.complaints else "nobody is held up"),
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    records: int = RECORDS
    others: int = OTHERS
    measured: float = MEASURED
    pause: float = PAUSE


async def run(directory: Path, plan: Plan | None = None) -> Outcome:
    plan = plan or Plan()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        callbacks = await enter(running_callbacks(directory, plan.others + 1))
        publisher = await enter(Publisher())
        scene = _Scene(plan, HubProcess(directory=directory), publisher, callbacks)
        await scene.set_up()
        return await scene.measure()


class _Scene:
    def __init__(
        self, plan: Plan, hub: HubProcess, publisher: Publisher, callbacks: Callbacks
    ) -> None:
        self._plan = plan
        self._hub = hub
        self._publisher = publisher
        self._callbacks = callbacks
        self._feed = publisher.add_feed()
        self._feed_id = self._late = 0

    async def set_up(self) -> None:
        late = self._publisher.add_feed()
        topics = self._publisher.url(self._feed), self._publisher.url(late)
        async with self._hub, HubApi(self._hub.url) as api:
            self._feed_id, late_id = [await api.add_feed(each) for each in topics]
            urls = [
                self._callbacks.url("ok", each) for each in range(self._plan.others + 1)
            ]
            for each in urls[:-1]:
                await api.subscribe(callback=each, topic=topics[0])
            self._late = await api.subscribe(callback=urls[-1], topic=topics[1])
            await self._hub.terminate()
        await fall_behind(self._hub.database, late_id, self._late, self._plan.records)

    async def measure(self) -> Outcome:
        book, plan = self._callbacks.book, self._plan
        async with self._hub, HubApi(self._hub.url) as api:
            await until_settled(api, retrying=1)
            alone = await self._publish(api)
            began = monotonic()
            await api.retry(self._late)
            beside = await self._publish(api)
            await until_settled(api)
            seconds = monotonic() - began
            await self._hub.terminate()
        book.read()
        expected = Counter({self._feed.count - 1: plan.others})
        times = Counter(book.times_asked()[: plan.others])
        return Outcome(
            records=plan.records,
            others=plan.others,
            reached=book.reached,
            disorders=book.disorders,
            seconds=seconds,
            alone=alone,
            beside=beside,
            missing=sum((expected - times).values()),
        )

    async def _publish(self, api: HubApi) -> Lateness:
        """Publish news to the others again and again; return how late they came."""
        began = monotonic()
        while (begun := monotonic()) < began + self._plan.measured:
            self._feed.count += 1
            self._feed.titles[self._feed.count] = published_now()
            await api.fetch(self._feed_id)
            await asyncio.sleep(max(0.0, begun + self._plan.pause - monotonic()))
        await asyncio.sleep(self._plan.pause)
        return Lateness.of(self._callbacks.book.latencies(began, monotonic()))


async def fall_behind(
    database: Path, feed_id: int, subscription: int, records: int
) -> None:
    """Have a subscription retried in a year, and commit news that it did not get."""
    storage = await open_chosen(database)
    try:
        now = datetime.now(UTC)  # noqa: TID251 - no hub is running
        head = await storage.log.end()
        opened = RetryOpened(
            subscription_id=SubscriptionId(subscription),
            position=head.position,
            attempts=1,
            next_try=now + _YEAR,
            failing_since=now,
            last_status=503,
            last_error="answered 503",
        )
        await storage.deliveries.flush(DeliveryFlush(at=now, opened=(opened,)))
        for start in range(0, records, AT_ONCE):
            numbers = range(start + 1, min(start + AT_ONCE, records) + 1)
            await asyncio.gather(
                *(storage.log.commit(_news(feed_id, each, now)) for each in numbers)
            )
    finally:
        await storage.close()


def _news(feed_id: int, number: int, now: datetime) -> FetchCommit:
    key = f"urn:late:{number}"
    entry = Entry(key=key, id=key, title=numbered(number))
    record = RecordWrite(
        kind=RecordKind.ENTRIES,
        status=Status(code=200, http="Fetched", title="Late"),
        entries=((key, True),),
    )
    return FetchCommit(
        feed_id=FeedId(feed_id),
        at=now,
        next_fetch=now + _YEAR,
        polling=Polling(),
        head=Feed(title="Late"),
        entries=(entry,),
        records=(record,),
    )
