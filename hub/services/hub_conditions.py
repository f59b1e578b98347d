"""What is wrong with the hub, since when, and what to do about it.

With an error the hub cannot work: it is not ready. A warning does not prevent that, but
needs attention. `HubConditions.run` checks from time to time, so that it is known since
when each condition holds. Each condition is logged when it begins and when it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import structlog

from hub.core.byte_sizes import byte_size
from hub.core.disk_forecast import span
from hub.core.durations import duration
from hub.runtime.clock import Clock
from hub.services.disk_space import DiskReport, DiskSpace
from protocols.operational_events import EventType
from storage.contract import EventStore, Storage
from storage.errors import StorageError
from storage.records import (
    FeedHealth,
    FeedId,
    OperationalEvent,
    SubscriptionHealth,
    WriteFaults,
)

CHECK_SECONDS: Final = 5.0
"""Seconds between trial writes at least, however often readiness is asked."""
CHECK_DEADLINE: Final = 5.0
LOOK_SECONDS: Final = 5.0
COUNT_SECONDS: Final = 60.0
"""Seconds between two looks into the database for what waits and what fails."""
LEAST_FREE_BYTES: Final = 64 * 1024 * 1024
FULL_SOON: Final = timedelta(days=3)
LATE_POLL: Final = timedelta(minutes=30)
LATE_DELIVERY: Final = timedelta(minutes=2)
FAULT_TOLD: Final = timedelta(hours=1)
"""How long writes that failed are told of after the last of them."""
LEAST_FAILING: Final = 10
"""Feeds or callbacks that must fail at least: of a few, half may fail by chance."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class HubCondition:
    """A condition: ``what`` is wrong and what to do, one sentence each; ``advice`` "":
    nothing can be done. ``is_over``: what was wrong is not any more, but was lately."""

    what: str
    since: datetime
    advice: str
    is_error: bool
    is_over: bool = False


Tell: TypeAlias = Callable[[Mapping[str, HubCondition]], Awaitable[bool]]


async def tell_nobody(holding: Mapping[str, HubCondition]) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """A condition that holds now. ``key`` identifies it even if its words change."""

    key: str
    what: str
    advice: str = ""
    is_error: bool = False
    is_over: bool = False
    since: datetime | None = None  # None: since it was noticed


class HubConditions:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        disk: DiskSpace,
        warned: Sequence[Callable[[], str]] = (),
        under_way: Callable[[], Collection[FeedId]] = tuple,
        tell: Tell = tell_nobody,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``warned``: functions that each return a warning, or "". ``under_way``: the
        feeds that are being visited. ``tell`` is called with the conditions that hold,
        by their keys, after each check; if it returns False it is soon called again."""
        self._storage = storage
        self._clock = clock
        self._disk = disk
        self._warned = warned
        self._under_way = under_way
        self._tell = tell
        self._sleep = sleep
        self._checked: float | None = None
        self._write_error = ""
        self._all_faults = WriteFaults()
        self._former_faults = WriteFaults()  # those before the first of `_faults`
        self._faults: tuple[datetime, datetime] | None = None  # the first and the last
        self._counted: tuple[_Finding, ...] = ()
        self._free = LEAST_FREE_BYTES  # free bytes, at the last look
        self._stopping = False
        self._known: dict[str, HubCondition] = {}

    def stop(self) -> None:
        """Note that the hub is about to end: it is no longer ready."""
        self._stopping = True

    async def run(self) -> None:
        """Check from time to time, until cancelled."""
        counts_from = self._clock.monotonic() + COUNT_SECONDS
        is_told = True
        while True:
            await self._sleep(LOOK_SECONDS)
            is_time_to_count = self._clock.monotonic() >= counts_from
            if is_time_to_count:
                await self.count()
                counts_from = self._clock.monotonic() + COUNT_SECONDS
            self._note()
            if is_time_to_count or not is_told:
                is_told = await self._tell(self._known)

    async def look(self) -> tuple[HubCondition, ...]:
        """The conditions that hold now, errors first. Makes a trial write if the last
        one was some time ago."""
        await self._try_write()
        self._free = self._disk.free()
        return self._note()

    def describe(self) -> str:
        """The conditions found by the last check, as one line."""
        holding = self._known.values()
        if errors := [each.what for each in holding if each.is_error]:
            return f"not ready: {'; '.join(errors)}"
        return "; ".join(("ready", *(each.what for each in holding)))

    async def count(self) -> None:
        """Look in the database for what waits and what fails, and at the disk."""
        self._free = self._disk.free()  # even if the database fails
        with suppress(StorageError):  # a finding of its own
            await self._disk.sample()
        try:
            disk = await self._disk.report()
            backlog = await self._storage.backlog(self._under_way())
            feeds = await self._storage.feed_selections.counts()
            failing = await self._storage.subscription_selections.counts()
        except StorageError:
            return  # a finding of its own
        by_health = {
            health: sum(each.total for each in feeds if each.health is health)
            for health in FeedHealth
        }
        self._counted = (
            *self._late("polls", backlog.oldest_due, LATE_POLL, *_LATE_POLLS),
            *self._late(
                "deliveries",
                backlog.oldest_undelivered,
                LATE_DELIVERY,
                *_LATE_DELIVERIES,
            ),
            *_many_failing(
                "feeds",
                by_health[FeedHealth.FAILING],
                backlog.feeds,
                "look at their errors: if none is answered, the network or the name"
                " servers of this machine may be down",
            ),
            *_many_failing(
                "subscriptions",
                failing.get(SubscriptionHealth.FAILING, 0),
                backlog.subscriptions,
                "the network of this machine may be down;"
                " `fanfare deliveries list --failed` shows the errors",
            ),
            *self._full_soon(disk),
        )

    def _late(
        self,
        key: str,
        oldest: datetime | None,
        allowed: timedelta,
        what: str,
        advice: str,
    ) -> Iterator[_Finding]:
        if oldest is not None and (late := self._clock.now() - oldest) > allowed:
            text = what.format(duration(round(late.total_seconds())))
            yield _Finding(key=key, what=text, advice=advice, since=oldest)

    def _full_soon(self, disk: DiskReport) -> Iterator[_Finding]:
        if disk.forecast is None or disk.forecast.full_at is None:
            return
        left = disk.forecast.full_at - self._clock.now()
        if left < FULL_SOON:
            yield _Finding(
                key="disk_filling",
                what=f"at this rate the disk is full in {span(left)}: free space"
                f" shrinks by {byte_size(disk.forecast.loss)} a day",
                advice="free space on the disk of the database, or set"
                f" FANFARE_LOG_RETENTION_BYTES, now {disk.limit}, to less",
            )

    def _note(self) -> tuple[HubCondition, ...]:
        """The conditions that hold, and since when; logs those that begin or end."""
        now, before = self._clock.now(), self._known
        self._note_faults(now)
        self._known = {
            each.key: HubCondition(
                what=each.what,
                since=before[each.key].since
                if each.key in before
                else each.since or now,
                advice=each.advice,
                is_error=each.is_error,
                is_over=each.is_over,
            )
            for each in self._findings()
        }
        for key, found in self._known.items():
            if key not in before and key != _STOPPING:
                tell = log.error if found.is_error else log.warning
                tell(_sentence(found), kind="condition")
        for key, over in before.items():
            if key not in self._known:
                log.info(f"resolved: {over.what}", kind="condition")
        return tuple(self._known.values())

    def _note_faults(self, now: datetime) -> None:
        """Note writes that failed: those with less than `FAULT_TOLD` between them are
        told of together."""
        if self._faults and now - self._faults[1] >= FAULT_TOLD:
            self._faults = None
        if (faults := self._storage.write_faults()) != self._all_faults:
            if self._faults is None:
                self._former_faults = self._all_faults
            self._faults = (self._faults[0] if self._faults else now, now)
            self._all_faults = faults

    def _said_faults(self, count: int, span: tuple[datetime, datetime]) -> str:
        """How many writes failed of late, and when the first and the last of them."""
        first, last = (f"{each:%Y-%m-%d %H:%M:%S}Z" for each in span)
        if count == 1:
            return f"a write failed at {last}"
        if self._all_faults.stretches - self._former_faults.stretches > 1:
            return (
                f"{count:,} writes failed between {first} and {last} while others"
                " succeeded, the last"
            )
        return f"{count:,} writes failed, from {first} until {last}"

    def _findings(self) -> Iterator[_Finding]:
        """The conditions that hold, errors first."""
        if self._stopping:
            yield _Finding(key=_STOPPING, what="shutting down", is_error=True)
        count = self._all_faults.count - self._former_faults.count
        failed = self._said_faults(count, self._faults) if self._faults else ""
        error = self._storage.write_error()
        if error and failed and count > 1:
            error = f"{failed}: {error}"
        if error := error or self._write_error:
            yield _Finding(
                key="unwritable",
                what=error,
                advice=_WRITE_ADVICE if self._disk.holds_database else _SERVER_ADVICE,
                is_error=True,
            )
        elif self._faults:
            yield _Finding(
                key="failed_writes",
                what=f"{failed}: {self._all_faults.last}; that is over, writes succeed"
                " again",
                since=self._faults[0],
                is_over=True,
                advice="check the disk of the database"
                if self._disk.holds_database
                else "check the server of the database",
            )
        if self._free < LEAST_FREE_BYTES:
            has_all = self._disk.holds_database
            holds = "the database" if has_all else "FANFARE_STATE_DIR"
            yield _Finding(
                key="disk",
                what=f"the disk has only {byte_size(self._free)} left",
                advice=f"free space on the disk of {holds}: the hub needs"
                f" {LEAST_FREE_BYTES // 2**20} MiB",
                is_error=True,
            )
        for number, warning in enumerate(self._warned):
            if text := warning():
                yield _Finding(key=f"warned {number}", what=text)
        yield from self._counted

    async def _try_write(self) -> None:
        now = self._clock.monotonic()
        if self._checked is not None and now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        try:
            async with asyncio.timeout(CHECK_DEADLINE):
                await self._storage.check()
        except StorageError as error:
            self._write_error = str(error)
        except TimeoutError:
            self._write_error = f"a write took longer than {CHECK_DEADLINE:g} s"
        else:
            self._write_error = ""


_STOPPING: Final = "stopping"
_WRITE_ADVICE: Final = (
    "make sure that the disk of the database has free space and is writable;"
    " the hub then continues by itself"
)
_SERVER_ADVICE: Final = (
    "make sure that the server of the database answers and has free space; the hub then"
    " continues by itself"
)
_LATE_POLLS: Final = (
    "polling is late: a feed has been due for {}",
    "raise FANFARE_POLL_CONCURRENCY, or give the hub more CPU",
)
_LATE_DELIVERIES: Final = (
    "deliveries are late: entries of {} ago are still in their first delivery",
    "raise FANFARE_DELIVERY_CONCURRENCY; `fanfare deliveries list` shows callbacks"
    " that delay it",
)


def _many_failing(
    what: str, failing: int, total: int, advice: str
) -> Iterator[_Finding]:
    """The condition that more than half of the feeds or callbacks fail, which may have
    one cause."""
    if failing >= LEAST_FAILING and failing > total / 2:
        text = f"{failing:,} of {total:,} {what} are failing"
        yield _Finding(key=what, what=text, advice=advice)


def _sentence(condition: HubCondition) -> str:
    return "; ".join(filter(None, (condition.what, condition.advice)))


# --- events ---

_TYPES: Final[Mapping[str, EventType]] = {
    "disk": EventType.HUB_DISK,
    "disk_filling": EventType.HUB_DISK,
    "polls": EventType.HUB_BACKLOG,
    "deliveries": EventType.HUB_BACKLOG,
}
"""The event types of conditions that subscribers are told of, by their keys."""
OVER_AFTER: Final = 300.0
"""Seconds after which a condition that no longer holds is reported as over, so that one
that comes and goes is reported once."""


class ConditionEvents:
    """Events for conditions. The beginning of a condition is remembered until its event
    is written: a full disk may take no events until it has room again."""

    def __init__(self, events: EventStore, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._last_held: dict[str, tuple[float, OperationalEvent]] = {}
        self._written: Set[str] = frozenset()
        self._has_failed = False

    async def tell(self, holding: Mapping[str, HubCondition]) -> bool:
        """Write events for conditions that began, and for those that have been over for
        a while. False if they could not be written."""
        now = self._clock.monotonic()
        for name in holding.keys() & _TYPES.keys():
            _, began = self._last_held.get(name) or (now, None)
            self._last_held[name] = now, began or self._event(name, holding[name])
        self._last_held = {
            name: held
            for name, held in self._last_held.items()
            if now - held[0] < OVER_AFTER or name not in self._written
        }
        events = [event for _, event in self._last_held.values()]
        try:
            await self._events.note_conditions(events, self._clock.now())
        except StorageError as error:
            if not self._has_failed:
                log.warning("conditions_not_told", error=str(error))
            self._has_failed = True
            return False
        self._written, self._has_failed = frozenset(self._last_held), False
        return True

    def _event(self, name: str, condition: HubCondition) -> OperationalEvent:
        return OperationalEvent(
            type=_TYPES[name],
            at=self._clock.now(),
            condition=name,
            since=condition.since,
            reason=condition.what,
            advice=condition.advice,
        )
