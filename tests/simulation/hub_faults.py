"""What is done to a hub that it has to get over, while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import cast

from tests.simulation.disk import Disk
from tests.simulation.loop import VirtualLoop
from tests.simulation.simulated_hub import SimulatedHub

LONGEST = 30.0
"""Seconds a disk is bad."""
AFTERWARDS = 2.5
"""Seconds: acknowledgements try again each second."""
AFTER_SLOWNESS = 8.0
"""As long as a write that was begun on a slow disk may take."""
LONGEST_STALL = 20.0
"""Seconds: no longer than a lease, so that nobody else begins what is under way."""
SKEWS = (-3_600.0, -300.0, -300.0, 0.0, 0.0, 0.0, 300.0, 300.0, 3_600.0)
"""Seconds that the machine's clock is set wrong by, or right again. An hour is rare: a
publisher's request for patience may then last that long, and much is played."""


class HubFaults:
    """Of all processes of a run."""

    def __init__(self, random: Random, simulated: SimulatedHub) -> None:
        self._random = random
        self._simulated = simulated

    async def befall(self, disk: Disk) -> None:
        """One of them; over when this returns."""
        throw = self._random.random()
        if throw < 0.3:
            self._simulated.count("clock jumps")
            self._simulated.time.skew = self._random.choice(SKEWS)
        elif throw < 0.5:
            await self._worsen("disk full", disk, disk.fill)
        elif throw < 0.6:
            await self._worsen("disk failing", disk, disk.fail)
        elif throw < 0.7:
            await self._worsen("disk read-only", disk, disk.protect)
        elif throw < 0.85:
            await self._worsen("disk slow", disk, disk.slow_down, AFTER_SLOWNESS)
        else:
            await self._stall()

    async def _worsen(
        self,
        name: str,
        disk: Disk,
        worsen: Callable[[], None],
        afterwards: float = AFTERWARDS,
    ) -> None:
        self._simulated.count(name)
        self._simulated.late_since = asyncio.get_running_loop().time()
        worsen()
        await asyncio.sleep(self._random.uniform(0, LONGEST))
        disk.clear()
        await asyncio.sleep(afterwards)
        self._simulated.late_since = None

    async def _stall(self) -> None:
        self._simulated.count("process stalled")
        loop = cast("VirtualLoop", asyncio.get_running_loop())
        self._simulated.late_since = loop.time()
        loop.stall(self._random.uniform(0, LONGEST_STALL))
        await asyncio.sleep(AFTERWARDS)
        self._simulated.late_since = None
