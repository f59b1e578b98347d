"""Clients of the live stream that come, go, and resume by their last cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from hub.composition import BuiltHub
from hub.live.live_connections import TooManyConnections, UnknownTopic
from hub.live.prepared_message import PreparedMessage
from protocols.cursor import read_cursor
from protocols.live.live_messages import (
    SLOW,
    Closing,
    NotificationMessage,
    Reset,
    Subscribe,
    Subscribed,
    Unsubscribed,
)
from protocols.protocol_errors import InvalidValue
from storage.errors import StorageError
from tests.support.publisher import entries_named_in

GARBAGE = ("", "?", "abc", "0-0-0", "nobody-1", "nobody-999999999", "-1", "x" * 9_000)
"""Cursors that no hub gave away."""


@dataclass(slots=True)
class Listener:
    """Remembers over all its connections. ``first``: the entry it has to get first."""

    name: str
    topic: str
    feed: int
    first: int
    random: Random
    cursor: str | None = None
    numbers: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    connections: int = 0
    is_there: Callable[[], bool] = lambda: True
    """Whether the feed is in the hub without a doubt."""
    excused: int = 0  # up to that entry nothing is owed: a reset said so
    newest: Callable[[], int] = lambda: 0  # of the entries that were published
    _is_bereft: bool = False  # what its cursor stands for is gone
    _is_to_be_told: bool = False

    async def listen(self, hub: BuiltHub) -> None:
        """One connection after the other, for as long as the process lives."""
        while True:
            try:
                hub.live.check_room()
                if self.random.random() < 0.1:
                    await self._try_garbage(hub)
                await self._connect(hub)
            except* (TooManyConnections, StorageError):
                pass  # an answer of 503; it comes again
            except* UnknownTopic:
                if self.is_there():
                    self.complaints.append("was told that there is no such topic")
            except* Exception as errors:
                self.complaints.append(repr(errors.exceptions[0]))
            await asyncio.sleep(self.random.uniform(0, 5))

    def lose(self, known: Sequence[int]) -> None:
        """The hub is as it was when these numbers had been read; it has to say so."""
        self.numbers = list(known)
        self._is_bereft = self.cursor is not None

    async def _connect(self, hub: BuiltHub) -> None:
        writer = _Writer(self)
        wanted = Subscribe(topic=self.topic, cursor=self.cursor)
        async with asyncio.TaskGroup() as tasks:
            with hub.live.connected(writer, tasks, "websocket") as connection:
                interest = await hub.services.live.find(None, wanted)
                await hub.services.live.subscribe(connection, [interest])
                self._expect_told(writer)
                self.connections += 1
                try:
                    async with asyncio.timeout(self.random.uniform(0, 120)):
                        await writer.closed.wait()
                except TimeoutError:
                    writer.closed.set()

    def _expect_told(self, writer: _Writer) -> None:
        if self._is_to_be_told and not writer.closed.is_set():
            self.complaints.append("was not told that what it knew is gone")
        self._is_to_be_told = False

    async def _try_garbage(self, hub: BuiltHub) -> None:
        """As somebody who has a cursor of nobody's: it is refused, or reset."""
        stranger = replace(
            self,
            numbers=[],
            complaints=[],
            cursor=None,
            _is_bereft=False,
            _is_to_be_told=False,
        )
        writer = _Writer(stranger)
        wanted = Subscribe(topic=self.topic, cursor=self.random.choice(GARBAGE))
        async with asyncio.TaskGroup() as tasks:
            with hub.live.connected(writer, tasks, "websocket") as connection:
                interest = await hub.services.live.find(None, wanted)
                try:
                    await hub.services.live.subscribe(connection, [interest])
                except InvalidValue:
                    return
        if not (stranger.complaints or writer.closed.is_set()):
            self.complaints.append(f"was not told that {wanted.cursor} is not known")

    def take(self, message: PreparedMessage) -> None:
        told = message.message
        if isinstance(told, Reset):
            self._begin_anew(told)
        elif isinstance(told, Subscribed):
            self._resume(told.cursor)
        elif isinstance(told, Unsubscribed) and self.is_there():
            self.complaints.append("was told that the topic is gone")
        elif isinstance(told, NotificationMessage):
            if self.cursor and told.prev and _after(told.prev, self.cursor):
                self.complaints.append(f"missed what came before {told.cursor}")
            self._move(told.cursor, is_new=True)
            body = told.body if isinstance(told.body, str) else told.body.decode()
            for feed, number in entries_named_in(body):
                self._read(feed, number)

    def _resume(self, cursor: str) -> None:
        if not self._is_bereft:
            self._move(cursor, is_new=False)
            return
        self._is_bereft, self._is_to_be_told = False, True
        self.cursor, self.excused = cursor, self.newest()

    def _begin_anew(self, told: Reset) -> None:
        if not self._is_to_be_told:
            self.complaints.append("was told that something is gone, and nothing was")
        self._is_to_be_told = False
        self.cursor = told.cursor

    def _move(self, cursor: str, *, is_new: bool) -> None:
        known = self.cursor
        if known is not None and (
            _after(known, cursor) or (is_new and known == cursor)
        ):
            self.complaints.append(f"went from {known} back to {cursor}")
        self.cursor = cursor

    def _read(self, feed: int, number: int) -> None:
        if feed != self.feed:
            self.complaints.append(f"was given an entry of feed {feed}")
        if self.newest() and number > self.newest():
            self.complaints.append(f"was given {number}, which nobody published")
        self.numbers.append(number)

    def judge(self, last: int) -> list[str]:
        """What is wrong when all was to have come, up to that entry."""
        found = list(self.complaints)
        first = max(self.first, self.excused + 1)
        lost = set(range(first, last + 1)) - set(self.numbers)
        if lost:
            found.append(f"never received {sorted(lost)}")
        if len(set(self.numbers)) < len(self.numbers):
            found.append(f"received an entry twice: {self.numbers}")
        return [f"{self.name}: {each}" for each in found]


def _after(one: str, other: str) -> bool:
    return read_cursor(one)[1] > read_cursor(other)[1]


class _Writer:
    """Takes all at once, or closes now and then because it was too slow."""

    sent_messages = sent_bytes = waiting = 0

    def __init__(self, listener: Listener) -> None:
        self.closed = asyncio.Event()
        self._listener = listener

    def write(self, message: PreparedMessage) -> None:
        if self.closed.is_set():
            return
        if self._listener.random.random() < 0.02:
            self.close(SLOW)
            return
        self._listener.take(message)

    async def room(self) -> None:
        await asyncio.sleep(self._listener.random.uniform(0, 0.05))

    def close(self, closing: Closing) -> None:
        self.closed.set()
