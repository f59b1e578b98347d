"""Connections that wait for a further request: so many, the longest idle go first."""

from __future__ import annotations

from typing import Final, Protocol

MOST_KEPT: Final = 128
"""Half of the files that are left for what is no live stream (`hub.open_files`)."""


class Idle(Protocol):
    """A connection on which nothing is under way."""

    def end(self) -> None:
        """Close it; it is released then."""
        ...


class KeptConnections:
    """Those that were idle for a while already, and are kept for longer.

    ``seconds``: how long a connection may be idle in all; no less than it is without
    being kept. One more than ``most`` ends the one that was kept for longest: a proxy
    takes up again what it used last.
    """

    def __init__(self, seconds: float, most: int = MOST_KEPT) -> None:
        self.seconds = seconds
        self._most = most
        self._kept: dict[Idle, None] = {}  # in the order of their coming

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, connection: Idle) -> None:
        self._kept[connection] = None
        if len(self._kept) > self._most:
            longest = next(iter(self._kept))
            del self._kept[longest]
            longest.end()

    def release(self, connection: Idle) -> None:
        """A request has come, or it is closed; also of one that was not kept."""
        self._kept.pop(connection, None)
