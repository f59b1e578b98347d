"""Starting and ending a hub, as the person at the terminal sees it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from hub.hub_address import read_address
from hub.settings import load_settings
from tests.support.chosen_engine import variables_of
from tests.support.command import (
    ROOT,
    environment,
    fanfare,
    fork_fanfare,
    knowing,
    start_fanfare,
)
from tests.support.fake_api import FakeApi, serving
from tests.support.hub_process import HubProcess
from tests.support.nursery import ForkedHub
from tests.support.waiting import eventually


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {**variables_of(tmp_path / "data" / "hub.db"), "FANFARE_PORT": "0"}


@asynccontextmanager
async def served(
    variables: Mapping[str, str],
    *options: str,
    lines: int = 6,
    directory: Path | None = None,
) -> AsyncIterator[tuple[asyncio.subprocess.Process | ForkedHub, str]]:
    """A running hub and the first lines it printed. In a ``directory`` it is started as
    at a terminal."""
    command = ("serve", *options)
    if directory is None:
        process = await fork_fanfare(*command, variables=variables)
    else:
        process = await start_fanfare(
            *command, variables=variables, directory=directory
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            printed = [await process.stdout.readline() for _ in range(lines)]
        yield process, b"".join(printed).decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_says_where_it_is_where_the_token_lies_and_what_is_next(
    variables: dict[str, str], tmp_path: Path
) -> None:
    async with served(variables) as (_, greeting):
        found = re.search(r"running at (http://localhost:\d+)$", greeting, re.MULTILINE)
        assert found is not None
        token_file = tmp_path / "data" / "admin-token"
        assert f"admin token  {token_file}" in greeting
        assert token_file.stat().st_mode & 0o777 == 0o600
        assert "fanfare feeds add URL" in greeting
        assert "fanfare listen URL" in greeting
        listed = await fanfare("feeds", "list", "--url", found[1], variables=variables)
        assert (listed.code, listed.err) == (0, "")


@pytest.mark.once("the database that nobody names is a file")
async def test_commands_find_it_from_every_directory(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path), "FANFARE_PORT": "0"}
    variables = {**state, "PYTHONPATH": str(ROOT)}
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    async with served(variables, directory=tmp_path / "here") as (process, greeting):
        assert f"database     {tmp_path}/fanfare/fanfare.db" in greeting
        assert (tmp_path / "fanfare").stat().st_mode & 0o777 == 0o700
        listing = await start_fanfare(
            "feeds", "list", variables=variables, directory=tmp_path / "there"
        )
        printed, errors = await listing.communicate()
        assert (listing.returncode, errors) == (0, b"")
        assert b"no feeds yet" in printed
        process.kill()
        await process.wait()
        address = read_address(tmp_path / "fanfare" / "fanfare.db.hub")
    assert address is not None
    port = int(address.url.rpartition(":")[2])
    with serving(FakeApi(), port) as another:
        outcome = await fanfare("feeds", "list", variables=state)
    assert (outcome.code, another.tokens) == (3, [""])
    assert "was sent no token" in outcome.err


async def test_it_says_where_it_is_to_programs(variables: dict[str, str]) -> None:
    async with served(variables, "--json", lines=1) as (_, greeting):
        said = json.loads(greeting)
        token = {"FANFARE_ADMIN_TOKEN_FILE": said.pop("admin_token_file")}
        listed = await fanfare(
            *("feeds", "list", "--url", said.pop("url")), variables=token
        )
        assert listed.code == 0
        assert said.pop("public_url").startswith("http://localhost:")
        assert said == {"database": load_settings(variables).database_name}


async def test_sigterm_ends_it_in_order(variables: dict[str, str]) -> None:
    async with served(variables) as (process, _):
        process.terminate()
        async with asyncio.timeout(60):
            _, errors = await process.communicate()
        assert process.returncode == 0
        assert b"hub_stopped" in errors
        assert b"Traceback" not in errors


@pytest.mark.once("it is about streams, not about what is stored")
async def test_it_needs_no_standard_streams(
    variables: dict[str, str], tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'exec "$0" -m hub.cli serve <&- >&- 2>&-', sys.executable),
        cwd=ROOT,
        env=environment(variables),
    )
    try:
        await eventually((tmp_path / "data" / "admin-token").exists)
        process.terminate()
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_token_of_the_first_start_stays(
    variables: dict[str, str], tmp_path: Path
) -> None:
    tokens = set()
    for _ in range(2):
        async with served(variables) as (process, _):
            tokens.add((tmp_path / "data" / "admin-token").read_text())
            process.terminate()
            await process.wait()
    assert len(tokens) == 1


async def test_a_port_in_use_is_said_before_anything_has_begun(
    variables: dict[str, str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = await fanfare("serve", "--port", port, variables=variables)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"fanfare: cannot listen on 127.0.0.1 port {port}:"
        " another program is listening there\n"
    )
    assert not (tmp_path / "data").exists()


async def test_a_second_hub_on_the_same_database_is_refused(
    variables: dict[str, str],
) -> None:
    async with served(variables):
        outcome = await fanfare("serve", variables=variables)
    assert (outcome.code, outcome.out) == (1, "")
    assert "is using this database" in outcome.err


@pytest.mark.once("on a server: tests/storage/postgres/test_opening.py")
async def test_a_database_of_a_newer_version_is_refused(
    variables: dict[str, str], tmp_path: Path
) -> None:
    await fanfare("db", "migrate", variables=variables)
    async with served(variables):
        pass
    database = sqlite3.connect(tmp_path / "data" / "hub.db")
    database.execute("PRAGMA user_version = 999")
    database.close()
    outcome = await fanfare("serve", variables=variables)
    assert (outcome.code, outcome.out) == (1, "")
    assert "schema version 999 is newer than" in outcome.err


@pytest.mark.once("it is about a file")
@pytest.mark.parametrize("content", [b"this is no database at all" * 100])
async def test_a_file_that_is_no_database_is_refused_and_kept(
    variables: dict[str, str], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "data" / "hub.db"
    path.parent.mkdir()
    path.write_bytes(content)
    outcome = await fanfare("serve", variables=variables)
    assert (outcome.code, outcome.out) == (1, "")
    assert str(path) in outcome.err
    assert "Traceback" not in outcome.err
    assert path.read_bytes() == content


async def test_a_bad_setting_is_refused_by_name(variables: dict[str, str]) -> None:
    outcome = await fanfare("serve", "--min-period", "soon", variables=variables)
    assert outcome.code == 2
    assert "--min-period: expected seconds, from 1 to 604800" in outcome.err


@pytest.mark.once("it is about streams, not about what is stored")
async def test_what_is_probably_not_meant_is_warned_about(
    variables: dict[str, str],
) -> None:
    misspelt = {**variables, "FANFARE_CONTAKT": "me", "FANFARE_LOG_FORMAT": "json"}
    async with served(misspelt) as (process, _):
        process.terminate()
        _, errors = await process.communicate()
    assert b'"setting_unknown"' in errors
    assert b'"did_you_mean": "FANFARE_CONTACT"' in errors
    assert b'"contact_missing"' in errors


async def test_it_is_ready_while_it_runs(tmp_path: Path) -> None:
    async with HubProcess(directory=tmp_path) as hub, aiohttp.ClientSession() as web:
        async with web.get(f"{hub.url}/healthz") as answer:
            assert answer.status == 200
        outcome = await fanfare("health", variables=knowing(hub))
        assert outcome.code == 0
        assert await hub.terminate() == 0
