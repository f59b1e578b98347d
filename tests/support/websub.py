"""A hub between topics and subscribers, as the public WebSub suites have them.

A topic names the hub unless told otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from tests.support.documents import atom
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import LOOPBACK, HubAnswer, HubApi, HubProcess
from tests.support.publisher import Document, Publisher
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

FORM = "application/x-www-form-urlencoded"
Parameters = Mapping[str, str] | Sequence[tuple[str, str]]


def topic_document(*numbers: int, links: str = "") -> bytes:
    """An Atom document with entries of these numbers."""
    head = (
        "<id>tag:publisher.example,2026:all</id><title>A topic</title>"
        f"<updated>2026-03-01T00:00:00Z</updated>{links}"
    )
    entries = (
        f"<entry><id>tag:publisher.example,2026:{number}</id><title>Entry {number}"
        f"</title><updated>2026-03-{number:02}T00:00:00Z</updated></entry>"
        for number in numbers
    )
    return atom(*entries, head=head)


@dataclass(slots=True)
class WebSubScene:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    subscribers: Subscribers

    @property
    def hub_url(self) -> str:
        return f"{self.hub.url}/hub"

    def topic(self, body: bytes | None = None, *, names_hub: bool = True) -> Document:
        """Add a topic; without a body it is Atom with one entry.

        Its links are two lines, ``self`` before ``hub``, as PuSH-suite has them.
        """
        path = f"/topics/{len(self.publisher.documents) + 1}"
        content = topic_document(1) if body is None else body
        topic = self.publisher.put(path, content, "application/atom+xml")
        topic.links.append(f'<{topic.url}>; rel="self"')
        if names_hub:
            topic.links.append(f'<{self.hub_url}>; rel="hub"')
        return topic

    def callback(self, query: str = "") -> Subscriber:
        subscriber = self.subscribers.add()
        subscriber.url += query
        return subscriber

    def validator(self, topic: Document, status: int, text: bytes = b"") -> Subscriber:
        """Add the callback at which the topic's publisher says who may subscribe."""
        publisher = self.callback()
        publisher.answer(ServerAnswer(status=status, body=text))
        topic.links.append(f'<{publisher.url}>; rel="validate"')
        return publisher

    async def post(
        self, parameters: Parameters | bytes, *, query: str = "", **headers: str
    ) -> HubAnswer:
        """Send a request to the hub; names of headers have _ in the place of -."""
        if isinstance(parameters, bytes):
            body = parameters
        else:
            body = urlencode(parameters).encode()
        sent = {"Content-Type": FORM} if body else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.api.ask("POST", f"/hub{query}", data=body, headers=sent)

    async def ask(
        self, mode: str, topic: Document, callback: Subscriber, **more: str
    ) -> HubAnswer:
        """Subscribe or unsubscribe. ``more``: parameters without their ``hub.``."""
        return await self.post(
            {
                "hub.mode": mode,
                "hub.topic": topic.url,
                "hub.callback": callback.url,
                **{f"hub.{name}": value for name, value in more.items()},
            }
        )

    async def subscribe(
        self, topic: Document, callback: Subscriber, **more: str
    ) -> HubAnswer:
        """Subscribe, and wait until the diagnostics say that it is verified."""
        answer = await self.ask("subscribe", topic, callback, **more)
        assert answer.status == 202
        await self.until(answer, "verified")
        return answer

    async def diagnose(self, answer: HubAnswer) -> dict[str, object]:
        url = answer.headers["Link"].partition("<")[2].partition(">")[0]
        document: dict[str, object] = (await self.api.ask("GET", url)).json
        return document

    async def until(self, answer: HubAnswer, state: str) -> None:
        async def is_so() -> bool:
            return (await self.diagnose(answer))["state"] == state

        # Longer than the pause before a callback that did not answer is asked again.
        await eventually(is_so, seconds=60)

    async def publish(self, topic: Document, body: bytes | None = None) -> HubAnswer:
        """Publish new content, and ping the hub."""
        topic.body = topic_document(2, 1) if body is None else body
        return await self.post({"hub.mode": "publish", "hub.topic": topic.url})


@asynccontextmanager
async def websub_scene(directory: Path, **settings: str) -> AsyncIterator[WebSubScene]:
    hub = HubProcess(directory=directory, settings={**LOOPBACK, **settings})
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        hub,
        HubApi(hub.url, seconds=300.0) as api,
    ):
        yield WebSubScene(hub, api, publisher, subscribers)
