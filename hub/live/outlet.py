"""What a live connection writes to, whatever carries it."""

from __future__ import annotations

from typing import Protocol

from hub.live.prepared import Prepared
from protocols.live.live_messages import Closing

LARGEST_BACKLOG = 2**20
"""Bytes that may wait to be taken by a client before it is too slow."""


class Outlet(Protocol):
    """Writing never waits; whoever lets more than `LARGEST_BACKLOG` wait is closed."""

    def write(self, message: Prepared) -> None:
        """Nothing happens once it is closed."""
        ...

    async def room(self) -> None:
        """Return when little of what was written still waits, or it is closed."""
        ...

    def close(self, closing: Closing) -> None: ...
