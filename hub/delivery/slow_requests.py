"""Requests that go unanswered for a second move aside, so that others can go on.

A bounded number of them may then hang on until their own deadline, apart from the
healthy ones. One more is cut short; or, if it is the first trouble with its callback,
one of those that failed before: so a hundred dead callbacks do not take its time from
one that is slow, and answers. All requests share one sweep; none has a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from hub.http import Answer, Network, Request
from hub.http.network_errors import TimedOut
from hub.runtime.clock import Clock

SLOW_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that has no answer yet."""

    task: asyncio.Task[object]
    since: float
    move_aside: Callable[[], None]
    is_doubtful: bool
    is_cut: bool = False

    def cut(self) -> None:
        self.is_cut = True
        self.task.cancel()


class SlowRequests:
    """Sends requests, and notices in `sweep` which of them take long.

    ``slow_limit`` is how many may hang aside at once.
    """

    def __init__(self, network: Network, clock: Clock, *, slow_limit: int) -> None:
        self._network = network
        self._clock = clock
        self._slow_limit = slow_limit
        self._fresh: dict[_Waiting, None] = {}  # in order of their start
        self._slow: dict[_Waiting, None] = {}  # in the order in which they moved

    async def send(
        self,
        request: Request,
        move_aside: Callable[[], None],
        *,
        is_doubtful: bool = False,
    ) -> Answer:
        """Send; ``move_aside`` is called if there is no answer within a second.

        ``is_doubtful``: its callback failed before. Raises a `NetworkError`; `TimedOut`
        too when it was cut short because too many hang, be it before ``move_aside``
        was called or later.
        """
        task = cast("asyncio.Task[object]", asyncio.current_task())
        since = self._clock.monotonic()
        waiting = _Waiting(task, since, move_aside, is_doubtful)
        self._fresh[waiting] = None
        try:
            return await self._network.send(request)
        except asyncio.CancelledError:
            if waiting.is_cut and not task.uncancel():
                raise TimedOut("no answer in time, and too many others hang") from None
            raise
        finally:
            self._fresh.pop(waiting, None)
            self._slow.pop(waiting, None)

    def sweep(self) -> None:
        """Move aside, or cut short, whoever has waited for a second."""
        latest = self._clock.monotonic() - SLOW_SECONDS
        for waiting in list(self._fresh):
            if waiting.since > latest:
                return
            del self._fresh[waiting]
            if self._has_room_for(waiting):
                self._slow[waiting] = None
                waiting.move_aside()
            else:
                waiting.cut()

    def _has_room_for(self, waiting: _Waiting) -> bool:
        """Makes it, if need be and if that is fair."""
        if len(self._slow) < self._slow_limit:
            return True
        if waiting.is_doubtful:
            return False
        doubtful = next((each for each in self._slow if each.is_doubtful), None)
        if doubtful is None:
            return False
        del self._slow[doubtful]
        doubtful.cut()
        return True
