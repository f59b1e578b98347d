"""The playground on real sockets: with its own hub, and with programs of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.waiting import eventually
from tests.support.websub import FORM, websub_scene

STEPS = ["discover", "subscribe", "fetch", "verify", "publish", "fetch", "notify"]


@dataclass
class Receiver:
    """A subscriber by the standard library alone; ``answer`` makes a body of the
    challenge."""

    url: str = ""
    status: int = 200
    answer: Callable[[bytes], bytes] = lambda challenge: challenge
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            body = receiver.answer(query["hub.challenge"][0].encode())
            self._respond(200, body)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            receiver.bodies.append(self.rfile.read(length))
            self._respond(receiver.status, b"")

        def _respond(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?own=query"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Run:
    api: HubApi
    facts: dict[str, Any]

    @classmethod
    async def start(cls, api: HubApi, topic: str = "") -> Run:
        return cls(api, await api.request("POST", "/api/playground", topic=topic))

    async def step(self, step: str) -> list[dict[str, Any]]:
        path = f"/api/playground/{self.facts['id']}/steps"
        report: dict[str, Any] = await self.api.request("POST", path, step=step)
        return list(report["exchanges"])

    async def all(self) -> list[dict[str, Any]]:
        report = await self.api.request("GET", f"/api/playground/{self.facts['id']}")
        return list(report["exchanges"])

    async def make_all(self) -> list[dict[str, Any]]:
        """Each step, however long the hub takes over what follows it."""
        await self.step("discover")
        await self.step("subscribe")
        await self.until("verify")
        await self.step("publish")
        return await self.all()

    async def until(self, step: str, count: int = 1) -> dict[str, Any]:
        """The last message of a step, once there are so many."""

        async def are_there() -> bool:
            return len([it for it in await self.all() if it["step"] == step]) >= count

        await eventually(are_there)
        return [each for each in await self.all() if each["step"] == step][-1]


def said(exchange: dict[str, Any]) -> str:
    return "; ".join(each["text"] for each in exchange["remarks"])


def wrong(exchanges: list[dict[str, Any]]) -> list[str]:
    bad = [
        each["text"]
        for it in exchanges
        for each in it["remarks"]
        if each["level"] == "bad"
    ]
    return bad + [each["error"] for each in exchanges if each["error"]]


@pytest.mark.parametrize("allowed", [{}, LOOPBACK], ids=["guarded", "allowed"])
@pytest.mark.parametrize("robots", ["off", "on"])
async def test_all_steps_are_made_with_the_hub_itself(
    tmp_path: Path, allowed: dict[str, str], robots: str
) -> None:
    """Whether or not the guard lets it reach its own address."""
    hub = HubProcess(tmp_path, {**allowed, "FANFARE_ROBOTS": robots})
    async with hub, HubApi(hub.url) as api:
        run = await Run.start(api)
        await run.make_all()
        await run.until("notify")
        found = await run.all()
    assert bool(run.facts["self_unreachable"]) is not bool(allowed)
    assert [each["step"] for each in found] == STEPS
    assert wrong(found) == []
    assert "the signature is right" in said(found[-1])
    assert "Entry 2" in found[-1]["request"]["body"]


async def test_a_run_and_its_feed_outlive_the_process(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, {})
    async with hub:
        async with HubApi(hub.url) as api:
            run = await Run.start(api)
            await run.make_all()
        await hub.terminate()
        await hub.start()
        await hub.wait_ready()
        async with HubApi(hub.url) as api:
            steps = {each["step"] for each in await Run(api, run.facts).all()}
            assert {"discover", "subscribe", "verify", "publish"} <= steps
            where = urlsplit(run.facts["own_topic"]).path
            assert (await api.ask("GET", where)).status == 200
            assert len((await api.request("GET", "/api/feeds"))["feeds"]) == 1


async def test_a_developer_of_a_subscriber_sees_what_is_wrong_with_it(
    tmp_path: Path,
) -> None:
    hub = HubProcess(tmp_path, LOOPBACK)
    with receiving() as receiver:
        async with hub, HubApi(hub.url) as api:
            run = await Run.start(api)
            form = {
                "hub.mode": "subscribe",
                "hub.topic": run.facts["own_topic"],
                "hub.callback": receiver.url,
                "hub.secret": "a secret of mine",
            }

            async def subscribe() -> None:
                answer = await api.ask(
                    "POST",
                    "/hub",
                    data=urlencode(form),
                    headers={"Content-Type": FORM},
                )
                assert answer.status == 202

            receiver.answer = lambda challenge: b"<script>alert(1)</script>"
            await subscribe()
            refused = await run.until("verify")
            assert "the body is not the challenge" in said(refused)
            assert refused["response"]["body"] == "<script>alert(1)</script>"
            assert refused["url"].startswith(f"{receiver.url}&hub.mode=subscribe")

            receiver.answer = lambda challenge: challenge
            await subscribe()
            confirmed = await run.until("verify", 2)
            assert "the callback confirms" in said(confirmed)
            assert "text/html: it MUST be a safe one" in said(confirmed)

            receiver.status = 500
            await run.step("publish")
            failed = await run.until("notify")
            assert "the signature is right" in said(failed)
            assert "answers 500: the hub sends it again" in said(failed)
            assert receiver.bodies[0].decode() == failed["request"]["body"]
            assert "a secret of mine" not in str(await run.all())


async def test_a_developer_of_a_publisher_gets_what_its_hub_sends(
    tmp_path: Path,
) -> None:
    """The publisher names another hub, which knows nothing of the playground."""
    (tmp_path / "own").mkdir()
    own = HubProcess(tmp_path / "own", LOOPBACK)
    async with websub_scene(tmp_path) as scene, own, HubApi(own.url) as api:
        topic = scene.topic()
        run = await Run.start(api, topic.url)
        found = await run.make_all()
        assert wrong(found) == []
        assert [each["step"] for each in found][:2] == ["discover", "subscribe"]
        assert found[1]["url"] == scene.hub_url
        await scene.publish(topic)
        notified = await run.until("notify")
        assert wrong([notified]) == []
        assert "the signature is right" in said(notified)
        [ended, *_] = await run.step("unsubscribe")
        assert wrong([ended, await run.until("verify", 2)]) == []
