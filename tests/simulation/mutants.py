"""What a hub with a fault would do to its deliveries: the judge has to find it out.

Each stands between a hub and the world. It is as if the hub itself did it, for the
judge sees what arrives and what is answered, and nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from hub.http import Request
from tests.simulation.asgi_requests import AsgiRequest, AsgiResponse
from tests.simulation.other_hubs import signed_with
from tests.simulation.world import Host, World
from tests.support.http_server import ServerAnswer

Mutant = Callable[[World, Request], Awaitable[ServerAnswer | None]]
"""Does something with a delivery; its answer, or None for a reset."""
Hearing = Callable[[World, Host, AsgiRequest], Awaitable[AsgiResponse | None]]
"""Does something with what the hub is told."""
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


class Repeating:
    """Takes a feed that comes back for a new one, and tells again what it has told."""

    def __init__(self) -> None:
        self._first: dict[str, Request] = {}

    async def __call__(self, world: World, request: Request) -> ServerAnswer | None:
        first = self._first.setdefault(request.url, request)
        is_back = bool(world.subscribers[request.url].excused)
        if is_back and first is not request:
            headers = {**first.headers, "webhook-id": request.headers["webhook-id"]}
            await world.answer(replace(first, headers=headers))
        return await world.answer(request)


class Forgetting:
    """Takes what hubs of others push, and does nothing about it."""

    async def __call__(
        self, world: World, host: Host, request: AsgiRequest
    ) -> AsgiResponse | None:
        if request.method == "POST":
            return AsgiResponse(202, b"")
        return await host(request)


class Confirming:
    """Says yes to whatever it is asked."""

    async def __call__(
        self, world: World, host: Host, request: AsgiRequest
    ) -> AsgiResponse | None:
        heard = await host(request)
        asked = parse_qs(urlsplit(request.url).query, keep_blank_values=True)
        if request.method == "GET" and "hub.challenge" in asked:
            return AsgiResponse(200, asked["hub.challenge"][0].encode())
        return heard


class Believing:
    """Takes a forgery for what a hub has signed."""

    async def __call__(
        self, world: World, host: Host, request: AsgiRequest
    ) -> AsgiResponse | None:
        secret = world.secret_of(request.url)
        if request.method == "POST" and secret:
            signature = signed_with(secret, request.body)
            headers = {**request.headers, "X-Hub-Signature": signature}
            request = dataclasses.replace(request, headers=headers)
        return await host(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """What is wrong with a hub, and where. ``keeps_epoch``: it does not know a backup
    that is put in place from what was there before."""

    delivering: Mutant | None = None
    hearing: Hearing | None = None
    keeps_epoch: bool = False
    ignores_pauses: bool = False


MUTANTS: Mapping[str, Callable[[Random], Mutation]] = {
    "drops": lambda random: Mutation(delivering=Dropping(random)),
    "doubles": lambda random: Mutation(delivering=Doubling(random)),
    "misdirects": lambda random: Mutation(delivering=Misdirecting(random)),
    "disorders": lambda random: Mutation(delivering=Disordering(random)),
    "repeats": lambda random: Mutation(delivering=Repeating()),
    "forgets pushes": lambda random: Mutation(hearing=Forgetting()),
    "confirms all": lambda random: Mutation(hearing=Confirming()),
    "believes all": lambda random: Mutation(hearing=Believing()),
    "keeps its epoch": lambda random: Mutation(keeps_epoch=True),
    "ignores pauses": lambda random: Mutation(ignores_pauses=True),
}
