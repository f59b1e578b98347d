"""The dispatcher: reads the log and delivers it to subscribers by webhook.

First deliveries come in chunks and go through a pool of workers
(`hub.delivery.first_deliveries`). Subscriptions that fail or hang catch up one by one
(`hub.delivery.catch_ups`). Outcomes are written every 100 ms
(`hub.delivery.acknowledgements`).
"""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random, SystemRandom
from typing import TYPE_CHECKING

import msgspec
import structlog

from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.asked_retries import AskedRetries
from hub.delivery.callback_events import CallbackEvents
from hub.delivery.catch_ups import CatchUpRequests, CatchUps, RetryingSubscriptions
from hub.delivery.first_deliveries import Chunks, FirstDeliveries
from hub.delivery.halted_subscriptions import HaltedSubscriptions
from hub.delivery.notification_counter import NotificationCounter
from hub.delivery.notifications import Notifications
from hub.delivery.webhook import Poster, SlowRequests
from hub.http import Network, Purpose
from hub.limits.callback_origin_limiter import OriginLimiter
from hub.runtime.background import DrainingTaskGroup
from hub.runtime.clock import Clock
from hub.runtime.event_log import EventLog
from hub.runtime.metrics import Metrics
from hub.runtime.node_membership import NodeMembership
from hub.runtime.work_leases import WorkLeases
from storage.contract import Storage
from storage.errors import StorageClosed, StorageError
from storage.records import ControlEvent, DecisionsMissed

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

RETRY_SECONDS = 1.0
SWEEP_SECONDS = 0.1

log = structlog.get_logger()


class DeliveryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is under way at once."""

    requests: int = 512  # first deliveries, not counting those that hang
    hanging: int = 256  # unanswered for over a second; any more are cut short
    catch_ups: int = 64
    chunks: int = 8  # of up to 500 deliveries each, in memory
    grace: float = 3.0  # seconds that requests under way have after the stop


class Dispatcher:
    """Delivers until `run` is cancelled. ``hub_url`` is named to subscribers."""

    def __init__(
        self,
        storage: Storage,
        network: Network,
        clock: Clock,
        hub_url: str,
        limits: DeliveryLimits | None = None,
        random: Random | None = None,
        metrics: Metrics | None = None,
        counter: NotificationCounter | None = None,
        events: EventLog | None = None,
        membership: NodeMembership | None = None,
        traces: Traces | None = None,
        asked: AskedRetries | None = None,
    ) -> None:
        limits = limits or DeliveryLimits()
        random = random or SystemRandom()
        metrics = metrics or Metrics()
        told = CallbackEvents(events or EventLog(), clock)
        deliveries = storage.deliveries
        membership = membership or NodeMembership(storage)
        leases = WorkLeases(clock, random, membership.is_trusted)
        notifications = Notifications(storage.log, hub_url)
        self._storage = storage
        self._membership = membership
        self._grace = limits.grace
        self._counter = counter or NotificationCounter()
        self._halted = HaltedSubscriptions()
        self._tasks = DrainingTaskGroup()
        self._acknowledgements = Acknowledgements(
            deliveries,
            clock,
            metrics,
            self._counter,
        )
        self._slow_requests = SlowRequests(network, clock, slow_limit=limits.hanging)
        self._poster = Poster(
            self._slow_requests,
            OriginLimiter(partial(network.is_exempt, purpose=Purpose.CALLBACK)),
            clock,
            hub_url,
            self._counter,
            traces,
            metrics.callback_durations,
        )
        self._catch_ups = CatchUps(
            storage.log,
            clock,
            self._poster,
            CatchUpRequests(storage.log, notifications, traces),
            self._acknowledgements,
            leases,
            random,
            self._halted,
            told,
            metrics,
        )
        self._first_deliveries = FirstDeliveries(
            clock,
            self._poster,
            self._catch_ups,
            self._acknowledgements,
            leases,
            random,
            self._halted,
            tasks=self._tasks,
            limit=limits.requests,
            events=told,
            metrics=metrics,
        )
        self._chunks = Chunks(
            deliveries,
            clock,
            notifications,
            self._first_deliveries,
            self._acknowledgements,
            leases,
            limit=limits.chunks,
            metrics=metrics,
            traces=traces,
        )
        self._retrying = RetryingSubscriptions(
            deliveries,
            clock,
            self._catch_ups,
            self._acknowledgements,
            leases,
            tasks=self._tasks,
            limit=limits.catch_ups,
            asked=asked,
        )

    async def run(self) -> None:
        """Deliver, until cancelled.

        After that no request begins; requests under way have ``grace`` seconds to end,
        and their outcomes are written before this returns.
        """
        self._poster.epoch = await self._resume()
        with self._storage.control.watch(self._note):
            await self._deliver()

    def _note(self, event: ControlEvent) -> None:
        self._halted.note(event)
        if isinstance(event, DecisionsMissed):
            self._chunks.drop_all()

    async def _resume(self) -> str:
        """The epoch of the log, as soon as storage works.

        The hub has joined by then, which frees the work that an earlier process had
        claimed.
        """
        while True:
            try:
                await self._membership.ensure_joined()
                self._counter.resume(await self._storage.deliveries.notified())
                return (await self._storage.log.end()).epoch
            except StorageClosed:
                raise
            except StorageError as error:
                log.error("deliveries_not_resumed", error=str(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def _deliver(self) -> None:
        async with asyncio.TaskGroup() as outer:
            writing = outer.create_task(self._acknowledgements.run())
            sweeping = outer.create_task(self._sweep())
            async with self._tasks:
                try:
                    await self._read_the_log()
                finally:
                    await self._drain()
                    self._acknowledgements.stop()
                    await asyncio.wait({writing})
                    sweeping.cancel()

    async def _read_the_log(self) -> None:
        async with asyncio.TaskGroup() as readers:
            readers.create_task(self._chunks.run())
            readers.create_task(self._retrying.run())

    async def _drain(self) -> None:
        self._first_deliveries.stop()
        self._catch_ups.stop()
        cut = await self._tasks.drain(self._grace)
        if cut:
            log.warning("deliveries_cut", count=cut)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._slow_requests.sweep()
            self._first_deliveries.sweep()
