"""Outcomes of deliveries, gathered and written every 100 ms in one transaction.

No gathered outcome is ever dropped. While the database cannot be written (a full disk),
or does not say whether a write succeeded, the batch is kept and written again under the
same number, and `healthy` is False so that no new delivery begins. What is kept is
bounded by the deliveries that were in flight at that moment.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

import structlog

from hub.core.delivery.delivery_outcome import DeliveryOutcome
from hub.delivery.notification_counter import NotificationCounter
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from storage.contract import DeliveryStore
from storage.errors import OutcomeUnknown, StorageBusy, TermEnded, WriteFailed
from storage.records import DeliveryFlush, Flushed

FLUSH_SECONDS = 0.1
RETRY_SECONDS = 1.0

log = structlog.get_logger()


@dataclass(slots=True)
class _Batch:
    """The outcomes that the next flush writes; ``flushed`` is done when they are
    durable."""

    flushed: asyncio.Future[Flushed]
    since: float  # when the first outcome was gathered, in monotonic seconds
    outcomes: list[DeliveryOutcome] = field(default_factory=list)


class Acknowledgements:
    """Gathers outcomes; `run` writes them until `stop`, and then writes what is
    left."""

    def __init__(
        self,
        deliveries: DeliveryStore,
        clock: Clock,
        metrics: Metrics | None = None,
        counter: NotificationCounter | None = None,
        *,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._deliveries = deliveries
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._counter = counter or NotificationCounter()
        self._retry_seconds = retry_seconds
        self._batch: _Batch | None = None
        self._gathered = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stopping = False
        self._number = secrets.randbits(48)  # of flushes; earlier ones are far from it

    @property
    def healthy(self) -> bool:
        """Whether the last flush was written."""
        return self._writable.is_set()

    async def until_healthy(self) -> None:
        await self._writable.wait()

    def add(self, outcome: DeliveryOutcome) -> asyncio.Future[Flushed]:
        """Gather an outcome; the future is done when its whole batch is durable.

        Several callers wait for the same future, so each must shield it from being
        cancelled.
        """
        if self._batch is None:
            flushed = asyncio.get_running_loop().create_future()
            self._batch = _Batch(flushed, self._clock.monotonic())
            self._gathered.set()
        self._batch.outcomes.append(outcome)
        return self._batch.flushed

    async def run(self) -> None:
        """Write gathered outcomes every 100 ms, until `stop` is called and all are
        written."""
        while not self._stopping or self._batch is not None:
            await self._gathered.wait()
            if not self._stopping:  # less what the event loop has used already
                now = self._clock.monotonic()
                since = self._batch.since if self._batch else now
                await asyncio.sleep(max(0.0, since + FLUSH_SECONDS - now))
            batch, self._batch = self._batch, None
            self._gathered.clear()
            if batch is not None:
                await self._write(batch)

    def stop(self) -> None:
        """Let `run` write what is left and return."""
        self._stopping = True
        self._gathered.set()

    async def _write(self, batch: _Batch) -> None:
        parts = partial(_parts_of, batch.outcomes)
        self._number += 1
        flush = DeliveryFlush(
            at=self._clock.now(),
            number=self._number,
            outcomes=parts("outcome"),
            opened=parts("opened"),
            moved=parts("moved"),
            given_up=parts("given_up"),
            ended=parts("ended"),
            recovered=parts("recovered"),
            advanced=parts("advanced"),
            attempts=parts("attempt"),
            notified=self._counter.changes(),
        )
        flushed = await self._persist(flush)
        if flushed is not None:
            batch.flushed.set_result(flushed)
            age = self._clock.monotonic() - batch.since
            self._metrics.acknowledgements.observe(age)

    async def _persist(self, flush: DeliveryFlush) -> Flushed | None:
        """Write the flush, and again until it succeeds; None if stopped before that, as
        a hub is whose term has ended."""
        while True:
            started = self._clock.monotonic()
            try:
                flushed = await self._deliveries.flush(flush)
            except (WriteFailed, OutcomeUnknown, StorageBusy, TermEnded) as error:
                self._complain(flush, error)
                if self._stopping:
                    return None
                await asyncio.sleep(self._retry_seconds)
                continue
            self._metrics.count_deliveries(flush, self._clock.monotonic() - started)
            if not self.healthy:
                log.info("acknowledgements_resumed")
                self._writable.set()
            return flushed

    def _complain(self, flush: DeliveryFlush, error: Exception) -> None:
        if self.healthy or self._stopping:
            log.error(
                "acknowledgements_not_written",
                outcomes=len(flush.outcomes),
                will_retry=not self._stopping,
                error=str(error),
            )
        self._writable.clear()


def _parts_of(outcomes: Iterable[DeliveryOutcome], name: str) -> tuple[Any, ...]:
    """The values of this attribute of all outcomes, without those that are 0 or
    empty."""
    return tuple(filter(None, map(attrgetter(name), outcomes)))
