"""Who is paused, as far as anybody outside the hub knows: it is sent nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from random import Random

from hub.services.account_subscriptions import SubscriptionService
from hub.services.service_errors import Conflict
from storage.records import SubscriptionId
from tests.simulation.simulated_hub import SimulatedHub

OFTEN = 0.1
"""Of the acts as many come with a pause, or with the end of one."""

Ids = Mapping[str, SubscriptionId]
"""Of subscriptions, by callback."""


class Pauses:
    """A pause holds from the hub's answer until somebody asks it to resume."""

    def __init__(
        self, random: Random, simulated: SimulatedHub, *, is_ignored: bool = False
    ) -> None:
        """``is_ignored``: the hub does as if it was never told."""
        self._random = random
        self._simulated = simulated
        self._is_ignored = is_ignored
        self._since: dict[str, float] = {}
        self._over: list[tuple[str, float, float]] = []  # callbacks, from when to when

    @property
    def paused(self) -> frozenset[str]:
        return frozenset(self._since)

    async def turn_one(self, ids: Ids) -> None:
        """Now and then somebody is paused, or resumed."""
        if not ids or self._random.random() > OFTEN:
            return
        if self._since and self._random.random() < 0.5:
            callback = self._random.choice(list(self._since))
            await self._resume(callback, ids)
        else:
            await self._pause(self._random.choice(list(ids)), ids)

    async def resume_all(self, ids: Ids) -> None:
        """Also those of whom it is not known whether they are paused: the hub died when
        it was told."""
        for callback in ids:
            await self._resume(callback, ids)

    def note_end(self, callback: str) -> None:
        """It is paused no longer; or not subscribed, and subscribes anew."""
        since = self._since.pop(callback, None)
        if since is not None:
            self._over.append((callback, since, _now()))

    def relive(self, paused: frozenset[str]) -> None:
        """The hub knows what it knew then."""
        for callback in list(self._since):
            self.note_end(callback)
        self._since = dict.fromkeys(sorted(paused), _now())

    def breaches(self) -> Iterator[str]:
        """Requests that began in a pause."""
        pauses = [
            *self._over,
            *((each, at, _now()) for each, at in self._since.items()),
        ]
        for callback, began in self._simulated.world.posts:
            for paused, since, until in pauses:
                if callback == paused and since < began < until:
                    yield f"{callback} was sent something {began - since:.1f} s paused"

    async def _pause(self, callback: str, ids: Ids) -> None:
        self._simulated.count("paused")
        if not self._is_ignored:
            try:
                await self._service.pause(ids[callback])
            except Conflict:  # it has ended, by a 410
                return
        self._since.setdefault(callback, _now())

    async def _resume(self, callback: str, ids: Ids) -> None:
        self._simulated.count("resumed")
        self.note_end(callback)
        if callback in ids:
            with suppress(Conflict):
                await self._service.resume(ids[callback])

    @property
    def _service(self) -> SubscriptionService:
        return self._simulated.process.hub.services.subscriptions


def _now() -> float:
    return asyncio.get_running_loop().time()
