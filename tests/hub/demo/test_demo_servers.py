"""The demonstration's callback believes the hub and nobody else."""

from __future__ import annotations

import httpx2
import pytest

from hub.demo.arrivals import Arrival, Arrivals, Way
from hub.demo.demo_servers import DemoServers
from hub.demo.samples import FeedKind
from protocols.websub.signatures import sign
from tests.support.clock import ManualClock

URL = "http://outside.example"


@pytest.fixture
def told() -> list[Arrival]:
    return []


@pytest.fixture
async def outside(told: list[Arrival]) -> DemoServers:
    arrivals = Arrivals(told.append)
    return DemoServers(URL, "http://hub.example/hub", arrivals, ManualClock())


@pytest.fixture
def client(outside: DemoServers) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(outside.application())
    return httpx2.AsyncClient(transport=transport, base_url=URL)


@pytest.mark.parametrize("kind", FeedKind)
async def test_a_feed_that_did_not_change_is_not_sent_again(
    client: httpx2.AsyncClient, outside: DemoServers, kind: FeedKind
) -> None:
    first = await client.get(outside.topics[kind])
    validators = {"If-None-Match": first.headers["etag"]}
    again = await client.get(outside.topics[kind], headers=validators)
    outside.publish(kind)
    changed = await client.get(outside.topics[kind], headers=validators)
    statuses = [each.status_code for each in (first, again, changed)]
    assert statuses == [200, 304, 200]


@pytest.mark.parametrize(("topic", "status"), [(f"{URL}/rss", 200), ("x", 404)])
async def test_intent_is_confirmed_for_its_own_topics(
    client: httpx2.AsyncClient, outside: DemoServers, topic: str, status: int
) -> None:
    query = {"hub.topic": topic, "hub.challenge": "abc"}
    answer = await client.get(outside.callback, params=query)
    assert answer.status_code == status
    assert answer.text == ("abc" if status == 200 else "")


@pytest.mark.parametrize("is_signed", [True, False])
async def test_only_a_signed_notification_counts(
    client: httpx2.AsyncClient,
    outside: DemoServers,
    told: list[Arrival],
    is_signed: bool,
) -> None:
    entry = outside.publish(FeedKind.JSON)
    body = f'{{"items": [{{"id": "{entry.id}"}}]}}'.encode()
    secret = outside.secret if is_signed else "another"
    headers = {"X-Hub-Signature": sign("sha256", secret, body)}
    answer = await client.post(outside.callback, content=body, headers=headers)
    assert answer.status_code == 204
    assert [each.way for each in told] == [Way.WEBHOOK] * is_signed
