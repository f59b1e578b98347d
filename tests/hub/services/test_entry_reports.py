"""The way of an entry: the records that tell of it, and what was given up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.services.entry_reports import EntryReportService, records_of
from storage.records import EntryId, NewDeadLetter, RecordKind
from tests.support.chosen_engine import open_chosen
from tests.support.storage_scene import Scene, at


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    yield Scene(storage)
    await storage.close()


async def test_what_was_given_up_of_an_entry_is_found_behind_older_dead_letters(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe(feed)
    positions = [await scene.publish(feed, f"{number}") for number in range(60)]
    lost = [
        NewDeadLetter(
            subscription_id=late.id,
            lease_id=0,
            first=position,
            last=position,
            reason="answered 500",
            at=at(9),
        )
        for position in positions[::2]
    ]
    await scene.flush(given_up=tuple(lost))
    assert len(await scene.storage.deliveries.dead_letters(after=0, limit=99)) == 30
    [last] = await scene.storage.log.latest_records(upto=positions[-2], limit=1)

    report = await EntryReportService(scene.storage).get(last.entries[0].entry_id)

    assert [each.first for each in report.given_up] == [last.position]


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
