"""Reads that many ask for at the same moment, done once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from itertools import count
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Flight(Generic[_Value]):
    """Lives as long as somebody reads, or waits to."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.found: tuple[int, _Value] | None = None  # when it was begun, what it gave


class SharedReads(Generic[_Key, _Value]):
    """Nobody is given what was begun to be read before he asked.

    So what he knows to have happened is in it: whoever comes during a read waits for
    the next one, with all others who did.
    """

    def __init__(self) -> None:
        self._flights: WeakValueDictionary[_Key, _Flight[_Value]]
        self._flights = WeakValueDictionary()
        self._moments = count()

    async def get(
        self, key: _Key, read: Callable[[], Awaitable[_Value]]
    ) -> tuple[_Value, bool]:
        """What ``read`` gives, and whether it was somebody else's. Raises what it does.

        Who fails or is cancelled leaves it to the next one to read.
        """
        asked = next(self._moments)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
        async with flight.lock:
            if flight.found is not None and flight.found[0] > asked:
                return flight.found[1], True
            began = next(self._moments)
            value = await read()
            flight.found = began, value
            return value, False
