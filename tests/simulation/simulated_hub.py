"""What all parts of a run share: the world, the clock, and the hub that lives now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from storage.errors import StorageError
from storage.records import FeedId
from tests.simulation.branches import Branch
from tests.simulation.listeners import Listener
from tests.simulation.process import PlayedTime, Process
from tests.simulation.seed_outcome import SeedOutcome
from tests.simulation.world import World


@dataclass(slots=True)
class SimulatedHub:
    """``process`` is replaced with every life; ``late_since``: from when what was
    acknowledged may not have been written."""

    seed: str
    directory: Path
    random: Random
    world: World
    time: PlayedTime
    outcome: SeedOutcome
    feed_ids: dict[str, FeedId] = field(default_factory=dict)  # by URL
    listeners: list[Listener] = field(default_factory=list)
    late_since: float | None = None
    branch: Branch = field(default_factory=Branch)
    process: Process = field(init=False)

    def count(self, fault: str) -> None:
        self.outcome.faults[fault] += 1
        self.world.note(fault)

    def lag(self, at: float) -> float:
        """How late everything may have been at a moment, in seconds."""
        return 0.0 if self.late_since is None else at - self.late_since + 5

    async def unless_dead(self, action: object) -> None:
        """What is asked of a process that dies meanwhile is never answered."""
        asking = asyncio.ensure_future(action)  # type: ignore[call-overload]
        dying = asyncio.ensure_future(self.process.died.wait())
        await asyncio.wait({asking, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if not asking.done():
            asking.cancel()
            await asyncio.wait({asking})
        elif (error := asking.exception()) and not isinstance(error, StorageError):
            raise error
