"""How the hub was over time, as the API tells it."""

from __future__ import annotations

import httpx2
import pytest

from hub.runtime.series_memory import SERIES, DelayName, SeriesName
from tests.support.services import Hub


def measure(hub: Hub, seconds: int = 30) -> None:
    for _ in range(seconds):
        hub.metrics.polls.add("fetched", 2)
        hub.metrics.publications.observe(100)
        hub.clock.advance(1)
        hub.services.series.measure()


async def test_every_series_is_told_with_its_unit(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    await hub.services.series.load()
    await hub.services.series.look()
    measure(hub)
    found = (await client.get("/api/series?range=10min&points=10")).json()
    assert [each["name"] for each in found["series"]] == [*SeriesName]
    assert [each["name"] for each in found["delays"]] == [*DelayName]
    for each in found["series"]:
        assert (each["unit"], each["step"]) == (SERIES[each["name"]].unit, 60)
        assert len(each["means"]) == len(each["lows"]) == len(each["highs"]) == 10
    late = found["delays"][0]
    assert sum(map(sum, late["counts"])) == 30
    assert len(found["starts"]) == 1
    assert len(late["counts"][0]) == len(late["bounds"]) + 1


async def test_only_those_that_are_named_are_told(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    measure(hub, 20)
    names = "name=polls&name=publication_to_commit"
    found = (await client.get(f"/api/series?since=30s&{names}")).json()
    (polls,), (late,) = found["series"], found["delays"]
    assert (polls["name"], polls["step"]) == ("polls", 1)
    assert set(polls["means"]) == {2.0, None}
    assert late["name"] == "publication_to_commit"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("range=1y", "range"),
        ("points=601", "points"),
        ("name=poll", "name"),
        ("since=soon", "since"),
        ("since=1h&until=2h", "since"),
    ],
)
async def test_what_it_cannot_tell_is_refused(
    client: httpx2.AsyncClient, query: str, field: str
) -> None:
    answer = await client.get(f"/api/series?{query}")
    assert answer.status_code == 422
    assert answer.json()["field"] == field


@pytest.mark.parametrize("path", ["/api/entries", "/api/series"])
@pytest.mark.parametrize(
    "query",
    ["since=0001-01-01&until=9999-12-31", "until=9999-12-31", "until=0001-01-01"],
)
async def test_a_span_may_be_as_wide_as_dates_go(
    client: httpx2.AsyncClient, path: str, query: str
) -> None:
    assert (await client.get(f"{path}?{query}")).status_code == 200
