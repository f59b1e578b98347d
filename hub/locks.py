"""A lock for each thing that is being made, so that it is not made twice at once."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

_Key = TypeVar("_Key", bound=Hashable)


class Locks(Generic[_Key]):
    """Whoever waits for one finds, when it is its turn, what the one before it made.

    If that one was cancelled, or failed, it makes the thing itself.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: _Key) -> asyncio.Lock:
        """Forgotten as soon as nobody holds it or waits for it."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock
