"""Writes that are combined: each gets its own answer, whatever becomes of others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from storage.postgres.write_lanes import WriteLane

UNPREPARED = 13


def prepare(items: Sequence[int]) -> list[int]:
    if UNPREPARED in items:
        raise ValueError("it cannot be prepared")
    return [*items]


async def write(call: list[int]) -> list[int]:
    return [-each for each in call]


@pytest.mark.parametrize("most", [1, 2, 9])
async def test_what_cannot_be_prepared_fails_alone_and_the_lane_goes_on(
    most: int,
) -> None:
    lane = WriteLane(prepare, write, most=most)
    async with asyncio.timeout(9):
        given = [lane.submit(each) for each in (1, UNPREPARED, 2, 3)]
        answers = await asyncio.gather(*given, return_exceptions=True)
        later = await lane.submit(4)

    assert [repr(each) for each in answers] == [
        "-1",
        "ValueError('it cannot be prepared')",
        "-2",
        "-3",
    ]
    assert later == -4
