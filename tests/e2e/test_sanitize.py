"""Content on its way through a whole hub: as it comes, or clean if it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.http_server import ServerAnswer, ServerRequest, WebServer
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.waiting import eventually

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
    served = [document(1)]
    received: list[bytes] = []

    async def answer(request: ServerRequest) -> ServerAnswer:
        if request.method == "GET":
            return ServerAnswer(body=served[-1])
        received.append(request.body)
        return ServerAnswer()

    async with (
        WebServer(answer) as server,
        HubProcess(directory=tmp_path, settings=LOOPBACK | settings) as hub,
        HubApi(hub.url) as api,
    ):
        topic = f"{server.url}/feed"
        feed_id = await api.add_feed(topic)
        await api.subscribe(callback=f"{server.url}/hook", topic=topic)
        served.append(document(1, 2))
        await api.fetch(feed_id)
        await eventually(lambda: bool(received))

    (item,) = json.loads(received[0])["items"]
    assert (item["id"], item["summary"]) == ("2", expected)
