"""A campaign: one database, one seed, many kills, and one verdict at the end.

A seed decides the feeds, the subscribers and their tempers, where each process dies
and what is published meanwhile. What the scheduler of the machine does is not in the
seed, so a campaign that failed may need a few runs to fail again.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from time import monotonic

import aiohttp

from tests.support.http_server import ServerAnswer
from tests.support.hub_process import LOOPBACK, HubApi, HubDied, HubProcess
from tests.support.oracle import Evidence, Kill, age_at_kill, duplicates, judge, missing
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import LoopLag

ACKNOWLEDGEMENT_WINDOW = 0.1
"""Seconds of acknowledgements that a kill may lose, as the hub promises."""

SCHEDULING_SLACK = 0.4
"""Seconds that a busy machine adds to that."""

IN_FLIGHT = 256 + 64
"""First deliveries and catch-ups that may be under way at once.

A delivery is under way until the hub has read the answer; on a busy machine, with
hundreds of them, that takes some time.
"""

READING_SECONDS = 2.0
"""The longest time until the hub has read an answer."""

LAG_SECONDS = 2.0
"""How long before a kill still counts as its moment: a busy machine is late."""

SERVER_FAILURES = 0.3
"""How often the server fails after a fetch, if it is to fail at all."""

FAILPOINTS = {
    "after-fetch": 6,
    "after-parse": 6,
    "before-commit": 3,
    "after-commit": 3,
    "mid-post": 60,
    "after-2xx": 60,
}
"""Places to die at, and the highest number of the passage at which it happens."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one process ends: at a failpoint, or by a kill after so many seconds.

    The kill comes if there is no failpoint, or it takes too long. ``after`` counts from
    the start, or if ``is_ready_first`` from when the process was ready.
    """

    failpoint: str = ""
    after: float = 10.0
    is_ready_first: bool = True


@dataclass(slots=True)
class Outcome:
    """The verdict on a campaign, with what happened in it."""

    seed: int
    complaints: list[str] = field(default_factory=list)
    kills: dict[str, Kill] = field(default_factory=dict)  # by the process's hub URL
    failpoints_reached: Counter[str] = field(default_factory=Counter)  # by place
    server_failures: int = 0
    published: int = 0
    accepted: int = 0
    ages: list[float] = field(default_factory=list)
    """Of each copy: seconds from the first answer to the kill that lost it."""


def run_campaign(seed: int, kills: int, directory: Path) -> Outcome:
    """Run one campaign from beginning to end, in a process without an event loop."""
    return asyncio.run(Campaign(seed, kills=kills, directory=directory).run())


class Campaign:
    def __init__(
        self,
        seed: int,
        *,
        kills: int,
        directory: Path,
        settings: Mapping[str, str] = LOOPBACK,
        fail_server: Callable[[], None] | None = None,
    ) -> None:
        """``fail_server`` has the database's server stop at once, and start anew."""
        self._settings = settings
        self._fail_server = fail_server
        self._random = random.Random(seed)
        self._kills = kills
        self._hub = HubProcess(directory, settings)
        self._runs = 0
        self._lag = LoopLag()
        self._publisher = Publisher()
        self._subscribers = Subscribers()
        self._feeds: list[tuple[int, PublishedFeed]] = []  # with the hub's feed id
        self._outcome = Outcome(seed=seed)
        self._pause = 0.05  # seconds between two publications, at most

    async def run(self) -> Outcome:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._lag)
            await stack.enter_async_context(self._publisher)
            await stack.enter_async_context(self._subscribers)
            async with self._hub, HubApi(self._hub.url) as api:
                await self._set_up(api)
                await self._hub.kill()
                for _ in range(self._kills):
                    await self._live_and_die()
                await self._start()
                await self._hub.wait_ready()
                await self._have_server_fail()
                await self._drain(api)
                await self._hub.terminate()
        self._conclude()
        return self._outcome

    async def _set_up(self, api: HubApi) -> None:
        """Make a few feeds with few subscribers each, or one with more than a chunk."""
        is_wide = self._random.random() < 0.2
        if is_wide:
            self._pause = 1.5
        for _ in range(1 if is_wide else 4):
            feed = self._publisher.add_feed()
            topic = self._publisher.url(feed)
            self._feeds.append((await api.add_feed(topic), feed))
            for index in range(520 if is_wide else 7):
                subscriber = self._add_subscriber(feed, topic, index)
                await api.subscribe(
                    callback=subscriber.url,
                    topic=topic,
                    secret=subscriber.secret,
                    format=subscriber.format,
                )

    def _add_subscriber(
        self, feed: PublishedFeed, topic: str, index: int
    ) -> Subscriber:
        subscriber = self._subscribers.add(
            f"s{feed.number}-{index}",
            feed=feed.number,
            topic=topic,
            secret=f"the secret of {index}",
            format=("json", "atom", "as-is")[index % 3],
        )
        if index % 7 >= 5:
            subscriber.answers = moody(random.Random(self._random.random()))
        return subscriber

    async def _live_and_die(self) -> None:
        """Run one process from its start to its violent end, with traffic meanwhile."""
        plan = self._next_plan()
        name = await self._start(failpoint=plan.failpoint)
        if plan.is_ready_first:
            await self._until_ready_or_dead()
        try:
            async with asyncio.timeout(plan.after):
                await self._keep_busy()
        except TimeoutError:
            pass  # it is time to kill it
        if self._hub.is_running:
            at = await self._hub.kill()
        else:
            at = await self._hub.wait_exit()
            self._outcome.failpoints_reached[plan.failpoint.partition(":")[0]] += 1
        self._outcome.kills[name] = Kill(at, self._lag.most_since(at - LAG_SECONDS))

    async def _until_ready_or_dead(self) -> None:
        with suppress(HubDied):  # at its failpoint, in its first deliveries
            await self._hub.wait_ready()

    async def _start(self, *, failpoint: str = "") -> str:
        """Start a process with a public URL of its own; return the URL of its hub."""
        self._runs += 1
        url = f"http://hub.example/{self._runs}"
        self._hub.settings = {**self._settings, "FANFARE_PUBLIC_URL": url}
        await self._hub.start(failpoint=failpoint)
        return f"{url}/hub"

    def _next_plan(self) -> Plan:
        if self._random.random() < 0.4:
            is_ready_first = self._random.random() < 0.8
            return Plan(
                after=self._random.uniform(0.0, 1.2), is_ready_first=is_ready_first
            )
        place, most = self._random.choice(sorted(FAILPOINTS.items()))
        return Plan(failpoint=f"{place}:{self._random.randint(1, most)}")

    async def _keep_busy(self) -> None:
        """Publish and have the hub fetch, until the hub is gone."""
        try:
            await self._hub.wait_ready()
            async with HubApi(self._hub.url) as api:
                while True:
                    feed_id, feed = self._random.choice(self._feeds)
                    for _ in range(self._random.randint(1, 2)):
                        self._publisher.publish(feed)
                    await self._fetch(api, feed_id)
                    if self._fail_server and self._random.random() < SERVER_FAILURES:
                        await self._have_server_fail()
                    await asyncio.sleep(self._random.uniform(0, self._pause))
        except (aiohttp.ClientError, HubDied):
            await self._hub.wait_exit()

    async def _fetch(self, api: HubApi, feed_id: int) -> None:
        """Ask again as long as the hub says that its server is away."""
        while True:
            try:
                return await api.fetch(feed_id)
            except aiohttp.ClientResponseError as error:
                if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                await asyncio.sleep(0.1)

    async def _have_server_fail(self) -> None:
        if self._fail_server is not None:
            await asyncio.to_thread(self._fail_server)
            self._outcome.server_failures += 1

    async def _drain(self, api: HubApi) -> None:
        """Give the hub time to deliver everything; retries are made due at once."""
        for feed_id, _feed in self._feeds:
            await self._fetch(api, feed_id)
        deadline = monotonic() + 60
        while monotonic() < deadline:
            listed = await api.deliveries()
            if not listed["retrying"] and not self._missing():
                return
            for retrying in listed["retrying"]:
                await api.retry(retrying["subscription"])
            await asyncio.sleep(0.3)

    def _missing(self) -> bool:
        evidence = self._evidence()
        return any(missing(each, evidence) for each in evidence.subscribers)

    def _evidence(self) -> Evidence:
        return Evidence(
            subscribers=list(self._subscribers.all.values()),
            expected={feed.number: (2, feed.count) for _id, feed in self._feeds},
            kills=self._outcome.kills,
            window=ACKNOWLEDGEMENT_WINDOW + SCHEDULING_SLACK,
            in_flight=IN_FLIGHT,
            reading=READING_SECONDS,
        )

    def _conclude(self) -> None:
        evidence = self._evidence()
        outcome = self._outcome
        outcome.complaints += judge(evidence)
        if self._subscribers.strays:
            outcome.complaints.append("requests came for callbacks nobody has")
        outcome.published = sum(feed.count for _id, feed in self._feeds)
        outcome.accepted = sum(len(each.accepted) for each in evidence.subscribers)
        outcome.ages = [
            age_at_kill(earlier, later, outcome.kills) or 0.0
            for subscriber in evidence.subscribers
            for earlier, later in duplicates(subscriber, outcome.kills)
        ]


def moody(mood: random.Random) -> Iterator[ServerAnswer]:
    """Yield mostly good answers, now and then an error or one that is too slow."""
    while True:
        throw = mood.random()
        if throw < 0.1:
            yield ServerAnswer(status=500)
        elif throw < 0.15:
            yield ServerAnswer(delay=1.3)
        else:
            yield ServerAnswer()
