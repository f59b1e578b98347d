"""Thousands of live clients who all lose their connections, and all come back at once.

    .venv/bin/python -m tests.soak.storm [--clients N] [--slow N]

This happens three times: the network breaks, the hub is killed, the hub is told to
stop. Each client has to get each entry once and in order, and to be back within a
minute. What many ask for is read from the database once. A client that reads nothing is
cut off, and costs no more memory than its share.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import aiohttp

from hub.main import raise_limit
from protocols.live.live_messages import SHUTDOWN
from tests.soak.storm_clients import Client, SlowClient
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.waiting import eventually

BACK_WITHIN = 60.0
MISSED, MEANWHILE = 30, 5
"""Entries that come while all clients are away, and while all of them come back."""
SLOW_ENTRIES, SLOW_BYTES = 40, 100_000
"""Entries for slow clients, and bytes of each: 4 times what may wait for one client."""
DEADLINE = 300.0
_CONNECTIONS = re.compile(r'fanfare_connections\{transport="\w+"\} (\d+)')
_READS = re.compile(r'fanfare_live_reads_total\{from="(\w+)"\} (\d+)')


@dataclass(slots=True)
class Return:
    """How all clients came back from one disaster."""

    name: str
    seconds: list[float]  # until each client had everything, in order of size
    cpu: float  # seconds of the hub
    reads: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Findings:
    returns: list[Return] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    arrived: float = 0.0  # seconds
    together: int = 0  # of those told to go, how many in the same 100 ms
    slow: int = 0
    slow_memory: int = 0  # bytes that the slow ones cost
    largest: int = 0  # bytes of the hub, at most


class Storm:
    def __init__(self, clients: int, slow: int, directory: Path) -> None:
        settings = {
            **LOOPBACK,
            "FANFARE_RATE_LIMIT_ADDRESS": "0",  # all of them come from one
            "FANFARE_STREAM_CONNECTIONS": str(clients + slow + 100),
            "FANFARE_STREAM_SHARE": "100",
        }
        self._count = clients
        self._slow = slow
        self._hub = HubProcess(directory=directory, settings=settings)
        self._publisher = Publisher()
        self._findings = Findings()
        self._ids: dict[int, int] = {}  # the hub's, by the publisher's number
        self._clients: list[Client] = []

    async def run(self) -> Findings:
        async with self._publisher, self._hub:
            self._feed = self._publisher.add_feed()
            await self._add(self._feed)
            await self._arrive()
            await self._break_network()
            if self._slow:
                await self._suffer_slow_ones()
            await self._kill()
            await self._stop()
            await asyncio.gather(*(each.end() for each in self._clients))
            await self._hub.terminate()
        self._findings.complaints += [
            f"client {each.number} {complaint}"
            for each in self._clients
            for complaint in each.complaints
        ]
        return self._findings

    async def _add(self, feed: PublishedFeed) -> None:
        """Add a feed; its first entry is not news."""
        async with HubApi(self._hub.url) as api:
            self._ids[feed.number] = await api.add_feed(self._publisher.url(feed))
            await api.fetch(self._ids[feed.number])

    async def _publish(self, feed: PublishedFeed, entries: int = 1) -> None:
        """Publish entries, each in a record of its own."""
        async with HubApi(self._hub.url, DEADLINE) as api:
            for _ in range(entries):
                self._publisher.publish(feed)
                await api.fetch(self._ids[feed.number])

    # --- what happens to them ---------------------------------------------------------

    async def _arrive(self) -> None:
        topic = self._publisher.url(self._feed)
        for number in range(self._count):
            client = Client(number, topic, self._hub.port, next=self._feed.count + 1)
            self._clients.append(client)
        began = monotonic()
        for client in self._clients:
            client.connect()
        await eventually(lambda: all(each.is_here for each in self._clients), DEADLINE)
        self._findings.arrived = monotonic() - began
        await self._publish(self._feed, MEANWHILE)
        await self._all_have(self._feed.count)

    async def _break_network(self) -> None:
        """Let clients lose the network one by one, so that their cursors differ."""
        for number in range(MISSED):
            for client in self._clients[number::MISSED]:
                client.leave()
            await self._publish(self._feed)
        async with self._returning("the network broke"):
            for client in self._clients:
                client.come_back()

    async def _kill(self) -> None:
        await self._hub.kill()
        async with self._returning("the hub was killed", is_new=True):
            await self._hub.start()
            await self._hub.wait_ready()

    async def _stop(self) -> None:
        for client in self._clients:
            client.code = None
        await self._hub.terminate()
        self._see_drain()
        async with self._returning("the hub was told to stop", is_new=True):
            await self._hub.start()
            await self._hub.wait_ready()

    def _see_drain(self) -> None:
        moments = Counter(int(each.told_at * 10) for each in self._clients)
        self._findings.together = max(moments.values())
        untold = sum(each.code != SHUTDOWN.code for each in self._clients)
        if untold:
            self._complain(f"{untold} were not told to go")

    @asynccontextmanager
    async def _returning(
        self, name: str, *, is_new: bool = False
    ) -> AsyncIterator[None]:
        """Let a disaster happen in the block; publish until all have what they
        missed."""
        last = self._feed.count + MEANWHILE
        for client in self._clients:
            client.target, client.reached_at = last, 0.0
        reads, cpu, began = Counter[str](), 0.0, monotonic()
        if not is_new:  # a new process counts from nothing
            reads, cpu = await self._reads(), self._cpu()
        yield
        await self._publish(self._feed, MEANWHILE)
        await self._all_have(last)
        reads = await self._reads() - reads
        seconds = sorted(each.reached_at - began for each in self._clients)
        self._findings.returns.append(Return(name, seconds, self._cpu() - cpu, reads))
        if seconds[-1] > BACK_WITHIN:
            self._complain(f"after {name} the last was back after {seconds[-1]:.0f} s")
        self._findings.largest = max(self._findings.largest, self._memory())

    async def _all_have(self, entry: int) -> None:
        def have() -> bool:
            return all(each.next > entry for each in self._clients)

        try:
            await eventually(have, DEADLINE)
        except TimeoutError:
            missing = sum(each.next <= entry for each in self._clients)
            self._complain(f"{missing} have not got entry {entry}")
            raise

    async def _suffer_slow_ones(self) -> None:
        """Publish to slow clients, and twice before without them to compare."""
        await self._tell_slow_ones([])
        usual = await self._tell_slow_ones([])
        slow = [SlowClient() for _ in range(self._slow)]
        self._findings.slow_memory = await self._tell_slow_ones(slow) - usual
        self._findings.slow = len(slow)
        for client in slow:
            client.close()
        await self._publish(self._feed)
        await self._all_have(self._feed.count)

    async def _tell_slow_ones(self, slow: list[SlowClient]) -> int:
        """Publish until all slow clients are cut off; return the peak of memory."""
        feed = self._publisher.add_feed()
        await self._add(feed)
        topic, port = self._publisher.url(feed), self._hub.port
        others = [Client(number, topic, port, feed.count + 1) for number in range(2)]
        for other in others:
            other.connect()
        for number, client in enumerate(slow):
            await client.connect(port, Client(number, topic, port).head())
        everybody = self._count + len(others) + len(slow)
        await eventually(lambda: self._has_connections(everybody), DEADLINE)
        most = 0
        for number in range(SLOW_ENTRIES):
            feed.titles[feed.count + 1] = f"{number} long".ljust(SLOW_BYTES, "!")
            await self._publish(feed)
            most = max(most, self._memory())
        await eventually(lambda: all(each.next > feed.count for each in others))
        for other in others:
            await other.end()
        await eventually(lambda: self._has_connections(self._count), DEADLINE)
        return most

    # --- what is seen of it -----------------------------------------------------------

    async def _has_connections(self, count: int) -> bool:
        found = _CONNECTIONS.findall(await self._metrics())
        return sum(int(each) for each in found) == count

    async def _reads(self) -> Counter[str]:
        found = _READS.findall(await self._metrics())
        return Counter({name: int(count) for name, count in found})

    async def _metrics(self) -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self._hub.url}/metrics") as answer,
        ):
            return await answer.text()

    def _memory(self) -> int:
        """The hub's resident memory in bytes."""
        status = Path(f"/proc/{self._hub.pid}/status").read_text()
        line = next(x for x in status.splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def _cpu(self) -> float:
        """The hub's CPU time in seconds."""
        fields = Path(f"/proc/{self._hub.pid}/stat").read_text().rsplit(")")[-1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _complain(self, complaint: str) -> None:
        self._findings.complaints.append(complaint)


def report(findings: Findings) -> str:
    return "\n".join(
        [
            f"arrived    all within {findings.arrived:.1f} s",
            *(_line(each) for each in findings.returns),
            f"drained    at most {findings.together} told to go within the same 100 ms",
            f"slow       {findings.slow} cut off;"
            f" {findings.slow_memory / 1e6:.0f} MB at most for all of them",
            f"memory     {findings.largest / 1e6:.0f} MB at most",
            *(f"BROKEN     {each[:300]}" for each in findings.complaints[:50]),
            "verdict    "
            + (
                f"{len(findings.complaints)} promises broken"
                if findings.complaints
                else "each entry once and in order to everybody"
            ),
        ]
    )


def _line(found: Return) -> str:
    half, most = found.seconds[len(found.seconds) // 2], found.seconds[-1]
    return (
        f"returned   after {found.name}: half within {half:.1f} s, all within"
        f" {most:.1f} s, for {found.cpu:.1f} s of CPU; looked up"
        f" {_listed(found.reads)}"
    )


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.soak.storm")
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--slow", type=int, default=50)
    asked = parser.parse_args(arguments)
    if raise_limit() < asked.clients + asked.slow + 500:
        parser.error("this system allows too few open files")
    with tempfile.TemporaryDirectory(prefix="fanfare-storm-") as directory:
        storm = Storm(asked.clients, asked.slow, Path(directory))
        findings = asyncio.run(storm.run())
    print(report(findings))
    return 1 if findings.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
