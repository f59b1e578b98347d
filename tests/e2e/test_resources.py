"""Parts and wholes of what is no feed, on real sockets."""

from __future__ import annotations

from pathlib import Path

from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually


async def test_each_subscriber_gets_the_part_it_asked_for_in_its_form(
    tmp_path: Path,
) -> None:
    async with (
        Publisher() as site,
        Subscribers() as subscribers,
        HubProcess(directory=tmp_path) as hub,
        HubApi(hub.url) as api,
    ):
        price, name, whole = (subscribers.add() for _ in range(3))
        site.put("/x.json", {"price": 1, "name": "A"})
        feeds = []
        for fragment, callback, format in (
            ("#%24.price", price.url, "json"),
            ("#$.name", name.url, "as-is"),
            ("", whole.url, "as-is"),
        ):
            topic = site.url("/x.json") + fragment
            feeds.append(await api.add_feed(topic))
            await api.subscribe(callback=callback, topic=topic, format=format)
            await api.fetch(feeds[-1])

        for changes, document in enumerate(
            (
                {"name": "A", "price": 1},
                {"name": "A", "price": 2},
                {"name": "B", "price": 2},
                {"name": "B", "price": 1},
            )
        ):
            site.put("/x.json", document)
            for feed_id in feeds:
                await api.fetch(feed_id)
            # Only the latest is kept for who takes it as it is.
            await eventually(lambda sent=changes: len(whole.bodies) == sent)

        await eventually(lambda: len(price.items) == len(name.bodies) + 1 == 2)
        assert price.items == [("new", "2"), ("new", "1")]
        assert name.bodies == [b'"B"']
        assert whole.bodies[-1] == b'{"name": "B", "price": 1}'
        assert len(set(feeds)) == 3


async def test_a_part_of_a_page_is_an_entry(tmp_path: Path) -> None:
    async with (
        Publisher() as site,
        Subscribers() as subscribers,
        HubProcess(directory=tmp_path) as hub,
        HubApi(hub.url) as api,
    ):
        told = subscribers.add()
        page = "<!doctype html><title>Page</title><p class=n>{}</p><p>{}</p>"
        site.put("/page", page.format(1, 1), "text/html")
        topic = site.url("/page") + "#.n"
        feed_id = await api.add_feed(topic)
        await api.subscribe(callback=told.url, topic=topic, format="json")

        for part, rest in ((1, 2), (2, 2)):
            site.put("/page", page.format(part, rest), "text/html")
            await api.fetch(feed_id)

        await eventually(lambda: bool(told.items))
        await hub.terminate()
        assert told.items == [("new", "Page")]
        assert b'<p class=\\"n\\">2</p>' in told.bodies[0]
