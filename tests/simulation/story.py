"""One seed: a world, lives and deaths of a hub in it, and the verdict at the end."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random

from structlog.testing import capture_logs

from hub.delivery.dispatcher import DeliveryLimits
from hub.services.feed_requests import AddFeed
from tests.simulation.acts import Acts
from tests.simulation.backups import Backups
from tests.simulation.court import Court
from tests.simulation.disk import Disk, empty_database
from tests.simulation.listeners import Listener
from tests.simulation.loop import VirtualLoop
from tests.simulation.membership import Membership
from tests.simulation.mutants import MUTANTS, Mutation
from tests.simulation.pauses import Pauses
from tests.simulation.peace import LONGEST_PEACE, PATIENCE_WITH_MUTANTS, Peace
from tests.simulation.process import PlayedTime, Process
from tests.simulation.stage import Stage
from tests.simulation.troubles import Troubles
from tests.simulation.verdict import Verdict, faults_logged
from tests.simulation.world import Host, World

_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
_DEATHS = {
    "before-write": 60,
    "after-write": 60,
    "before-request": 40,
    "after-answer": 40,
}
"""Where a process may die, and at most at which time of passing the place."""
_ABSENCES = (1_800.0, 3 * 3_600.0, 12 * 3_600.0)
"""Seconds that a hub may be off, at most: leases of subscriptions elsewhere end."""


def run_seed(
    seed: int | str, *, disk_forgets: bool = False, mutant: str = ""
) -> Verdict:
    """One run, in a loop of its own; the same seed is the same run.

    With ``disk_forgets``, or one of the `MUTANTS`, promises are broken, which has to
    be noticed.
    """
    mutation = MUTANTS[mutant](Random(f"{seed}/mutant")) if mutant else None
    empty = empty_database()
    with (
        tempfile.TemporaryDirectory(prefix="fanfare-", dir=_IN_MEMORY) as directory,
        capture_logs() as logs,
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        story = Story(str(seed), Path(directory), empty, disk_forgets, mutation)
        try:
            runner.run(story.tell())
        except Exception as error:
            story.verdict.complaints.append(f"{type(error).__name__}: {error}")
    story.verdict.complaints += faults_logged(logs)
    return story.verdict


class Story:
    def __init__(
        self,
        seed: str,
        directory: Path,
        empty: Mapping[str, bytes],
        disk_forgets: bool,
        mutation: Mutation | None,
    ) -> None:
        self.verdict = Verdict(seed=seed)
        self._stage = stage = Stage(
            seed=seed,
            directory=directory,
            random=Random(f"{seed}/story"),
            world=World(Random(f"{seed}/world"), self._count),
            time=PlayedTime(),
            verdict=self.verdict,
        )
        self._empty = empty
        self._disk_forgets = disk_forgets
        self._mutation = mutation
        self._lives = 0
        is_ignored = mutation is not None and mutation.ignores_pauses
        pauses = Pauses(Random(f"{seed}/pauses"), stage, is_ignored=is_ignored)
        self._membership = Membership(stage, pauses)
        keeps_epoch = mutation is not None and mutation.keeps_epoch
        self._backups = Backups(stage, self._membership, keeps_epoch=keeps_epoch)
        self._court = Court(stage, self._membership, self._backups, pauses)
        self._acts = Acts(
            stage,
            self._membership,
            self._backups,
            Troubles(Random(f"{seed}/troubles"), stage),
        )
        self._peace = Peace(stage, self._membership, self._court, self._acts)

    async def tell(self) -> None:
        random = Random(f"{self._stage.seed}/disk/1")
        disk = Disk(
            self._stage.directory / "1", random, is_forgetful=self._disk_forgets
        )
        disk.format(self._empty)
        await self._begin(disk)
        await self._set_up()
        self._stage.world.trouble()
        for _ in range(self._stage.random.randint(1, 5)):
            await self._live()
            await self._end()
        is_sane = self._mutation is None
        await self._peace.reach(LONGEST_PEACE if is_sane else PATIENCE_WITH_MUTANTS)
        evidence = await self._court.evidence()
        await self._stop()
        self._court.conclude(evidence)

    async def _begin(self, disk: Disk) -> None:
        stage = self._stage
        self._lives += 1
        process = Process(self._lives, stage.world, disk, stage.time, stage.seed)
        stage.world.note(f"life {self._lives}")
        stage.process = process
        if self._mutation is not None:
            process.network.mutant = self._mutation.delivering
        await process.start()
        stage.world.host = self._host(process)
        for listener in stage.listeners:
            process.spawn(listener.listen(process.hub))

    def _host(self, process: Process) -> Host:
        if self._mutation is None or self._mutation.hearing is None:
            return process.answer
        return partial(self._mutation.hearing, self._stage.world, process.answer)

    async def _set_up(self) -> None:
        stage = self._stage
        for url in stage.world.feeds:
            added = await stage.process.hub.services.feeds.add(AddFeed(url=url))
            stage.feed_ids[url] = added.feed.id
        for subscriber in stage.world.subscribers.values():
            await self._membership.subscribe(subscriber)
        for index in range(stage.random.randint(0, 4)):
            listener = await self._listener(index)
            stage.listeners.append(listener)
            stage.process.spawn(listener.listen(stage.process.hub))

    async def _listener(self, index: int) -> Listener:
        stage = self._stage
        url, feed = stage.random.choice(list(stage.world.feeds.items()))
        return Listener(
            name=f"listener {index}",
            topic=url,
            feed=feed.number,
            first=2,
            random=Random(f"{stage.seed}/listener/{index}"),
            cursor=str(await stage.process.storage.log.end()),
            is_there=lambda: stage.world.has_been_there(url),
            newest=lambda: feed.count,
        )

    async def _live(self) -> None:
        """Traffic and trouble, until this process is to end, or has."""
        stage, random = self._stage, self._stage.random
        stage.process.network.trouble = random.choice((0.0, 0.05, 0.3))
        if random.random() < 0.7:
            place, most = random.choice(sorted(_DEATHS.items()))
            stage.process.die_at(place, random.randint(1, most))
        end = (
            asyncio.get_running_loop().time()
            + random.choice((5, 20, 20, 60, 200)) * random.random()
        )
        while asyncio.get_running_loop().time() < end:
            for _ in range(random.randint(1, 3)):
                if not stage.process.died.is_set():
                    await stage.unless_dead(self._acts.play())
            if await self._has_died(random.choice((0.02, 0.5, 3.0, 10.0))):
                return

    async def _has_died(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(self._stage.random.uniform(0, seconds)):
                await self._stage.process.died.wait()
        except TimeoutError:
            return False
        return True

    async def _end(self) -> None:
        """Of this process, by its death, by a kill, or as it should; then the next."""
        stage, random = self._stage, self._stage.random
        process = stage.process
        if (failure := process.failure) is not None:
            raise failure
        if not process.died.is_set() and random.random() < 0.3:
            stage.count("restarts")
            process.disk.clear()
            await self._stop()
        else:
            await self._kill()
        if random.random() < 0.15:
            stage.count("hours off")
            await asyncio.sleep(random.uniform(0, random.choice(_ABSENCES)))
        await self._begin(self._disk_after(process.disk))

    def _disk_after(self, before: Disk) -> Disk:
        """As it was left, or with a backup in its place."""
        stage = self._stage
        directory = stage.directory / str(self._lives + 1)
        random = Random(f"{stage.seed}/disk/{self._lives + 1}")
        if self._backups.is_any() and stage.random.random() < 0.4:
            return self._backups.put_in_place(before, directory, random)
        return before.crash(directory, random)

    async def _stop(self) -> None:
        clock = asyncio.get_running_loop()
        self._stage.world.host = None
        began = clock.time()
        await self._stage.process.stop()
        if clock.time() - began >= DeliveryLimits().grace:
            self._court.note_cut(clock.time())

    async def _kill(self) -> None:
        process, world = self._stage.process, self._stage.world
        process.die()
        self._count("kills")
        self._court.note_kill()
        world.host = None
        await process.bury(world.tasks)

    def _count(self, fault: str) -> None:
        self._stage.count(fault)
