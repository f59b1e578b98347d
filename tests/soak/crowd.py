"""`scripts/soak crowd`: a topic with 100,000 subscribers, and what news of it cost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.soak.callbacks import Callbacks, published_now, running_callbacks
from tests.support.hub_api import HubApi
from tests.support.hub_process import HubProcess
from tests.support.publisher import Publisher

SUBSCRIBERS, RECORDS = 100_000, 3
PATIENCE = 1_800.0
MOST_MEGABYTES = 64.0
"""By which memory may grow over what it was before, whoever many subscribe."""

MOST_GROWTH = 16.0
"""MB, by which a later record's peak may exceed the second's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One record: who got it how often, in what time, and with how much memory.

    ``seconds``: from the first arrival to the last. ``megabytes``: resident memory of
    the hub at most, read from outside.
    """

    times: Counter[int]  # callbacks by how often each was asked
    seconds: float
    megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    subscribers: int
    before: float  # MB, of the hub when it was idle
    told: list[Told]

    @property
    def complaints(self) -> list[str]:
        everybody_once = {1: self.subscribers}
        peaks = [each.megabytes for each in self.told]
        found = [
            f"of record {number} callbacks were asked so often: {dict(told.times)}"
            for number, told in enumerate(self.told, 1)
            if told.times != everybody_once
        ]
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
        publisher = await enter(Publisher())
        hub = HubProcess(directory=directory)
        feed = publisher.add_feed()
        async with hub, HubApi(hub) as api:
            feed_id = await api.add_feed(publisher.url(feed))
            await api.subscribe(
                callback=callbacks.url("ok", 0),
                topic=publisher.url(feed),
                secret="a secret of theirs",
            )
            await hub.terminate()
        await asyncio.to_thread(multiply, hub.database, subscribers)
        async with hub, HubApi(hub) as api:
            await asyncio.sleep(2.0)  # it does some things at its start
            before, told = megabytes(hub.pid), []
            for _ in range(records):
                feed.titles[feed.count + 1] = published_now()
                publisher.publish(feed)
                told.append(await _tell(hub, api, feed_id, callbacks))
            await hub.terminate()
    return Outcome(subscribers=subscribers, before=before, told=told)


async def _tell(
    hub: HubProcess, api: HubApi, feed_id: int, callbacks: Callbacks
) -> Told:
    book, peak, began = callbacks.book, 0.0, monotonic()
    book.begin()
    await api.fetch(feed_id)
    settled = asyncio.create_task(until_settled(api))
    while not settled.done():
        peak = max(peak, megabytes(hub.pid))
        await asyncio.wait({settled}, timeout=0.1)
    await settled
    arrivals = book.latencies(began, monotonic())
    return Told(
        times=Counter(book.times_asked()),
        seconds=arrivals[-1] - arrivals[0],
        megabytes=peak,
    )


async def until_settled(api: HubApi, *, stragglers: int = 0) -> None:
    """Until nobody is owed anything any more, except by so many stragglers."""
    async with asyncio.timeout(PATIENCE):
        while True:
            backlog = (await api.request("GET", "/api/health"))["backlog"]
            waiting = backlog["fanouts"] or backlog["chunks"]
            if not waiting and backlog["stragglers"] <= stragglers:
                return
            await asyncio.sleep(0.5)


def multiply(database: Path, count: int) -> None:
    """Have as many subscriptions as that: one was made by the front door, the others
    are copies of its row, with callbacks of their own."""
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
    """Resident memory of a process now."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
