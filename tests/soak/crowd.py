"""`scripts/soak crowd`: a topic with 100,000 subscribers, and what news of it cost.

Meanwhile another topic has news for a single subscriber every second. How late are
they?
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.soak.callbacks import Callbacks, published_now, running_callbacks
from tests.soak.latencies import Lateness
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher

SUBSCRIBERS, RECORDS = 100_000, 3
PATIENCE, SILENCE = 1_800.0, 60.0
MOST_MEGABYTES = 64.0
"""How much memory may grow over what it was before, however many subscribe."""

MOST_LATE = 0.25
"""The share of a record's time to all subscribers that 99 in 100 other news may take.

These are at least a few seconds on a busy machine.
"""

BUSY_MILLISECONDS = 10_000.0

MOST_GROWTH = 16.0
"""MB by which the peak of a later record may exceed that of the second one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One record: who got it how often, in what time, and with how much memory.

    ``seconds``: from the first arrival to the last. ``megabytes``: the most resident
    memory of the hub, read from outside.
    """

    times: Counter[int]  # callbacks by how often each was asked
    seconds: float
    megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    subscribers: int
    before: float  # MB, of the hub when it was idle
    told: list[Told]
    beside: Lateness  # of the other topic's news

    @property
    def complaints(self) -> list[str]:
        everybody_once = {1: self.subscribers}
        peaks = [each.megabytes for each in self.told]
        found = [
            f"of record {number} callbacks were asked so often: {dict(told.times)}"
            for number, told in enumerate(self.told, 1)
            if told.times != everybody_once
        ]
        longest = 1_000 * max(each.seconds for each in self.told)
        if self.beside.p99 > max(MOST_LATE * longest, BUSY_MILLISECONDS):
            found.append(f"news of another topic: {self.beside}")
        if max(peaks) - self.before > MOST_MEGABYTES:
            found.append(f"memory grew from {self.before:.0f} to {max(peaks):.0f} MB")
        if max(peaks[1:]) - peaks[1] > MOST_GROWTH:
            found.append(f"memory grows from record to record: {peaks}")
        return found


def report(outcome: Outcome) -> str:
    lines = [
        f"{outcome.subscribers} subscribers of one topic",
        f"idle       {outcome.before:.0f} MB",
        *(
            f"record {number}   {told.times[1]} once, {told.seconds:.1f} s from first"
            f" to last ({told.times.total() / told.seconds:.0f} a second),"
            f" {told.megabytes:.0f} MB at most"
            for number, told in enumerate(outcome.told, 1)
        ),
        f"meanwhile  news of another topic: {outcome.beside}",
        *(f"BROKEN     {complaint}" for complaint in outcome.complaints),
        "verdict    "
        + ("promises broken" if outcome.complaints else "nobody missing, nobody twice"),
    ]
    return "\n".join(lines)


async def run(
    directory: Path, *, subscribers: int = SUBSCRIBERS, records: int = RECORDS
) -> Outcome:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        callbacks = await enter(running_callbacks(directory, subscribers))
        others = stack.enter_context(TemporaryDirectory(dir=directory))
        other = await enter(running_callbacks(Path(others), 1))
        publisher = await enter(Publisher())
        hub = HubProcess(directory=directory)
        feed = publisher.add_feed()
        async with hub, HubApi(hub.url) as api:
            feed_id = await api.add_feed(publisher.url(feed))
            await api.subscribe(
                callback=callbacks.url("ok", 0),
                topic=publisher.url(feed),
                secret="a secret of theirs",
            )
            await hub.terminate()
        await asyncio.to_thread(multiply, hub.database, subscribers)
        small = publisher.add_feed()
        async with hub, HubApi(hub.url) as api:
            await asyncio.sleep(2.0)  # the hub is busy at its start
            small_id = await api.add_feed(publisher.url(small))
            await api.subscribe(callback=other.url("ok", 0), topic=publisher.url(small))
            before, told = megabytes(hub.pid), []
            for _ in range(records):
                feed.titles[feed.count + 1] = published_now()
                publisher.publish(feed)
                speaking = asyncio.create_task(_speak(api, small_id, small))
                tell = _tell(hub, api, feed_id, callbacks, subscribers, speaking)
                told.append(await tell)
            await hub.terminate()
        late = Lateness.of(other.book.latencies(0.0, monotonic()))
    return Outcome(subscribers=subscribers, before=before, told=told, beside=late)


async def _speak(api: HubApi, feed_id: int, feed: PublishedFeed) -> None:
    """Publish news of another topic every second, until cancelled."""
    while True:
        feed.titles[feed.count + 1] = published_now()
        feed.count += 1
        await api.fetch(feed_id)
        await asyncio.sleep(1.0)


async def _tell(
    hub: HubProcess,
    api: HubApi,
    feed_id: int,
    callbacks: Callbacks,
    subscribers: int,
    speaking: asyncio.Task[None],
) -> Told:
    """Have one record delivered, and say what came of it; ``speaking`` ends with it."""
    book, peak, began = callbacks.book, 0.0, monotonic()
    book.read()
    book.begin()
    wanted = book.asked + subscribers
    await api.fetch(feed_id)
    while book.asked < wanted and monotonic() < max(book.last, began) + SILENCE:
        peak = max(peak, megabytes(hub.pid))
        await asyncio.sleep(0.1)
        book.read()
    speaking.cancel()
    await asyncio.wait({speaking})
    await until_settled(api)
    arrivals = book.latencies(began, monotonic())
    return Told(
        times=Counter(book.times_asked()),
        seconds=arrivals[-1] - arrivals[0],
        megabytes=peak,
    )


async def until_settled(api: HubApi, *, retrying: int = 0) -> None:
    """Wait until nothing is left to deliver, except to so many that are retrying."""
    async with asyncio.timeout(PATIENCE):
        while True:
            backlog = (await api.request("GET", "/api/health"))["backlog"]
            waiting = backlog["fanouts"] or backlog["chunks"]
            if not waiting and backlog["retrying"] <= retrying:
                return
            await asyncio.sleep(0.5)


def multiply(database: Path, count: int) -> None:
    """Make a subscription into as many as that, with callbacks of their own.

    One was made through the API; the others are copies of its row.
    """
    with closing(sqlite3.connect(database)) as connection, connection:
        names = [
            name
            for _, name, *_ in connection.execute("PRAGMA table_info(subscriptions)")
            if name not in ("id", "callback", "callback_hash")
        ]
        listed = ", ".join(names)
        connection.execute(
            f"""
            WITH RECURSIVE numbers (number) AS (
                VALUES (1) UNION ALL SELECT number + 1 FROM numbers WHERE number < ?
            )
            INSERT INTO subscriptions (callback, callback_hash, {listed})
            SELECT rtrim(callback, '0') || number, randomblob(16), {listed}
            FROM (SELECT * FROM subscriptions LIMIT 1), numbers
            """,  # noqa: S608 - names of columns
            (count - 1,),
        )


def megabytes(pid: int) -> float:
    """The resident memory of a process now, in MB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
