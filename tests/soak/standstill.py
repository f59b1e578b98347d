"""A hub that was off for an hour starts, with a million feeds and deliveries overdue.

Publishers and subscribers are one server here, which tells them apart by the name that
was asked. One subscribers' host of ten answers 503, one of fifty hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import httptools
import uvloop

from hub.limits.callback_origin_limiter import HIGHEST_LIMIT
from hub.limits.host_limiter import INTERVAL
from tests.soak.odd_process import odd_hub
from tests.soak.overdue_hub import Overdue, write_overdue
from tests.support.waiting import eventually

FIRST_SECONDS = 5.0
"""Seconds to the first poll and the first push, from the start of the process.

They are seconds of its CPU where other processes had more of the machine.
"""
LONGEST_START = 120.0
"""Seconds after which nothing is expected to come any more."""
FLAT_MEGABYTES = 30.0
"""How much memory may grow in the last half of the time."""

_FEED = b"""<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title>
<updated>2026-01-01T00:00:00Z</updated></feed>"""
_ANSWERS = {
    "feed": b"HTTP/1.1 200 OK\r\nContent-Type: application/atom+xml\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(_FEED) + _FEED,
    "well": b"HTTP/1.1 204 No Content\r\n\r\n",
    "ill": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
}


def host_is_ill(host: str) -> bool:
    return int(host[1:]) % 10 == 0


def host_hangs(host: str) -> bool:
    return int(host[1:]) % 50 == 1


@dataclass(slots=True)
class Everybody:
    """What all the publishers and subscribers together have seen."""

    polls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    pushes: Counter[str] = field(default_factory=Counter)  # by callback
    open: Counter[str] = field(default_factory=Counter)  # by host
    most_open: Counter[str] = field(default_factory=Counter)
    polled: int = 0
    pushed: int = 0
    first_poll: float = 0.0
    first_push: float = 0.0

    def poll(self, host: str, now: float) -> None:
        self.first_poll = self.first_poll or now
        self.polled += 1
        self.polls[host].append(now)

    def push(self, host: str, path: str, now: float) -> None:
        self.first_push = self.first_push or now
        self.pushed += 1
        self.pushes[f"{host}{path}"] += 1
        self.open[host] += 1
        self.most_open[host] = max(self.most_open[host], self.open[host])


class Connection(asyncio.Protocol):
    def __init__(self, everybody: Everybody) -> None:
        self._everybody = everybody
        self._parser = httptools.HttpRequestParser(self)
        self._host = self._path = ""
        self._open = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._everybody.open[self._host] -= self._open

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path = url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"host":
            self._host = value.decode().partition(".")[0]

    def on_message_complete(self) -> None:
        host, now = self._host, monotonic()
        if self._parser.get_method() == b"GET":
            self._everybody.poll(host, now)
            self._transport.write(_ANSWERS["feed"])
            self._transport.close()
            return
        self._everybody.push(host, self._path, now)
        self._open += 1
        if not host_hangs(host):
            asyncio.get_running_loop().call_later(0.02, self._answer)

    def _answer(self) -> None:
        self._open -= 1
        self._everybody.open[self._host] -= 1
        self._transport.write(_ANSWERS["ill" if host_is_ill(self._host) else "well"])


@dataclass(slots=True)
class Outcome:
    overdue: Overdue
    seconds: float
    first_poll: float = 0.0  # from the start of the process
    first_push: float = 0.0
    cpu_to_poll: float = 0.0  # seconds of it that the process had had by then
    cpu_to_push: float = 0.0
    polled: int = 0
    pushed: int = 0
    repeated: int = 0  # pushes to callbacks that had failed within the time
    fastest_host: float = 0.0  # polls a second
    most_open: int = 0  # at once, to one host
    megabytes: list[float] = field(default_factory=list)
    wal_megabytes: float = 0.0
    complaints: list[str] = field(default_factory=list)

    @property
    def growth(self) -> float:
        half = self.megabytes[len(self.megabytes) // 2 :]
        return max(half) - half[0] if half else 0.0


async def restart(overdue: Overdue, seconds: float, directory: Path) -> Outcome:
    everybody, outcome = Everybody(), Outcome(overdue, seconds)
    async with serving(everybody) as port:
        overdue = outcome.overdue = _at(overdue, port)
        await write_overdue(directory / "hub.db", overdue)
        started = monotonic()
        async with odd_hub(directory / "hub.db") as hub:
            process = hub.process
            await _until(lambda: everybody.polled > 0)
            outcome.cpu_to_poll = _cpu_seconds(process.pid)
            await _until(lambda: everybody.pushed > 0)
            outcome.cpu_to_push = _cpu_seconds(process.pid)
            end = monotonic() + seconds
            while monotonic() < end:
                await asyncio.sleep(seconds / 40)
                outcome.megabytes.append(_megabytes(process.pid))
                wal = directory / "hub.db-wal"
                megabytes = wal.stat().st_size / 1e6 if wal.exists() else 0.0
                outcome.wal_megabytes = max(outcome.wal_megabytes, megabytes)
            if process.returncode is not None:
                outcome.complaints.append(f"the hub ended: {process.returncode}")

    log = (directory / "hub.log").read_text().splitlines()
    outcome.complaints += [line for line in log if "Traceback" in line][:10]
    outcome.first_poll = everybody.first_poll - started
    outcome.first_push = everybody.first_push - started
    _conclude(outcome, everybody)
    return outcome


def _at(overdue: Overdue, port: int) -> Overdue:
    return Overdue(
        feeds=overdue.feeds,
        feed_hosts=overdue.feed_hosts,
        deliveries=overdue.deliveries,
        callback_hosts=overdue.callback_hosts,
        topics=overdue.topics,
        port=port,
    )


def _conclude(outcome: Outcome, everybody: Everybody) -> None:
    outcome.polled, outcome.pushed = everybody.polled, everybody.pushed
    outcome.most_open = max(everybody.most_open.values(), default=0)
    outcome.repeated = sum(
        count - 1 for callback, count in everybody.pushes.items() if count > 1
    )
    outcome.fastest_host = max(
        (
            (len(times) - 2) / (times[-1] - times[0])
            for times in everybody.polls.values()
            if len(times) > 3
        ),
        default=0.0,
    )
    for is_broken, complaint in (
        (not everybody.polled, "there was no poll"),
        (not everybody.pushed, "there was no push"),
        (outcome.first_poll > FIRST_SECONDS < outcome.cpu_to_poll, "polls came late"),
        (outcome.first_push > FIRST_SECONDS < outcome.cpu_to_push, "pushes came late"),
        (outcome.fastest_host > 1 / INTERVAL, "a host was polled too fast"),
        (outcome.most_open > HIGHEST_LIMIT, "a host had too many pushes at once"),
        (outcome.growth > FLAT_MEGABYTES, "memory grew"),
    ):
        if is_broken:
            outcome.complaints.append(complaint)


@asynccontextmanager
async def serving(everybody: Everybody) -> AsyncIterator[int]:
    """Serve on all addresses of this machine; yields the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(everybody), "0.0.0.0", 0, backlog=4096
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _until(holds: Callable[[], bool]) -> None:
    with suppress(TimeoutError):
        await eventually(holds, LONGEST_START)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def report(outcome: Outcome) -> str:
    megabytes = outcome.megabytes
    return "\n".join(
        [
            f"overdue    {outcome.overdue.feeds:,} feeds of"
            f" {outcome.overdue.feed_hosts:,} hosts,"
            f" {outcome.overdue.deliveries:,} deliveries to"
            f" {outcome.overdue.callback_hosts:,}",
            f"first      poll after {outcome.first_poll:.1f} s, push after"
            f" {outcome.first_push:.1f} s, from the start of the process (of its CPU"
            f" {outcome.cpu_to_poll:.1f} and {outcome.cpu_to_push:.1f} s)",
            f"done       {outcome.polled:,} polls and {outcome.pushed:,} pushes in"
            f" {outcome.seconds:g} s more",
            f"hosts      {outcome.fastest_host:.2f} polls a second at most,"
            f" {outcome.most_open} pushes at once at most",
            f"again      {outcome.repeated:,} pushes",
            f"memory     {megabytes[len(megabytes) // 2]:.0f} MB half way,"
            f" {max(megabytes):.0f} at most;"
            f" WAL {outcome.wal_megabytes:.0f} MB at most",
            *(f"BROKEN     {each}" for each in outcome.complaints),
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak restart", description=__doc__)
    parser.add_argument("--feeds", type=int, default=1_000_000)
    parser.add_argument("--deliveries", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args(arguments)
    overdue = Overdue(
        feeds=asked.feeds,
        feed_hosts=max(1, asked.feeds // 50),
        deliveries=asked.deliveries,
        callback_hosts=max(20, asked.deliveries // 1_000),
        topics=min(100, max(2, asked.deliveries // 100)),
    )
    with (
        tempfile.TemporaryDirectory(prefix="fanfare-standstill-") as directory,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        outcome = runner.run(restart(overdue, asked.seconds, Path(directory)))
    print(report(outcome))
    return 1 if outcome.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
