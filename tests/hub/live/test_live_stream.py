"""When the live stream says something by itself, in played time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import cast

import pytest

from hub.live.live_stream import LONGEST_DRAIN, LiveStream
from hub.live.prepared_message import PreparedMessage
from hub.runtime.metrics import Metrics
from protocols.live.live_messages import SHUTDOWN, Closing, Heartbeat
from storage.contract import LogStore
from storage.records import Cursor, Position
from tests.simulation.loop import VirtualLoop
from tests.support.clock import ManualClock
from tests.support.live_scene import LiveLog, record_of
from tests.support.waiting import in_background


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class TimedWriter:
    """Keeps when it was written to, and when it was closed."""

    sent_messages: int = 0
    sent_bytes: int = 0
    waiting: int = 0
    heartbeats: list[float] = field(default_factory=list)
    closed: list[float] = field(default_factory=list)

    def write(self, message: PreparedMessage) -> None:
        assert isinstance(message.message, Heartbeat)
        self.heartbeats.append(now())

    async def room(self) -> None:
        return

    def close(self, closing: Closing) -> None:
        assert closing == SHUTDOWN
        self.closed.append(now())


def a_stream() -> LiveStream:
    return LiveStream(
        cast("LogStore", LiveLog(record_of(1, 1))),
        "http://hub.example/hub",
        Cursor("e", Position(1)),
        random=Random(1),
        metrics=Metrics(),
        clock=ManualClock(),
    )


def played(story: Callable[[], Coroutine[object, object, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(story())


def test_a_quiet_connection_hears_something_every_25_seconds() -> None:
    """Proxies commonly give up what was silent for 30 or 60."""

    async def story() -> None:
        stream, writer, began = a_stream(), TimedWriter(), now()
        async with asyncio.TaskGroup() as tasks, in_background(stream.run):
            with stream.connected(writer, tasks, "sse"):
                await asyncio.sleep(80)
        assert [at - began for at in writer.heartbeats] == [25, 50, 75]

    played(story)


@pytest.mark.parametrize(("clients", "window"), [(200, 1.0), (3_000, LONGEST_DRAIN)])
def test_nobody_is_told_to_go_at_the_moment_of_all_others(
    clients: int, window: float
) -> None:
    """Each at a random moment of the time there is: no tenth of it has many more than
    a tenth of them, and who comes meanwhile goes at once."""

    async def story() -> None:
        stream, began = a_stream(), now()
        writers = [TimedWriter() for _ in range(clients)]
        with ExitStack() as connections:
            async with asyncio.TaskGroup() as tasks:
                for each in writers:
                    connected = stream.connected(each, tasks, "sse")
                    connections.enter_context(connected)
                leaving = tasks.create_task(stream.drain())
                await asyncio.sleep(window / 2)
                late = TimedWriter()
                connections.enter_context(stream.connected(late, tasks, "sse"))
                assert late.closed == [now()]
                await leaving
        moments = [at - began for each in writers for at in each.closed]
        assert len(moments) == clients
        assert max(moments) <= window
        tenths = Counter(int(10 * at / window) for at in moments)
        assert max(tenths.values()) < 2 * clients / 10
        in_order = [each.closed[0] for each in writers]
        assert in_order != sorted(in_order)

    played(story)
