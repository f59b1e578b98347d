"""One seed: a world, lives and deaths of a hub in it, and the verdict at the end."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from structlog.testing import capture_logs

from hub.jobs import Job
from hub.services.feed_requests import AddFeed
from hub.services.subscriptions import Subscribe
from protocols.websub.requests import PublishRequest, SubscribeRequest
from storage.errors import StorageError
from storage.records import Format, SubscriptionId
from tests.simulation.disk import Disk, empty_database
from tests.simulation.listeners import Listener
from tests.simulation.loop import VirtualLoop
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.network import SLOWEST_WAY
from tests.simulation.process import PlayedTime, Process
from tests.simulation.troubles import Troubles
from tests.simulation.world import World
from tests.support.oracle import (
    Evidence,
    Kill,
    duplicates,
    judge,
    missing,
    with_news,
)
from tests.support.subscribers import Subscriber

_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
WINDOW = 0.1 + 0.2
"""Seconds: acknowledgements are gathered, and a write takes at most so long."""
IN_FLIGHT = 256 + 64
LATE = 2 * SLOWEST_WAY + 20.0
"""Virtual seconds after the end of a subscription in which what was under way may come,
when the process was stalled meanwhile."""
NEVER_PUBLISHED = 10**9
"""The first entry of one of whom nobody knows whether it has subscribed."""
PATIENCE = 30.0
"""Virtual seconds until the operator has stragglers tried, whose turn may be hours
away, when nothing goes wrong any more."""
LONGEST_PEACE = 8_000.0
"""Within so many everything has to arrive."""
_DEATHS = {
    "before-write": 60,
    "after-write": 60,
    "before-request": 40,
    "after-answer": 40,
}
"""Where a process may die, and at most at which time of passing the place."""
_JOBS = ("log_trimmed", "attempts_trimmed", "removals_finished", "leases_expired")


@dataclass(slots=True)
class Verdict:
    seed: str
    complaints: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    published: int = 0
    delivered: int = 0
    copies: int = 0
    listened: int = 0  # entries, over all listeners
    recoveries: list[float] = field(default_factory=list)
    """Virtual seconds from the last fault until all had everything."""
    fingerprint: str = ""


def run_seed(
    seed: int | str, *, disk_forgets: bool = False, mutant: str = ""
) -> Verdict:
    """One run, in a loop of its own; the same seed is the same run.

    With ``disk_forgets``, or one of the `MUTANTS`, promises are broken, which has to
    be noticed.
    """
    fault = MUTANTS[mutant](Random(f"{seed}/mutant")) if mutant else None
    empty = empty_database()
    with (
        tempfile.TemporaryDirectory(prefix="fanfare-", dir=_IN_MEMORY) as directory,
        capture_logs() as logs,
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        story = Story(str(seed), Path(directory), empty, disk_forgets, fault)
        try:
            runner.run(story.tell())
        except Exception as error:
            story.verdict.complaints.append(f"{type(error).__name__}: {error}")
    story.verdict.complaints += _faults_logged(logs)
    return story.verdict


class Story:
    def __init__(
        self,
        seed: str,
        directory: Path,
        empty: Mapping[str, bytes],
        disk_forgets: bool,
        mutant: Mutant | None,
    ) -> None:
        self.verdict = Verdict(seed=seed)
        self._seed = seed
        self._empty = empty
        self._disk_forgets = disk_forgets
        self._directory = directory
        self._random = Random(f"{seed}/story")
        self._world = World(Random(f"{seed}/world"))
        self._time = PlayedTime()
        self._kills: dict[str, Kill] = {}
        self._feed_ids: list[int] = []
        self._ids: dict[str, SubscriptionId] = {}  # by callback
        self._listeners: list[Listener] = []
        self._lives = 0
        self._troubles = Troubles(Random(f"{seed}/troubles"), self._time, self._count)
        self._mutant = mutant
        self._left: list[tuple[Subscriber, float]] = []
        self._process: Process

    async def tell(self) -> None:
        random = Random(f"{self._seed}/disk/1")
        disk = Disk(self._directory / "1", random, is_forgetful=self._disk_forgets)
        disk.format(self._empty)
        await self._begin(disk)
        await self._set_up()
        self._world.is_moody = True
        for _ in range(self._random.randint(1, 5)):
            await self._live()
            await self._end()
        await self._reach_peace()
        evidence = await self._evidence()
        await self._process.stop()
        self._conclude(evidence)

    async def _begin(self, disk: Disk) -> None:
        self._lives += 1
        self._process = Process(self._lives, self._world, disk, self._time, self._seed)
        self._world.note(f"life {self._lives}")
        self._process.network.mutant = self._mutant
        await self._process.start()
        for listener in self._listeners:
            self._process.spawn(listener.listen(self._process.hub))

    async def _set_up(self) -> None:
        services = self._process.hub.services
        for url in self._world.feeds:
            added = await services.feeds.add(AddFeed(url=url))
            self._feed_ids.append(added.feed.id)
        for subscriber in self._world.subscribers.values():
            await self._subscribe(subscriber)
        for index in range(self._random.randint(0, 4)):
            url, feed = self._random.choice(list(self._world.feeds.items()))
            self._listeners.append(
                Listener(
                    name=f"listener {index}",
                    topic=url,
                    feed=feed.number,
                    first=2,
                    random=Random(f"{self._seed}/listener/{index}"),
                    cursor=str(await self._process.storage.log.head()),
                )
            )
            self._process.spawn(self._listeners[-1].listen(self._process.hub))

    async def _subscribe(self, subscriber: Subscriber) -> None:
        """As the operator does, or as strangers do who are asked if they mean it."""
        services, storage = self._process.hub.services, self._process.storage
        is_stranger = subscriber.format == "as-is" and self._random.random() < 0.7
        if not is_stranger:
            await self._add(subscriber)
            return
        subscriber.algorithm = "sha256"
        await services.websub.request(
            SubscribeRequest(
                topic=subscriber.topic,
                callback=subscriber.callback,
                secret=subscriber.secret,
                algorithm="sha256",
                lease_seconds=864_000,
            )
        )
        feed_id = self._feed_ids[subscriber.feed - 1]
        before = await storage.subscriptions.count(feed_id)
        while True:
            if await storage.subscriptions.count(feed_id) > before:
                return
            await asyncio.sleep(1)

    async def _add(self, subscriber: Subscriber) -> None:
        added = await self._process.hub.services.subscriptions.add(
            Subscribe(
                callback=subscriber.callback,
                topic=subscriber.topic,
                secret=subscriber.secret,
                format=Format(subscriber.format),
            )
        )
        self._ids[subscriber.callback] = added.subscription.id

    async def _live(self) -> None:
        """Traffic and trouble, until this process is to end, or has."""
        self._process.network.trouble = self._random.choice((0.0, 0.05, 0.3))
        if self._random.random() < 0.7:
            place, most = self._random.choice(sorted(_DEATHS.items()))
            self._process.die_at(place, self._random.randint(1, most))
        end = (
            asyncio.get_running_loop().time()
            + self._random.choice((5, 20, 20, 60, 200)) * self._random.random()
        )
        while asyncio.get_running_loop().time() < end:
            for _ in range(self._random.randint(1, 3)):
                if not self._process.died.is_set():
                    await self._unless_dead(self._act())
            if await self._has_died(self._random.choice((0.02, 0.5, 3.0, 10.0))):
                return

    async def _has_died(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(self._random.uniform(0, seconds)):
                await self._process.died.wait()
        except TimeoutError:
            return False
        return True

    async def _unless_dead(self, action: object) -> None:
        """What is asked of a process that dies meanwhile is never answered."""
        asking = asyncio.ensure_future(action)  # type: ignore[call-overload]
        dying = asyncio.ensure_future(self._process.died.wait())
        await asyncio.wait({asking, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if not asking.done():
            asking.cancel()
            await asyncio.wait({asking})
        elif (error := asking.exception()) and not isinstance(error, StorageError):
            raise error

    async def _act(self) -> None:
        throw = self._random.random()
        if throw < 0.45:
            self._world.publish()
        elif throw < 0.75:
            feed_id = self._random.choice(self._feed_ids)
            await self._process.hub.services.feeds.fetch(feed_id)  # type: ignore[arg-type]
        elif throw < 0.8:
            self._world.disturb()
            self._count("publisher in trouble")
        elif throw < 0.88:
            await self._troubles.befall(self._process.disk)
        elif throw < 0.90:
            await self._ping()
        elif throw < 0.92:
            await self._churn()
        elif throw < 0.96:
            await self._keep_house()
        else:
            await self._hurry()

    async def _ping(self) -> None:
        """A publisher says that there is something new, which is so."""
        feed = self._world.publish()
        url = next(url for url, each in self._world.feeds.items() if each is feed)
        self._count("pings")
        await self._process.hub.services.websub.publish(PublishRequest(topics=(url,)))

    async def _churn(self) -> None:
        """A subscriber goes, or another comes."""
        if self._ids and self._random.random() < 0.5:
            await self._unsubscribe(self._random.choice(list(self._ids)))
            return
        self._count("subscribed meanwhile")
        url, feed = self._random.choice(list(self._world.feeds.items()))
        index = len(self._world.subscribers) + 100
        subscriber = self._world.add_subscriber(feed, url, index)
        subscriber.first, subscriber.has_left = NEVER_PUBLISHED, True
        await self._add(subscriber)
        subscriber.first, subscriber.has_left = feed.count + 1, False

    async def _unsubscribe(self, callback: str) -> None:
        """What it is owed from now on is nothing, whether that is heard of or not."""
        self._count("unsubscribed meanwhile")
        subscriber = self._world.subscribers[callback]
        subscriber.has_left = True
        subscriptions = self._process.hub.services.subscriptions
        await subscriptions.remove(
            self._ids[callback], tell=self._random.random() < 0.5
        )
        self._left.append((subscriber, asyncio.get_running_loop().time()))
        del self._ids[callback]

    async def _keep_house(self) -> None:
        house = self._process.housekeeping
        await house.do(self._random.choice(_jobs(house.jobs)))

    async def _hurry(self) -> None:
        """The operator has stragglers tried again now."""
        deliveries = self._process.storage.deliveries
        for each in await deliveries.stragglers(after=SubscriptionId(0), limit=10):
            await deliveries.retry_straggler(
                each.subscription.id, self._process.clock.now()
            )

    async def _end(self) -> None:
        """Of this process, by its death, by a kill, or as it should; then the next."""
        if (failure := self._process.failure) is not None:
            raise failure
        directory = self._directory / str(self._lives + 1)
        random = Random(f"{self._seed}/disk/{self._lives + 1}")
        if not self._process.died.is_set() and self._random.random() < 0.3:
            self._count("restarts")
            self._process.disk.clear()
            await self._process.stop()
        else:
            self._process.die()
            self._note_kill()
            await self._process.bury(())
        await self._begin(self._process.disk.crash(directory, random))

    def _note_kill(self) -> None:
        self._count("kills")
        at = self._process.died_at
        since, self._troubles.late_since = self._troubles.late_since, None
        lag = 0.0 if since is None else at - since + 5
        self._kills[f"{self._process.hub_url}/hub"] = Kill(at, lag)

    async def _reach_peace(self) -> None:
        """Nothing goes wrong any more: now everything has to arrive."""
        loop = asyncio.get_running_loop()
        self._process.network.trouble = 0.0
        self._process.disk.clear()
        self._world.heal()
        self._world.publish()
        began = loop.time()
        longest = LONGEST_PEACE if self._mutant is None else PATIENCE
        while not await self._is_settled():
            if loop.time() > began + longest:
                return  # the oracle says what is missing
            for feed_id in self._feed_ids:
                await self._process.hub.services.feeds.fetch(feed_id)  # type: ignore[arg-type]
            waited = loop.time() - began
            if waited > PATIENCE:
                await self._hurry()
            await asyncio.sleep(max(5.0, waited / 10))
        self.verdict.recoveries.append(loop.time() - began)

    async def _is_settled(self) -> bool:
        backlog = await self._process.storage.backlog()
        if backlog.fanouts or backlog.chunks or backlog.stragglers:
            return False
        evidence = await self._evidence()
        if any(missing(each, evidence) for each in evidence.subscribers):
            return False
        return not any(each.judge(self._last(each.feed)) for each in self._listeners)

    def _last(self, feed: int) -> int:
        return next(
            each.count for each in self._world.feeds.values() if each.number == feed
        )

    async def _evidence(self) -> Evidence:
        dead = await self._process.storage.deliveries.dead(after=0, limit=1_000)
        return Evidence(
            subscribers=[with_news(each) for each in self._world.subscribers.values()],
            expected={
                each.number: (2, each.count) for each in self._world.feeds.values()
            },
            kills=self._kills,
            window=WINDOW,
            in_flight=IN_FLIGHT,
            reading=SLOWEST_WAY + WINDOW,
            dead=frozenset(each.callback for each in dead),
        )

    def _conclude(self, evidence: Evidence) -> None:
        verdict = self.verdict
        verdict.complaints += judge(evidence)
        for listener in self._listeners:
            verdict.complaints += listener.judge(self._last(listener.feed))
        verdict.complaints += self._late_comers()
        if self._world.strays:
            verdict.complaints.append(f"asked for {self._world.strays[:3]}")
        verdict.kills = len(self._kills)
        verdict.published = sum(last for _first, last in evidence.expected.values())
        verdict.delivered = sum(len(each.accepted) for each in evidence.subscribers)
        verdict.copies = sum(
            len(list(duplicates(each, self._kills))) for each in evidence.subscribers
        )
        verdict.listened = sum(len(each.numbers) for each in self._listeners)
        verdict.fingerprint = self._world.fingerprint

    def _late_comers(self) -> Iterator[str]:
        for subscriber, left_at in self._left:
            last = max((each.started for each in subscriber.receipts), default=0.0)
            if last > left_at + LATE:
                yield f"{subscriber.name} was sent more {last - left_at:.0f} s late"

    def _count(self, fault: str) -> None:
        self.verdict.faults[fault] += 1
        self._world.note(fault)


def _jobs(jobs: tuple[Job, ...]) -> list[Job]:
    return [job for job in jobs if job.name in _JOBS]


def _faults_logged(logs: list[dict[str, object]]) -> Iterator[str]:
    """Whatever is logged with a traceback is a fault of the hub's own."""
    for line in logs:
        if line.get("exc_info"):
            yield f"{line['event']}: {line}"
