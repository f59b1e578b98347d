"""A publisher's topics and a subscriber's callbacks, as the public WebSub suites have.

Both remember every request. A topic names the hub unless it is told not to; a callback
confirms whatever it is asked unless it is told to answer something else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from tests.support.documents import atom
from tests.support.http_server import ServerAnswer, ServerRequest, WebServer
from tests.support.hub_process import LOOPBACK, HubAnswer, HubApi, HubProcess
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
class Topic:
    url: str
    body: bytes
    content_type: str = "application/atom+xml"
    links: list[str] = field(default_factory=list)  # each in a line of its own
    status: int = 200
    instead: ServerAnswer | None = None
    requests: list[ServerRequest] = field(default_factory=list)

    def answer(self, request: ServerRequest) -> ServerAnswer:
        self.requests.append(request)
        if self.instead is not None:
            return self.instead
        headers = {"Content-Type": self.content_type}
        return ServerAnswer(
            status=self.status,
            headers=headers,
            more_headers=[("Link", each) for each in self.links],
            body=self.body,
        )


def confirm(request: ServerRequest) -> ServerAnswer:
    """What a subscriber answers that wants what it is asked about."""
    values = parse_qs(urlsplit(request.target).query).get("hub.challenge", [""])
    return ServerAnswer(body=values[-1].encode())


@dataclass(slots=True)
class Callback:
    url: str
    on_question: Callable[[ServerRequest], ServerAnswer | None] = confirm
    delivery_statuses: list[int] = field(default_factory=list)  # then 200
    on_delivery: ServerAnswer | None = None  # instead
    questions: list[ServerRequest] = field(default_factory=list)
    deliveries: list[ServerRequest] = field(default_factory=list)

    def answer(self, request: ServerRequest) -> ServerAnswer | None:
        if request.method == "GET":
            self.questions.append(request)
            return self.on_question(request)
        self.deliveries.append(request)
        if self.on_delivery is not None:
            return self.on_delivery
        statuses = self.delivery_statuses
        return ServerAnswer(status=statuses.pop(0) if statuses else 200)

    @property
    def modes(self) -> list[str]:
        return [each.query["hub.mode"] for each in self.questions]

    def parameters(self, question: int = -1) -> list[tuple[str, str]]:
        """All parameters of a question, in order."""
        return parse_qsl(urlsplit(self.questions[question].target).query)


@dataclass(slots=True)
class WebSubScene:
    hub: HubProcess
    api: HubApi
    server_url: str = ""
    topics: dict[str, Topic] = field(default_factory=dict)
    callbacks: dict[str, Callback] = field(default_factory=dict)

    @property
    def hub_url(self) -> str:
        return f"{self.hub.url}/hub"

    def topic(self, body: bytes | None = None, *, names_hub: bool = True) -> Topic:
        """A new topic; Atom with one entry if no body is given.

        Its links are two lines, ``self`` before ``hub``, as PuSH-suite has them.
        """
        path = f"/topics/{len(self.topics) + 1}"
        url = f"{self.server_url}{path}"
        topic = Topic(url, topic_document(1) if body is None else body)
        topic.links.append(f'<{url}>; rel="self"')
        if names_hub:
            topic.links.append(f'<{self.hub_url}>; rel="hub"')
        self.topics[path] = topic
        return topic

    def callback(self, query: str = "") -> Callback:
        path = f"/callbacks/{len(self.callbacks) + 1}"
        callback = Callback(f"{self.server_url}{path}{query}")
        self.callbacks[path] = callback
        return callback

    def validator(self, topic: Topic, status: int, text: bytes = b"") -> Callback:
        """Where the topic's publisher answers whether somebody may subscribe."""
        publisher = self.callback()
        publisher.on_delivery = ServerAnswer(status=status, body=text)
        topic.links.append(f'<{publisher.url}>; rel="validate"')
        return publisher

    async def answer(self, request: ServerRequest) -> ServerAnswer | None:
        side = self.topics.get(request.path) or self.callbacks.get(request.path)
        return ServerAnswer(status=404) if side is None else side.answer(request)

    async def post(
        self, parameters: Parameters | bytes, *, query: str = "", **headers: str
    ) -> HubAnswer:
        """A request to the hub; header names with underscores for hyphens."""
        if isinstance(parameters, bytes):
            body = parameters
        else:
            body = urlencode(parameters).encode()
        sent = {"Content-Type": FORM} if body else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.api.ask("POST", f"/hub{query}", data=body, headers=sent)

    async def ask(
        self, mode: str, topic: Topic, callback: Callback, **more: str
    ) -> HubAnswer:
        """(Un)subscribe; ``hub.`` is put before the names of further parameters."""
        return await self.post(
            {
                "hub.mode": mode,
                "hub.topic": topic.url,
                "hub.callback": callback.url,
                **{f"hub.{name}": value for name, value in more.items()},
            }
        )

    async def subscribe(
        self, topic: Topic, callback: Callback, **more: str
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

    async def publish(self, topic: Topic, body: bytes | None = None) -> HubAnswer:
        """New content, and the ping that says so."""
        topic.body = topic_document(2, 1) if body is None else body
        return await self.post({"hub.mode": "publish", "hub.topic": topic.url})


@asynccontextmanager
async def websub_scene(directory: Path, **settings: str) -> AsyncIterator[WebSubScene]:
    hub = HubProcess(directory=directory, settings={**LOOPBACK, **settings})
    async with hub, HubApi(hub.url, seconds=300.0) as api:
        scene = WebSubScene(hub, api)
        async with WebServer(scene.answer) as server:
            scene.server_url = server.url
            yield scene
