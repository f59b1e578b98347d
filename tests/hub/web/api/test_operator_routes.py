from __future__ import annotations

import math
import re
import shutil
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from storage.records import DiskSample
from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.chosen_engine import CHOSEN
from tests.support.services import Hub, open_hub
from tests.support.waiting import eventually, in_background


async def test_a_living_process_says_so(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"alive": True})


async def test_a_hub_that_can_write_is_ready(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/readyz")
    ready = {"ready": True, "errors": [], "troubles": [], "warnings": []}
    assert answer.json() == {**ready, "conditions": []}


async def test_a_hub_that_stops_is_not_ready(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.services.conditions.stop()
    answer = await anybody.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "ready": False,
        "errors": ["shutting down"],
        "troubles": ["shutting down"],
        "warnings": [],
        "conditions": [
            {
                "what": "shutting down",
                "since": "2026-01-01T00:00:00Z",
                "advice": "",
                "error": True,
                "over": False,
                "trouble": True,
            }
        ],
    }


async def test_a_database_that_fails_makes_the_hub_not_ready(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await hub.storage.close()
    answer = await anybody.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["errors"]


async def test_health_has_backlog_and_database(client: httpx2.AsyncClient) -> None:
    await client.post("/api/feeds", json={"url": "https://example.org/"})
    health = (await client.get("/api/health")).json()
    assert health["ready"]
    assert health["backlog"]["feeds"] == 1
    assert health["database"]["engine"] == CHOSEN


async def test_a_clock_that_went_back_is_named_though_the_hub_is_ready(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    async def is_warned() -> bool:
        answer = await anybody.get("/readyz")
        assert answer.status_code == 200
        return any("went back by 2 h" in each for each in answer.json()["warnings"])

    hub.clock.set_back(7_200)
    async with in_background(hub.built.background["clock"]):
        await eventually(is_warned)


@pytest.mark.once("the hub does not see the disk of a server")
async def test_health_says_what_takes_the_disk_and_that_growth_is_not_known_yet(
    client: httpx2.AsyncClient,
) -> None:
    disk = (await client.get("/api/health")).json()["disk"]
    assert disk["other"] > 0
    assert disk["collections"] == 0
    assert 0 < disk["disk_free"] < disk["disk_size"]
    assert disk["limit"] == 8 * 2**30
    assert (disk["growth_per_day"], disk["limit_at"], disk["full_at"]) == (None,) * 3
    assert disk["outlook"].startswith("Not known yet: ")


@pytest.mark.once("the hub does not see the disk of a server")
async def test_health_says_when_the_disk_is_full(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    free = shutil.disk_usage(hub.directory).free
    for ago in range(12, 0, -1):
        sample = DiskSample(
            at=hub.clock.now() - timedelta(hours=ago),
            used_bytes=2**20,
            free_bytes=free + ago * free // 48,
        )
        await hub.storage.note_disk(sample, hub.clock.now() - timedelta(days=1))
    disk = (await client.get("/api/health")).json()["disk"]
    assert disk["loss_per_day"] == pytest.approx(free / 2, rel=0.1)
    assert disk["full_at"].startswith("2026-01-0")
    assert "the disk is full in" in disk["outlook"]
    metrics = (await client.get("/metrics")).text
    assert re.search(r"^fanfare_disk_full_seconds 1\d{5}", metrics, re.MULTILINE)
    assert re.search(r"^fanfare_disk_growth_bytes ", metrics, re.MULTILINE)
    assert re.search(r"^fanfare_disk_limit_seconds ", metrics, re.MULTILINE)


@pytest.mark.parametrize(
    ("days", "search"),
    [
        (math.inf, {"state": "building", "days": None, "share": 0.0}),
        (7.0, {"state": "building", "days": 7.0, "share": 0.0}),
        (0.0, {"state": "off", "days": 0.0, "share": 0.0}),
    ],
)
async def test_health_says_what_can_be_searched(
    tmp_path: Path, days: float, search: dict[str, object]
) -> None:
    async with open_hub(tmp_path, search_days=days) as hub:
        async with client_of(hub.application) as http:
            health = (await http.get("/api/health", headers=ADMIN)).json()
        assert health["search"] == search
