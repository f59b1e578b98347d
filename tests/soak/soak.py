"""A hub under fire for some minutes: one seed, many faults, one verdict.

What the seed decides is who there is, who misbehaves how, and what is done to the hub
in which order; what the machine's scheduler does is not in it.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import aiohttp

from tests.simulation.listeners import Listener
from tests.soak.hostile import HOSTILE
from tests.soak.readers import LiveReader
from tests.support.crash_campaign import FAILPOINTS, moody
from tests.support.hub_api import HubApi
from tests.support.hub_process import LOOPBACK, HubDied, HubProcess
from tests.support.loop_lag import LoopLag
from tests.support.oracle import Evidence, Kill, duplicates, judge, missing
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.receiver import Receiver
from tests.support.subscribers import Subscribers

FEEDS, SUBSCRIBERS_EACH, READERS_EACH = 4, 8, 3
WINDOW, IN_FLIGHT, READING, LAG_SECONDS = 0.5, 320, 2.0, 2.0
"""As in the crash campaigns: what a kill on a busy machine may cost."""
QUIET = 3.0
"""Seconds after a fault until the next kill, so that each copy has one cause."""
DRAIN_SECONDS = 120.0


@dataclass(slots=True)
class Outcome:
    """The verdict, with what was done and what came of it."""

    seed: int
    complaints: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    hostile: Counter[str] = field(default_factory=Counter)  # requests they got
    recoveries: list[float] = field(default_factory=list)  # seconds, kill to ready
    published: int = 0
    delivered: int = 0
    copies: int = 0
    read_live: int = 0
    connections: int = 0
    largest: int = 0  # bytes of memory of a process, at most


class Soak:
    def __init__(self, seed: int, seconds: float, directory: Path) -> None:
        self._random = random.Random(seed)
        self._end = monotonic() + seconds
        self._hub = HubProcess(directory=directory)
        self._lag = LoopLag()
        self._publisher = Publisher()
        self._subscribers = Subscribers()
        self._receiver = Receiver(keeps=False)
        self._feeds: list[tuple[int, PublishedFeed]] = []  # with the hub's feed id
        self._readers: list[LiveReader] = []
        self._kills: dict[str, Kill] = {}
        self._runs = 0
        self._outcome = Outcome(seed=seed)

    async def run(self) -> Outcome:
        async with AsyncExitStack() as stack:
            for each in (self._lag, self._publisher, self._subscribers, self._receiver):
                await stack.enter_async_context(each)  # type: ignore[arg-type]
            async with self._hub, HubApi(self._hub) as api:
                await self._set_up(api)
                cursor = await self._readers[0].find_cursor()
                for reader in self._readers:
                    reader.listener.cursor = cursor
                await self._hub.kill()
                tasks = await stack.enter_async_context(asyncio.TaskGroup())
                reading = [tasks.create_task(each.run()) for each in self._readers]
                while monotonic() < self._end:
                    await self._live_and_die()
                await self._start()
                await self._hub.wait_ready()
                await self._drain(api)
                for task in reading:
                    task.cancel()
                self._measure()
                await self._hub.terminate()
        self._conclude()
        return self._outcome

    async def _set_up(self, api: HubApi) -> None:
        for number in range(FEEDS):
            feed = self._publisher.add_feed()
            topic = self._publisher.url(feed)
            self._feeds.append((await api.add_feed(topic), feed))
            for index in range(SUBSCRIBERS_EACH):
                await self._subscribe(api, feed, topic, index)
            for index in range(READERS_EACH):
                self._add_reader(feed, topic, index)
            names = list(HOSTILE)[number::FEEDS]
            for name in names:
                self._receiver.script(f"/{name}", *HOSTILE[name])
                callback = self._receiver.url(f"/{name}")
                await api.subscribe(callback=callback, topic=topic)

    async def _subscribe(
        self, api: HubApi, feed: PublishedFeed, topic: str, index: int
    ) -> None:
        format = ("json", "atom", "as-is")[index % 3]
        subscriber = self._subscribers.add(
            f"s{feed.number}-{index}", feed=feed.number, topic=topic, format=format
        )
        if index >= SUBSCRIBERS_EACH - 2:
            subscriber.replies = moody(random.Random(self._random.random()))
        await api.subscribe(
            callback=subscriber.callback,
            topic=topic,
            secret=subscriber.secret,
            format=format,
        )

    def _add_reader(self, feed: PublishedFeed, topic: str, index: int) -> None:
        listener = Listener(
            name=f"reader {feed.number}-{index}",
            topic=topic,
            feed=feed.number,
            first=2,
            random=random.Random(self._random.random()),
        )
        reader = LiveReader(
            listener,
            self._hub.url,
            is_socket=index % 2 == 0,
            pause=0.5 if index == READERS_EACH - 1 else 0.0,
        )
        self._readers.append(reader)

    async def _start(self, failpoint: str = "") -> str:
        self._runs += 1
        url = f"http://hub.example/{self._runs}"
        self._hub.settings = {**LOOPBACK, "FANFARE_PUBLIC_URL": url}
        await self._hub.start(failpoint=failpoint)
        return f"{url}/hub"

    async def _live_and_die(self) -> None:
        """One process, with traffic, a fault or two, and one of several ends."""
        place, most = self._random.choice([("", 1), *sorted(FAILPOINTS.items())])
        failpoint = f"{place}:{self._random.randint(1, most)}" if place else ""
        began, name = monotonic(), await self._start(failpoint)
        with suppress(HubDied):
            await self._hub.wait_ready()
            self._outcome.recoveries.append(monotonic() - began)
        seconds = min(self._random.uniform(0.5, 10), max(0.5, self._end - monotonic()))
        disturbing = asyncio.create_task(self._disturb())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._keep_busy()
        await disturbing
        await self._finish(name, place)

    async def _finish(self, name: str, place: str) -> None:
        self._measure()
        if self._hub.is_running and self._random.random() < 0.2:
            self._outcome.faults["restarts by SIGTERM"] += 1
            await self._hub.terminate()
            return
        if self._hub.is_running:
            self._outcome.faults["SIGKILL at a random moment"] += 1
            at = await self._hub.kill()
        else:
            self._outcome.faults[f"SIGKILL {place}"] += 1
            at = await self._hub.wait_exit()
        self._kills[name] = Kill(at, self._lag.most_since(at - LAG_SECONDS))

    async def _keep_busy(self) -> None:
        try:
            async with HubApi(self._hub) as api:
                while True:
                    feed_id, feed = self._random.choice(self._feeds)
                    self._publisher.publish(feed)
                    await api.fetch(feed_id)
                    await asyncio.sleep(self._random.uniform(0, 0.2))
        except (aiohttp.ClientError, HubDied, TimeoutError):
            await self._hub.wait_exit()

    async def _disturb(self) -> None:
        """At most one fault, and some time to get over it."""
        fault = self._random.choice((None, None, self._stall, self._fill_disk))
        await asyncio.sleep(self._random.uniform(0.2, 2))
        if fault is not None and self._hub.is_running:
            await fault()
            await asyncio.sleep(QUIET)

    async def _stall(self) -> None:
        self._outcome.faults["process stopped (SIGSTOP) and continued"] += 1
        self._signal(signal.SIGSTOP)
        await asyncio.sleep(self._random.uniform(0.5, 3))
        self._signal(signal.SIGCONT)

    async def _fill_disk(self) -> None:
        """No file of the process can grow; its log goes through a pipe."""
        self._outcome.faults["disk full"] += 1
        wal = self._hub.database.with_name("hub.db-wal")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        with suppress(ProcessLookupError, FileNotFoundError):
            most = max(4_096, wal.stat().st_size)
            resource.prlimit(self._hub.pid, resource.RLIMIT_FSIZE, (most, hard))
            await asyncio.sleep(self._random.uniform(0.5, 3))
            resource.prlimit(self._hub.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def _signal(self, number: signal.Signals) -> None:
        if self._hub.is_running:
            with suppress(ProcessLookupError):
                os.kill(self._hub.pid, number)

    def _measure(self) -> None:
        if not self._hub.is_running:
            return
        with suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{self._hub.pid}/status").read_text()
            line = next(x for x in status.splitlines() if x.startswith("VmRSS"))
            self._outcome.largest = max(
                self._outcome.largest, int(line.split()[1]) * 1024
            )

    async def _drain(self, api: HubApi) -> None:
        """Until all who can be reached have everything."""
        deadline = monotonic() + DRAIN_SECONDS
        while monotonic() < deadline and not self._is_settled():
            for feed_id, _feed in self._feeds:
                await api.fetch(feed_id)
            listed = await api.deliveries()
            for straggler in listed["stragglers"]:
                await api.retry(straggler["subscription"])
            await asyncio.sleep(0.5)

    def _is_settled(self) -> bool:
        evidence = self._evidence()
        if any(missing(each, evidence) for each in evidence.subscribers):
            return False
        return not any(self._judge(each) for each in self._readers)

    def _judge(self, reader: LiveReader) -> list[str]:
        listener = reader.listener
        _id, feed = self._feeds[listener.feed - 1]
        return listener.judge(feed.count)

    def _evidence(self) -> Evidence:
        return Evidence(
            subscribers=list(self._subscribers.all.values()),
            expected={feed.number: (2, feed.count) for _id, feed in self._feeds},
            kills=self._kills,
            window=WINDOW,
            in_flight=IN_FLIGHT,
            reading=READING,
        )

    def _conclude(self) -> None:
        evidence, outcome = self._evidence(), self._outcome
        outcome.complaints += judge(evidence)
        for reader in self._readers:
            outcome.complaints += self._judge(reader)
        if self._subscribers.strays:
            outcome.complaints.append("requests came for callbacks nobody has")
        outcome.complaints += [
            f"the hub logged a fault: {line[:300]}"
            for line in self._hub.log
            if "Traceback" in line or "part_failed" in line
        ]
        outcome.published = sum(feed.count for _id, feed in self._feeds)
        outcome.delivered = sum(len(each.accepted) for each in evidence.subscribers)
        outcome.copies = sum(
            len(list(duplicates(each, self._kills))) for each in evidence.subscribers
        )
        outcome.hostile = Counter(self._receiver.counts)
        outcome.read_live = sum(len(each.listener.numbers) for each in self._readers)
        outcome.connections = sum(each.listener.connections for each in self._readers)
