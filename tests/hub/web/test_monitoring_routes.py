"""``/metrics``: what a scraper gets."""

from __future__ import annotations

import re

import httpx2
import pytest

from hub.web.problem_types import EXPLANATIONS, ProblemType
from protocols.model import Entry, Status
from storage.records import (
    FetchCommit,
    Polling,
    Position,
    RecordKind,
    RecordWrite,
)
from tests.support.admin import ADMIN
from tests.support.services import Hub


def numbers(text: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    return {name: float(value) for name, value in lines}


async def scrape(anybody: httpx2.AsyncClient) -> dict[str, float]:
    answer = await anybody.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return numbers(answer.text)


async def test_it_shows_what_is_there(anybody: httpx2.AsyncClient, hub: Hub) -> None:
    hub.metrics.connections.add("sse", 2)
    found = await scrape(anybody)
    assert found['fanfare_connections{transport="sse"}'] == 2
    assert found["fanfare_feeds"] == 0
    assert found["fanfare_delivery_lag_seconds"] == 0
    assert found["fanfare_oldest_due_feed_seconds"] == 0
    assert found['fanfare_database_bytes{file="database"}'] > 0
    assert found['fanfare_database_bytes{file="wal"}'] >= 0


async def test_a_feed_that_is_overdue_shows(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    body = {"url": "https://example.org/feed.xml"}
    await anybody.post("/api/feeds", json=body, headers=ADMIN)
    hub.clock.advance(90)
    found = await scrape(anybody)
    assert found["fanfare_feeds"] == 1
    assert found["fanfare_oldest_due_feed_seconds"] == pytest.approx(90)


async def test_the_database_is_asked_no_more_often_than_every_second(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await scrape(anybody)
    hub.clock.advance(0.5)
    await anybody.post(
        "/api/feeds", json={"url": "https://example.org/"}, headers=ADMIN
    )
    assert (await scrape(anybody))["fanfare_feeds"] == 0
    hub.clock.advance(0.5)
    assert (await scrape(anybody))["fanfare_feeds"] == 1


@pytest.mark.parametrize(
    ("method", "path", "area", "answer"),
    [
        ("GET", "/api/feeds", "api", "4xx"),
        ("GET", "/", "pages", "2xx"),
        ("GET", "/?hub.mode=list", "superfeedr", "4xx"),
        ("POST", "/", "superfeedr", "4xx"),
        ("POST", "/hub", "hub", "4xx"),
        ("GET", "/admin", "pages", "3xx"),
        ("GET", "/myPublicFeeds.opml", "publishing", "2xx"),
        ("GET", "/healthz", "monitoring", "2xx"),
        ("GET", "/nothing/there", "other", "4xx"),
    ],
)
async def test_requests_are_counted_by_area_and_answer(
    anybody: httpx2.AsyncClient, method: str, path: str, area: str, answer: str
) -> None:
    await anybody.request(method, path)
    found = await scrape(anybody)
    labels = f'{{area="{area}",answer="{answer}"}}'
    assert found[f"fanfare_http_requests_total{labels}"] >= 1
    assert found[f'fanfare_http_request_seconds_count{{area="{area}"}}'] >= 1


async def test_no_label_has_a_blank(anybody: httpx2.AsyncClient) -> None:
    text = (await anybody.get("/metrics")).text
    labels = re.findall(r'\w+="([^"]*)"', text)
    assert labels
    assert not [each for each in labels if " " in each]


async def test_a_database_that_cannot_be_asked_is_503(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    await hub.storage.close()
    assert (await anybody.get("/metrics")).status_code == 503


async def test_deliveries_that_wait_show_with_the_age_of_the_oldest(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    topic = "https://example.org/feed.xml"
    body = {"callback": "https://you.example/hook", "topic": topic}
    made = await anybody.post("/api/subscriptions", json=body, headers=ADMIN)
    await hub.storage.log.commit(
        FetchCommit(
            feed_id=made.json()["feed"],
            at=hub.clock.now(),
            next_fetch=hub.clock.now(),
            polling=Polling(code=200),
            entries=(Entry(key="1", id="1"),),
            records=(
                RecordWrite(
                    kind=RecordKind.ENTRIES,
                    status=Status(code=200, http="OK"),
                    entries=(("1", True),),
                ),
            ),
        )
    )
    hub.clock.advance(70)
    found = await scrape(anybody)
    assert found["fanfare_subscriptions"] == 1
    assert found['fanfare_backlog{stage="fanouts"}'] == 1
    assert found["fanfare_delivery_lag_seconds"] == pytest.approx(70)
    assert found["fanfare_log_head"] == 1


async def test_records_that_live_connections_were_not_given_show_by_their_age(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    body = {"url": "https://example.org/feed.xml"}
    added = await anybody.post("/api/feeds", json=body, headers=ADMIN)
    record = RecordWrite(kind=RecordKind.RECOVERED, status=Status(code=200))
    hub.metrics.live_position = Position(0)
    assert (await scrape(anybody))["fanfare_live_lag_seconds"] == 0
    for _ in range(2):
        await hub.storage.log.commit(
            FetchCommit(
                feed_id=added.json()["id"],
                at=hub.clock.now(),
                next_fetch=hub.clock.now(),
                polling=Polling(code=200),
                records=(record,),
            )
        )
        hub.clock.advance(20)

    for position, lag in ((0, 40), (1, 21), (2, 0), (None, 0)):
        hub.metrics.live_position = None if position is None else Position(position)
        found = await scrape(anybody)
        assert found["fanfare_live_lag_seconds"] == pytest.approx(lag, abs=2)
        hub.clock.advance(1)


async def test_who_is_still_caught_up_shows(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.metrics.live_resuming.value += 3
    assert (await scrape(anybody))["fanfare_live_resuming"] == 3


@pytest.mark.parametrize("type", [*ProblemType])
async def test_every_type_of_problem_is_explained_at_its_url(
    anybody: httpx2.AsyncClient, type: ProblemType
) -> None:
    answer = await anybody.get(type.url)
    assert (answer.status_code, EXPLANATIONS[type] in answer.text) == (200, True)


@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("/api/feeds", ProblemType.UNAUTHORIZED),
        ("/problems/odd", ProblemType.NOT_FOUND),
        ("/identity?challenge=short", ProblemType.NOT_FOUND),
    ],
)
async def test_a_problem_names_its_type(
    anybody: httpx2.AsyncClient, path: str, type: ProblemType
) -> None:
    assert (await anybody.get(path)).json()["type"] == f"/problems/{type}"


async def test_a_url_that_the_guard_refuses_is_a_type_of_its_own(
    client: httpx2.AsyncClient,
) -> None:
    body = {"url": "http://10.0.0.1/feed"}
    answer = await client.post("/api/feeds", json=body)
    assert answer.json()["type"] == ProblemType.ADDRESS_REFUSED.url
