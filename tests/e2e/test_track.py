"""Track queries on real sockets: found in what may be read, told as any topic is."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest
from websockets.asyncio.client import connect

from tests.support.admin import ADMIN
from tests.support.live_hub import next_message
from tests.support.publisher import entry_id
from tests.support.stage import Stage, open_stage
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

TOPIC = "http://track.superfeedr.com/?query=laurel+-hardy"


async def tracking(stage: Stage, *, format: str = "json") -> Subscriber:
    """A webhook for the query, with its own spelling of it."""
    subscriber = stage.subscribers.add(
        "tracker", feed=1, topic=TOPIC, secret="s3cret", format=format
    )
    await stage.api.subscribe(
        callback=subscriber.url,
        topic=TOPIC,
        secret=subscriber.secret,
        format=format,
    )
    return subscriber


async def publish(stage: Stage, feed_id: int, title: str) -> int:
    [feed] = stage.publisher.feeds.values()
    feed.titles[feed.count + 1] = title
    return await stage.publish(feed_id, feed)


async def test_what_matches_reaches_the_webhook_and_the_websocket_and_nothing_else(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await tracking(stage)
        other = f"https://track.superfeedr.com/?{urlencode({'query': '-HARDY Laurel'})}"
        stream = f"{stage.hub.url}/stream?{urlencode({'topic': other})}"
        async with connect(
            stream.replace("http:", "ws:"), additional_headers=ADMIN
        ) as listener:
            assert (await next_message(listener))["type"] == "subscribed"
            await publish(stage, feed_id, "Laurel and Hardy")
            await publish(stage, feed_id, "Chaplin")
            number = await publish(stage, feed_id, "Stan Laurel")
            heard = await next_message(listener)
        await eventually(lambda: bool(subscriber.receipts))
        await stage.hub.terminate()

        [receipt] = subscriber.receipts
        document = json.loads(receipt.request.body)
        [item] = document["items"]
        assert receipt.signature_valid
        assert item["id"] == entry_id(1, number)
        assert document["status"]["http"] == "Track feed"
        assert document["status"]["feed"] == TOPIC
        assert item["source"]["title"] == "Feed 1"
        assert item["source"]["status"]["feed"] == stage.publisher.url(feed)
        assert heard["topic"] == other
        assert [each["id"] for each in heard["body"]["items"]] == [item["id"]]


async def test_what_matched_while_the_hub_was_down_between_is_told_after(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, _ = await stage.add_feed()
        subscriber = await tracking(stage, format="atom")
        await stage.hub.kill()
        await stage.hub.start()
        await stage.hub.wait_ready()

        number = await publish(stage, feed_id, "Laurel again")

        await eventually(lambda: bool(subscriber.receipts))
        assert subscriber.numbers == [number]


async def test_private_feeds_are_tracked_for_accounts_that_subscribe_to_them(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage, aiohttp.ClientSession() as web:
        private = stage.publisher.add_feed()
        reader = await stage.subscribe("reader", private)  # adds it as a private feed
        operators = await tracking(stage)
        subscription = await stage.api.request("GET", "/api/subscriptions?limit=1")
        feed_id = subscription["subscriptions"][0]["feed"]
        rights = ["subscribe", "retrieve"]
        logins, found = {}, {}
        for account in ("member", "outsider"):
            made = await stage.api.request(
                "POST", "/api/tokens", account=account, rights=rights
            )
            login = {"Authorization": f"Bearer {made['token']}"}
            logins[account] = login
            topics = [TOPIC, stage.publisher.url(private)]
            for topic in topics if account == "member" else topics[:1]:
                form = {
                    "hub.mode": "subscribe",
                    "hub.topic": topic,
                    "hub.callback": "https://push.superfeedr.com/dev/null",
                }
                async with web.post(stage.hub.url, data=form, headers=login) as answer:
                    assert answer.status == 204

        await publish(stage, feed_id, "Laurel in private")

        await eventually(lambda: bool(reader.receipts) and bool(operators.receipts))
        for account, login in logins.items():
            query = {"hub.mode": "retrieve", "hub.topic": TOPIC, "format": "json"}
            async with web.get(stage.hub.url, params=query, headers=login) as answer:
                document = await answer.json()
                found[account] = [each["title"] for each in document["items"]]
        assert found == {"member": ["Laurel in private"], "outsider": []}


@pytest.mark.parametrize("path", ["/hub", "/stream"])
async def test_tracking_needs_a_token(tmp_path: Path, path: str) -> None:
    async with open_stage(tmp_path) as stage, aiohttp.ClientSession() as anybody:
        form = {
            "hub.mode": "subscribe",
            "hub.topic": TOPIC,
            "hub.callback": "https://you.example/hook",
        }
        asked = (
            anybody.post(f"{stage.hub.url}/hub", data=form)
            if path == "/hub"
            else anybody.get(
                f"{stage.hub.url}/stream",
                params={"topic": TOPIC},
                headers={"Accept": "text/event-stream"},
            )
        )
        async with asked as answer:
            assert 400 <= answer.status < 500
            assert "tracking requires a token" in await answer.text()
