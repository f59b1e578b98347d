"""Bounded caches of answers, and doing something once for many callers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from hub.runtime.clock import Clock

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class BoundedDict(OrderedDict[_Key, _Value]):
    """A dict of at most ``most`` keys; the one set the longest ago is dropped."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class KeyedLock(Generic[_Key]):
    """One lock for each key: a waiter finds what the holder before it has made.

    If that holder was cancelled or failed, the next one makes it.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: _Key) -> asyncio.Lock:
        """The key's lock, forgotten as soon as nobody holds it or waits for it."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock


@dataclass(frozen=True, slots=True)
class _Kept(Generic[_Value]):
    value: _Value
    size: int
    until: float


class SizedCache(Generic[_Key, _Value]):
    """Keeps values of ``most`` in total size, each for ``seconds`` after its last use.

    The least recently used are dropped first. Values that are too old are dropped
    whenever a value is stored or looked up, so what many requests needed once is not
    held until the next ones come.
    """

    def __init__(self, clock: Clock, *, most: int, seconds: float) -> None:
        self._clock = clock
        self._most = most
        self._seconds = seconds
        self._size = 0
        self._kept: OrderedDict[_Key, _Kept[_Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: _Key) -> _Value | None:
        self._forget_old()
        kept = self._kept.get(key)
        if kept is None:
            return None
        self.keep(key, kept.value, kept.size)
        return kept.value

    def keep(self, key: _Key, value: _Value, size: int = 1) -> None:
        """Store a value, replacing any earlier one of the key."""
        if (outdated := self._kept.pop(key, None)) is not None:
            self._size -= outdated.size
        until = self._clock.monotonic() + self._seconds
        self._kept[key] = _Kept(value, size, until)
        self._size += size
        while self._size > self._most:
            self._forget_first()
        self._forget_old()

    def _forget_old(self) -> None:
        now = self._clock.monotonic()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._forget_first()

    def _forget_first(self) -> None:
        _key, dropped = self._kept.popitem(last=False)
        self._size -= dropped.size


class _Flight(Generic[_Value]):
    """The reads of one key; it lives as long as a caller reads, or waits to."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.found: tuple[int, _Value] | None = None  # when it was begun, what it gave


class SingleFlight(Generic[_Key, _Value]):
    """Reads once for all callers that ask at the same time.

    No caller is given a read that began before it asked, so the result contains
    everything the caller knows to have happened. Callers that ask during a read share
    the next one.
    """

    def __init__(self) -> None:
        self._flights: WeakValueDictionary[_Key, _Flight[_Value]]
        self._flights = WeakValueDictionary()
        self._moments = count()

    async def get(
        self, key: _Key, read: Callable[[], Awaitable[_Value]]
    ) -> tuple[_Value, bool]:
        """The result of ``read``, and whether another caller read it. Raises what
        ``read`` does.

        If the reading caller fails or is cancelled, the next one reads.
        """
        moment = next(self._moments)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
        async with flight.lock:
            if flight.found is not None and flight.found[0] > moment:
                return flight.found[1], True
            began = next(self._moments)
            value = await read()
            flight.found = began, value
            return value, False
