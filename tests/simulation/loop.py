"""An event loop whose time is played: it jumps to the next timer as soon as all wait.

Nothing outside of it is ever waited for, so what happens in which order follows from
the program alone: there are no threads (what is given to one is done at once), no
sockets, and no time that passes by itself.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any

START = 1_000.0
"""Where its seconds begin."""
MOST_TURNS = 200_000
"""Turns of the loop in which no time passes; more mean that something spins."""


class Stuck(Exception):
    """Everything waits for ever, or something spins without end."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Made anew for each run; `time` is in seconds."""

    def __init__(self) -> None:
        self._virtual_time = START
        self._turns = 0
        super().__init__(_Idle(self))

    def time(self) -> float:
        return self._virtual_time

    def pass_time(self, seconds: float | None) -> None:
        """Nothing is left to do for so long; None: until for ever."""
        if seconds is None:
            raise Stuck("everything waits, and nothing is to come")
        self._turns = 0 if seconds > 0 else self._turns + 1
        if self._turns > MOST_TURNS:
            self._turns = 0  # what ends it all gets as many
            raise Stuck("something goes on and on while no time passes")
        self._virtual_time += max(seconds, 0.0)

    def stall(self, seconds: float) -> None:
        """The machine does nothing for so long: whatever was to come is late."""
        self._virtual_time += seconds

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def _write_to_self(self) -> None:
        """Nobody is to be woken: whoever calls is in the loop itself."""


class _Idle(selectors.BaseSelector):
    """Says that nothing came, at once, and has the time pass that was to be waited."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(
        self, fileobj: Any, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.pass_time(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys
