"""Values over time in memory: what is kept, what is summed up, what is read."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random

import pytest

from hub.runtime.series_memory import (
    BOUNDS,
    NOTHING,
    RINGS,
    ROUND_STEPS,
    SERIES,
    Buckets,
    DelayName,
    Ring,
    SeriesMemory,
    SeriesName,
    quantile,
)

LATE = DelayName.COMMIT_TO_DELIVERY
POLLS = SeriesName.POLLS
"""It has no peaks of its own."""
NEW = SeriesName.ENTRIES_NEW
NOW = 1_780_000_200
"""A whole five minutes."""
BINS = len(BOUNDS[DelayName.COMMIT_TO_DELIVERY]) + 1


def a_ring(length: int = 5, step: int = 10) -> Ring:
    return Ring(step, length, has_delays=True)


def counts(number: int, bin: int = 0) -> dict[DelayName, list[int]]:
    return {
        DelayName.COMMIT_TO_DELIVERY: [
            number if each == bin else 0 for each in range(BINS)
        ]
    }


def test_all_rings_together_take_no_more_than_they_may() -> None:
    rings = SeriesMemory().rings
    assert sum(each.bytes for each in rings) <= 2_700_000
    assert len(SERIES) + len(BOUNDS) == 29


def test_a_ring_keeps_the_last_values_of_each_series() -> None:
    ring = a_ring()
    for slot in range(100, 107):
        ring.put(slot, {NEW: (slot, 2 * slot), POLLS: (1, 9)}, {})
    assert list(ring.means(NEW, 101, 7)) == [-1, 102, 103, 104, 105, 106, -1]
    assert list(ring.peaks(NEW, 102, 2)) == [204, 206]
    assert list(ring.peaks(POLLS, 102, 2)) == [1, 1]
    assert list(ring.means(SeriesName.CHUNKS, 102, 2)) == [NOTHING] * 2
    assert list(ring.means(NEW, 3, 2)) == list(ring.means(NEW, 900, 2)) == [-1, -1]


def test_what_was_skipped_has_nothing_of_before() -> None:
    ring = a_ring()
    for slot in (100, 101, 102, 104):
        ring.put(slot, {NEW: (slot, slot)}, counts(slot))
    assert list(ring.means(NEW, 100, 5)) == [100, 101, 102, NOTHING, 104]
    assert ring.counts(DelayName.COMMIT_TO_DELIVERY, 103, 1) == [0] * BINS
    ring.put(300, {}, {})
    assert list(ring.means(NEW, 296, 5)) == [NOTHING] * 5


def test_after_the_clock_went_back_later_values_are_gone() -> None:
    ring = a_ring()
    for slot in (100, 101, 102, 103, 101):
        ring.put(slot, {NEW: (slot, slot)}, counts(1))
    assert list(ring.means(NEW, 100, 4)) == [100, 101, NOTHING, NOTHING]
    assert sum(ring.counts(DelayName.COMMIT_TO_DELIVERY, 99, 9)) == 2
    ring.put(7, {NEW: (7, 7)}, {})
    assert list(ring.means(NEW, 3, 5)) == [-1, -1, -1, -1, 7]
    assert list(ring.means(NEW, 99, 3)) == [NOTHING] * 3


def test_delays_of_slots_add_up_across_the_end_of_the_ring() -> None:
    ring = a_ring()
    for slot in range(102, 107):
        ring.put(slot, {}, counts(slot, bin=slot - 102))
    found = ring.counts(DelayName.COMMIT_TO_DELIVERY, 100, 9)
    assert found[:6] == [102, 103, 104, 105, 106, 0]


def test_times_with_delays_are_found_by_the_longest_of_them() -> None:
    memory, within = SeriesMemory(), BOUNDS[LATE]
    _, tens, coarse = memory.rings
    for seconds, bin in ((-600, 3), (-300, BINS - 1)):
        coarse.put((NOW + seconds) // 300, {}, counts(9, bin))
    for seconds, bin in ((0, 2), (10, 0), (20, 2)):
        tens.put((NOW + seconds) // 10, {}, counts(1, bin))

    found = memory.delay_slots(LATE, NOW - 600, NOW + 25)
    assert [(each.since - NOW, each.longest) for each in found] == [
        *((-300, inf), (-600, within[3])),
        *((20, within[2]), (0, within[2]), (10, within[0])),
    ]
    assert [each.until - each.since for each in found] == [300, 300, 10, 10, 10]
    assert memory.delays_kept_from == NOW - 600
    early = SeriesMemory()
    assert early.delay_slots(LATE, NOW - 600, NOW) == []
    early.rings[2].put(NOW // 300, {}, counts(1))
    assert len(early.delay_slots(LATE, NOW - 600, NOW + 9)) == 1
    (last,) = memory.delay_slots(LATE, NOW + 10, NOW + 20)
    assert last.since == NOW + 10


def test_too_many_delays_keep_their_proportions() -> None:
    ring = a_ring()
    many = [0] * BINS
    many[1:4] = [300_000, 150_000, 1]
    ring.put(100, {}, {DelayName.COMMIT_TO_DELIVERY: many})
    found = ring.counts(DelayName.COMMIT_TO_DELIVERY, 100, 1)
    assert found[1:4] == [65_535, 32_767, 0]


def test_a_coarser_slot_has_the_mean_and_the_peak_of_what_was_measured() -> None:
    finer, coarser = a_ring(length=60, step=10), a_ring(step=300)
    finer.put(3_000, {NEW: (1, 4), POLLS: (5, 5)}, {})
    finer.put(3_007, {NEW: (3, 9), POLLS: (6, 6)}, {})
    assert coarser.summed_up(finer, 100) == {NEW: (2, 9), POLLS: (5.5, 6)}
    assert coarser.summed_up(finer, 99) == {}


@pytest.mark.parametrize(
    ("seconds", "have_delays", "step", "slot"),
    [
        (600, False, 5, 1),
        (600, True, 10, 10),
        (21_600, False, 180, 10),
        (21_600, True, 180, 10),
        (22_000, False, 300, 300),
        (2_592_000, False, 21_600, 300),
    ],
)
def test_buckets_are_of_round_lengths_of_the_finest_that_reaches_back(
    seconds: int, have_delays: bool, step: int, slot: int
) -> None:
    memory = SeriesMemory()
    memory.rings[0].put(NOW, {}, {})
    memory.rings[1].put((NOW - 30_000) // 10, {}, {})
    found = memory.buckets(NOW - seconds, NOW, 120, have_delays=have_delays)
    assert (found.step, found.slot) == (step, slot)
    assert found.first % step == 0
    assert NOW - seconds <= found.first < NOW - seconds + step
    assert found.end - step <= NOW < found.end


def test_every_step_is_made_of_whole_slots() -> None:
    for step, _, _ in RINGS:
        assert all(each % step == 0 for each in ROUND_STEPS if each >= step)
    assert all(one < next for one, next in pairwise(ROUND_STEPS))


def test_a_line_loses_no_peak() -> None:
    memory = SeriesMemory()
    for second in range(600):
        value = 500.0 if second == 331 else second % 2
        memory.rings[0].put(NOW - 599 + second, {NEW: (value, value)}, {})
    buckets = memory.buckets(NOW - 590, NOW, 20)
    line = memory.line(NEW, buckets)
    assert len(line.means) == buckets.count == 20
    assert max(each for each in line.highs if each is not None) == 500
    assert {each for each in line.lows[:-1]} == {0}
    assert line.means[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("before", "amount"),
    [
        pytest.param([], 390, id="it was started then"),
        pytest.param([-5], 900 + 900 + 90, id="it had run before"),
    ],
)
def test_the_amount_of_a_rate_is_that_of_what_was_measured(
    before: list[int], amount: int
) -> None:
    memory, start = SeriesMemory(), NOW + 200
    _, tens, coarse = memory.rings
    for slot in (*before, 0):
        coarse.put(NOW // 300 + slot, {POLLS: (3, 3)}, {})
    without_fine = memory.amount(POLLS, NOW - 9_999, NOW + 400)
    for ten in range(start // 10, (NOW + 330) // 10):
        tens.put(ten, {POLLS: (3, 3)}, {})

    assert without_fine == 900 * (1 + len(before))
    assert memory.amount(POLLS, NOW - 9_999, NOW + 400) == amount
    assert memory.amount(POLLS, NOW + 300, NOW + 320) == 60


def test_where_nothing_fine_is_left_the_coarse_stands_for_it() -> None:
    memory = SeriesMemory()
    coarse = memory.rings[-1]
    for slot in range(NOW // 300 - 10, NOW // 300):
        coarse.put(slot, {NEW: (2, 8)}, counts(6, bin=3))
    memory.rings[0].put(NOW + 60, {NEW: (1, 1)}, {})
    coarse.put(NOW // 300, {NEW: (7, 7)}, {})
    line = memory.line(NEW, memory.buckets(NOW - 540, NOW + 60, 10))
    assert line.means == [*[2] * 9, None, 1]
    assert line.highs == [*[8] * 9, None, 1]
    buckets = memory.buckets(NOW - 3_600, NOW, 90, have_delays=True)
    delays = memory.delay_line(DelayName.COMMIT_TO_DELIVERY, buckets)
    assert buckets.step == 300
    assert [sum(each) for each in delays.counts] == [0, 0, *[6] * 10, 0]
    assert delays.p50[0] is None
    assert delays.p50[-2] == delays.p99[-2] == 0.05


@pytest.mark.parametrize(
    ("bins", "share", "expected"),
    [
        ([0, 0, 0, 0], 0.5, None),
        ([9, 0, 0, 0], 0.5, 1.0),
        ([0, 1, 0, 0], 0.5, 10.0),
        ([2, 2, 0, 0], 0.5, 1.0),
        ([98, 0, 2, 0], 0.99, 100.0),
        ([0, 0, 0, 9], 0.5, inf),
    ],
)
def test_a_quantile_is_the_upper_end_of_its_bin(
    bins: list[int], share: float, expected: float | None
) -> None:
    assert quantile(bins, (1.0, 10.0, 100.0), share) == expected


@pytest.mark.parametrize("back", [600, 3_000])
@pytest.mark.parametrize("moved", [1, 9, 400, -30])
def test_a_line_that_goes_on_from_a_known_one_is_as_if_it_was_made_anew(
    back: int, moved: int
) -> None:
    memory, random = SeriesMemory(), Random(1)

    def buckets(now: int) -> Buckets:
        return memory.buckets(now - back, now, 60, have_delays=True)

    def measure(first: int, last: int) -> None:
        for second in range(first, last):
            value = random.random()
            memory.rings[0].put(second, {NEW: (value, value)}, {})
            if second % 10 == 9:
                values = memory.rings[1].summed_up(memory.rings[0], second // 10)
                memory.rings[1].put(second // 10, values, counts(second % 7))

    measure(NOW - 800, NOW)
    line, delays = memory.line(NEW, buckets(NOW)), memory.delay_line(LATE, buckets(NOW))
    measure(NOW, NOW + moved)
    wanted = buckets(NOW + moved)
    assert memory.line(NEW, wanted, line) == memory.line(NEW, wanted)
    assert memory.delay_line(LATE, wanted, delays) == memory.delay_line(LATE, wanted)
