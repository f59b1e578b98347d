from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from hub.http.guard import Guard
from hub.http.resolver import (
    AddressBlocked,
    GuardedResolver,
    LookupFailed,
    SystemLookup,
)


async def look_up_mixed(host: str) -> Sequence[str]:
    return ["127.0.0.1", "8.8.8.8", "::1", "2a00:1450:4001::200e"]


async def test_only_permitted_addresses_are_resolved_to() -> None:
    resolver = GuardedResolver(Guard(), look_up_mixed)
    found = await resolver.resolve("mixed.example", 80)
    assert found == ["8.8.8.8", "2a00:1450:4001::200e"]


async def test_a_name_without_a_permitted_address_is_blocked() -> None:
    resolver = GuardedResolver(Guard(), look_up_mixed)
    with pytest.raises(AddressBlocked):
        await resolver.resolve("mixed.example", 25)


async def test_a_slow_name_server_is_given_up() -> None:
    async def never(host: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    resolver = GuardedResolver(Guard(), never, seconds=0.02)
    with pytest.raises(LookupFailed, match="took too long"):
        await resolver.resolve("slow.example", 80)


async def test_names_are_remembered_up_to_a_bound() -> None:
    async def look_up(host: str) -> Sequence[str]:
        return ["8.8.8.8"]

    resolver = GuardedResolver(Guard(), look_up)
    for number in range(10_001):
        await resolver.resolve(f"{number}.example", 80)
    assert resolver.last_addresses("0.example") == ()
    assert resolver.last_addresses("1.example") == ("8.8.8.8",)


async def test_names_without_addresses_are_remembered_up_to_a_bound() -> None:
    """Or a flood of names that nobody has would be one of memory."""
    asked: list[str] = []

    async def look_up(host: str) -> Sequence[str]:
        asked.append(host)
        return []

    resolver = GuardedResolver(Guard(), look_up)
    for number in (*range(10_001), 10_000, 0):
        with pytest.raises(LookupFailed):
            await resolver.resolve(f"{number}.example", 80)
    assert asked[10_001:] == ["0.example"]  # forgotten; the last one was not


async def test_of_a_thousand_addresses_of_a_name_sixteen_are_tried() -> None:
    async def look_up(host: str) -> Sequence[str]:
        return [f"8.8.{number // 250}.{number % 250}" for number in range(1_000)]

    found = await GuardedResolver(Guard(), look_up).resolve("many.example", 80)
    assert found == [f"8.8.0.{number}" for number in range(16)]


async def test_the_system_finds_localhost() -> None:
    lookup = SystemLookup()
    try:
        resolver = GuardedResolver(Guard([ip_network("127.0.0.0/8")]), lookup)
        found = await resolver.resolve("localhost", 80)
    finally:
        lookup.close()
    assert "127.0.0.1" in found


class NameServer:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.questions = 0
        self.answer = asyncio.Event()
        self.addresses: list[str] = ["8.8.8.8"]

    async def __call__(self, host: str) -> Sequence[str]:
        self.questions += 1
        await self.answer.wait()
        return self.addresses


@pytest.fixture
def name_server() -> NameServer:
    return NameServer()


async def begin(resolver: GuardedResolver, count: int) -> list[asyncio.Task[list[str]]]:
    tasks = [
        asyncio.create_task(resolver.resolve("one.example", 80)) for _ in range(count)
    ]
    await asyncio.sleep(0)  # each has come as far as it gets
    return tasks


async def test_a_name_is_asked_for_once_however_many_want_it(
    name_server: NameServer,
) -> None:
    resolver = GuardedResolver(Guard(), name_server)
    tasks = await begin(resolver, 3)
    name_server.answer.set()
    assert await asyncio.gather(*tasks) == [["8.8.8.8"]] * 3
    await resolver.resolve("one.example", 443)
    assert name_server.questions == 1


async def test_who_gives_up_waiting_for_a_name_takes_it_from_nobody(
    name_server: NameServer,
) -> None:
    resolver = GuardedResolver(Guard(), name_server)
    first, second, third = await begin(resolver, 3)
    second.cancel()
    first.cancel()
    name_server.answer.set()
    assert await third == ["8.8.8.8"]
    assert name_server.questions == 2


async def test_a_name_without_addresses_has_none_for_all_who_wait_for_it(
    name_server: NameServer,
) -> None:
    resolver = GuardedResolver(Guard(), name_server)
    tasks = await begin(resolver, 3)
    name_server.addresses.clear()
    name_server.answer.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in outcomes] == [LookupFailed] * 3
    assert name_server.questions == 1


async def test_a_name_without_addresses_is_asked_for_once_in_some_time(
    name_server: NameServer,
) -> None:
    """However often it is wanted: a flood of them floods no name server."""
    resolver = GuardedResolver(Guard(), name_server)
    name_server.addresses.clear()
    name_server.answer.set()
    for _ in range(100):
        with pytest.raises(LookupFailed, match="cannot be resolved"):
            await resolver.resolve("one.example", 80)
    assert name_server.questions == 1


async def test_a_kept_name_is_judged_again_for_each_port(
    name_server: NameServer,
) -> None:
    resolver = GuardedResolver(Guard(), name_server)
    name_server.answer.set()
    await resolver.resolve("one.example", 80)
    with pytest.raises(AddressBlocked):
        await resolver.resolve("one.example", 25)
    assert name_server.questions == 1
