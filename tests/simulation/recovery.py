"""The end of a run: nothing goes wrong any more, and everything has to arrive."""

from __future__ import annotations

import asyncio
import re

from tests.simulation.actions import Actions
from tests.simulation.asgi_requests import AsgiRequest
from tests.simulation.membership import Membership
from tests.simulation.promises import Promises
from tests.simulation.simulated_hub import SimulatedHub
from tests.support.publisher import entries_named_in

PATIENCE = 30.0
"""Virtual seconds until the operator has retries made, whose turn may be hours
away."""
LONGEST_PEACE = 8_000.0
"""Within so many everything has to arrive."""
PATIENCE_WITH_MUTANTS = 300.0
"""For what they lose there is no waiting."""
HONOURED = 300.0
"""Within so many what was pushed is told, although nobody asks its feed."""


class Recovery:
    def __init__(
        self,
        simulated: SimulatedHub,
        membership: Membership,
        promises: Promises,
        acts: Actions,
    ) -> None:
        self._simulated = simulated
        self._membership = membership
        self._promises = promises
        self._actions = acts

    async def reach(self, longest: float = LONGEST_PEACE) -> None:
        simulated, loop = self._simulated, asyncio.get_running_loop()
        simulated.process.network.trouble = 0.0
        simulated.process.disk.clear()
        simulated.world.heal()
        began = loop.time()
        await self._see_pushes_honoured()
        await self._membership.put_all_back()
        await self._membership.resume_all()
        simulated.world.publish()
        while not await self._promises.has_all():
            if loop.time() > began + longest:
                return  # the judge says what is missing
            await self._actions.fetch_all()
            waited = loop.time() - began
            if waited > PATIENCE:
                await self._actions.hurry()
            await asyncio.sleep(max(5.0, waited / 10))
        simulated.outcome.recoveries.append(loop.time() - began)

    async def _see_pushes_honoured(self) -> None:
        """What hubs were told is taken is told on, and no poll by hand helps."""
        world, loop = self._simulated.world, asyncio.get_running_loop()
        for hub in world.other_hubs.values():
            await hub.settle()
        end = loop.time() + HONOURED
        while owed := await self._owed():
            if loop.time() > end:
                self._simulated.outcome.complaints.append(
                    f"took what was pushed, and did not tell it: {owed}"
                )
                return
            await asyncio.sleep(2)

    async def _owed(self) -> list[tuple[int, int]]:
        """By feed and number."""
        world = self._simulated.world
        owed = []
        for url, feed in world.feeds.items():
            numbers: set[int] = set()
            for hub in world.other_hubs.values():
                numbers |= hub.acknowledged.get(feed.number, set())
            if numbers and world.is_there(url):
                shown = await self._shown(url, feed.number)
                owed += [(feed.number, each) for each in sorted(numbers - shown)]
        return owed

    async def _shown(self, url: str, number: int) -> set[int]:
        """What the hub shows of a feed, whoever asks."""
        feed_id = self._simulated.feed_ids[url]
        shown: set[int] = set()
        page = f"http://hub.example/0/topics/{feed_id}.normalized.json?limit=100"
        while page:
            heard = await self._simulated.process.answer(
                AsgiRequest(method="GET", url=page)
            )
            assert heard is not None
            body = heard.body.decode()
            shown |= {each for feed, each in entries_named_in(body) if feed == number}
            following = re.search(r'"next_url":\s*"([^"]+)"', body)
            page = following[1] if following else ""
        return shown
