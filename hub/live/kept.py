"""What was made for many and may be asked for again soon."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hub.clock import Clock

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Kept(Generic[_Value]):
    value: _Value
    size: int
    until: float


class Kept(Generic[_Key, _Value]):
    """Values up to ``most`` in all; what was asked for longest ago goes first, and
    after ``seconds`` in any case: what a crowd needed is not held until the next comes.

    What is too old goes when something is kept or looked for.
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
        """In the place of what was kept by that key."""
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
