"""Two hubs at one database on a server: one works, the other waits for its term to end.

In each round the hub that works is killed, or stopped as a machine that hangs, amid
deliveries; the other takes over. A hub that goes on after its term has been taken
ends. The oracle outside says what was lost or repeated.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.crash_campaign import (
    ACKNOWLEDGEMENT_WINDOW,
    IN_FLIGHT,
    LAG_SECONDS,
    READING_SECONDS,
    SCHEDULING_SLACK,
    moody,
)
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.oracle import Evidence, Kill, duplicates, judge, missing
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscribers
from tests.support.waiting import LoopLag, eventually

ENDS: Final = (signal.SIGKILL, signal.SIGSTOP)
"""What happens to the hub that works, in turn."""
FEEDS, SUBSCRIBERS = 2, 6
ENTRIES = 5
"""Entries of each feed that are published before a hub's end, and after it."""


@dataclass(slots=True)
class Outcome:
    complaints: list[str] = field(default_factory=list)
    takeovers: int = 0
    published: int = 0
    accepted: int = 0
    copies: int = 0


class TakeoverCampaign:
    def __init__(self, seed: int, rounds: int, directory: Path, location: str) -> None:
        """``location``: that of an empty database on a server."""
        self._random = random.Random(seed)
        self._rounds = rounds
        self._hubs = [self._hub(directory / name, location) for name in ("a", "b")]
        self._lag = LoopLag()
        self._publisher, self._subscribers = Publisher(), Subscribers()
        self._feeds: list[tuple[int, PublishedFeed]] = []  # with the hub's feed id
        self._kills: dict[str, Kill] = {}  # by the hub's URL
        self._runs = 0
        self._outcome = Outcome()

    def _hub(self, directory: Path, location: str) -> HubProcess:
        directory.mkdir()
        settings = {
            **LOOPBACK,
            "FANFARE_DATABASE": location,
            "FANFARE_STATE_DIR": str(directory),
        }
        return HubProcess(directory, settings)

    async def run(self) -> Outcome:
        working, waiting = self._hubs
        async with AsyncExitStack() as stack:
            for each in (self._lag, self._publisher, self._subscribers):
                await stack.enter_async_context(each)
            for hub in self._hubs:
                stack.push_async_exit(hub)
            await self._start(working)
            await working.wait_ready()
            shutil.copy(working.directory / "fanfare.key", waiting.directory)
            await self._set_up(working)
            for number in range(self._rounds):
                await self._take_over(working, waiting, ENDS[number % len(ENDS)])
                working, waiting = waiting, working
            await eventually(partial(self._has_all, working))
            await working.terminate()
        self._conclude()
        return self._outcome

    async def _start(self, hub: HubProcess) -> None:
        """Start a process with a public URL of its own."""
        self._runs += 1
        url = f"http://hub.example/{self._runs}"
        hub.settings = {**hub.settings, "FANFARE_PUBLIC_URL": url}
        await hub.start()

    async def _set_up(self, hub: HubProcess) -> None:
        async with HubApi(hub.url) as api:
            for _ in range(FEEDS):
                feed = self._publisher.add_feed()
                topic = self._publisher.url(feed)
                self._feeds.append((await api.add_feed(topic), feed))
                for index in range(SUBSCRIBERS):
                    await self._subscribe(api, feed, topic, index)

    async def _subscribe(
        self, api: HubApi, feed: PublishedFeed, topic: str, index: int
    ) -> None:
        subscriber = self._subscribers.add(
            f"s{feed.number}-{index}",
            feed=feed.number,
            topic=topic,
            secret=f"the secret of {index}",
            format=("json", "atom", "as-is")[index % 3],
        )
        if index >= SUBSCRIBERS - 2:
            subscriber.answers = moody(random.Random(self._random.random()))
        await api.subscribe(
            callback=subscriber.url,
            topic=topic,
            secret=subscriber.secret,
            format=subscriber.format,
        )

    async def _take_over(
        self, working: HubProcess, waiting: HubProcess, end: signal.Signals
    ) -> None:
        """Raises `HubDied` if the other hub does not get the database in time."""
        await self._start(waiting)
        await self._publish(working)
        await asyncio.sleep(self._random.uniform(0, 0.2))  # somewhere in deliveries
        name = f"{working.settings['FANFARE_PUBLIC_URL']}/hub"
        at = asyncio.get_running_loop().time()
        os.kill(working.pid, end)
        self._kills[name] = Kill(at, self._lag.most_since(at - LAG_SECONDS))
        await waiting.wait_ready()
        await self._publish(waiting)
        if end is signal.SIGSTOP:
            os.kill(working.pid, signal.SIGCONT)
        await working.wait_exit()
        self._outcome.takeovers += 1
        if end is signal.SIGSTOP and "taken over" not in working.last_words:
            self._outcome.complaints.append(f"{name} went on: {working.last_words}")

    async def _publish(self, hub: HubProcess) -> None:
        async with HubApi(hub.url) as api:
            for feed_id, feed in self._feeds * ENTRIES:
                self._publisher.publish(feed)
                await api.fetch(feed_id)

    async def _has_all(self, hub: HubProcess) -> bool:
        """Retries are made due at once."""
        async with HubApi(hub.url) as api:
            for retrying in (await api.deliveries())["retrying"]:
                await api.retry(retrying["subscription"])
        evidence = self._evidence()
        return not any(missing(each, evidence) for each in evidence.subscribers)

    def _evidence(self) -> Evidence:
        return Evidence(
            subscribers=list(self._subscribers.all.values()),
            expected={feed.number: (2, feed.count) for _id, feed in self._feeds},
            kills=self._kills,
            window=ACKNOWLEDGEMENT_WINDOW + SCHEDULING_SLACK,
            in_flight=IN_FLIGHT,
            reading=READING_SECONDS,
        )

    def _conclude(self) -> None:
        evidence, outcome = self._evidence(), self._outcome
        outcome.complaints += judge(evidence)
        outcome.published = sum(feed.count for _id, feed in self._feeds)
        outcome.accepted = sum(len(each.accepted) for each in evidence.subscribers)
        outcome.copies = sum(
            1 for each in evidence.subscribers for _ in duplicates(each, self._kills)
        )
