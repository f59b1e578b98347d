"""Requests that go unanswered for a second move aside, so that others can go on.

A bounded number of them may then hang on until their own deadline, apart from the
healthy ones. One more is cut short. All requests share one sweep; none has a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from hub.clock import Clock
from hub.errors import TimedOut
from hub.net import Answer, Network, Request

SLOW_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that has no answer yet."""

    task: asyncio.Task[object]
    since: float
    move_aside: Callable[[], None]
    is_cut: bool = False


class SlowRequests:
    """Sends requests, and notices in `sweep` which of them take long.

    ``slow_limit`` is how many may hang aside at once.
    """

    def __init__(self, network: Network, clock: Clock, *, slow_limit: int) -> None:
        self._network = network
        self._clock = clock
        self._slow_limit = slow_limit
        self._fresh: dict[_Waiting, None] = {}  # in order of their start
        self._slow: set[_Waiting] = set()

    async def send(self, request: Request, move_aside: Callable[[], None]) -> Answer:
        """Send; ``move_aside`` is called if there is no answer within a second.

        Raises a `NetworkError`; `TimedOut` too when it was cut short because too many
        others hang already, and then ``move_aside`` was not called.
        """
        task = cast("asyncio.Task[object]", asyncio.current_task())
        waiting = _Waiting(task, self._clock.monotonic(), move_aside)
        self._fresh[waiting] = None
        try:
            return await self._network.send(request)
        except asyncio.CancelledError:
            if waiting.is_cut and not task.uncancel():
                raise TimedOut("no answer in time, and too many others hang") from None
            raise
        finally:
            self._fresh.pop(waiting, None)
            self._slow.discard(waiting)

    def sweep(self) -> None:
        """Move aside, or cut short, whoever has waited for a second."""
        latest = self._clock.monotonic() - SLOW_SECONDS
        for waiting in list(self._fresh):
            if waiting.since > latest:
                return
            del self._fresh[waiting]
            if len(self._slow) < self._slow_limit:
                self._slow.add(waiting)
                waiting.move_aside()
            else:
                waiting.is_cut = True
                waiting.task.cancel()
