"""Track queries at the doors that take topics."""

from __future__ import annotations

import httpx2
import pytest

from hub.ingest.tracker import Tracker
from hub.services.open_hub_requests import PingOutcome
from protocols.websub.websub_parameters import PublishRequest
from storage.records import FeedState
from tests.support.services import Hub

HOOK = "https://you.example/hook"
TOPIC = "http://hub.example/track?query=laurel+hardy"


def asked(topic: str = TOPIC, **more: str) -> dict[str, str]:
    return {"callback": HOOK, "topic": topic, **more}


async def test_a_query_is_subscribed_to_without_any_fetch(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    answer = await client.post("/api/subscriptions", json=asked())

    made = answer.json()
    assert (answer.status_code, made["topic"]) == (201, TOPIC)
    assert made["feed_status"]["state"] == "track"
    assert hub.poller.fetched == []
    listed = (await client.get("/api/feeds")).json()
    assert listed["feeds"] == []


async def test_other_spellings_are_the_same_feed_and_each_keeps_its_own(
    client: httpx2.AsyncClient,
) -> None:
    first = (await client.post("/api/subscriptions", json=asked())).json()
    other = "https://track.superfeedr.com/?query=Hardy%20LAUREL"
    second = (await client.post("/api/subscriptions", json=asked(other))).json()

    assert first["feed"] == second["feed"]
    assert (first["topic"], second["topic"]) == (TOPIC, other)


@pytest.mark.parametrize(
    ("topic", "format", "sent"),
    [
        (TOPIC, "as-is", "atom"),
        (TOPIC, "json", "json"),
        (f"{TOPIC}&format=json", "as-is", "json"),
        (f"{TOPIC}&format=json", "atom", "atom"),
    ],
)
async def test_a_query_has_no_document_of_its_own_and_comes_as_atom_or_json(
    client: httpx2.AsyncClient, topic: str, format: str, sent: str
) -> None:
    made = await client.post("/api/subscriptions", json=asked(topic, format=format))

    assert made.json()["format"] == sent


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("-hardy", "expected a word that must match, in every alternative,"),
        ("paris+(texas", "expected a closing parenthesis at character 13"),
        ("site:a.example+site:b.example", "no second site: at character 16"),
        ("popularity:many", "and a number after popularity: at character 1"),
    ],
)
async def test_a_query_that_cannot_be_read_is_refused_with_place_and_expectation(
    client: httpx2.AsyncClient, query: str, reason: str
) -> None:
    topic = f"http://hub.example/track?query={query}"
    answer = await client.post("/api/subscriptions", json=asked(topic))

    assert answer.status_code == 422
    assert reason in answer.json()["detail"]


async def test_a_query_is_no_feed_to_add_fetch_pause_or_ping(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    added = await client.post("/api/feeds", json={"url": TOPIC})
    assert (added.status_code, added.json()["field"]) == (422, "url")

    feed = (await client.post("/api/subscriptions", json=asked())).json()["feed"]
    for what in ("fetch", "pause", "resume"):
        answer = await client.post(f"/api/feeds/{feed}/{what}")
        assert answer.status_code == 409
        assert "is a track query" in answer.json()["detail"]

    [pinged] = await hub.services.websub.publish(PublishRequest(topics=(TOPIC,)))
    assert pinged.outcome is PingOutcome.NOT_LISTED
    assert hub.poller.asked == []


async def test_a_query_can_be_removed_with_its_subscriptions(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = (await client.post("/api/subscriptions", json=asked())).json()

    await client.delete(f"/api/feeds/{made['feed']}")

    shown = (await client.get(f"/api/subscriptions/{made['id']}")).json()
    assert shown["state"] == "ending"
    assert await hub.tracks.find(TOPIC) is None
    again = (await client.post("/api/subscriptions", json=asked())).json()
    assert again["feed_status"]["state"] == "track"


async def test_where_a_topic_becomes_a_feed_queries_are_known(hub: Hub) -> None:
    tracks = hub.tracks

    assert await tracks.find(TOPIC) is None
    made = await tracks.ensure(TOPIC)
    assert made is not None
    assert made.state is FeedState.TRACK
    assert await tracks.find(TOPIC) == made
    other = "http://track.superfeedr.com/?query=HARDY+laurel"
    assert await hub.services.feeds.find(other) == made
    assert await hub.services.feeds.find(f"{TOPIC}+(") is None
    assert await tracks.find("https://example.org/feed.xml") is None
    assert await tracks.ensure("https://example.org/feed.xml") is None


@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
async def test_the_open_hub_refuses_queries_since_nobody_shows_a_token(
    anybody: httpx2.AsyncClient, mode: str
) -> None:
    form = {"hub.mode": mode, "hub.topic": TOPIC, "hub.callback": HOOK}
    answer = await anybody.post("/hub", data=form)

    assert answer.status_code == 400
    assert "hub.topic" in answer.text
    assert "tracking requires a token" in answer.text


async def test_a_query_that_is_removed_by_hand_is_tracked_no_more(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    tracker = Tracker(hub.storage.tracking, hub.metrics)
    with hub.storage.control.watch(tracker.note):
        made = (await client.post("/api/subscriptions", json=asked())).json()
        assert len(tracker) == 1

        removed = await client.delete(f"/api/feeds/{made['feed']}")
        assert removed.json() == {"subscriptions_ended": 1}
        assert len(tracker) == 0

        await client.post("/api/subscriptions", json=asked())
        assert len(tracker) == 1
