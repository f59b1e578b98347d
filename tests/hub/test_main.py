"""A hub is never half alive: one part that ends takes all of it down.

It takes as many connections as the system allows, and never more.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from structlog.testing import capture_logs

from hub.composition import BuiltHub
from hub.hub_address import is_proof, read_address
from hub.main import (
    MOST_FILES,
    CannotStart,
    HubFailed,
    _warn_about,
    fit_connections,
    raise_limit,
    run,
    run_until_stopped,
    stop_signal,
)
from hub.runtime.background import BackgroundTask
from hub.runtime.node_membership import MembershipLost
from hub.settings import Settings
from hub.web.admin.page_streams import PageStreams
from hub.web.server.http_server import create_server, listening_socket
from tests.support.hub_process import HubProcess
from tests.support.services import Hub, open_hub
from tests.support.waiting import eventually


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def forever() -> None:
    await asyncio.Event().wait()


def built_with(hub: Hub, **parts: BackgroundTask) -> BuiltHub:
    return BuiltHub(
        server=create_server(Starlette()),
        services=hub.services,
        live=hub.services.live.stream,
        pages=PageStreams(),
        background=parts,
    )


@pytest.mark.parametrize(
    ("error", "said", "event"),
    [
        (RuntimeError("it broke"), "RuntimeError: it broke", "part_failed"),
        (MembershipLost("another hub has it"), "another hub has it", "database_lost"),
    ],
)
async def test_a_part_that_fails_is_named_and_ends_all(
    hub: Hub, error: Exception, said: str, event: str
) -> None:
    ended = asyncio.Event()

    async def other() -> None:
        try:
            await forever()
        finally:
            ended.set()

    async def failing() -> None:
        raise error

    built = built_with(hub, poller=failing, denials=other)
    with (
        listening_socket("127.0.0.1", 0) as listener,
        capture_logs() as lines,
        pytest.raises(HubFailed, match=f"the poller ended unexpectedly: {said}"),
    ):
        await run_until_stopped(built, listener, stop_signal())
    assert ended.is_set()
    assert [line["event"] for line in lines] == [event]


async def test_a_part_that_returns_ends_all_as_well(hub: Hub) -> None:
    async def returning() -> None:
        """Done before it was asked to end."""

    built = built_with(hub, housekeeping=returning)
    with (
        listening_socket("127.0.0.1", 0) as listener,
        pytest.raises(HubFailed, match="the housekeeping ended unexpectedly"),
    ):
        await run_until_stopped(built, listener, stop_signal())


async def test_a_server_that_ends_by_itself_ends_all(hub: Hub) -> None:
    built = built_with(hub, poller=forever)
    with listening_socket("127.0.0.1", 0) as listener:
        running = asyncio.create_task(run_until_stopped(built, listener, stop_signal()))
        await eventually(lambda: built.server.started)
        built.server.stop()
        with pytest.raises(HubFailed, match="the server ended unexpectedly"):
            await running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_all_in_order(hub: Hub, number: signal.Signals) -> None:
    built = built_with(hub, poller=forever)
    with listening_socket("127.0.0.1", 0) as listener:
        running = asyncio.create_task(run_until_stopped(built, listener, stop_signal()))
        await eventually(lambda: built.server.started)
        os.kill(os.getpid(), number)
        async with asyncio.timeout(60):
            await running
    [condition] = await hub.services.conditions.look()
    assert condition.what == "shutting down"


@pytest.mark.parametrize("name", ["dispatcher", "poller"])
async def test_what_has_work_under_way_is_not_interrupted_by_the_end_of_the_server(
    hub: Hub, name: str
) -> None:
    """It is asked to end once: its last acknowledgements are written after that."""
    server_has_ended = asyncio.Event()
    written: list[str] = []

    async def draining() -> None:
        try:
            await forever()
        finally:
            await server_has_ended.wait()
            for _ in range(10):
                await asyncio.sleep(0)
            written.append("acknowledgements")

    async def ended_after_the_server() -> None:
        try:
            await forever()
        finally:
            server_has_ended.set()

    built = built_with(hub, **{name: draining, "denials": ended_after_the_server})
    stop = asyncio.Event()
    with listening_socket("127.0.0.1", 0) as listener:
        running = asyncio.create_task(run_until_stopped(built, listener, stop))
        await eventually(lambda: built.server.started)
        stop.set()
        async with asyncio.timeout(60):
            await running
    assert written == ["acknowledgements"]


async def test_a_start_that_cannot_be_leaves_nothing_behind(tmp_path: Path) -> None:
    said: list[str] = []
    with listening_socket("127.0.0.1", 0) as taken:
        settings = Settings(
            database=f"sqlite:{tmp_path / 'hub.db'}", port=taken.getsockname()[1]
        )
        with pytest.raises(CannotStart, match="another program is listening there"):
            await run(settings, announce=said.append)
    assert said == []
    assert names_in(tmp_path) == []


async def test_a_place_for_collections_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "scp").touch()
    settings = Settings(database=f"sqlite:{tmp_path / 'hub.db'}", port=0)
    with pytest.raises(CannotStart, match=r"collections .*scp: File exists"):
        await run(settings, announce=lambda said: None)


async def test_a_whole_hub_starts_serves_and_ends(tmp_path: Path) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    settings = Settings(
        database=f"sqlite:{tmp_path / 'hub.db'}", port=0, contact="me@example.org"
    )
    running = asyncio.create_task(run(settings, announce=said.put_nowait))
    async with asyncio.timeout(60), httpx2.AsyncClient() as client:
        greeting = await said.get()
        [url] = re.findall(r"http://localhost:\d+", greeting)
        answer = await client.get(f"{url}/readyz")
        assert answer.json()["ready"]
        assert (await client.get(f"{url}/api/feeds")).status_code == 401
        address = read_address(tmp_path / "hub.db.hub")
        assert address is not None
        assert address.public_url == url
        question = {"challenge": "0123456789abcdef"}
        proof = await client.get(f"{address.url}/identity", params=question)
        assert is_proof(address, "0123456789abcdef", proof.json()["proof"])
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert str(tmp_path / "admin-token") in greeting
    assert "hub.db.hub" not in names_in(tmp_path)


async def test_a_hub_that_commands_cannot_find_runs_nevertheless(
    tmp_path: Path,
) -> None:
    (tmp_path / "hub.db.hub").mkdir()
    said: asyncio.Queue[str] = asyncio.Queue()
    settings = Settings(database=f"sqlite:{tmp_path / 'hub.db'}", port=0)
    with capture_logs() as logs:
        running = asyncio.create_task(run(settings, announce=said.put_nowait))
        async with asyncio.timeout(60):
            await said.get()
            os.kill(os.getpid(), signal.SIGTERM)
            await running
    assert "address_not_written" in [each["event"] for each in logs]


async def test_a_token_that_was_set_is_not_written_or_said(tmp_path: Path) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    settings = Settings(
        database=f"sqlite:{tmp_path / 'hub.db'}", port=0, admin_token="geheim"
    )
    running = asyncio.create_task(run(settings, announce=said.put_nowait))
    async with asyncio.timeout(60):
        assert "geheim" not in await said.get()
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert "admin-token" not in names_in(tmp_path)


@pytest.mark.parametrize(
    ("url", "scp", "warns"),
    [
        ("http://hub.example", "on", True),
        ("http://hub.example", "off", False),
        ("https://hub.example", "on", False),
        ("", "on", False),
    ],
)
def test_collections_in_the_clear_are_warned_of(
    url: str, scp: str, warns: bool
) -> None:
    with capture_logs() as lines:
        _warn_about(replace(Settings(), public_url=url, scp=scp))

    assert ("scp_insecure" in [line["event"] for line in lines]) == warns


SETTINGS = Settings(
    poll_concurrency=64, delivery_concurrency=256, stream_connections=10_000
)


@pytest.fixture
def few_files() -> Iterator[int]:
    """A low soft limit, which processes that are started inherit; the hard one."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
    yield MOST_FILES if limits[1] == resource.RLIM_INFINITY else limits[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_soft_limit_is_raised_to_the_hard_one(few_files: int) -> None:
    assert raise_limit() == few_files
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == few_files
    assert raise_limit() == few_files


@pytest.mark.parametrize(
    ("files", "connections"),
    [(20_000, 10_000), (4_096, 3_200), (1_024, 256), (400, 100)],
)
def test_live_connections_leave_files_for_everything_else(
    files: int, connections: int
) -> None:
    with capture_logs() as logs:
        assert fit_connections(SETTINGS, files).stream_connections == connections
    limited = [each for each in logs if each["event"] == "stream_connections_limited"]
    assert bool(limited) is (connections < SETTINGS.stream_connections)
    assert logs[-1] == {
        "event": "open_files_allowed",
        "log_level": "info",
        "files": files,
        "live_connections": connections,
    }


async def test_a_hub_raises_its_limit_and_says_how_much_there_is_room_for(
    tmp_path: Path, few_files: int
) -> None:
    async with HubProcess(tmp_path) as hub:
        soft, _hard = resource.prlimit(hub.pid, resource.RLIMIT_NOFILE)
        await hub.terminate()
    assert soft == few_files
    (said,) = [line for line in hub.log if "open_files_allowed" in line]
    assert f"files={few_files}" in said
