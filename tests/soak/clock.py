"""Sets the clock of the machine by an hour, forwards and backwards, during deliveries.

Nothing is lost, nothing comes twice, and nothing stands still.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import aiohttp

from tests.soak.odd_process import odd_hub
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubApi
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

HOUR = 3_600
SUBSCRIBERS = 20
THINKING = 0.4


@dataclass(slots=True)
class Outcome:
    jumps: int = 0
    slowest: float = 0.0  # seconds from the jump until everybody had everything
    copies: int = 0
    complaints: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Scene:
    api: HubApi
    feed: PublishedFeed
    publisher: Publisher
    subscribers: list[Subscriber]
    clock: Path
    offset: int = 0

    async def jump(self, seconds: int) -> float:
        """Set the clock during deliveries; return the time these and the next take."""
        asked: list[int] = []
        for each in self.subscribers:
            each.answers = _slow(asked)
        await self._publish()
        await eventually(lambda: len(asked) >= SUBSCRIBERS // 2)
        self.offset += seconds
        self.clock.write_text(f"{self.offset}")
        jumped = monotonic()
        await self._publish()
        await eventually(self._has_come)
        return monotonic() - jumped

    def _has_come(self) -> bool:
        return all(self.feed.count in each.numbers for each in self.subscribers)

    async def _publish(self) -> None:
        self.publisher.publish(self.feed)
        await self.api.fetch(1)


def _slow(asked: list[int]) -> Iterator[ServerAnswer]:
    asked.append(1)
    yield ServerAnswer(delay=THINKING)


async def run(jumps: list[int], directory: Path) -> Outcome:
    outcome, clock = Outcome(), directory / "clock"
    clock.write_text("0")
    async with (
        Publisher() as publisher,
        Subscribers() as receivers,
        odd_hub(directory / "hub.db", ODD_CLOCK=str(clock)) as hub,
        HubApi(hub.url) as api,
    ):
        await eventually(lambda: _is_ready(api))
        scene = await _set_up(api, publisher, receivers, clock)
        for seconds in jumps:
            outcome.slowest = max(outcome.slowest, await scene.jump(seconds))
            outcome.jumps += 1
    for each in scene.subscribers:
        expected = list(range(2, scene.feed.count + 1))
        outcome.copies += len(each.numbers) - len(set(each.numbers))
        if each.numbers != expected:
            outcome.complaints.append(f"{each.name} got {each.numbers}")
    log = (directory / "hub.log").read_text()
    outcome.complaints += [line for line in log.splitlines() if "Traceback" in line]
    return outcome


async def _is_ready(api: HubApi) -> bool:
    try:
        return (await api.ask("GET", "/readyz")).status == 200
    except aiohttp.ClientError:
        return False


async def _set_up(
    api: HubApi,
    publisher: Publisher,
    receivers: Subscribers,
    clock: Path,
) -> Scene:
    feed = publisher.add_feed()
    topic = publisher.url(feed)
    await api.add_feed(topic)
    subscribers = []
    for number in range(SUBSCRIBERS):
        each = receivers.add(f"s{number}", feed=1, topic=topic, secret="s")
        await api.subscribe(callback=each.url, topic=topic, secret=each.secret)
        subscribers.append(each)
    return Scene(api, feed, publisher, subscribers, clock)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak clock", description=__doc__)
    parser.add_argument("--jumps", type=int, default=10)
    asked = parser.parse_args(arguments)
    jumps = [(HOUR, -HOUR, -HOUR, HOUR)[number % 4] for number in range(asked.jumps)]
    with tempfile.TemporaryDirectory(prefix="fanfare-clock-") as directory:
        outcome = asyncio.run(run(jumps, Path(directory)))
    print(
        f"{outcome.jumps} jumps by an hour: {outcome.copies} copies; everybody had"
        f" everything {outcome.slowest:.1f} s after one at most"
    )
    print("\n".join(f"BROKEN  {each}" for each in outcome.complaints) or "none lost")
    return 1 if outcome.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
