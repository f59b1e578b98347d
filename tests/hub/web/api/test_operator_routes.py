from __future__ import annotations

import httpx2

from tests.support.services import Hub
from tests.support.waiting import eventually, in_background


async def test_a_living_process_says_so(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"alive": True})


async def test_a_hub_that_can_write_is_ready(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/readyz")
    ready = {"ready": True, "troubles": [], "warnings": [], "conditions": []}
    assert answer.json() == ready


async def test_a_hub_that_stops_is_not_ready(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.services.operations.stop()
    answer = await anybody.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "ready": False,
        "troubles": ["shutting down"],
        "warnings": [],
        "conditions": [
            {
                "what": "shutting down",
                "since": "2026-01-01T00:00:00Z",
                "advice": "",
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
    assert answer.json()["troubles"]


async def test_health_has_backlog_and_database(client: httpx2.AsyncClient) -> None:
    await client.post("/api/feeds", json={"url": "https://example.org/"})
    health = (await client.get("/api/health")).json()
    assert health["ready"]
    assert health["backlog"]["feeds"] == 1
    assert health["database"]["engine"] == "sqlite"


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
