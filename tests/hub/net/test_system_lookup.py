"""Lookups on threads: those that hang hold up their own zone, and no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from hub.net.guard import Guard
from hub.net.resolving import GuardedResolver, LookupFailed
from hub.net.system_lookup import THREADS, THREADS_OF_ZONE, SystemLookup
from hub.net.zones import zone_of
from tests.support.eventually import eventually


class NameServers:
    """Those of slow names answer when they are told to, others at once."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.asked: list[str] = []

    def look_up(self, host: str) -> list[str]:
        self.asked.append(host)
        if "slow" in host:
            self.answer.wait(60)
        if "nowhere" in host:
            raise OSError("no such name")
        return ["8.8.8.8"]


@pytest.fixture
def servers() -> NameServers:
    return NameServers()


@pytest.fixture
async def lookup(servers: NameServers) -> AsyncIterator[SystemLookup]:
    lookup = SystemLookup(servers.look_up)
    yield lookup
    servers.answer.set()
    lookup.close()


async def begin(lookup: SystemLookup, count: int) -> list[asyncio.Task[object]]:
    tasks = [
        asyncio.create_task(_resolve(lookup, f"{number}.slow.example"))
        for number in range(count)
    ]
    await asyncio.sleep(0)  # each has come as far as it gets
    return tasks


async def _resolve(lookup: SystemLookup, host: str) -> object:
    return await lookup(host)


async def test_a_thousand_names_of_slow_servers_hold_up_no_other_name(
    servers: NameServers, lookup: SystemLookup
) -> None:
    slow = await begin(lookup, 1_000)
    for number in range(200):
        assert await lookup(f"www.{number}.example") == ["8.8.8.8"]
    asked = [each for each in servers.asked if each.endswith("slow.example")]
    assert len(asked) == THREADS_OF_ZONE
    servers.answer.set()
    await asyncio.gather(*slow)
    assert len(servers.asked) == 1_200


async def test_a_lookup_that_nobody_waits_for_any_more_keeps_its_place(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Its thread does: however often who asked gives up, there are not more of them."""
    for _ in range(3):
        for task in await begin(lookup, 100):
            task.cancel()
    assert await lookup("fast.example") == ["8.8.8.8"]
    asked = [each for each in servers.asked if each.endswith("slow.example")]
    assert len(asked) == THREADS_OF_ZONE
    servers.answer.set()
    assert await lookup("another.slow.example") == ["8.8.8.8"]


async def test_what_nobody_waits_for_any_more_is_not_begun(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Else the names of many zones, given up long ago, keep a later one waiting."""
    hosts = [
        f"{number}.slow{zone}.example"
        for zone in range(2 * THREADS // THREADS_OF_ZONE)
        for number in range(THREADS_OF_ZONE)
    ]
    slow = [asyncio.create_task(_resolve(lookup, host)) for host in hosts]
    await eventually(lambda: len(servers.asked) == THREADS)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    again = asyncio.create_task(_resolve(lookup, hosts[-1]))
    servers.answer.set()
    assert await lookup("fast.example") == ["8.8.8.8"]
    assert await again == ["8.8.8.8"]
    assert sorted(servers.asked[THREADS:]) == sorted([hosts[-1], "fast.example"])


async def test_a_name_is_looked_up_once_while_it_is_looked_up(
    servers: NameServers, lookup: SystemLookup
) -> None:
    both = [asyncio.create_task(_resolve(lookup, "a.slow.example")) for _ in range(2)]
    await eventually(lambda: servers.asked == ["a.slow.example"])
    servers.answer.set()
    assert await asyncio.gather(*both) == [["8.8.8.8"]] * 2
    assert servers.asked == ["a.slow.example"]


async def test_what_fails_after_everybody_gave_up_disturbs_nobody(
    servers: NameServers, lookup: SystemLookup
) -> None:
    resolver = GuardedResolver(Guard(), lookup, seconds=0.02)
    with pytest.raises(LookupFailed, match="took too long"):
        await resolver.resolve("nowhere.slow.example", 80)
    servers.answer.set()
    with pytest.raises(OSError, match="no such name"):
        await lookup("nowhere.slow.example")
    with pytest.raises(LookupFailed, match="took too long"):  # as it is remembered
        await resolver.resolve("nowhere.slow.example", 80)


@pytest.mark.parametrize(
    ("host", "zone"),
    [
        ("example.org", "example.org"),
        ("a.b.EXAMPLE.org.", "example.org"),
        ("a.example.co.uk", "example.co.uk"),
        ("b.a.example.com.au", "example.com.au"),
        ("example.co.uk", "example.co.uk"),
        ("t.co", "t.co"),
        ("a.t.co", "t.co"),
        ("b.a.q7z.me", "q7z.me"),
        ("a.co.com", "co.com"),
        ("localhost", "localhost"),
        ("", ""),
        ("192.0.2.17", "192.0.2.17"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_a_zone_is_roughly_what_one_owner_has(host: str, zone: str) -> None:
    assert zone_of(host) == zone
