"""Content on its way through a whole hub: as it comes, or clean if it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually

pytestmark = pytest.mark.once("what is stored was cleaned before")

RSS = "application/rss+xml"
MARKUP = '<p onclick="x()">Hi<script>alert(1)</script></p>'


def document(*numbers: int) -> bytes:
    items = "".join(
        f"<item><guid>{n}</guid><description><![CDATA[{MARKUP}]]></description></item>"
        for n in numbers
    )
    return f"<rss><channel><title>t</title>{items}</channel></rss>".encode()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, MARKUP), ({"FANFARE_SANITIZE": "on"}, "<p>Hi</p>")],
    ids=["default", "on"],
)
async def test_content_is_delivered_as_it_came_or_clean(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        HubProcess(directory=tmp_path, settings=LOOPBACK | settings) as hub,
        HubApi(hub.url) as api,
    ):
        feed, subscriber = publisher.put("/feed", document(1), RSS), subscribers.add()
        feed_id = await api.add_feed(feed.url)
        await api.subscribe(callback=subscriber.url, topic=feed.url)
        publisher.put("/feed", document(1, 2), RSS)
        await api.fetch(feed_id)
        await eventually(lambda: bool(subscriber.receipts))

    (item,) = json.loads(subscriber.bodies[0])["items"]
    assert (item["id"], item["summary"]) == ("2", expected)
