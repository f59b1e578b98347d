"""The live stream: connections that open, listen to topics, and close.

One reader reads the log for all subscriptions that are up to date
(`hub.live.live_reader`). Subscriptions that resume are replayed what they missed first
(`hub.live.replays`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from random import Random

import structlog

from hub.delivery.notifications import Notifications
from hub.live.connection_quotas import ConnectionQuotas
from hub.live.live_connections import (
    ANONYMOUS_CLIENT,
    Channels,
    Client,
    ClientWriter,
    ConnectionOpening,
    ConnectionRegistry,
    Interest,
    LiveConnection,
    LiveSubscription,
    QuotaExceeded,
    TooManyConnections,
)
from hub.live.live_reader import LogReader
from hub.live.message_rendering import MessageRendering
from hub.live.prepared_message import PreparedMessage
from hub.live.replays import LogPages, Replays, ResumePoint, find_resume_points
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from protocols.cursor import turn_of
from protocols.live.live_messages import (
    NO_TOPIC_LEFT,
    SHUTDOWN,
    Heartbeat,
    MessageId,
    Reset,
    Subscribed,
    Unsubscribed,
)
from storage.contract import LogStore
from storage.records import Cursor

HEARTBEAT_SECONDS = 25.0
DRAIN_PER_SECOND = 200
"""Connections that are told to leave, so that not all clients come back elsewhere at
once."""
LONGEST_DRAIN = 2.0

log = structlog.get_logger()


class LiveStream:
    """The live stream. `run` is its background part; the rest is what connections
    do."""

    def __init__(
        self,
        log_store: LogStore,
        hub_url: str,
        head: Cursor,
        *,
        random: Random,
        metrics: Metrics,
        clock: Clock,
        quotas: ConnectionQuotas | None = None,
    ) -> None:
        """``head``: the end of the log now, before anybody has connected.

        ``quotas`` None: the default number of connections, without quotas for holders.
        """
        self._log = log_store
        self._channels = Channels()
        self._rendering = MessageRendering(
            Notifications(log_store, hub_url), head.epoch, clock
        )
        self._reader = LogReader(
            log_store,
            self._channels,
            self._rendering,
            head.position,
            metrics,
        )
        self._pages = LogPages(log_store, metrics, clock)
        self._replays = Replays(
            self._pages,
            self._reader,
            self._channels,
            self._rendering,
            metrics,
        )
        self._random = random
        self._clock = clock
        self._numbers = count(1)
        self._metrics = metrics
        self._quotas = quotas or ConnectionQuotas()
        self.heartbeat_seconds = HEARTBEAT_SECONDS
        self.registry = ConnectionRegistry()
        self._draining = False

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reader.run())
            group.create_task(self._send_heartbeats())

    @contextmanager
    def connected(
        self,
        writer: ClientWriter,
        tasks: asyncio.TaskGroup,
        transport: str,
        client: Client = ANONYMOUS_CLIENT,
    ) -> Iterator[LiveConnection]:
        """Yields a connection, which lasts as long as the block. ``tasks`` end with it.

        Call `check_room` before, while the request can still be refused with an answer.
        """
        opening = ConnectionOpening(
            id=next(self._numbers), transport=transport, at=self._clock.now()
        )
        connection = LiveConnection(writer, self._replays, tasks, opening, client)
        self.registry.add(connection)
        self._metrics.connections.add(transport)
        if self._draining:
            writer.close(SHUTDOWN)
        try:
            yield connection
        finally:
            self._metrics.connections.add(transport, -1)
            self.registry.remove(connection)
            connection.end()
            for subscription in connection.subscriptions.values():
                self._leave(subscription)

    def check_room(self, client: Client = ANONYMOUS_CLIENT) -> None:
        """Raises `TooManyConnections`, and `QuotaExceeded` for the client's holder."""
        if self._draining or len(self.registry) >= self._quotas.connections:
            raise TooManyConnections
        holder = client.holder
        if holder is None:
            return
        most = self._quotas.most(holder.kind)
        if self.registry.held(holder) >= most:
            self._metrics.limited.add(f"live_of_{holder.kind}")
            raise QuotaExceeded(holder.kind, most)

    async def subscribe(
        self, connection: LiveConnection, interests: Sequence[Interest]
    ) -> None:
        """Begin subscriptions together; one to a topic listened to already begins anew.

        Raises `InvalidValue` for a cursor, and `StorageError`.
        """
        head = await self._log.end()
        points = await find_resume_points(self._pages, interests, head)
        group = [
            self._begin(connection, interest, point)
            for interest, point in zip(interests, points, strict=True)
        ]
        connection.follow(sorted(group, key=lambda each: turn_of(each.key.topic)))

    def unsubscribe(
        self, connection: LiveConnection, topic: str, id: MessageId | None
    ) -> bool:
        """End a subscription; False if the connection does not listen to the topic."""
        subscription = connection.subscriptions.pop(topic, None)
        if subscription is None:
            return False
        self._leave(subscription)
        connection.writer.write(PreparedMessage(Unsubscribed(topic=topic, id=id)))
        return True

    def drop(self, subscription: LiveSubscription, farewell: PreparedMessage) -> None:
        """End a subscription although the client did not ask for that."""
        connection = subscription.connection
        del connection.subscriptions[subscription.key.topic]
        self._leave(subscription)
        connection.writer.write(farewell)
        if not (connection.subscriptions or connection.client.may_ask):
            connection.writer.close(NO_TOPIC_LEFT)

    def count_read(self, *, is_shared: bool) -> None:
        """Count a lookup for a subscription that begins."""
        self._metrics.live_reads.add("memory" if is_shared else "database")

    async def drain(self) -> None:
        """Accept no more connections, and tell the open ones to leave, one by one."""
        self._draining = True
        leaving = list(self.registry)
        self._random.shuffle(leaving)
        window = min(LONGEST_DRAIN, len(leaving) / DRAIN_PER_SECOND)
        moments = sorted(self._random.uniform(0, window) for _ in leaving)
        before = 0.0
        for connection, moment in zip(leaving, moments, strict=True):
            await asyncio.sleep(moment - before)
            before = moment
            connection.writer.close(SHUTDOWN)
        if leaving:
            log.info("live_connections_drained", connections=len(leaving))

    def _begin(
        self, connection: LiveConnection, interest: Interest, point: ResumePoint
    ) -> LiveSubscription:
        topic, cursor = interest.key.topic, point.cursor
        before = connection.subscriptions.pop(topic, None)
        if before is not None:
            self._leave(before)
        answer = Subscribed(topic=topic, cursor=cursor, id=interest.id)
        connection.writer.write(PreparedMessage(answer))
        if point.is_reset:
            reset = Reset(topic=topic, cursor=cursor, id=interest.id)
            connection.writer.write(PreparedMessage(reset))
        subscription = LiveSubscription(
            connection,
            connection.writer,
            interest.key,
            point.position,
            point.last,
        )
        self.registry.listen(subscription)
        return subscription

    def _leave(self, subscription: LiveSubscription) -> None:
        self._channels.leave(subscription)
        self.registry.leave(subscription)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_seconds)
            async with self._reader.giving:
                position = self._reader.position
                cursor = self._rendering.cursor(position)
                heartbeat = PreparedMessage(Heartbeat(cursor=cursor))
                for connection in self.registry:
                    if not connection.is_behind and connection.furthest <= position:
                        connection.writer.write(heartbeat)
