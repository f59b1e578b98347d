"""The end of a story: nothing goes wrong any more, and everything has to arrive."""

from __future__ import annotations

import asyncio
import re

from tests.simulation.acts import Acts
from tests.simulation.court import Court
from tests.simulation.door import Knock
from tests.simulation.membership import Membership
from tests.simulation.stage import Stage
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


class Peace:
    def __init__(
        self, stage: Stage, membership: Membership, court: Court, acts: Acts
    ) -> None:
        self._stage = stage
        self._membership = membership
        self._court = court
        self._acts = acts

    async def reach(self, longest: float = LONGEST_PEACE) -> None:
        stage, loop = self._stage, asyncio.get_running_loop()
        stage.process.network.trouble = 0.0
        stage.process.disk.clear()
        stage.world.heal()
        began = loop.time()
        await self._see_pushes_honoured()
        await self._membership.put_all_back()
        await self._membership.resume_all()
        stage.world.publish()
        while not await self._court.has_all():
            if loop.time() > began + longest:
                return  # the judge says what is missing
            await self._acts.fetch_all()
            waited = loop.time() - began
            if waited > PATIENCE:
                await self._acts.hurry()
            await asyncio.sleep(max(5.0, waited / 10))
        stage.verdict.recoveries.append(loop.time() - began)

    async def _see_pushes_honoured(self) -> None:
        """What hubs were told is taken is told on, and no poll by hand helps."""
        world, loop = self._stage.world, asyncio.get_running_loop()
        for hub in world.other_hubs.values():
            await hub.settle()
        end = loop.time() + HONOURED
        while owed := await self._owed():
            if loop.time() > end:
                self._stage.verdict.complaints.append(
                    f"took what was pushed, and did not tell it: {owed}"
                )
                return
            await asyncio.sleep(2)

    async def _owed(self) -> list[tuple[int, int]]:
        """By feed and number."""
        world = self._stage.world
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
        feed_id = self._stage.feed_ids[url]
        shown: set[int] = set()
        page = f"http://hub.example/0/topics/{feed_id}.normalized.json?limit=100"
        while page:
            heard = await self._stage.process.answer(Knock(method="GET", url=page))
            assert heard is not None
            body = heard.body.decode()
            shown |= {each for feed, each in entries_named_in(body) if feed == number}
            following = re.search(r'"next_url":\s*"([^"]+)"', body)
            page = following[1] if following else ""
        return shown
