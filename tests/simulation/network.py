"""A network between one hub and the world: late, cut, refused, hanging, as drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from urllib.parse import urlsplit

from hub.http import Answer, Purpose, Request
from hub.http.network_errors import BadAnswer, TimedOut, Unreachable
from hub.http.response_parser import AnswerHeaders
from tests.simulation.mutants import Mutant
from tests.simulation.world import World
from tests.support.http_server import ServerAnswer

LONGEST_WAY = 0.3
"""Seconds a request or an answer takes, usually; now and then ten times as long."""
SLOWEST_WAY = 10 * LONGEST_WAY


class SimulatedNetwork:
    """Of one process; its requests end with it, wherever they are."""

    def __init__(self, world: World, random: Random) -> None:
        self.is_lost = False
        self.trouble = 0.0  # how often a request meets some, 0 to 1
        self.passing: Callable[[str], None] = lambda place: None
        self.mutant: Mutant | None = None
        self._world = world
        self._random = random

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return host in self._world.exempt_hosts

    async def send(self, request: Request) -> Answer:
        loop = asyncio.get_running_loop()
        began = loop.time()
        if request.method == "POST" and request.url in self._world.subscribers:
            self._world.posts.append((request.url, began))
        try:
            async with asyncio.timeout(request.limits.seconds):
                answer = await self._exchange(request)
        except TimeoutError:
            raise TimedOut("the answer took too long") from None
        headers = [
            (name.lower().encode(), value.encode())
            for name, value in answer.headers.items()
        ]
        body = answer.body[: request.cut] if request.cuts_body else answer.body
        return Answer(
            url=request.url,
            status=answer.status,
            headers=AnswerHeaders(headers),
            body=body if answer.status < 300 else answer.body[: request.cut],
            complete=True,
            milliseconds=round((loop.time() - began) * 1000),
        )

    async def _exchange(self, request: Request) -> ServerAnswer:
        fault = self._random.random()
        is_troubled = self._random.random() < self.trouble
        await self._travel("before-request")
        if is_troubled and fault < 0.5 and request.url in self._world.feeds:
            self._world.fail_poll(request.url)
        if is_troubled and fault < 0.3:
            raise Unreachable("no address" if fault < 0.1 else "no connection")
        if is_troubled and fault < 0.5:
            await asyncio.Event().wait()  # a black hole
        self._world.note(f"{request.method} {urlsplit(request.url).path}")
        answer = await self._tamper(request)
        is_heard = False
        is_poll = request.url in self._world.feeds
        try:
            await self._travel("after-answer")
            if answer is None or (is_troubled and fault < 0.8):
                raise BadAnswer("the connection was reset")
            if is_troubled:  # something between them has failed
                return ServerAnswer(status=self._random.choice((500, 502, 503, 504)))
            is_heard = True
            return answer
        finally:
            if not is_heard:
                self._world.unheard(request)
            if is_poll and is_troubled:
                self._world.fail_poll(request.url)

    async def _tamper(self, request: Request) -> ServerAnswer | None:
        is_delivery = (
            request.method == "POST" and request.url in self._world.subscribers
        )
        if is_delivery and self.mutant is not None:
            return await self.mutant(self._world, request)
        return await self._world.answer(request)

    async def _travel(self, place: str) -> None:
        seconds = self._random.uniform(0.001, LONGEST_WAY)
        if self._random.random() < 0.02:
            seconds *= 10
        await asyncio.sleep(seconds)
        self.passing(place)
        if self.is_lost:
            await asyncio.Event().wait()
