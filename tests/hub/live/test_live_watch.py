"""The watch: it goes on after trouble, and asks nothing while nobody listens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hub.live.live_connections import Client
from hub.live.live_watch import LiveWatch
from protocols.live.live_messages import TOKEN_ENDED
from storage.errors import StorageBusy, StorageClosed, StorageError
from storage.records import FeedId, HiddenFeeds, TokenId
from tests.support.live_scene import RecordingWriter
from tests.support.services import open_hub
from tests.support.waiting import eventually

TOKEN = TokenId(7)


@dataclass
class FakeStores:
    """All tokens have ended; ``errors`` are raised first, one for each question."""

    errors: list[StorageError] = field(default_factory=list)
    questions: int = 0

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        self.questions += 1
        if self.errors:
            raise self.errors.pop(0)
        return frozenset(ids)

    async def hidden(self, ids: Sequence[FeedId]) -> HiddenFeeds:
        self.questions += 1
        return HiddenFeeds(removed=frozenset(), private=frozenset())


async def test_it_asks_again_after_a_read_that_failed(tmp_path: Path) -> None:
    stores, writer = FakeStores([StorageBusy("too much to do")]), RecordingWriter()
    async with open_hub(tmp_path) as hub, asyncio.TaskGroup() as tasks:
        stream = hub.services.live.stream
        watch = LiveWatch(stream, stores, stores, every_seconds=0.01)
        with stream.connected(writer, tasks, "websocket", Client(token=TOKEN)):
            watching = tasks.create_task(watch.run())
            await eventually(lambda: TOKEN_ENDED in writer.closings)
        watching.cancel()
    assert stores.questions >= 2
    assert stream.registry.tokens == []


async def test_it_ends_with_the_database(tmp_path: Path) -> None:
    stores = FakeStores([StorageClosed("the database is closed")])
    async with open_hub(tmp_path) as hub, asyncio.TaskGroup() as tasks:
        stream = hub.services.live.stream
        watch = LiveWatch(stream, stores, stores, every_seconds=0.01)
        with (
            stream.connected(
                RecordingWriter(), tasks, "websocket", Client(token=TOKEN)
            ),
            pytest.raises(StorageClosed),
        ):
            await watch.run()
