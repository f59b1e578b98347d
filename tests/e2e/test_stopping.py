"""Told to stop, the hub has ended within five seconds, whatever is under way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

from websockets.asyncio.client import connect

from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.waiting import eventually

MOST = 5.0
ITEM = "<item><guid>{0}</guid><title>Entry {0}</title></item>"


class Endpoints:
    """A feed that has news each time, one that drips, and callbacks that hang."""

    def __init__(self) -> None:
        self.hanging = 0
        self.polls = 0
        self.origin = ""

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        try:
            await self._answer(head, writer)
        finally:
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> None:
        if head.startswith("POST"):
            self.hanging += 1
            await asyncio.sleep(60)
        self.polls += 1
        body = (
            f"<rss><channel><title>t</title>{ITEM.format(self.polls)}</channel></rss>"
        )
        length = 100_000 if " /drip " in head else len(body)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n" % length
        )
        writer.write(body.encode())
        await writer.drain()
        if length > len(body):
            await asyncio.sleep(60)


async def test_a_hub_with_all_kinds_of_work_under_way_has_ended_within_five_seconds(
    tmp_path: Path,
) -> None:
    endpoints = Endpoints()
    settings = {
        **LOOPBACK,
        "FANFARE_MIN_PERIOD": "1",
        "FANFARE_MAX_PERIOD": "1",
    }
    async with AsyncExitStack() as stack:
        server = await asyncio.start_server(endpoints.answer, "127.0.0.1", 0)
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        hub = await stack.enter_async_context(HubProcess(tmp_path, settings))
        api = await stack.enter_async_context(HubApi(hub.url))
        feed = f"{origin}/feed"
        await api.add_feed(feed)
        for number in range(5):
            await api.subscribe(topic=feed, callback=f"{origin}/callback/{number}")
        for _ in range(20):
            live = connect(f"ws://127.0.0.1:{hub.port}/stream?topic={feed}")
            await stack.enter_async_context(live)
        _, half = await asyncio.open_connection("127.0.0.1", hub.port)
        half.write(b"POST /hub HTTP/1.1\r\nHost: h\r\nContent-Length: 999\r\n\r\nabc")
        dripping = asyncio.create_task(api.add_feed(f"{origin}/drip"))
        await eventually(lambda: endpoints.hanging == 5)

        begun = monotonic()
        assert await hub.terminate() == 0

        assert monotonic() - begun < MOST
        assert await dripping  # it is fetched another time
        half.close()
        server.close()


def test_a_thread_that_hangs_does_not_keep_the_process_from_ending() -> None:
    program = (
        "import threading; from hub.main import end_in_time\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "end_in_time(0.1)\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30
    )

    assert ended.returncode == 0
    assert "stopped_at_once" in ended.stdout + ended.stderr
