"""An event loop that tells when all in it wait, for the clock or for somebody outside.

Whoever plays the time lets it pass then, and needs neither to guess nor to poll. What a
thread does is outside.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Final

MOMENT: Final = 0.05
"""Seconds: who wakes so soon is not waiting, but at work."""


class QuietLoop(asyncio.SelectorEventLoop):
    """Give it to `asyncio.Runner`."""

    def __init__(self) -> None:
        self._quiet: asyncio.Future[None] | None = None
        super().__init__(_AskingFirst(self))

    async def until_quiet(self) -> None:
        """Return once nothing is left to be done; for one caller at a time."""
        self._quiet = self.create_future()
        await self._quiet

    def note_quiet(self) -> bool:
        """Whether somebody waited for it, so that there is something to do again."""
        quiet, self._quiet = self._quiet, None
        if quiet is None or quiet.done():
            return False
        quiet.set_result(None)
        return True


class _AskingFirst(selectors.DefaultSelector):
    """Looks what has come before it waits for more."""

    def __init__(self, loop: QuietLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        is_moment = timeout is not None and timeout < MOMENT
        if not is_moment and self._loop.note_quiet():
            return []
        return super().select(timeout)
