from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from hub.net.guard import Guard
from hub.net.resolving import (
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
    assert [one["host"] for one in found] == ["8.8.8.8", "2a00:1450:4001::200e"]
    assert {one["port"] for one in found} == {80}


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


async def test_the_system_finds_localhost() -> None:
    lookup = SystemLookup()
    try:
        resolver = GuardedResolver(Guard([ip_network("127.0.0.0/8")]), lookup)
        found = await resolver.resolve("localhost", 80)
    finally:
        lookup.close()
    assert "127.0.0.1" in {one["host"] for one in found}
