"""A hub does not read itself, nor deliver to itself, by whatever name it got there."""

from __future__ import annotations

import httpx2
import pytest

from hub.ingest.fetcher import FetcherIdentity
from tests.support.services import PUBLIC_URL

OWN = FetcherIdentity(
    product="Fanfare/1.0", url=f"{PUBLIC_URL}/about", contact="a@b.example"
)
DELIVERING = f"Fanfare/1.0 (+{PUBLIC_URL}/hub)"


@pytest.mark.parametrize("agent", [OWN.of_hub, DELIVERING])
@pytest.mark.parametrize(
    "path", ["/", "/sitemap.xml", "/openfeeder", "/.well-known/openfeeder.json"]
)
async def test_what_the_hub_asks_of_itself_is_a_loop(
    anybody: httpx2.AsyncClient, path: str, agent: str
) -> None:
    answer = await anybody.get(path, headers={"User-Agent": agent})
    assert answer.status_code == 508
    assert "neither reads nor delivers to itself" in answer.json()["detail"]


async def test_its_own_deliveries_are_no_pings(anybody: httpx2.AsyncClient) -> None:
    path = "/?hub.mode=publish&hub.url=https://a.example/feed"
    answer = await anybody.post(path, headers={"User-Agent": DELIVERING})
    assert answer.status_code == 508


async def test_its_robots_txt_is_told_so_that_the_page_says_what_is_wrong(
    anybody: httpx2.AsyncClient,
) -> None:
    answer = await anybody.get("/robots.txt", headers={"User-Agent": OWN.of_hub})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "agent",
    [
        "Fanfare/1.0",
        "Fanfare/1.0 (+http://hub.example.org/about)",
        "Fanfare/1.0 (+https://another.example/hub)",
        f"Reader/1.0 (+{PUBLIC_URL}/)",
        f"Reader/1.0 (+{PUBLIC_URL}/hubs/)",
    ],
)
async def test_others_read_what_it_publishes(
    anybody: httpx2.AsyncClient, agent: str
) -> None:
    answer = await anybody.get("/openfeeder", headers={"User-Agent": agent})
    assert answer.status_code == 200
