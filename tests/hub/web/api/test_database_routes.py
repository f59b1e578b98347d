"""Backups and checks of the database, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from storage.sqlite import open_database
from tests.support.services import Hub
from tests.support.waiting import in_background


@pytest.fixture
async def jobs(hub: Hub) -> AsyncIterator[None]:
    """What is asked for is done."""
    async with in_background(hub.built.background["database jobs"]):
        yield


@pytest.mark.once("a server has tools of its own for backups")
@pytest.mark.usefixtures("jobs")
async def test_a_backup_is_a_database_of_its_own(
    client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    await client.post("/api/feeds", json={"url": "https://example.org/"})
    target = tmp_path / "backup.db"
    answer = await client.post("/api/db/backup", json={"destination": str(target)})
    assert answer.status_code == 201
    copy = await open_database(target)
    assert await copy.feeds.find("https://example.org/") is not None
    await copy.close()


@pytest.mark.once("a server has tools of its own for backups")
async def test_a_backup_overwrites_nothing(
    client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    answer = await client.post("/api/db/backup", json={"destination": str(target)})
    assert answer.status_code == 409
    assert target.read_text() == "keep me"


@pytest.mark.once("a server has tools of its own for backups")
@pytest.mark.parametrize(
    "destination",
    ["", "backup.db", "/no/such/directory/backup.db", "/tmp/a\0b", f"/tmp/{'n' * 300}"],  # noqa: S108
)
async def test_a_backup_needs_a_place(
    client: httpx2.AsyncClient, destination: str
) -> None:
    answer = await client.post("/api/db/backup", json={"destination": destination})
    assert (answer.status_code, answer.json()["field"]) == (422, "destination")


@pytest.mark.once("a server has tools of its own for backups")
async def test_without_a_directory_a_backup_needs_a_name(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.post("/api/db/backup", json={})
    assert (answer.status_code, answer.json()["field"]) == (422, "destination")


@pytest.mark.once("a server has tools of its own for backups")
async def test_what_takes_long_is_answered_before_it_is_done(
    client: httpx2.AsyncClient, hub: Hub, tmp_path: Path
) -> None:
    target = str(tmp_path / "copy.db")
    asked = await client.post("/api/db/backup?wait=0", json={"destination": target})
    assert (asked.status_code, asked.json()["finished"]) == (202, None)
    second = await client.post("/api/db/check?wait=0")
    assert second.status_code == 409
    assert (await jobs_of(client))["running"]["file"] == target

    async with in_background(hub.built.background["database jobs"]):
        done = await hub.services.database_jobs.wait(10)

    found = await jobs_of(client)
    assert done.file == target
    assert found["running"] is None
    assert found["last_backup"]["done"] == found["last_backup"]["total"] > 0
    assert (found["schedule"], found["backups"]) == (None, [])


async def jobs_of(client: httpx2.AsyncClient) -> Any:
    return (await client.get("/api/db/jobs")).json()


@pytest.mark.usefixtures("jobs")
async def test_a_sound_database_has_no_findings(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/api/db/check")
    assert (answer.status_code, answer.json()["findings"]) == (200, [])
