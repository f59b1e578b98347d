"""How the hub was over time, on every engine."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from storage.records import SeriesSample
from tests.support.storage_scene import START, Scene

MINUTES = timedelta(minutes=5)


def a_sample(number: int, polls: float = 1.5) -> SeriesSample:
    return SeriesSample(
        at=START + number * MINUTES,
        values={"polls": (polls, 4.0)},
        delays={"commit_to_delivery": (0, number, 7)},
    )


async def test_samples_come_back_as_they_were_the_oldest_first(scene: Scene) -> None:
    series = scene.storage.series
    for number in range(4):
        await series.add(a_sample(number), START)
    assert await series.page(START, 9) == [a_sample(number) for number in range(4)]
    assert await series.page(START + MINUTES, 2) == [a_sample(1), a_sample(2)]
    assert await series.page(START + 4 * MINUTES, 2) == []


async def test_a_sample_takes_the_place_of_one_of_its_time_and_of_later_ones(
    scene: Scene,
) -> None:
    series = scene.storage.series
    for number in range(4):
        await series.add(a_sample(number), START)
    await series.add(a_sample(2, polls=9.0), START)
    kept = await series.page(START, 9)
    assert kept == [a_sample(0), a_sample(1), a_sample(2, polls=9.0)]


async def test_fine_samples_are_kept_apart(scene: Scene) -> None:
    series, fine = (
        scene.storage.series,
        msgspec.structs.replace(a_sample(1), starts=(7,)),
    )
    await series.add(a_sample(2), START)
    await series.add(fine, START, is_fine=True)
    assert await series.page(START, 9) == [a_sample(2)]
    assert await series.page(START, 9, is_fine=True) == [fine]


async def test_what_is_older_than_it_may_be_goes(scene: Scene) -> None:
    series = scene.storage.series
    for number in range(4):
        await series.add(a_sample(number), START + (number - 1) * MINUTES)
    assert await series.page(START, 9) == [a_sample(2), a_sample(3)]
