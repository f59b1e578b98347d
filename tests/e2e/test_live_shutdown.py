"""A real hub that is told to stop while clients listen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.event_stream import request_events
from tests.support.hub_process import HubProcess


async def test_sigterm_tells_live_clients_to_come_back(tmp_path: Path) -> None:
    async with HubProcess(tmp_path) as hub:
        async with connect(f"ws://127.0.0.1:{hub.port}/stream") as client:
            await client.ping()
            stopping = asyncio.create_task(hub.terminate())
            with pytest.raises(ConnectionClosed) as closed:
                async with asyncio.timeout(60):
                    await client.recv()
        assert await stopping == 0
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 3001


async def test_a_token_in_the_url_is_not_logged(tmp_path: Path) -> None:
    settings = {"FANFARE_LOG_LEVEL": "debug"}
    async with HubProcess(tmp_path, settings) as hub:
        query = "authorization=c2VjcmV0OmluLXRoZS11cmw="
        async with connect(f"ws://127.0.0.1:{hub.port}/stream?{query}") as client:
            with pytest.raises(ConnectionClosed):
                await client.recv()
        events = await request_events(hub.port, f"/stream?topic=x&{query}")
        assert events.status == 401
        events.abort()
        await hub.terminate()
    assert "c2VjcmV0" not in hub.last_words
    assert not any("c2VjcmV0" in line for line in hub.log)
