"""Before a feed is registered, its host is looked at."""

from __future__ import annotations

import pytest

from hub.core.host_set import HostSet
from hub.http.guard import Guard
from hub.services.topic_addresses import AddressCheck
from protocols.protocol_errors import InvalidValue


async def look_up(host: str) -> list[str]:
    return ["192.0.32.10"]


async def test_a_host_that_wants_no_requests_is_no_topic_but_a_callback() -> None:
    check = AddressCheck(
        topics=Guard(),
        callbacks=Guard(),
        lookup=look_up,
        blocked=HostSet(["quiet.example"]),
    )
    with pytest.raises(InvalidValue) as refused:
        await check.check_topic("url", "https://www.quiet.example/feed")
    assert str(refused.value) == (
        "url: expected a host that is not in FANFARE_BLOCKED_HOSTS"
    )
    await check.check_callback("callback", "https://www.quiet.example/hook")
    await check.check_topic("url", "https://other.example/feed")
