"""One seed: a world, lives and deaths of a hub in it, and the outcome at the end."""

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
from tests.simulation.actions import Actions
from tests.simulation.backups import Backups
from tests.simulation.disk import Disk, empty_database
from tests.simulation.hub_faults import HubFaults
from tests.simulation.listeners import Listener
from tests.simulation.loop import VirtualLoop
from tests.simulation.membership import Membership
from tests.simulation.mutants import MUTANTS, Mutation
from tests.simulation.pauses import Pauses
from tests.simulation.process import PlayedTime, Process
from tests.simulation.promises import Promises
from tests.simulation.recovery import LONGEST_PEACE, PATIENCE_WITH_MUTANTS, Recovery
from tests.simulation.seed_outcome import SeedOutcome, faults_logged
from tests.simulation.simulated_hub import SimulatedHub
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
) -> SeedOutcome:
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
        story = SeedRun(str(seed), Path(directory), empty, disk_forgets, mutation)
        try:
            runner.run(story.run())
        except Exception as error:
            story.outcome.complaints.append(f"{type(error).__name__}: {error}")
        finally:
            story.close()
    story.outcome.complaints += faults_logged(logs)
    return story.outcome


class SeedRun:
    def __init__(
        self,
        seed: str,
        directory: Path,
        empty: Mapping[str, bytes],
        disk_forgets: bool,
        mutation: Mutation | None,
    ) -> None:
        self.outcome = SeedOutcome(seed=seed)
        self._simulated = simulated = SimulatedHub(
            seed=seed,
            directory=directory,
            random=Random(f"{seed}/story"),
            world=World(Random(f"{seed}/world"), self._count),
            time=PlayedTime(),
            outcome=self.outcome,
        )
        self._empty = empty
        self._disk_forgets = disk_forgets
        self._mutation = mutation
        self._lives = 0
        is_ignored = mutation is not None and mutation.ignores_pauses
        pauses = Pauses(Random(f"{seed}/pauses"), simulated, is_ignored=is_ignored)
        self._membership = Membership(simulated, pauses)
        keeps_epoch = mutation is not None and mutation.keeps_epoch
        self._backups = Backups(simulated, self._membership, keeps_epoch=keeps_epoch)
        self._promises = Promises(simulated, self._membership, self._backups, pauses)
        self._actions = Actions(
            simulated,
            self._membership,
            self._backups,
            HubFaults(Random(f"{seed}/troubles"), simulated),
        )
        self._recovery = Recovery(
            simulated, self._membership, self._promises, self._actions
        )

    async def run(self) -> None:
        random = Random(f"{self._simulated.seed}/disk/1")
        disk = Disk(
            self._simulated.directory / "1", random, is_forgetful=self._disk_forgets
        )
        disk.format(self._empty)
        await self._begin(disk)
        await self._set_up()
        self._simulated.world.trouble()
        for _ in range(self._simulated.random.randint(1, 5)):
            await self._live()
            await self._end()
        is_sane = self._mutation is None
        await self._recovery.reach(LONGEST_PEACE if is_sane else PATIENCE_WITH_MUTANTS)
        evidence = await self._promises.evidence()
        await self._stop()
        self._promises.conclude(evidence)

    def close(self) -> None:
        """The last process is gone, and nobody opens what it left."""
        self._simulated.process.disk.close()

    async def _begin(self, disk: Disk) -> None:
        simulated = self._simulated
        self._lives += 1
        process = Process(
            self._lives, simulated.world, disk, simulated.time, simulated.seed
        )
        simulated.world.note(f"life {self._lives}")
        simulated.process = process
        if self._mutation is not None:
            process.network.mutant = self._mutation.delivering
        await process.start()
        simulated.world.host = self._host(process)
        for listener in simulated.listeners:
            process.spawn(listener.listen(process.hub))

    def _host(self, process: Process) -> Host:
        if self._mutation is None or self._mutation.hearing is None:
            return process.answer
        return partial(self._mutation.hearing, self._simulated.world, process.answer)

    async def _set_up(self) -> None:
        simulated = self._simulated
        for url in simulated.world.feeds:
            added = await simulated.process.hub.services.feeds.add(AddFeed(url=url))
            simulated.feed_ids[url] = added.feed.id
        for subscriber in simulated.world.subscribers.values():
            await self._membership.subscribe(subscriber)
        for index in range(simulated.random.randint(0, 4)):
            listener = await self._listener(index)
            simulated.listeners.append(listener)
            simulated.process.spawn(listener.listen(simulated.process.hub))

    async def _listener(self, index: int) -> Listener:
        simulated = self._simulated
        url, feed = simulated.random.choice(list(simulated.world.feeds.items()))
        return Listener(
            name=f"listener {index}",
            topic=url,
            feed=feed.number,
            first=2,
            random=Random(f"{simulated.seed}/listener/{index}"),
            cursor=str(await simulated.process.storage.log.end()),
            is_there=lambda: simulated.world.has_been_there(url),
            newest=lambda: feed.count,
        )

    async def _live(self) -> None:
        """Traffic and trouble, until this process is to end, or has."""
        simulated, random = self._simulated, self._simulated.random
        simulated.process.network.trouble = random.choice((0.0, 0.05, 0.3))
        if random.random() < 0.7:
            place, most = random.choice(sorted(_DEATHS.items()))
            simulated.process.die_at(place, random.randint(1, most))
        end = (
            asyncio.get_running_loop().time()
            + random.choice((5, 20, 20, 60, 200)) * random.random()
        )
        while asyncio.get_running_loop().time() < end:
            for _ in range(random.randint(1, 3)):
                if not simulated.process.died.is_set():
                    await simulated.unless_dead(self._actions.play())
            if await self._has_died(random.choice((0.02, 0.5, 3.0, 10.0))):
                return

    async def _has_died(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(self._simulated.random.uniform(0, seconds)):
                await self._simulated.process.died.wait()
        except TimeoutError:
            return False
        return True

    async def _end(self) -> None:
        """Of this process, by its death, by a kill, or as it should; then the next."""
        simulated, random = self._simulated, self._simulated.random
        process = simulated.process
        if (failure := process.failure) is not None:
            raise failure
        if not process.died.is_set() and random.random() < 0.3:
            simulated.count("restarts")
            process.disk.clear()
            await self._stop()
        else:
            await self._kill()
        if random.random() < 0.15:
            simulated.count("hours off")
            await asyncio.sleep(random.uniform(0, random.choice(_ABSENCES)))
        await self._begin(self._disk_after(process.disk))

    def _disk_after(self, before: Disk) -> Disk:
        """As it was left, or with a backup in its place."""
        simulated = self._simulated
        directory = simulated.directory / str(self._lives + 1)
        random = Random(f"{simulated.seed}/disk/{self._lives + 1}")
        if self._backups.is_any() and simulated.random.random() < 0.4:
            return self._backups.put_in_place(before, directory, random)
        return before.crash(directory, random)

    async def _stop(self) -> None:
        clock = asyncio.get_running_loop()
        self._simulated.world.host = None
        began = clock.time()
        await self._simulated.process.stop()
        if clock.time() - began >= DeliveryLimits().grace:
            self._promises.note_cut(clock.time())

    async def _kill(self) -> None:
        process, world = self._simulated.process, self._simulated.world
        process.die()
        self._count("kills")
        self._promises.note_kill()
        world.host = None
        await process.bury(world.tasks)

    def _count(self, fault: str) -> None:
        self._simulated.count(fault)
