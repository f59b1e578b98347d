from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest
from starlette.applications import Starlette

from hub.web.server.http_server import (
    AddressUnavailable,
    DatedState,
    create_server,
    listening_socket,
)
from tests.support.waiting import eventually


def test_port_0_picks_a_free_port() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        assert listener.getsockname()[1] > 0


def test_a_port_in_use_is_refused_with_its_number() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(AddressUnavailable, match=f"port {port}: another program"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-host.invalid", "a" * 64])
def test_an_address_of_somebody_else_is_refused(host: str) -> None:
    with pytest.raises(AddressUnavailable, match=f"cannot listen on {host}"):
        listening_socket(host, 0)


def test_each_answer_has_the_date_of_its_own_second() -> None:
    now = [0.9]
    state = DatedState(lambda: now[0])
    for _ in range(2):
        state.default_headers = [(b"date", b"of some time ago"), (b"x", b"y")]
        assert (
            dict(state.default_headers)[b"date"]
            == formatdate(now[0], usegmt=True).encode()
        )
        now[0] += 0.1
        assert (
            dict(state.default_headers)[b"date"]
            == formatdate(now[0], usegmt=True).encode()
        )
        assert (b"x", b"y") in state.default_headers


async def test_the_server_ends_when_it_is_told_to() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        server = create_server(Starlette())
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await eventually(lambda: server.started)
        server.stop()
        async with asyncio.timeout(60):
            await serving
