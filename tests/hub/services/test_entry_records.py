"""Which records of the log tell of an entry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.services.entry_reports import records_of
from storage.records import EntryId, RecordKind
from tests.support.chosen_engine import open_chosen
from tests.support.storage_scene import Scene, at


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    yield Scene(storage)
    await storage.close()


async def test_each_entry_is_found_in_a_log_of_several_feeds(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    for number in range(24):
        await scene.publish(feeds[number % 3 // 2], f"{number}", when=at(number))
        if number % 5 == 0:
            updated = RecordKind.UPDATED
            await scene.publish(feeds[0], "0", kind=updated, when=at(number))
    log = scene.storage.log
    for feed in feeds:
        for entry in await log.latest_entries(feed.id, 99):
            told = await records_of(log, feed.id, entry.id, most=4)
            [new] = [each for each in told if each.kind is RecordKind.ENTRIES]
            assert new == told[0]
            assert new.at == at(int(entry.key))
            assert [ref.entry_id for ref in new.entries] == [entry.id]
    [first, *_] = sorted(each.id for each in await log.latest_entries(feeds[0].id, 99))
    told = await records_of(log, feeds[0].id, first)
    assert [each.kind for each in told[1:]] == [RecordKind.UPDATED] * 5
    assert await records_of(log, feeds[0].id, EntryId(999)) == []
