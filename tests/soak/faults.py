"""Faults of a running hub, which it has to survive without a new start."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import signal
from collections import Counter
from contextlib import suppress
from random import Random
from time import monotonic

from tests.soak.population import Population
from tests.support.chosen_engine import CHOSEN, Engine
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubProcess

QUIET = 3.0
"""Seconds after a fault until the next kill, so that each copy has one cause."""
_PAGE = 4_096
REFUSING = 1.0
"""Seconds after which no request may be refused any more because the disk was full."""
_TROUBLES = (
    ServerAnswer(status=500),
    ServerAnswer(status=404),
    ServerAnswer(body=b"<html><title>Under construction</title>"),
    ServerAnswer(body=b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>a'),
    ServerAnswer(body=b"<a>" * 500_000),
    ServerAnswer(body=b""),
    ServerAnswer(headers={"Content-Type": "application/atom+xml"}, body=b"\0" * 10**7),
)


class Faults:
    """Draws one fault after the other, and counts them by name."""

    def __init__(self, hub: HubProcess, population: Population, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self.late_since: float | None = None
        """The time since which acknowledgements may not have been written, if any."""
        self._full_until = -math.inf
        self._hub = hub
        self._population = population
        self._random = random

    async def disturb(self) -> None:
        """Make at most one fault, and leave the hub some time to recover."""
        fault = self._random.choice(
            (
                *(None, None, self._stall),
                *([self._fill_disk] if CHOSEN is Engine.SQLITE else []),
                *(self._break_publisher, self._drop_readers),
            )
        )
        await asyncio.sleep(self._random.uniform(0.2, 2))
        if fault is not None and self._hub.is_running:
            self.late_since = monotonic()
            await fault()
            await asyncio.sleep(QUIET)
        self.late_since = None

    def explain_refusal(self, began: float) -> bool:
        """Whether the disk was full when the request began, or until just before."""
        return began < self._full_until + REFUSING

    async def _stall(self) -> None:
        self.counts["process stopped (SIGSTOP) and continued"] += 1
        self._signal(signal.SIGSTOP)
        await asyncio.sleep(self._random.uniform(0.5, 3))
        self._signal(signal.SIGCONT)

    async def _fill_disk(self) -> None:
        """Let the disk be full in one of two ways.

        Either no file of the process can grow; then the former size of the WAL is
        enough room for a while. Or nothing can be written behind the first page, as
        where even overwriting needs new space. The log goes through a pipe.
        """
        wal = self._hub.database.with_name("hub.db-wal")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        with suppress(ProcessLookupError, FileNotFoundError):
            is_growth = self._random.random() < 0.5
            most = max(_PAGE, wal.stat().st_size) if is_growth else _PAGE
            self.counts["disk full" if is_growth else "disk cannot be written"] += 1
            resource.prlimit(self._hub.pid, resource.RLIMIT_FSIZE, (most, hard))
            self._full_until = math.inf
            await asyncio.sleep(self._random.uniform(0.5, 3))
            resource.prlimit(self._hub.pid, resource.RLIMIT_FSIZE, (hard, hard))
        self._full_until = monotonic()

    async def _break_publisher(self) -> None:
        self.counts["publisher in trouble"] += 1
        _id, feed = self._random.choice(self._population.feeds)
        feed.instead = self._random.choice(_TROUBLES)
        await asyncio.sleep(self._random.uniform(0.5, 3))
        feed.instead = None

    async def _drop_readers(self) -> None:
        self.counts["all readers gone and back at once"] += 1
        self._population.drop_readers()

    def _signal(self, number: signal.Signals) -> None:
        if self._hub.is_running:
            with suppress(ProcessLookupError):
                os.kill(self._hub.pid, number)
