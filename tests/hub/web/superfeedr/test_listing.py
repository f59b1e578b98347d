"""hub.mode=list: both shapes, every search key, paging."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from storage.records import FeedStatistics, FeedStatisticsWrite
from tests.hub.web.superfeedr.conftest import Ask, make_token
from tests.support.services import Hub
from tests.support.work_claims import save_statistics

CALLBACKS = ("https://you.example/one", "https://you.example:8443/Two?a=1")
TOPICS = (
    "https://example.org/feed.xml",
    "https://example.org/News.rss",
    "https://you.example:444/feed#.h-entry",
)


@pytest.fixture
async def subscribed(hub: Hub, ask: Ask) -> None:
    """Three topics for one callback, the first also for another, as JSON."""
    for number, topic in enumerate(TOPICS):
        hub.poller.outcome = lambda polling, n=number: replace(
            polling, code=200, velocity=float(n), bozo_rank=n / 10
        )
        await ask(hub_mode="subscribe", hub_topic=topic, hub_callback=CALLBACKS[0])
    await ask(
        hub_mode="subscribe",
        hub_topic=TOPICS[0],
        hub_callback=CALLBACKS[1],
        format="json",
        hub_secret="s3cret",
    )


async def found(ask: Ask, **parameters: str) -> list[tuple[str, str]]:
    answer = await ask(hub_mode="list", detailed="true", **parameters)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    listed = [each["subscription"] for each in document["subscriptions"]]
    assert document["meta"]["total"] == len(listed)
    return [(each["feed"]["url"], each["endpoint"]) for each in listed]


@pytest.mark.usefixtures("subscribed")
async def test_without_detailed_it_is_an_array(ask: Ask) -> None:
    answer = await ask(hub_mode="list")
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    listed: list[Any] = answer.json()
    assert len(listed) == 4
    assert listed[3] == {
        "subscription": {
            "format": "json",
            "endpoint": CALLBACKS[1],
            "secret": None,
            "feed": {"title": "A feed", "url": TOPICS[0]},
        }
    }


@pytest.mark.usefixtures("subscribed")
async def test_with_detailed_each_feed_has_its_status_and_the_list_its_meta(
    ask: Ask,
) -> None:
    answer = await ask(hub_mode="list", detailed="true", page="2", by_page="3")
    document = answer.json()
    assert document["meta"] == {
        "total": 4,
        "page": 2,
        "by_page": 3,
        "byPage": 3,
        "search": {},
    }
    [only] = document["subscriptions"]
    feed = only["subscription"]["feed"]
    assert feed["url"] == feed["status"]["feed"] == TOPICS[0]
    assert feed["status"]["code"] == 200
    assert feed["status"]["title"] == feed["title"] == "A feed"


@pytest.mark.usefixtures("subscribed")
async def test_past_the_end_there_is_nothing(ask: Ask) -> None:
    assert (await ask(hub_mode="list", page="2")).json() == []
    answer = await ask(hub_mode="list", page="9", by_page="2", detailed="true")
    assert answer.json()["subscriptions"] == []
    assert answer.json()["meta"]["total"] == 4


@pytest.mark.usefixtures("subscribed")
async def test_other_accounts_and_ended_ones_are_not_listed(
    hub: Hub, ask: Ask, anybody: httpx2.AsyncClient
) -> None:
    await ask(hub_mode="unsubscribe", hub_topic=TOPICS[1])
    assert [topic for topic, _ in await found(ask)] == [TOPICS[0], TOPICS[2], TOPICS[0]]
    other = await make_token(hub, account="other")
    answer = await anybody.get("/?hub.mode=list", auth=("other", other))
    assert answer.json() == []


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"search[format]": "JSON"}, [3]),
        ({"search[format]": "atom"}, [0, 1, 2]),
        ({"search[feed][url]": TOPICS[0]}, [0, 3]),
        ({"search[feed.url]": "HTTPS://EXAMPLE.org:443/feed.xml"}, [0, 3]),
        ({"search[feed][inurl]": "news"}, [1]),
        ({"search[feed][hostname]": "Example.ORG"}, [0, 1, 3]),
        ({"search[feed][hostname]": "you.example"}, [2]),
        ({"search[feed][velocity]": ">0.5"}, [1, 2]),
        ({"search[feed][velocity]": ">=2"}, [2]),
        ({"search[feed][velocity]": "1"}, [1]),
        ({"search[feed][bozo]": "<0.05"}, [0, 3]),
        ({"search[feed][popularity]": ">0"}, []),
        ({"search[feed][porn]": "<=0"}, [0, 1, 2, 3]),
        ({"search[endpoint][url]": CALLBACKS[1]}, [3]),
        ({"search[endpoint][inurl]": "two"}, [3]),
        ({"search[endpoint][hostname]": "you.example"}, [0, 1, 2, 3]),
        (
            {
                "search[endpoint][inurl]": "one",
                "search[feed][hostname]": "example.org",
                "search[feed.inurl]": "feed",
                "search[feed.velocity]": "0",
            },
            [0],
        ),
        ({"search[endpoint][jid]": "me@example.org"}, []),
        ({"search": f'{{"feed.url"=>"{TOPICS[1]}"}}'}, [1]),
        ({"search": '{:"feed.inurl" => "news", "format": "atom"}'}, [1]),
        ({"hub.callback": "http%"}, [0, 1, 2, 3]),
        ({"hub.callback": "%two%"}, [3]),
        ({"hub.callback": CALLBACKS[0]}, [0, 1, 2]),
    ],
)
@pytest.mark.usefixtures("subscribed")
async def test_each_key_finds_what_it_names(
    ask: Ask, search: dict[str, str], expected: list[int]
) -> None:
    made = [(topic, CALLBACKS[0]) for topic in TOPICS] + [(TOPICS[0], CALLBACKS[1])]
    assert await found(ask, **search) == [made[number] for number in expected]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"search[feed][popularity]": ">1.5"}, [TOPICS[1]]),
        ({"search[feed][popularity]": "0"}, [TOPICS[0], TOPICS[2], TOPICS[0]]),
        ({"search[feed][porn]": ">=0.4"}, [TOPICS[1]]),
        ({"search[feed][porn]": ">0.4"}, []),
    ],
)
@pytest.mark.usefixtures("subscribed")
async def test_what_maintenance_found_out_is_found_and_shown(
    hub: Hub, ask: Ask, search: dict[str, str], expected: list[str]
) -> None:
    feed = await hub.services.feeds.find(TOPICS[1])
    assert feed is not None
    at = hub.clock.now()
    statistics = FeedStatistics(maintained_at=at, popularity=1.79, porn_rank=0.4)
    write = FeedStatisticsWrite(
        feed_id=feed.id, statistics=statistics, site="", places=frozenset(), due=at
    )
    await save_statistics(hub.storage, write)

    assert [topic for topic, _ in await found(ask, **search)] == expected
    listed = (await ask(hub_mode="list", detailed="true")).json()["subscriptions"]
    statuses = [each["subscription"]["feed"]["status"] for each in listed]
    shown = [(each.get("popularity"), each.get("pornRank")) for each in statuses]
    assert shown == [(None, None), (1.79, 0.4), (None, None), (None, None)]
    assert all(each["lastMaintenanceAt"] for each in statuses)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"search[feed][colour]": "red"}, "search[feed.colour]"),
        ({"search[feed][velocity]": "fast"}, "search[feed.velocity]"),
        ({"search[format]": "rss"}, "search[format]"),
        ({"search": "everything"}, "search"),
        ({"page": "0"}, "page"),
        ({"page": "two"}, "page"),
        ({"by_page": "-1"}, "by_page"),
        ({"by_page": "501"}, "by_page"),
        ({"detailed": "very"}, "detailed"),
    ],
)
async def test_unknown_shapes_are_422_and_named(
    ask: Ask, parameters: dict[str, str], named: str
) -> None:
    answer = await ask(hub_mode="list", **parameters)
    assert answer.status_code == 422
    assert answer.text.startswith(f"{named}: expected")


async def test_a_page_may_have_500(ask: Ask) -> None:
    answer = await ask(hub_mode="list", by_page="500", detailed="true")
    assert answer.json()["meta"]["by_page"] == 500


@pytest.mark.usefixtures("subscribed")
async def test_with_a_callback_it_is_jsonp(ask: Ask) -> None:
    answer = await ask(hub_mode="list", callback="show", _="1")
    assert answer.text.startswith('show([{"subscription"')
