"""The demonstration itself: from an empty directory to a table of delays."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from hub.app import run_until_stopped
from hub.composition import build_hub
from hub.demo.arrivals import Arrivals, Told
from hub.demo.hub_requests import DemoFailed, ask_hub
from hub.demo.listeners import Listeners
from hub.demo.outside import Outside
from hub.demo.samples import Kind
from hub.runtime.clock import SystemClock
from hub.settings import Settings
from hub.web.server.http_server import create_server, listening_socket
from storage.contract import Storage
from storage.database_url import open_storage
from storage.records import NewFeed, SubscriptionId, SubscriptionState

EVERY_SECONDS = 3.0
"""How often each feed gets a new entry."""
READY_SECONDS = 30.0
LOOK_SECONDS = 0.05
LAST_SECONDS = 10.0
"""How long the last entries may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A running hub and what is around it."""

    url: str
    storage: Storage
    outside: Outside
    arrivals: Arrivals
    clock: SystemClock


async def show(seconds: float, announce: Callable[[str], None], told: Told) -> Arrivals:
    """Publish for so many seconds; what came of it. Raises `DemoFailed`."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory("-fanfare"))
        own, others = (
            stack.enter_context(listening_socket("127.0.0.1", 0)) for _ in range(2)
        )
        storage = await open_storage(f"sqlite:{Path(directory) / 'demo.db'}")
        stack.push_async_callback(storage.close)
        clock = SystemClock()
        arrivals = Arrivals(told)
        stage = Stage(
            url=_url(own),
            storage=storage,
            outside=Outside(_url(others), f"{_url(own)}/hub", arrivals, clock),
            arrivals=arrivals,
            clock=clock,
        )
        announce(
            f"a hub runs at {stage.url}, a publisher and a callback at {_url(others)}"
        )
        try:
            await _perform(stage, directory, seconds, own, others, stack)
        except* Exception as failures:
            raise DemoFailed(_reason(failures)) from failures
    return arrivals


async def _perform(
    stage: Stage,
    directory: str,
    seconds: float,
    own: socket.socket,
    others: socket.socket,
    stack: AsyncExitStack,
) -> None:
    for topic in stage.outside.topics.values():
        await stage.storage.feeds.add(NewFeed(url=topic), stage.clock.now())
    built = await build_hub(
        _settings(directory), stage.storage, secrets.token_hex(16), stage.url, stack
    )
    around = create_server(stage.outside.application())
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(around.serve(sockets=[others]))
        running = group.create_task(run_until_stopped(built, own, stop))
        await _play(stage, seconds)
        stop.set()
        await running
        around.stop()
        await serving


async def _play(stage: Stage, seconds: float) -> None:
    topics = stage.outside.topics
    await _until(lambda: _all_fetched(stage), "the first fetches")
    for topic in topics.values():
        await ask_hub(stage.url, HTTPStatus.ACCEPTED, _subscription(stage, topic))
    await _until(lambda: _all_subscribed(stage), "the subscriptions of the webhook")
    cursor = str(await stage.storage.log.head())
    listeners = Listeners(
        stage.url, topics.values(), cursor, stage.arrivals, stage.clock
    )
    async with asyncio.TaskGroup() as group:
        listening = [
            group.create_task(listeners.listen_by_websocket()),
            group.create_task(listeners.listen_by_events()),
        ]
        await _publish(stage, seconds)
        for each in listening:
            each.cancel()


async def _publish(stage: Stage, seconds: float) -> None:
    """An entry for each feed at a time, and a ping, until the time is over."""
    end = stage.clock.monotonic() + seconds
    while True:
        for kind in Kind:
            stage.outside.publish(kind)
            ping = {"hub.mode": "publish", "hub.url": stage.outside.topics[kind]}
            await ask_hub(stage.url, HTTPStatus.NO_CONTENT, ping)
        if stage.clock.monotonic() + EVERY_SECONDS > end:
            break
        await asyncio.sleep(EVERY_SECONDS)
    try:
        async with asyncio.timeout(LAST_SECONDS):
            await stage.arrivals.wait_complete()
    except TimeoutError:
        return  # the table says what is missing


def _subscription(stage: Stage, topic: str) -> dict[str, str]:
    return {
        "hub.mode": "subscribe",
        "hub.topic": topic,
        "hub.callback": stage.outside.callback,
        "hub.secret": stage.outside.secret,
        "format": "json",
    }


async def _all_fetched(stage: Stage) -> bool:
    found = [
        await stage.storage.feeds.find(topic) for topic in stage.outside.topics.values()
    ]
    return all(feed and feed.polling.last_success for feed in found)


async def _all_subscribed(stage: Stage) -> bool:
    found = await stage.storage.subscriptions.page(after=SubscriptionId(0), limit=10)
    active = [each for each in found if each.state is SubscriptionState.ACTIVE]
    return len(active) == len(Kind)


async def _until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(round(READY_SECONDS / LOOK_SECONDS)):
        if await condition():
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise DemoFailed(f"{what} took over {READY_SECONDS:g} s")


def _settings(directory: str) -> Settings:
    """Polls every 2 seconds too, which no hub that has others' feeds should do."""
    return Settings(
        database=f"sqlite:{Path(directory) / 'demo.db'}",
        allow_networks=(ipaddress.ip_network("127.0.0.0/8"),),
        min_period=1.0,
        max_period=2.0,
        default_floor=1.0,
        earned_floor=1.0,
    )


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _reason(failures: BaseExceptionGroup[Exception]) -> str:
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return str(first) or type(first).__name__
