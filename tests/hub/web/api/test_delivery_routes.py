from __future__ import annotations

import httpx2
import pytest

from storage.records import TokenId
from tests.support.failures import ANSWER, details, failed
from tests.support.services import Hub
from tests.support.storage_scene import Scene, at

FAILED = "/api/deliveries/failed"


@pytest.fixture
async def ids(hub: Hub) -> dict[str, int]:
    """Of failures by what callbacks answered, oldest first."""
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    a, b = [await scene.subscribe(feed, name) for name in "ab"]
    attempts = (
        failed(a, at(1), status=500, kept=details("a.example", answer=ANSWER)),
        failed(b, at(2), status=404, kept=details("b.example", is_withheld=True)),
        failed(b, at(3), status=0, kept=details("b.example")),
    )
    await scene.flush(attempts=attempts)
    return {"500": 1, "404": 2, "none": 3}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["none", "404", "500"]),
        ("?status=5xx", ["500"]),
        ("?status=404", ["404"]),
        ("?status=NONE", None),
        ("?status=none", ["none"]),
        ("?host=B.example", ["none", "404"]),
        ("?since=2026-01-01T00:00:02Z", ["none", "404"]),
        ("?since=2026-01-01T01:00:03%2B01:00", ["none"]),
        ("?since=1h", ["none", "404", "500"]),
        ("?subscription=1", ["500"]),
        ("?status=4xx&host=b.example&subscription=2", ["404"]),
    ],
)
async def test_failures_are_found_by_what_is_known_of_them(
    client: httpx2.AsyncClient,
    ids: dict[str, int],
    query: str,
    expected: list[str] | None,
) -> None:
    answer = await client.get(FAILED + query)
    if expected is None:
        assert answer.status_code == 422
        return
    found = answer.json()
    assert [each["id"] for each in found["failed"]] == [ids[each] for each in expected]
    assert (found["total"], found["has_more"]) == (len(expected), False)
    assert found["next"] is None


async def test_attempts_say_from_when_on_all_are_kept(
    client: httpx2.AsyncClient, hub: Hub, ids: dict[str, int]
) -> None:
    path = "/api/subscriptions/2/attempts?since=2026-01-01T00:00:03Z&until=2026-01-02"
    before = (await client.get(path)).json()
    await hub.storage.deliveries.trim_attempts(at(0), 9, kept=1)
    after = (await client.get(path)).json()
    assert [each["status"] for each in after["attempts"]] == [0]
    assert (before["kept_from"], after["kept_from"]) == (None, "2026-01-01T00:00:03Z")


async def test_pages_of_failures_follow_each_other(
    client: httpx2.AsyncClient, ids: dict[str, int]
) -> None:
    first = (await client.get(f"{FAILED}?limit=2")).json()
    second = (await client.get(f"{FAILED}?limit=2&before={first['next']}")).json()
    pages = [[each["id"] for each in page["failed"]] for page in (first, second)]
    assert pages == [[3, 2], [1]]
    assert (first["total"], second["next"]) == (3, None)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=5x", "status"),
        ("status=1000", "status"),
        ("since=yesterday", "since"),
        ("before=12", "before"),
        ("before=999999999999999-1", "before"),
        ("subscription=0", "subscription"),
        ("limit=0", "limit"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused_by_its_name(
    client: httpx2.AsyncClient, query: str, field: str
) -> None:
    answer = await client.get(f"{FAILED}?{query}")
    assert answer.status_code == 422
    assert answer.json()["field"] == field


async def test_requests_of_one_record_are_listed_with_all_that_it_told_of(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed("told")
    subscription = await scene.subscribe(feed, "told")
    first = await scene.publish(feed, "One", "Two")
    await scene.publish(feed, "Three")
    await scene.deliver()
    path = f"/api/subscriptions/{subscription.id}/attempts"
    shown = (await client.get(f"{path}?record={first}")).json()
    assert [each["position"] for each in shown["attempts"]] == [first]
    assert [each["title"] for each in shown["told"]] == ["One", "Two"]
    assert shown["told_total"] == 2
    every = (await client.get(path)).json()
    assert (len(every["attempts"]), every["told"]) == (2, None)


async def test_one_is_shown_with_its_answer_as_text(
    client: httpx2.AsyncClient, ids: dict[str, int]
) -> None:
    shown = (await client.get(f"{FAILED}/{ids['500']}")).json()
    assert shown["failed_at"] == "answered"
    assert shown["answer"] == {
        "status_line": "HTTP/1.1 503 Busy",
        "headers": [
            {"name": "retry-after", "value": "60"},
            {"name": "x-why", "value": "zu müde"},
        ],
        "body": "\ufffd not now",
        "is_excerpt": True,
    }
    assert (shown["told"], shown["told_total"]) == ([], None)
    assert shown["request"] is None
    assert shown["request_missing"]
    withheld = (await client.get(f"{FAILED}/{ids['404']}")).json()
    assert (withheld["answer"], withheld["answer_withheld"]) == (None, True)


async def test_an_account_sees_its_own_and_lists_none(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    feed, headers = await scene.add_feed(), {}
    for name in ("one", "two"):
        body = {"account": name, "scopes": ["list"]}
        made = (await client.post("/api/tokens", json=body)).json()
        headers[name] = {"Authorization": f"Bearer {made['token']}"}
    (one, _) = await hub.storage.tokens.page(after=TokenId(0), limit=9)
    own = await scene.subscribe(feed, account=one.account.id)
    await scene.flush(attempts=(failed(own, kept=details()),))
    for name, status in (("one", 200), ("two", 404)):
        shown = await client.get(f"{FAILED}/1", headers=headers[name])
        assert shown.status_code == status
        assert (await client.get(FAILED, headers=headers[name])).status_code == 403
