"""What a hub with a fault would do to its deliveries: the judge has to find it out.

Each stands between a hub and the world. It is as if the hub itself did it, for the
judge sees what arrives and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from random import Random

from hub.net import Request
from tests.simulation.world import World
from tests.support.web_server import ServerAnswer

Mutant = Callable[[World, Request], Awaitable[ServerAnswer | None]]
"""Does something with a delivery; its answer, or None for a reset."""
OFTEN = 0.1
"""Of the deliveries one of ten meets its fault."""


class Dropping:
    """Takes one for sent that was not."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def __call__(self, world: World, request: Request) -> ServerAnswer | None:
        if self._random.random() < OFTEN:
            return ServerAnswer()
        return await world.answer(request)


class Doubling:
    """Sends one again that was accepted."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def __call__(self, world: World, request: Request) -> ServerAnswer | None:
        answer = await world.answer(request)
        if self._random.random() < OFTEN:
            return await world.answer(request)
        return answer


class Misdirecting:
    """Sends one to somebody else, who has another secret or another feed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def __call__(self, world: World, request: Request) -> ServerAnswer | None:
        if self._random.random() < OFTEN:
            other = self._random.choice(list(world.subscribers))
            request = replace(request, url=other)
        return await world.answer(request)


class Disordering:
    """Sends one after the next."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._kept: dict[str, Request] = {}

    async def __call__(self, world: World, request: Request) -> ServerAnswer | None:
        kept = self._kept.pop(request.url, None)
        if kept is None and self._random.random() < OFTEN:
            self._kept[request.url] = request
            return ServerAnswer()
        answer = await world.answer(request)
        if kept is not None:
            await world.answer(kept)
        return answer


MUTANTS: Mapping[str, Callable[[Random], Mutant]] = {
    "drops": Dropping,
    "doubles": Doubling,
    "misdirects": Misdirecting,
    "disorders": Disordering,
}
