"""Ten open pages of a hub with 100,000 feeds, ten overviews or ten different ones: what
they cost, and whether they delay a delivery.

What they cost is the CPU of the hub's process with them less that without them, while
a record a second has ten subscribers, so that there is something to show. Whether they
delay is seen at 2,000 deliveries a second. Those who watch are another process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from statistics import median

import aiohttp

from hub.runtime.clock import SystemClock
from hub.settings import Settings
from scripts.benchmarks.listeners import listening
from scripts.benchmarks.measuring import Finding, Size, Stopwatch, percentile, until
from scripts.benchmarks.receivers import Receivers, running_receivers
from scripts.benchmarks.stored_lists import ListLengths, open_lists
from scripts.benchmarks.topics import add_topic, callbacks, news
from scripts.benchmarks.working_hub import serving_hub
from storage.contract import Storage
from storage.records import FeedId, Format

WATCHERS = 10
MOST_CPU = 10.0
"""Milliseconds a second of all that are open: a hundredth of a core."""
MOST_DELAY = 1.1
NOISE = 1.0
"""Milliseconds that a delivery may be later without being called delayed."""
FEW, MANY = 10, 100
"""Subscribers of a record."""
_OVERVIEW = "/admin"
_DIFFERENT = (
    *(_OVERVIEW, "/admin?range=6h", "/admin/feeds", "/admin/feeds/{feed}"),
    *("/admin/subscriptions", "/admin/subscriptions/2"),
    *("/admin/deliveries", "/admin/live", "/admin/hubs", "/admin/plans"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardLoad:
    """``records`` a second of as many topics, with many subscribers each; a run takes
    ``seconds``."""

    feeds: int = 100_000
    records: int = 20
    seconds: float = 10.0
    rounds: int = 5


QUICK = DashboardLoad(feeds=10_000, seconds=5.0, rounds=2)
SMALLEST = DashboardLoad(feeds=100, records=5, seconds=1.0, rounds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    storage: Storage
    receivers: Receivers
    few: Sequence[FeedId]
    many: Sequence[FeedId]
    port: int
    cookie: str

    @property
    def watched(self) -> dict[str, str]:
        """By what they are, addresses with blanks between them."""
        different = " ".join(_DIFFERENT).format(feed=self.few[0])
        return {"overviews": _OVERVIEW, "different pages": different}


@dataclass(slots=True)
class _Runs:
    """CPU: milliseconds a second; latencies: seconds."""

    cpu: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    scale = size.pick(DashboardLoad(), QUICK, SMALLEST)
    async with AsyncExitStack() as stack:
        scene = await _open(directory, scale, stack)
        await _run(scene, scale, _Runs())  # opens the connections
        bare, watched = _Runs(), {name: _Runs() for name in scene.watched}
        headers = f"Cookie: {scene.cookie}\r\nSec-Fetch-Site: same-origin\r\n"
        for _ in range(scale.rounds):
            await _run(scene, scale, bare)
            for name, pages in scene.watched.items():
                async with listening(
                    directory, "sse", scene.port, pages, WATCHERS, headers=headers
                ):
                    await until(lambda: _are_watched(scene.port), pause=0.1)
                    await _run(scene, scale, watched[name])
    for name, runs in watched.items():
        yield _cost(name, bare, runs)
        yield _delay(name, 50, bare.latencies, runs.latencies)
        yield _delay(name, 99, bare.latencies, runs.latencies)


async def _open(directory: Path, scale: DashboardLoad, stack: AsyncExitStack) -> _Scene:
    receivers = await stack.enter_async_context(running_receivers(directory))
    counts = ListLengths(feeds=scale.feeds, subscriptions=1, deliveries=1)
    storage = await open_lists(directory / "hub.db", counts)
    stack.push_async_callback(storage.close)
    later = SystemClock().now() + timedelta(days=30)
    await storage.feeds.defer([(FeedId(id + 1), later) for id in range(scale.feeds)])
    few = await _add_topics(storage, receivers.port, 1, FEW)
    many = await _add_topics(storage, receivers.port, scale.records, MANY)
    port = await stack.enter_async_context(serving_hub(storage, _settings(directory)))
    return _Scene(
        storage=storage,
        receivers=receivers,
        few=few,
        many=many,
        port=port,
        cookie=await _log_in(port),
    )


async def _add_topics(
    storage: Storage, port: int, topics: int, subscribers: int
) -> list[FeedId]:
    """A record a second of each is delivered before the next one comes."""
    added = []
    for number in range(topics):
        name = f"{subscribers}-{number}"
        of_topic = callbacks(port, name, subscribers)
        added.append(await add_topic(storage, name, of_topic, Format.JSON))
    return added


def _settings(directory: Path) -> Settings:
    return Settings(
        database=f"sqlite:{directory / 'hub.db'}",
        allow_callback_networks=(ip_network("127.0.0.0/8"),),
        contact="https://hub.example/",
        log_level="error",
    )


async def _log_in(port: int) -> str:
    """The session, as a browser would send it."""
    url = f"http://127.0.0.1:{port}{_OVERVIEW}/login"
    headers = {"Sec-Fetch-Site": "same-origin"}
    async with (
        aiohttp.ClientSession() as client,
        client.post(
            url, data={"token": "token"}, headers=headers, allow_redirects=False
        ) as answer,
    ):
        return answer.headers["Set-Cookie"].partition(";")[0]


async def _are_watched(port: int) -> bool:
    headers = {"Authorization": "Bearer token"}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        return f"fanfare_watched_pages {WATCHERS}\n" in await answer.text()


async def _run(scene: _Scene, scale: DashboardLoad, runs: _Runs) -> None:
    """First with little to do, then with much."""
    await asyncio.sleep(1)
    watch = Stopwatch()
    await _publish(scene, scene.few, FEW, scale.seconds)
    sample = watch.sample(1)
    runs.cpu.append(1e3 * sample.cpu / sample.seconds)
    told = scene.receivers.told
    await _publish(scene, scene.many, MANY, scale.seconds / 2)
    runs.latencies += scene.receivers.latencies(told)


async def _publish(
    scene: _Scene, feeds: Sequence[FeedId], subscribers: int, seconds: float
) -> None:
    """A record of each feed a second, until all is answered and the time is over."""
    answered, started = scene.receivers.answered, time.monotonic()
    records = max(1, round(len(feeds) * seconds))
    for number in range(records):
        await scene.storage.log.commit(news(feeds[number % len(feeds)]))
        due = started + (number + 1) / len(feeds)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    await scene.receivers.wait_for(answered + records * subscribers, pause=0.05)


def _cost(pages: str, bare: _Runs, watched: _Runs) -> Finding:
    cost = median(watched.cpu) - median(bare.cpu)
    return Finding(
        bench="dashboards",
        measure=f"CPU ms a second of {WATCHERS} open {pages}",
        hub=cost,
        target=f"<= {MOST_CPU:g}",
        met=cost <= MOST_CPU,
    )


def _delay(
    pages: str, percent: int, bare: Sequence[float], watched: Sequence[float]
) -> Finding:
    without, with_them = (
        1e3 * percentile(each, percent / 100) if each else 0.0
        for each in (bare, watched)
    )
    most = max(MOST_DELAY * without, without + NOISE)
    is_judged = percent == 50
    return Finding(
        bench="dashboards",
        measure=f"ms from commit to arrival beside {pages}, p{percent}"
        " (floor: no page open)",
        hub=with_them,
        floor=without,
        ratio=with_them / without if without else None,
        target=f"<= {MOST_DELAY:g} x" if is_judged else "",
        met=not is_judged or with_them <= most,
    )
