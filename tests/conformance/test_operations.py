"""Operations on a database as a whole, on every engine that has one."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from storage.contract import Storage
from storage.records import DiskSample, Polling
from tests.support.storage_scene import START, Scene, at, fetch

IS_MODELLED = False
YEAR = timedelta(days=365)
NOTHING = timedelta(0)


async def test_its_status_tells_where_the_log_ends(storage: Storage) -> None:
    scene = Scene(storage)
    await scene.publish(await scene.add_feed(), "a")

    status = await storage.status()

    assert status.version == status.latest
    assert (status.log_end, status.tail) == (1, 0)
    assert (await storage.log.end()).epoch == status.epoch
    assert status.size_bytes > 0
    assert storage.write_error() == ""


async def test_its_bytes_are_told_by_purpose(storage: Storage) -> None:
    scene = Scene(storage)
    await scene.publish(await scene.add_feed(), "a")

    usage = await storage.usage()

    assert usage["entries"] > 0
    assert set(usage) <= {"entries", "search", "seen", "deliveries", "other", "free"}
    assert await storage.give_back(9) == 0
    assert (await storage.backlog()).feeds == 1


async def test_samples_of_the_disk_are_kept_for_a_while(storage: Storage) -> None:
    samples = [
        DiskSample(at=at(number), used_bytes=number, free_bytes=9)
        for number in range(4)
    ]
    for each in samples:
        await storage.note_disk(each, kept_from=at(1))

    assert await storage.disk_samples() == samples[1:]
    earlier = replace(samples[0], at=at(1.5))
    await storage.note_disk(earlier, kept_from=START)
    assert await storage.disk_samples() == [samples[1], earlier]


async def test_a_clock_that_goes_back_takes_with_it_what_waits(
    storage: Storage,
) -> None:
    scene = Scene(storage)
    ahead = START + YEAR
    assert await storage.note_time(ahead) == NOTHING
    feed = await scene.add_feed()
    polling = Polling(code=200, last_fetch=ahead, retry_after=ahead)
    commit = fetch(feed, when=ahead, polling=polling)
    await storage.log.commit(replace(commit, next_fetch=ahead + timedelta(hours=1)))

    assert await storage.note_time(START) == YEAR

    found = await storage.feeds.get(feed.id)
    assert found is not None
    assert found.next_fetch <= START + timedelta(hours=1)
    assert found.polling.last_fetch == START
    assert await storage.note_time(at(1)) == NOTHING


async def test_a_step_that_is_hardly_one_is_none(storage: Storage) -> None:
    await storage.note_time(at(4))

    assert await storage.note_time(START) == NOTHING


async def test_what_is_read_again_and_again_is_as_it_was_committed_last(
    storage: Storage,
) -> None:
    scene = Scene(storage)
    for count in range(3):
        with await storage.read_ahead():
            assert (await storage.backlog()).feeds == count
            assert (await storage.feeds.find(f"https://a.example/{count}")) is None
        await scene.add_feed(f"https://a.example/{count}")
