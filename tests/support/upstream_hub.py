"""A publisher with a hub or a cloud of its own, which behave or misbehave as told."""

from __future__ import annotations

import asyncio
import hmac
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from tests.support.http_server import ServerAnswer, ServerRequest, redirect
from tests.support.hub_process import LOOPBACK, HubAnswer, HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.waiting import eventually

TEN_DAYS = 864_000
SETTINGS = {**LOOPBACK, "FANFARE_UPSTREAM": "on"}


@dataclass(slots=True)
class UpstreamHub:
    """A hub. ``requests``: forms sent to it; ``answers``: answers to its questions."""

    status: int = 202
    verifies: bool = True
    lease: str = str(TEN_DAYS)
    requests: list[dict[str, str]] = field(default_factory=list)
    answers: list[HubAnswer] = field(default_factory=list)

    def of_mode(self, mode: str) -> list[dict[str, str]]:
        return [each for each in self.requests if each["hub.mode"] == mode]

    @property
    def callback(self) -> str:
        return self.of_mode("subscribe")[-1]["hub.callback"]

    @property
    def secret(self) -> str:
        return self.of_mode("subscribe")[-1]["hub.secret"]


@dataclass(slots=True)
class Cloud:
    is_success: bool = True
    requests: list[dict[str, str]] = field(default_factory=list)
    answers: list[HubAnswer] = field(default_factory=list)

    @property
    def callback(self) -> str:
        asked = self.requests[-1]
        return f"http://{asked['domain']}:{asked['port']}{asked['path']}"


@dataclass(slots=True)
class UpstreamScene:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    upstream: UpstreamHub = field(default_factory=UpstreamHub)
    cloud: Cloud = field(default_factory=Cloud)
    links: str = ""  # in the feed's head
    entries: list[str] = field(default_factory=lambda: ["one"])
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name_hub()
        self.publisher.serve("/feed", self._feed)
        self.publisher.serve("/cloud-feed", self._channel)
        self.publisher.serve("/hub", self._asked)
        self.publisher.serve("/cloud", self._registered)
        self.publisher.serve("/moved", redirect(f"{self.server_url}/hub", 307))

    @property
    def server_url(self) -> str:
        return self.publisher.url("")

    @property
    def topic(self) -> str:
        return self.publisher.url("/feed")

    @property
    def polls(self) -> list[ServerRequest]:
        """All requests for the feed."""
        return [each for each in self.publisher.requests if each.path.endswith("feed")]

    def document(self, *entries: str, id: str = "x:the-feed", head: str = "") -> bytes:
        items = "".join(
            f"<entry><id>x:{each}</id><title>{each}</title>"
            "<updated>2026-11-01T00:00:00Z</updated></entry>"
            for each in entries
        )
        return (
            f'<feed xmlns="http://www.w3.org/2005/Atom"><id>{id}</id>'
            f"<title>A feed</title>{head or self.links}{items}</feed>"
        ).encode()

    def _channel(self, request: ServerRequest) -> ServerAnswer:
        """The same feed as RSS, with a cloud."""
        host, _, port = self.server_url.removeprefix("http://").partition(":")
        items = "".join(
            f"<item><guid>x:{each}</guid><title>{each}</title></item>"
            for each in self.entries
        )
        body = (
            f'<rss version="2.0"><channel><title>A feed</title><cloud domain="{host}"'
            f' port="{port}" path="/cloud" registerProcedure="" protocol="http-post"/>'
            f"{items}</channel></rss>"
        )
        headers = {"Content-Type": "application/rss+xml"}
        return ServerAnswer(headers=headers, body=body.encode())

    def name_hub(self, path: str = "/hub") -> None:
        self.links = (
            f'<link rel="hub" href="{self.server_url}{path}"/>'
            f'<link rel="self" href="{self.topic}"/>'
        )

    def _feed(self, request: ServerRequest) -> ServerAnswer:
        headers = {"Content-Type": "application/atom+xml"}
        return ServerAnswer(headers=headers, body=self.document(*self.entries))

    def _asked(self, request: ServerRequest) -> ServerAnswer:
        form = _form_of(request)
        self.upstream.requests.append(form)
        if self.upstream.verifies and self.upstream.status < 300:
            self.tasks.append(asyncio.create_task(self._verify(form)))
        return ServerAnswer(status=self.upstream.status)

    async def _verify(self, form: dict[str, str]) -> None:
        asked = {
            "hub.mode": form["hub.mode"],
            "hub.topic": form["hub.topic"],
            "hub.challenge": "a-challenge",
        }
        if form["hub.mode"] == "subscribe":
            asked["hub.lease_seconds"] = self.upstream.lease
        answered = await self.ask(form["hub.callback"], **asked)
        self.upstream.answers.append(answered)

    async def _registered(self, request: ServerRequest) -> ServerAnswer:
        form = _form_of(request)
        self.cloud.requests.append(form)
        asked = {"url": form["url1"], "challenge": "a-challenge"}
        self.cloud.answers.append(await self.ask(self.cloud.callback, **asked))
        success = "true" if self.cloud.is_success else "false"
        body = f'<notifyResult success="{success}" msg="…"/>'.encode()
        return ServerAnswer(body=body)

    async def ask(self, callback: str, **parameters: str) -> HubAnswer:
        """Ask a callback a question, as a hub does."""
        return await self.api.ask("GET", f"{callback}?{urlencode(parameters)}")

    async def push(
        self,
        body: bytes,
        *,
        callback: str = "",
        signature: str | None = None,
        algorithm: str = "sha256",
    ) -> HubAnswer:
        """Push a body, signed with the secret that the hub was given by default."""
        headers = {"Content-Type": "application/atom+xml"}
        if signature is None:
            secret = self.upstream.secret.encode()
            digest = hmac.new(secret, body, algorithm).hexdigest()
            signature = f"{algorithm}={digest}"
        if signature:
            headers["X-Hub-Signature"] = signature
        return await self.api.ask(
            "POST",
            callback or self.upstream.callback,
            data=io.BytesIO(body),
            headers=headers,
        )

    async def add_feed(self, path: str = "/feed") -> int:
        return await self.api.add_feed(self.server_url + path)

    async def push_of(self, feed_id: int) -> dict[str, object]:
        """What the API says of how a feed is pushed."""
        push = (await self.api.feed(feed_id))["push"]
        assert isinstance(push, dict)
        return push

    async def until(
        self, feed_id: int, is_so: Callable[[dict[str, object]], bool]
    ) -> dict[str, object]:
        async def look() -> bool:
            return is_so(await self.push_of(feed_id))

        await eventually(look, seconds=60)
        return await self.push_of(feed_id)

    async def subscribed(self) -> int:
        """Add a feed, and wait until its hub has confirmed; return its id."""
        feed_id = await self.add_feed()
        await self.until(feed_id, lambda push: push["state"] == "subscribed")
        return feed_id

    async def titles(self, feed_id: int) -> list[str]:
        """The titles of the entries that this hub has of the feed, sorted."""
        found = await self.api.ask("GET", f"/topics/{feed_id}.normalized.json")
        items = found.json["items"]
        return sorted(item["title"] for item in items)

    async def until_titles(self, feed_id: int, *titles: str) -> None:
        async def look() -> bool:
            return await self.titles(feed_id) == sorted(titles)

        await eventually(look, seconds=60)


def _form_of(request: ServerRequest) -> dict[str, str]:
    return dict(parse_qsl(request.body.decode(), keep_blank_values=True))


@asynccontextmanager
async def upstream_scene(hub: HubProcess) -> AsyncIterator[UpstreamScene]:
    """A publisher for a hub that may have had others before."""
    async with HubApi(hub.url, seconds=300.0) as api, Publisher() as publisher:
        scene = UpstreamScene(hub, api, publisher)
        yield scene
        await asyncio.gather(*scene.tasks, return_exceptions=True)


def upstream_process(directory: Path, **settings: str) -> HubProcess:
    return HubProcess(directory=directory, settings={**SETTINGS, **settings})
