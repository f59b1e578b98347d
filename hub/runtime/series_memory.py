"""How the hub behaved over time, in memory: every second of ten minutes, every ten
seconds of six hours, every five minutes of thirty days.

Each of these is a ring of values by slots of time, so that they take the same 2.7 MB
from the start. A coarser ring is summed up from the finer one: each slot gets the mean,
and for series that leap the highest value, too, so that no peak is lost. Distributions
of delays are kept in slots of ten seconds and more.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, compress
from math import ceil, inf
from typing import Final

from hub.runtime.metrics import DELAY_BOUNDS, FIRST_BOUNDS

NOTHING: Final = -1.0
"""Stands for a value that was not measured: measured values are never negative."""
LARGEST_COUNT: Final = 65_535
"""The largest count of a bin; if one is larger, all bins of the slot are scaled
down."""


class SeriesName(StrEnum):
    """What is measured; see `SERIES`."""

    ENTRIES_NEW = "entries_new"
    ENTRIES_UPDATED = "entries_updated"
    ENTRIES_UNDATED = "entries_undated"
    DELIVERED = "delivered"
    REFUSED = "refused"
    UNANSWERED = "unanswered"
    GIVEN_UP = "given_up"
    POLLS = "polls"
    POLLS_FAILED = "polls_failed"
    PUSHES = "pushes"
    COMMITS = "commits"
    LIVE_MESSAGES = "live_messages"
    REQUESTS = "requests"
    CPU = "cpu"
    CONNECTIONS = "connections"
    FANOUTS = "fanouts"
    CHUNKS = "chunks"
    RETRYING = "retrying"
    DEAD_LETTERS = "dead_letters"
    DELIVERY_LAG = "delivery_lag"
    LIVE_LAG = "live_lag"
    OVERDUE = "overdue"
    DISK_FREE = "disk_free"
    DATABASE = "database"
    MEMORY = "memory"
    FEEDS_FAILING = "feeds_failing"
    SUBSCRIPTIONS_FAILING = "subscriptions_failing"


class DelayName(StrEnum):
    """Delays of new entries whose distributions are kept."""

    PUBLICATION_TO_COMMIT = "publication_to_commit"
    COMMIT_TO_DELIVERY = "commit_to_delivery"


class Unit(StrEnum):
    RATE = "a second"
    COUNT = ""
    SECONDS = "seconds"
    BYTES = "bytes"
    CORES = "cores"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKind:
    """``has_peak``: coarser slots keep the highest value beside the mean."""

    unit: Unit
    what: str
    has_peak: bool = False


def _rate(what: str, *, has_peak: bool = True) -> SeriesKind:
    return SeriesKind(unit=Unit.RATE, what=what, has_peak=has_peak)


SERIES: Final[Mapping[SeriesName, SeriesKind]] = {
    SeriesName.ENTRIES_NEW: _rate("new entries committed"),
    SeriesName.ENTRIES_UPDATED: _rate("updated and deleted entries committed"),
    SeriesName.ENTRIES_UNDATED: _rate(
        "new entries committed without a believable date", has_peak=False
    ),
    SeriesName.DELIVERED: _rate("requests that callbacks answered with 2xx"),
    SeriesName.REFUSED: _rate("requests that callbacks answered with something else"),
    SeriesName.UNANSWERED: _rate("requests that callbacks did not answer"),
    SeriesName.GIVEN_UP: _rate("deliveries that were given up"),
    SeriesName.POLLS: _rate("polls", has_peak=False),
    SeriesName.POLLS_FAILED: _rate("polls that failed", has_peak=False),
    SeriesName.PUSHES: _rate("pushes of other hubs that were taken"),
    SeriesName.COMMITS: _rate("commits of fetches and deliveries", has_peak=False),
    SeriesName.LIVE_MESSAGES: _rate("notifications to live connections"),
    SeriesName.REQUESTS: _rate("requests to the hub", has_peak=False),
    SeriesName.CPU: SeriesKind(
        unit=Unit.CORES, what="CPU of the hub without its parse workers"
    ),
    SeriesName.CONNECTIONS: SeriesKind(unit=Unit.COUNT, what="open live connections"),
    SeriesName.FANOUTS: SeriesKind(
        unit=Unit.COUNT, what="records that are not split yet", has_peak=True
    ),
    SeriesName.CHUNKS: SeriesKind(
        unit=Unit.COUNT, what="chunks of up to 500 first deliveries", has_peak=True
    ),
    SeriesName.RETRYING: SeriesKind(unit=Unit.COUNT, what="retrying subscriptions"),
    SeriesName.DEAD_LETTERS: SeriesKind(unit=Unit.COUNT, what="dead letters"),
    SeriesName.DELIVERY_LAG: SeriesKind(
        unit=Unit.SECONDS,
        what="age of the oldest record in its first deliveries",
        has_peak=True,
    ),
    SeriesName.LIVE_LAG: SeriesKind(
        unit=Unit.SECONDS,
        what="age of the oldest record that live connections lack",
        has_peak=True,
    ),
    SeriesName.OVERDUE: SeriesKind(
        unit=Unit.SECONDS, what="how long the most overdue feed is due", has_peak=True
    ),
    SeriesName.DISK_FREE: SeriesKind(unit=Unit.BYTES, what="free space of the disk"),
    SeriesName.DATABASE: SeriesKind(unit=Unit.BYTES, what="size of the database"),
    SeriesName.MEMORY: SeriesKind(
        unit=Unit.BYTES, what="resident memory without parse workers"
    ),
    SeriesName.FEEDS_FAILING: SeriesKind(unit=Unit.COUNT, what="failing feeds"),
    SeriesName.SUBSCRIPTIONS_FAILING: SeriesKind(
        unit=Unit.COUNT, what="failing subscriptions"
    ),
}
BOUNDS: Final[Mapping[DelayName, tuple[float, ...]]] = {
    DelayName.PUBLICATION_TO_COMMIT: DELAY_BOUNDS,
    DelayName.COMMIT_TO_DELIVERY: FIRST_BOUNDS,
}
"""Upper ends of all bins but the last, in seconds: those of the metrics' histograms."""

Values = Mapping[SeriesName, tuple[float, float]]
"""For each series, the mean and the highest value."""
Delays = Mapping[DelayName, Sequence[int]]
"""For each distribution, the count in each bin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelaySlot:
    """A slot of time with delays, in Unix seconds. ``longest``: the upper end of their
    last bin, than which none is longer."""

    since: int
    until: int
    longest: float


class Ring:
    """Values of the last ``length`` slots of ``step`` seconds each. A slot is a time in
    steps since 1970."""

    def __init__(self, step: int, length: int, *, has_delays: bool) -> None:
        self.step = step
        self.length = length
        self.latest = self.begun = -1
        """The last slot that was set, and the first."""

        self._means = {name: _nothing(length) for name in SERIES}
        self._peaks = {
            name: _nothing(length)
            for name, kind in SERIES.items()
            if kind.has_peak and step > 1
        }
        self._counts = {
            name: array("H", bytes(2 * length * (len(bounds) + 1)))
            for name, bounds in BOUNDS.items()
            if has_delays
        }

    @property
    def bytes(self) -> int:
        rings = (self._means, self._peaks, self._counts)
        return sum(
            len(each) * each.itemsize for by_name in rings for each in by_name.values()
        )

    @property
    def begins_at(self) -> float:
        """When the first slot begins that was set, in Unix seconds."""
        return self.begun * self.step if self.begun >= 0 else inf

    @property
    def kept_from(self) -> float:
        """When the first slot begins that it still has, in Unix seconds; infinite
        without any."""
        return max(self.begins_at, (self.latest - self.length + 1) * self.step)

    def put(self, slot: int, values: Values, delays: Delays) -> None:
        """Set a slot; slots that were later, or lie between, are empty from then on."""
        self._forget(slot)
        self.latest = slot
        if self.begun < 0:
            self.begun = slot
        index = slot % self.length
        for name, (mean, peak) in values.items():
            self._means[name][index] = mean
            if name in self._peaks:
                self._peaks[name][index] = peak
        for delay, counts in delays.items():
            if delay in self._counts:
                start = index * len(counts)
                fitting = array("H", _fit(counts))
                self._counts[delay][start : start + len(counts)] = fitting

    def _forget(self, slot: int) -> None:
        """Empty all slots whose values are no longer valid."""
        if slot > self.latest:
            first, last = max(self.latest + 1, slot - self.length + 1), slot
        else:  # the clock went back
            first, last = slot, min(self.latest, slot + self.length - 1)
        for each in range(first, last + 1):
            index = each % self.length
            for ring in (*self._means.values(), *self._peaks.values()):
                ring[index] = NOTHING
            for counts in self._counts.values():
                bins = len(counts) // self.length
                counts[index * bins : (index + 1) * bins] = array("H", bytes(2 * bins))

    def means(self, name: SeriesName, first: int, count: int) -> array[float]:
        """Means of ``count`` slots from ``first`` on; `NOTHING` for slots without
        values."""
        return self._read(self._means[name], first, count)

    def peaks(self, name: SeriesName, first: int, count: int) -> array[float]:
        """Highest values of slots; for series without peaks, their means."""
        ring = self._peaks.get(name, self._means[name])
        return self._read(ring, first, count)

    def _read(self, ring: array[float], first: int, count: int) -> array[float]:
        before, found = self._kept(first, count)
        after = count - len(before) - len(found)
        result = _nothing(len(before))
        for part in self._parts(found):
            result += ring[part]
        return result + _nothing(after)

    def amount(self, name: SeriesName, since: float, until: float) -> float:
        """How many there were in the slots of a span of time, if it is a rate."""
        first = int(since // self.step)
        count = max(ceil(until / self.step) - first, 0)
        return sum(_measured(self.means(name, first, count))) * self.step

    def values(self, slot: int) -> dict[SeriesName, tuple[float, float]]:
        """What was measured in a slot."""
        pairs = {
            name: (self.means(name, slot, 1)[0], self.peaks(name, slot, 1)[0])
            for name in SERIES
        }
        return {name: pair for name, pair in pairs.items() if pair[0] >= 0}

    def counts(self, name: DelayName, first: int, count: int) -> list[int]:
        """The sums over so many slots, by bin."""
        ring = self._counts[name]
        bins = len(ring) // self.length
        _, found = self._kept(first, count)
        parts = [
            ring[part.start * bins : part.stop * bins] for part in self._parts(found)
        ]
        return [sum(sum(part[each::bins]) for part in parts) for each in range(bins)]

    def delay_slots(
        self, name: DelayName, since: float, until: float
    ) -> Iterator[DelaySlot]:
        """The slots with delays that are wholly or partly in a span of time."""
        ring, bounds = self._counts[name], (*BOUNDS[name], inf)
        bins, first = len(bounds), int(since // self.step)
        _, kept = self._kept(first, ceil(until / self.step) - first)
        for slot in kept:
            start = slot % self.length * bins
            counts = ring[start : start + bins]
            if any(counts):
                yield DelaySlot(
                    since=slot * self.step,
                    until=(slot + 1) * self.step,
                    longest=max(compress(bounds, counts)),
                )

    def _kept(self, first: int, count: int) -> tuple[range, range]:
        """Of these slots, those that are too old, and those the ring has."""
        oldest = max(0, self.latest - self.length + 1)
        end = first + count
        start = min(max(first, oldest), end)
        stop = max(start, min(end, self.latest + 1))
        return range(first, start), range(start, stop)

    def _parts(self, slots: range) -> Iterator[slice]:
        """Where these slots are in the ring."""
        if not slots:
            return
        start, stop = slots.start % self.length, (slots.stop - 1) % self.length + 1
        if start < stop:
            yield slice(start, stop)
        else:
            yield slice(start, self.length)
            yield slice(0, stop)

    def summed_up(
        self, finer: Ring, slot: int
    ) -> dict[SeriesName, tuple[float, float]]:
        """What a finer ring holds for a slot of this one."""
        per = self.step // finer.step
        found = {}
        for name in SERIES:
            measured = _measured(finer.means(name, slot * per, per))
            if measured:
                peak = max(finer.peaks(name, slot * per, per))
                found[name] = sum(measured) / len(measured), peak
        return found


def _nothing(length: int) -> array[float]:
    return array("f", [NOTHING]) * length


def _measured(values: array[float]) -> array[float]:
    """The values without `NOTHING`."""
    if min(values, default=NOTHING) >= 0:
        return values
    if max(values, default=NOTHING) < 0:
        return values[:0]
    return array("f", [each for each in values if each >= 0])


def _fit(counts: Sequence[int]) -> Sequence[int]:
    most = max(counts)
    if most <= LARGEST_COUNT:
        return counts
    return [count * LARGEST_COUNT // most for count in counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """``count`` of ``step`` seconds each from ``first`` on, in Unix seconds; summed up
    from slots of ``slot`` seconds."""

    first: int
    step: int
    count: int
    slot: int

    @property
    def end(self) -> int:
        return self.first + self.step * self.count

    def after(self, count: int) -> Buckets:
        """The buckets without the first ``count``."""
        first = self.first + self.step * count
        return replace(self, first=first, count=self.count - count)

    def kept(self, wanted: Buckets) -> range:
        """Which of these buckets are among the wanted ones and can no longer change."""
        if (self.step, self.slot) != (wanted.step, wanted.slot):
            return range(0)
        gone = (wanted.first - self.first) // self.step
        sure = self.count - 1 - -(-LATEST_SECONDS // self.step)
        is_later = gone >= 0 and wanted.end >= self.end
        return range(gone, max(sure, gone)) if is_later else range(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series in buckets of time: the mean, the lowest mean and the highest value of
    each. None where nothing was measured."""

    name: SeriesName
    buckets: Buckets
    means: list[float | None]
    lows: list[float | None]
    highs: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayLine:
    """A distribution in buckets of time: the count in each bin, and the delays in
    seconds that half and 99 of 100 of them did not exceed, as `quantile` tells
    them."""

    name: DelayName
    buckets: Buckets
    counts: list[list[int]]
    p50: list[float | None]
    p99: list[float | None]

    @property
    def bounds(self) -> tuple[float, ...]:
        return BOUNDS[self.name]


LATEST_SECONDS: Final = 20
"""What was measured longer ago than this is summed up, and no longer changes."""


def _slice_of(places: range) -> slice:
    return slice(places.start, places.stop)


RINGS: Final = ((1, 600, False), (10, 2_160, True), (300, 8_640, True))
"""Seconds of a slot, how many slots, and whether delays are counted."""
ROUND_STEPS: Final = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 180, 240, 300, 600, 900, 1_800, 3_600, 7_200),
    *(10_800, 14_400, 21_600, 28_800, 43_200, 86_400),
)
"""Lengths of buckets in seconds; each that is not shorter than a slot is a multiple of
it."""


MOST_STARTS: Final = 1_000
"""Starts of the hub that are remembered."""


class SeriesMemory:
    def __init__(self) -> None:
        self.rings = tuple(
            Ring(step, length, has_delays=has_delays)
            for step, length, has_delays in RINGS
        )
        self._starts: list[int] = []

    def note_starts(self, moments: Iterable[int]) -> None:
        """Remember when the hub was started, in Unix seconds; of many, the latest."""
        self._starts = sorted({*self._starts, *moments})[-MOST_STARTS:]

    def starts(self, since: float, until: float) -> tuple[int, ...]:
        """When the hub was started from ``since`` on and before ``until``."""
        return tuple(each for each in self._starts if since <= each < until)

    def buckets(
        self, since: float, until: float, points: int, *, have_delays: bool = False
    ) -> Buckets:
        """At most ``points`` buckets of a round length, from the first that begins
        after ``since`` until the one that contains ``until``; of less than two of them,
        from the one that contains ``since``."""
        slot = self._slot(since, until, have_delays)
        least = max((until - since) / points, slot)
        step = ROUND_STEPS[min(bisect_left(ROUND_STEPS, least), len(ROUND_STEPS) - 1)]
        first, last = -int(-since // step), int(until // step)
        if first >= last:  # less than a whole one
            first = int(since // step)
        count = max(last - first + 1, 1)
        return Buckets(first=first * step, step=step, count=count, slot=slot)

    def line(
        self, name: SeriesName, wanted: Buckets, known: Line | None = None
    ) -> Line:
        """A series in buckets. For the time before this start, of which no fine values
        are left, coarse ones are used. ``known``: the line returned before; parts that
        can no longer change are taken from it."""
        kept = known.buckets.kept(wanted) if known else range(0)
        if known and kept:
            rest, part = self.line(name, wanted.after(len(kept))), _slice_of(kept)
            return Line(
                name=name,
                buckets=wanted,
                means=known.means[part] + rest.means,
                lows=known.lows[part] + rest.lows,
                highs=known.highs[part] + rest.highs,
            )
        ring = self._ring_of(wanted)
        per = wanted.step // ring.step
        first, count = wanted.first // ring.step, per * wanted.count
        means, peaks = ring.means(name, first, count), ring.peaks(name, first, count)
        line = Line(name=name, buckets=wanted, means=[], lows=[], highs=[])
        coarser = [each for each in self.rings if each.step > ring.step]
        for bucket in range(wanted.count):
            part = slice(bucket * per, (bucket + 1) * per)
            here, high = _measured(means[part]), max(peaks[part])
            moment, begun = wanted.first + bucket * wanted.step, ring.begins_at
            for each in coarser:
                slot = moment // each.step
                if here or slot >= begun // each.step:
                    break
                begun = min(begun, each.begins_at)
                here = _measured(each.means(name, slot, 1))
                high = each.peaks(name, slot, 1)[0]
            line.means.append(sum(here) / len(here) if here else None)
            line.lows.append(min(here) if here else None)
            line.highs.append(high if here else None)
        return line

    def delay_line(
        self, name: DelayName, wanted: Buckets, known: DelayLine | None = None
    ) -> DelayLine:
        """A distribution in buckets. ``known``: as for `line`."""
        kept = known.buckets.kept(wanted) if known else range(0)
        if known and kept:
            rest, part = self.delay_line(name, wanted.after(len(kept))), _slice_of(kept)
            return DelayLine(
                name=name,
                buckets=wanted,
                counts=known.counts[part] + rest.counts,
                p50=known.p50[part] + rest.p50,
                p99=known.p99[part] + rest.p99,
            )
        ring, coarse = self._ring_of(wanted), self.rings[-1]
        bounds = BOUNDS[name]
        line = DelayLine(name=name, buckets=wanted, counts=[], p50=[], p99=[])
        for start in range(wanted.first, wanted.end, wanted.step):
            counts = ring.counts(name, start // ring.step, wanted.step // ring.step)
            if not any(counts) and wanted.step >= coarse.step:
                slots = wanted.step // coarse.step
                counts = coarse.counts(name, start // coarse.step, slots)
            line.counts.append(counts)
            line.p50.append(quantile(counts, bounds, 0.5))
            line.p99.append(quantile(counts, bounds, 0.99))
        return line

    def delay_slots(
        self, name: DelayName, since: float, until: float
    ) -> list[DelaySlot]:
        """The slots with delays in a span of time, as fine as they are known: the one
        with the longest first, of several the last."""
        _, tens, coarse = self.rings
        fine_from = min(self._fine_from, until)
        found = [*tens.delay_slots(name, max(fine_from, since), until)]
        if since < fine_from:
            found += coarse.delay_slots(name, since, fine_from)
        return sorted(found, key=lambda each: (-each.longest, -each.since))

    def amount(self, name: SeriesName, since: float, until: float) -> float:
        """How many there were in a span of time, of a rate: nearly, as five minutes in
        which the hub was started count as whole ones if that was hours ago."""
        _, tens, coarse = self.rings
        fine_from = min(self._fine_from, until)
        found = tens.amount(name, max(fine_from, since), until)
        if since < fine_from:
            found += coarse.amount(name, since, fine_from)
        return found

    @property
    def _fine_from(self) -> float:
        """When the first five minutes begin of which all tens of seconds are kept that
        were measured; infinite without any."""
        _, tens, coarse = self.rings
        if tens.kept_from == inf:
            return inf
        slot = int(tens.kept_from // coarse.step)
        is_whole = slot <= coarse.begun or slot * coarse.step == tens.kept_from
        return (slot if is_whole else slot + 1) * coarse.step

    @property
    def delays_kept_from(self) -> float:
        """When the first slot with delays begins, in Unix seconds; infinite if there is
        none."""
        return min(each.kept_from for each in self.rings[1:])

    def _slot(self, since: float, until: float, have_delays: bool) -> int:
        """Seconds of a slot of the finest ring that reaches back so far. For delays it
        is the coarsest ring if only that has some of the time from ``since`` on."""
        latest, coarse = max(self.rings[0].latest, until), self.rings[-1].step
        if have_delays and self._is_coarse_only(since):
            return coarse
        reaching = (
            step
            for step, length, has_delays in RINGS
            if has_delays >= have_delays and since >= latest - step * length
        )
        return next(reaching, coarse)

    def _is_coarse_only(self, since: float) -> bool:
        """Whether the coarsest ring has something from ``since`` on that is of a time
        before all that the finer one with delays has."""
        tens, coarse = self.rings[1:]
        if tens.begun < 0:
            return True
        first = int(since // coarse.step)
        count = tens.begun * tens.step // coarse.step - first
        return count > 0 and max(coarse.means(SeriesName.CPU, first, count)) >= 0

    def _ring_of(self, wanted: Buckets) -> Ring:
        return next(each for each in self.rings if each.step == wanted.slot)


def quantile(
    counts: Sequence[int], bounds: Sequence[float], share: float
) -> float | None:
    """A delay in seconds that this share did not exceed: the upper end of a bin, so
    that it is true of each delay, and all together are never slower than their slowest
    part. Infinite if that is the last bin, which has no end; None without delays."""
    total = sum(counts)
    if not total:
        return None
    number = bisect_left(list(accumulate(counts)), ceil(share * total))
    return bounds[number] if number < len(bounds) else inf
