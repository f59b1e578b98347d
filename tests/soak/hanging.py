"""`scripts/soak hanging`: a thousand callbacks, some of which hang in every way.

Some accept and say nothing, send their head or their body byte by byte, or do not even
accept. How late the others get news is measured at first and after half a minute, and
compared with when none hangs. In the end the callbacks that hang are ones that the hub
has given up, so that each is asked with every record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from time import monotonic

from tests.soak.callbacks import Callbacks, published_now, running_callbacks
from tests.soak.latencies import Lateness
from tests.support.broken_networks import black_hole
from tests.support.chosen_engine import change
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher

CALLBACKS = 1_000
WARMING, MEASURED, PAUSE = 30.0, 30.0, 3.0
MOST_LATE, USUALLY_LATE = 2_000.0, 200.0
"""How late 99 in 100 of the good callbacks may be, and half of them; milliseconds."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What share of callbacks hangs, and whether the hub has given them up before."""

    share: float
    are_given_up: bool = False


TROUBLES = (Trouble(0.0), Trouble(0.02), Trouble(0.05), Trouble(0.05, True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    hanging: int
    are_given_up: bool
    early: Lateness  # in the first half minute
    late: Lateness  # after it
    missing: int  # news that somebody who is well did not get, or got twice

    @property
    def is_late(self) -> bool:
        """Whether good callbacks get news too late, once the hub is warm."""
        return self.late.p99 > MOST_LATE or self.late.median >= USUALLY_LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    callbacks: int
    measured: list[Measured]

    @property
    def complaints(self) -> list[str]:
        return [
            f"with {each.hanging} hanging: {each.late}, {each.missing} missing or twice"
            for each in self.measured
            if each.is_late or each.missing
        ]


def report(outcome: Outcome) -> str:
    lines = [f"{outcome.callbacks} callbacks"]
    for each in outcome.measured:
        given_up = ", given up before" if each.are_given_up else ""
        lines.append(
            f"{each.hanging:4} hang{given_up}; {each.missing} missing or twice"
        )
        lines.append(f"  at first {each.early}")
        lines.append(f"  then     {each.late}")
    lines += [f"BROKEN     {complaint}" for complaint in outcome.complaints]
    verdict = "promises broken" if outcome.complaints else "nobody is delayed"
    return "\n".join([*lines, f"verdict    {verdict}"])


async def run(
    directory: Path,
    *,
    callbacks: int = CALLBACKS,
    troubles: tuple[Trouble, ...] = TROUBLES,
    warming: float = WARMING,
    measured: float = MEASURED,
    pause: float = PAUSE,
) -> Outcome:
    found = []
    for number, trouble in enumerate(troubles):
        home = directory / str(number)
        home.mkdir()
        scene = _Scene(home, callbacks, trouble, pause)
        found.append(await scene.run(warming, measured))
    return Outcome(callbacks=callbacks, measured=found)


class _Scene:
    def __init__(
        self, directory: Path, callbacks: int, trouble: Trouble, pause: float
    ) -> None:
        self._directory = directory
        self._callbacks = callbacks
        self._hanging = round(callbacks * trouble.share)
        self._are_given_up = trouble.are_given_up
        self._pause = pause

    async def run(self, warming: float, measured: float) -> Measured:
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            callbacks = await enter(running_callbacks(self._directory, self._callbacks))
            hole = stack.enter_context(black_hole())
            publisher = await enter(Publisher())
            hub = await enter(HubProcess(directory=self._directory))
            api = await enter(HubApi(hub.url))
            feed = publisher.add_feed()
            feed_id = await api.add_feed(publisher.url(feed))
            await self._subscribe(api, publisher.url(feed), callbacks, hole)
            if self._are_given_up:
                await hub.terminate()
                await asyncio.to_thread(give_up, hub.database)
                await hub.start()
                await hub.wait_ready()
            began = monotonic()
            await self._publish(api, feed_id, feed, warming)
            warmed = monotonic()
            await self._publish(api, feed_id, feed, measured)
            expected = {feed.count - 1: self._callbacks - self._hanging}
            await _until_told(callbacks, expected)
            times = Counter(callbacks.book.times_asked()[self._hanging :])
            book = callbacks.book
            return Measured(
                hanging=self._hanging,
                are_given_up=self._are_given_up,
                early=Lateness.of(book.latencies(began, warmed)),
                late=Lateness.of(book.latencies(warmed, monotonic())),
                missing=sum((times - Counter(expected)).values()),
            )

    async def _subscribe(
        self, api: HubApi, topic: str, callbacks: Callbacks, hole: str
    ) -> None:
        """Subscribe all callbacks; the first ones hang, each in the next way."""
        ways = cycle(("hang", "drip", "endless", hole))
        for number in range(self._callbacks):
            way = next(ways) if number < self._hanging else "ok"
            callback = f"{hole}/{number}" if way == hole else callbacks.url(way, number)
            await api.subscribe(
                callback=callback, topic=topic, secret=f"the secret of {number}"
            )

    async def _publish(
        self, api: HubApi, feed_id: int, feed: PublishedFeed, seconds: float
    ) -> None:
        """Publish news every few seconds, for so long."""
        end = monotonic() + seconds
        while (begun := monotonic()) < end:
            feed.count += 1
            feed.titles[feed.count] = published_now()
            await api.fetch(feed_id)
            await asyncio.sleep(max(0.0, begun + self._pause - monotonic()))


async def _until_told(callbacks: Callbacks, expected: dict[int, int]) -> None:
    """Wait until all good callbacks got all news, or for a minute."""
    wanted = sum(times * count for times, count in expected.items())
    try:
        async with asyncio.timeout(60):
            while callbacks.book.asked < wanted:
                await asyncio.sleep(0.1)
                callbacks.book.read()
    except TimeoutError:
        return


def give_up(database: Path) -> None:
    """Change the subscriptions that hang as if all their tries had failed."""
    change(
        database,
        "UPDATE subscriptions SET exhausted = TRUE WHERE callback NOT LIKE ?",
        "%/ok/%",
    )
