"""A feed that answers nothing but 404, as its operator and subscribers see it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import fanfare, knowing
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually


def told_to(subscriber: Subscriber) -> list[str]:
    """Of each notification the titles of its entries, or else its status."""
    documents = [json.loads(body) for body in subscriber.bodies]
    return [
        " ".join(item["title"] for item in each.get("items", []))
        or str(each["status"]["code"])
        for each in documents
    ]


async def kill_with_404(api: HubApi, feed_id: int) -> None:
    async def is_dead() -> bool:
        await api.fetch(feed_id)
        return bool((await api.feed(feed_id))["state"] == "dead")

    await eventually(is_dead, 60)


async def bring_back(hub: HubProcess, feed: PublishedFeed, feed_id: int) -> str:
    feed.instead = None
    resumed = await fanfare("feeds", "resume", str(feed_id), variables=knowing(hub))
    assert resumed.code == 0
    fetched = await fanfare("feeds", "fetch", str(feed_id), variables=knowing(hub))
    assert fetched.code == 0, fetched.err
    return fetched.out


async def test_a_feed_that_is_dead_stays_so_over_a_restart_until_it_is_brought_back(
    tmp_path: Path,
) -> None:
    settings = {**LOOPBACK, "FANFARE_DEAD_AFTER": "1"}
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        HubProcess(directory=tmp_path, settings=settings) as hub,
    ):
        feed, subscriber = publisher.add_feed(), subscribers.add()
        url = publisher.url(feed)
        async with HubApi(hub.url) as api:
            feed_id = await api.add_feed(url)
            await api.subscribe(callback=subscriber.url, topic=url)
            feed.instead = ServerAnswer(status=404)
            await kill_with_404(api, feed_id)

        await hub.terminate()
        await hub.start()
        await hub.wait_ready()

        shown = await fanfare("feeds", "show", url, variables=knowing(hub))
        assert "state               gone since" in shown.out
        assert "it answered nothing but 404" in shown.out
        listed = await fanfare(
            "feeds", "list", "--state", "dead", variables=knowing(hub)
        )
        assert url in listed.out

        publisher.publish(feed)
        assert "2 entries" in await bring_back(hub, feed, feed_id)
        await eventually(lambda: "Entry 2" in told_to(subscriber), 30)
        assert told_to(subscriber) == ["404", "200", "Entry 2"]
