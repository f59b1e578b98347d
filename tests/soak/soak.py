"""A hub under fire for some minutes: one seed, many faults, one verdict.

The seed decides who there is, who misbehaves how, and what is done to the hub in which
order, but not what the machine's scheduler does. Two thirds of the time belong to one
long life of the process: its memory is watched, and at the end its counters are
compared with what was seen. The last third has short lives and deaths.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from time import monotonic

import aiohttp

from tests.soak.counts import differences, live_messages, read_metrics, see
from tests.soak.faults import Faults
from tests.soak.members import NOTHING_STORED
from tests.soak.memory import MemoryWatch, own_memory
from tests.soak.outcome import Outcome
from tests.soak.population import Population, ShortMemories
from tests.soak.readers import LiveReader
from tests.support.crash_campaign import FAILPOINTS
from tests.support.hub_process import LOOPBACK, HubApi, HubDied, HubProcess
from tests.support.oracle import (
    Evidence,
    Kill,
    duplicates,
    judge,
    missing,
    with_news,
)
from tests.support.publisher import Publisher
from tests.support.waiting import LoopLag

WINDOW, IN_FLIGHT, READING, LAG_SECONDS = 0.5, 320, 2.0, 2.0
"""What a kill on a busy machine may cost, as in the crash campaigns."""
LONG_LIFE = 2 / 3
"""The share of all the time that the long life takes."""
COUNTED = 20
"""Entries that are published while all readers stay."""
DRAIN_SECONDS = 300.0
COUNT_SECONDS = 30.0


class Soak:
    def __init__(self, seed: int, seconds: float, directory: Path) -> None:
        self._random = random.Random(seed)
        self._seconds = seconds
        self._end = 0.0  # of what is going on
        self._hub = HubProcess(directory=directory)
        self._lag = LoopLag()
        self._publisher = Publisher()
        self._hostile = ShortMemories()
        self._subscribers = ShortMemories()
        self._population = Population(
            random.Random(f"{seed}/population"),
            self._publisher,
            self._subscribers,
            self._hostile,
            self._hub.url,
        )
        self._faults = Faults(
            self._hub, self._population, random.Random(f"{seed}/faults")
        )
        self._kills: dict[str, Kill] = {}
        self._runs = 0
        self._tasks: asyncio.TaskGroup
        self._outcome = Outcome(seed=seed)

    async def run(self) -> Outcome:
        async with AsyncExitStack() as stack:
            for each in (self._lag, self._publisher, self._subscribers, self._hostile):
                await stack.enter_async_context(each)
            self._name_next()
            async with self._hub, HubApi(self._hub.url) as api:
                self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
                await self._population.settle(api, self._tasks)
                await self._live_long(api)
                await self._compare_counts(api)
                await self._population.let_in_hostile(api)
                await self._hub.terminate()
                self._end = monotonic() + self._seconds * (1 - LONG_LIFE)
                while monotonic() < self._end:
                    await self._live_and_die()
                await self._start()
                await self._hub.wait_ready()
                await self._population.look(api)
                await self._drain(api)
                await self._population.look(api)
                await self._population.send_readers_home()
                self._measure()
                await self._hub.terminate()
        self._conclude()
        return self._outcome

    async def _live_long(self, api: HubApi) -> None:
        """Run one process that nothing ends, and watch it from outside."""
        watch = MemoryWatch(self._hub.pid, self._hub.database)
        watching = asyncio.create_task(watch.run())
        self._end = monotonic() + self._seconds * LONG_LIFE
        while (left := self._end - monotonic()) > 0:
            disturbing = asyncio.create_task(self._faults.disturb())
            await self._keep_busy(api, min(left, 10.0))
            await disturbing
            if not self._hub.is_running:
                raise HubDied(self._hub.last_words)
        watching.cancel()
        self._measure()
        self._outcome.trend = trend = watch.trend()
        if trend.is_growing:
            self._outcome.complaints.append(
                f"the memory grew by {trend.growth / 1e6:.1f} MB"
                f" in {trend.seconds:.0f} s"
            )

    async def _compare_counts(self, api: HubApi) -> None:
        """Compare counters once everybody has everything, while nobody leaves.

        A few more entries are published for that.
        """
        unknown = self._hostile.open_requests
        await self._population.end_hostile(api)
        readers = self._population.hold_readers()
        await self._drain(api, readers)
        await self._population.look(api)
        before = live_messages(await read_metrics(self._hub.url))
        heard = sum(reader.heard for reader in readers)
        for _ in range(COUNTED):
            await self._publish(api)
        await self._drain(api, readers)
        deadline = monotonic() + COUNT_SECONDS
        while (
            True
        ):  # acknowledgements are gathered, and the database asked now and then
            told = await read_metrics(self._hub.url)
            live = sum(reader.heard for reader in readers) - heard
            seen = see(self._population, self._hostile, unknown=unknown, live=live)
            found = list(differences(told, live_messages(told) - before, seen))
            if not found or monotonic() > deadline:
                break
            await asyncio.sleep(0.2)
        self._outcome.complaints += [f"/metrics: {each}" for each in found]
        self._outcome.counted = (
            f"{seen.entries} entries, {seen.delivered} delivered of {seen.requests}"
            f" requests, {seen.subscriptions} subscriptions, {seen.live} live messages"
        )

    def _name_next(self) -> str:
        self._runs += 1
        url = f"http://hub.example/{self._runs}"
        self._hub.settings = {**LOOPBACK, "FANFARE_PUBLIC_URL": url}
        return f"{url}/hub"

    async def _start(self, failpoint: str = "") -> str:
        name = self._name_next()
        await self._hub.start(failpoint=failpoint)
        return name

    async def _live_and_die(self) -> None:
        """Run one process with traffic and a fault or two, to one of several ends."""
        place, most = self._random.choice([("", 1), *sorted(FAILPOINTS.items())])
        failpoint = f"{place}:{self._random.randint(1, most)}" if place else ""
        began, name = monotonic(), await self._start(failpoint)
        dying = asyncio.create_task(self._see_end())
        with suppress(HubDied):
            await self._hub.wait_ready()
            self._outcome.recoveries.append(monotonic() - began)
        left = max(0.5, self._end - monotonic())
        seconds = min(self._random.uniform(0.5, 10), left)
        disturbing = asyncio.create_task(self._faults.disturb())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), HubApi(self._hub.url) as api:
                with suppress(aiohttp.ClientError):  # the next process knows as well
                    await self._population.look(api)
                await self._keep_busy(api)
        await disturbing
        await self._finish(name, place, dying)

    async def _see_end(self) -> Kill:
        """When the process ended, and for how long before it may have written nothing.

        A fault may still last when a failpoint ends the process.
        """
        at = await self._hub.wait_exit()
        since = self._faults.late_since
        return Kill(at, 0.0 if since is None else at - since + 1)

    async def _finish(self, name: str, place: str, dying: asyncio.Task[Kill]) -> None:
        self._measure()
        faults = self._faults.counts
        if self._hub.is_running and self._random.random() < 0.2:
            faults["restarts by SIGTERM"] += 1
            await self._hub.terminate()
            return
        if self._hub.is_running:
            faults["SIGKILL at a random moment"] += 1
            kill = Kill(await self._hub.kill())
        else:
            faults[f"SIGKILL {place}"] += 1
            kill = await dying
        lag = max(kill.lag, self._lag.most_since(kill.at - LAG_SECONDS))
        self._kills[name] = Kill(kill.at, lag)

    async def _keep_busy(self, api: HubApi, seconds: float = math.inf) -> None:
        """Publish and replace members until the process has ended, or for so long.

        No request is broken off at the end, as its outcome would be unknown.
        """
        end = monotonic() + seconds
        while monotonic() < end:
            for ask in self._publish, self._churn:
                began = monotonic()
                try:
                    await ask(api)
                except aiohttp.ClientResponseError as error:
                    self._see_refusal(error, began)
                except (aiohttp.ClientError, TimeoutError):
                    if not self._hub.is_running:
                        return
            await asyncio.sleep(self._random.uniform(0, 0.2))

    def _see_refusal(self, error: aiohttp.ClientResponseError, began: float) -> None:
        path = error.request_info.url.path
        asked = f"{error.request_info.method} {path}"
        self._outcome.refused[path.removeprefix("/api/").partition("/")[0]] += 1
        if error.status != NOTHING_STORED:
            self._outcome.complaints.append(f"{asked} was answered {error.status}")
        elif not self._faults.explain_refusal(began):
            self._outcome.complaints.append(f"{asked} was refused without need")

    async def _publish(self, api: HubApi) -> None:
        feed_id, feed = self._random.choice(self._population.feeds)
        self._publisher.publish(feed)
        await api.fetch(feed_id)

    async def _churn(self, api: HubApi) -> None:
        await self._population.churn(api, self._tasks)

    def _measure(self) -> None:
        if self._hub.is_running:
            with suppress(FileNotFoundError, ProcessLookupError, StopIteration):
                size = own_memory(self._hub.pid)
                self._outcome.largest = max(self._outcome.largest, size)

    async def _drain(self, api: HubApi, readers: Sequence[LiveReader] = ()) -> None:
        """Wait until everybody who can be reached has everything.

        The ``readers`` must be connected then.
        """
        deadline = monotonic() + DRAIN_SECONDS
        while monotonic() < deadline:
            if self._is_settled() and all(each.is_connected for each in readers):
                return
            for feed_id, _feed in self._population.feeds:
                await api.fetch(feed_id)
            listed = await api.deliveries()
            for retrying in listed["retrying"]:
                await api.retry(retrying["subscription"])
            await asyncio.sleep(0.5)

    def _is_settled(self) -> bool:
        evidence = self._evidence()
        if any(missing(each, evidence) for each in evidence.subscribers):
            return False
        return not any(self._population.judge())

    def _evidence(self) -> Evidence:
        return Evidence(
            subscribers=[with_news(each) for each in self._subscribers.all.values()],
            expected={
                feed.number: (2, feed.count) for _id, feed in self._population.feeds
            },
            kills=self._kills,
            window=WINDOW,
            in_flight=IN_FLIGHT,
            reading=READING,
        )

    def _conclude(self) -> None:
        evidence, outcome = self._evidence(), self._outcome
        outcome.complaints += judge(evidence)
        outcome.complaints += self._population.complaints
        outcome.complaints += self._population.judge()
        if self._subscribers.strays:
            outcome.complaints.append("requests came for callbacks nobody has")
        outcome.complaints += [
            f"the hub logged a fault: {line[:300]}"
            for line in self._hub.log
            if "Traceback" in line or "part_failed" in line
        ]
        readers = self._population.readers
        outcome.faults = self._faults.counts
        outcome.published = sum(feed.count for _id, feed in self._population.feeds)
        outcome.delivered = sum(len(each.accepted) for each in evidence.subscribers)
        outcome.copies = sum(
            len(list(duplicates(each, self._kills))) for each in evidence.subscribers
        )
        outcome.hostile = self._hostile.told
        outcome.read_live = sum(len(each.listener.numbers) for each in readers)
        outcome.connections = sum(each.listener.connections for each in readers)
        outcome.looked_up = self._population.members.looked_up
        outcome.subscribers, outcome.readers = len(evidence.subscribers), len(readers)
