"""Lookups on threads: those that hang hold up their own zone, and no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from hub.http.guard import Guard
from hub.http.resolver import (
    LEFT_BY_NEW,
    LEFT_BY_SLOW,
    SLOW_SECONDS,
    THREADS,
    THREADS_OF_ZONE,
    GuardedResolver,
    LookupFailed,
    SystemLookup,
)
from protocols.domains import zone_of
from tests.support.waiting import eventually


class NameServers:
    """Those of slow names answer when they are told to, others at once."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.asked: list[str] = []
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def look_up(self, host: str) -> list[str]:
        self.asked.append(host)
        if "slow" in host:
            self.answer.wait(60)
        if "nowhere" in host:
            raise OSError("no such name")
        return ["8.8.8.8"]

    @property
    def slow(self) -> list[str]:
        return [each for each in self.asked if "slow" in each]


@pytest.fixture
def servers() -> NameServers:
    return NameServers()


@pytest.fixture
async def lookup(servers: NameServers) -> AsyncIterator[SystemLookup]:
    lookup = SystemLookup(servers.look_up, servers.now)
    yield lookup
    servers.answer.set()
    lookup.close()


async def begin(
    lookup: SystemLookup, count: int, *zones: str
) -> list[asyncio.Task[object]]:
    """So many names of each zone; those for which there is a thread are asked for."""
    tasks = [
        asyncio.create_task(_resolve(lookup, f"{number}.slow.{zone}"))
        for number in range(count)
        for zone in zones
    ]
    await asyncio.sleep(0)  # each has come as far as it gets
    return tasks


def many(kind: str, count: int = 200) -> list[str]:
    """Zones, more than there are threads."""
    return [f"{kind}{number}.example" for number in range(count)]


async def _resolve(lookup: SystemLookup, host: str) -> object:
    return await lookup(host)


async def give_up(tasks: list[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_thousand_names_of_slow_servers_hold_up_no_other_name(
    servers: NameServers, lookup: SystemLookup
) -> None:
    slow = await begin(lookup, 1_000, "zone.example")
    for number in range(200):
        assert await lookup(f"www.{number}.example") == ["8.8.8.8"]
    assert 0 < len(servers.slow) <= THREADS_OF_ZONE
    servers.answer.set()
    await asyncio.gather(*slow)
    assert len(servers.asked) == 1_200


async def test_a_lookup_that_nobody_waits_for_any_more_keeps_its_place(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Its thread does: however often who asked gives up, there are not more of them."""
    for _ in range(3):
        await give_up(await begin(lookup, 100, "zone.example"))
    assert await lookup("fast.example") == ["8.8.8.8"]
    assert 0 < len(servers.slow) <= THREADS_OF_ZONE
    servers.answer.set()
    assert await lookup("another.slow.zone.example") == ["8.8.8.8"]


async def test_what_nobody_waits_for_any_more_is_not_begun(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Else the names of many zones, given up long ago, keep a later one waiting."""
    zones = many("zone")
    slow = await begin(lookup, 1, *zones)
    await eventually(lambda: len(servers.slow) == THREADS - LEFT_BY_NEW)
    await give_up(slow)
    asked = list(servers.asked)
    (again,) = await begin(lookup, 1, zones[-1])
    servers.answer.set()
    assert await lookup("fast.example") == ["8.8.8.8"]
    assert await again == ["8.8.8.8"]
    later = servers.asked[len(asked) :]
    assert sorted(later) == sorted(["fast.example", f"0.slow.{zones[-1]}"])


@pytest.mark.parametrize("names", [1, 10])
async def test_however_many_zones_are_dead_one_that_answered_is_looked_up(
    servers: NameServers, lookup: SystemLookup, names: int
) -> None:
    healthy = many("healthy", 40)
    for zone in healthy:
        await lookup(zone)
    slow = await begin(lookup, names, *many("dead", 120))
    await eventually(lambda: len(servers.slow) == THREADS - LEFT_BY_NEW)
    for zone in healthy:
        assert await lookup(f"www.{zone}") == ["8.8.8.8"]
    await give_up(slow)


async def test_zones_that_were_slow_leave_something_to_those_nobody_knows(
    servers: NameServers, lookup: SystemLookup
) -> None:
    slow = await begin(lookup, 1, *many("dead", 96))
    await eventually(lambda: len(servers.slow) == 96)
    servers.time += 2 * SLOW_SECONDS
    servers.answer.set()
    await asyncio.gather(*slow)
    servers.answer.clear()
    servers.asked.clear()

    slow = await begin(lookup, 10, *many("dead", 96))
    await eventually(lambda: len(servers.slow) == THREADS - LEFT_BY_SLOW)
    for zone in many("new", 30):
        assert await lookup(zone) == ["8.8.8.8"]
    await give_up(slow)


async def test_a_zone_that_answers_again_is_believed_again(
    servers: NameServers, lookup: SystemLookup
) -> None:
    (slow,) = await begin(lookup, 1, "zone.example")
    servers.time += 2 * SLOW_SECONDS
    servers.answer.set()
    await slow
    await lookup("www.zone.example")
    servers.answer.clear()
    others = await begin(lookup, 1, *many("dead", 120))
    await eventually(lambda: len(servers.slow) == 1 + THREADS - LEFT_BY_NEW)
    assert await lookup("other.zone.example") == ["8.8.8.8"]
    await give_up(others)


async def test_zones_that_stop_answering_do_not_take_all_at_once(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Eight had all threads; each takes a part of what the ones before have left."""
    zones = many("zone", 20)
    for zone in zones:
        await lookup(zone)
    slow = await begin(lookup, 50, *zones)
    servers.time += 2 * SLOW_SECONDS
    assert await lookup("new.example") == ["8.8.8.8"]
    servers.answer.set()
    await asyncio.gather(*slow)
    assert len(servers.slow) == 1_000


async def test_what_waits_is_begun_by_turns(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Nobody's thousand names come before the one of another."""
    slow = await begin(lookup, 1, *many("dead", 96))
    await eventually(lambda: len(servers.slow) == 96)
    crowd = await begin(lookup, 100, "crowd.example")
    (late,) = await begin(lookup, 1, "late.example")
    servers.answer.set()
    await asyncio.gather(*slow, *crowd, late)
    assert servers.slow.index("0.slow.late.example") < 96 + 2 * THREADS_OF_ZONE


async def test_a_name_is_looked_up_once_while_it_is_looked_up(
    servers: NameServers, lookup: SystemLookup
) -> None:
    both = [asyncio.create_task(_resolve(lookup, "a.slow.example")) for _ in range(2)]
    await eventually(lambda: servers.asked == ["a.slow.example"])
    servers.answer.set()
    assert await asyncio.gather(*both) == [["8.8.8.8"]] * 2
    assert servers.asked == ["a.slow.example"]


async def test_who_asks_again_at_the_end_of_a_lookup_is_not_forgotten(
    servers: NameServers, lookup: SystemLookup
) -> None:
    """Those who had its answer leave after the name came into line once more."""

    async def ask_twice(host: str) -> object:
        await lookup(host)
        return await lookup(host)

    first = asyncio.create_task(ask_twice("first.slow.zone.example"))
    also = asyncio.create_task(_resolve(lookup, "first.slow.zone.example"))
    others = await begin(lookup, 100, "zone.example")
    servers.answer.set()
    async with asyncio.timeout(60):
        assert await first == ["8.8.8.8"]
    await asyncio.gather(also, *others)


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
