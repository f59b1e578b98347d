"""No secret that the hub is trusted with comes out where others read.

Each is planted once and goes through all that succeeds and all that fails; then every
log line at the most talkative level, what anybody may ask, and what an error answers
is looked through.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.support.admin import ADMIN, TOKEN
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubAnswer
from tests.support.publisher import Document
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene, topic_document, websub_scene

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUBSCRIPTION = "planted-subscription-secret"
ROTATED = "planted-rotated-secret"
FEED_NAME, FEED_PASSWORD = "planted-user", "planted-basic-password"
FEED_HEADER = "planted-header-value"
FEED_QUERY = "planted-feed-query"
CALLBACK_QUERY = "planted-callback-token"
PUBLISHING = "planted-publishing-secret"
PAYLOAD = "planted-payload"
VERIFY_TOKEN = "planted-verify-token"
WRONG_TOKEN = "planted-wrong-token"
PLANTED = (
    TOKEN,
    SUBSCRIPTION,
    ROTATED,
    FEED_PASSWORD,
    FEED_HEADER,
    FEED_QUERY,
    CALLBACK_QUERY,
    PUBLISHING,
    PAYLOAD,
    VERIFY_TOKEN,
    WRONG_TOKEN,
)
NOBODY = "http://127.0.0.1:1"


def spellings(secret: str) -> set[str]:
    """As it is, as Basic would have it, and as it is hashed."""
    pairs = (secret, f"{FEED_NAME}:{secret}", f"demo:{secret}", f"admin:{secret}")
    return {
        secret,
        *(base64.b64encode(pair.encode()).decode().rstrip("=") for pair in pairs),
        hashlib.sha256(secret.encode()).hexdigest(),
    }


@dataclass
class Scene:
    web: WebSubScene
    token: str = ""
    planted: list[str] = field(default_factory=lambda: list(PLANTED))
    errors: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str, **options: object) -> HubAnswer:
        answer = await self.web.api.ask(method, path, **options)
        if answer.status >= 400:
            self.errors.append(answer.text)
        return answer

    async def admin(self, method: str, path: str, **options: object) -> HubAnswer:
        return await self.request(method, path, headers=ADMIN, **options)

    async def customer(self, token: str = "", **form: str) -> HubAnswer:
        """A call of Superfeedr's API."""
        pair = f"demo:{token or self.token}".encode()
        sent = {"authorization": base64.b64encode(pair).decode()}
        sent |= {name.replace("_", ".", 1): value for name, value in form.items()}
        return await self.request("POST", "/", data=sent)

    def callback(self) -> Subscriber:
        return self.web.callback(f"?token={CALLBACK_QUERY}")

    def topic(self) -> Document:
        topic = self.web.topic()
        topic.url += f"?key={FEED_QUERY}"
        return topic

    async def feed(self, topic: Document, **more: object) -> HubAnswer:
        body = {
            "url": topic.url,
            "basic": f"{FEED_NAME}:{FEED_PASSWORD}",
            "headers": {"X-Key": FEED_HEADER},
            "publish_secret": PUBLISHING,
            **more,
        }
        return await self.admin("POST", "/api/feeds", json=body)

    async def subscribe(
        self, topic: Document, callback: str, **more: object
    ) -> HubAnswer:
        body = {"topic": topic.url, "callback": callback, "secret": SUBSCRIPTION}
        return await self.admin("POST", "/api/subscriptions", json={**body, **more})

    async def publish(self, topic: Document, *numbers: int) -> None:
        topic.body = topic_document(*numbers).replace(b"Entry", PAYLOAD.encode())
        fetches = len(topic.requests)
        await self.web.post({"hub.mode": "publish", "hub.topic": topic.url})
        await eventually(lambda: len(topic.requests) > fetches)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Scene]:
    directory = tmp_path_factory.mktemp("hub")
    async with websub_scene(
        directory, FANFARE_LOG_LEVEL="debug", FANFARE_OPEN_HUB="any"
    ) as web:
        scene = Scene(web)
        scopes = ("subscribe", "unsubscribe", "list", "retrieve")
        scene.token = await web.api.create_token("demo", *scopes)
        scene.planted.append(scene.token)
        yield scene


async def test_fetches_that_succeed_and_fail(scene: Scene) -> None:
    topic = scene.topic()
    assert (await scene.feed(topic)).status == 201
    sent = topic.requests[-1].headers
    assert sent["x-key"] == FEED_HEADER
    assert "authorization" in sent
    moved = scene.topic()
    answers = [
        ServerAnswer(status=401),
        ServerAnswer(status=500),
        ServerAnswer(status=302, headers={"Location": moved.url}),
        ServerAnswer(status=302, headers={"Location": f"{NOBODY}/?{FEED_QUERY}"}),
        ServerAnswer(status=302, headers={"Location": f"ftp://x/?{FEED_QUERY}"}),
        ServerAnswer(body=f"<rss>{PAYLOAD}".encode()),
        ServerAnswer(body=b""),
    ]
    for answer in answers:
        troubled = scene.topic()
        troubled.instead = answer
        assert (await scene.feed(troubled)).status == 201
    dead = Document(f"{NOBODY}/?key={FEED_QUERY}")
    assert (await scene.feed(dead)).status == 201


async def test_what_is_asked_for_wrongly(scene: Scene) -> None:
    topic, callback = scene.topic(), scene.callback()
    long = SUBSCRIPTION * 20
    for wrong in (
        await scene.feed(topic, publish_secret=PUBLISHING * 20),
        await scene.feed(topic, basic=FEED_PASSWORD),
        await scene.feed(topic, headers={"X-Key": f"{FEED_HEADER}\n"}),
        await scene.feed(topic, headers={"Host": FEED_HEADER}),
        await scene.feed(topic, headers=FEED_HEADER),
        await scene.subscribe(topic, callback.url, secret=long),
        await scene.subscribe(topic, callback.url, algorithm=SUBSCRIPTION, secret=1),
        await scene.admin("POST", "/api/feeds", data=f'{{"basic": "{FEED_PASSWORD}'),
        await scene.request(
            "GET", "/api/feeds", headers={"Authorization": f"Bearer {WRONG_TOKEN}"}
        ),
        await scene.customer(WRONG_TOKEN, hub_mode="list"),
        await scene.request("GET", f"/?hub.mode=list&authorization={WRONG_TOKEN}"),
        await scene.request("GET", f"/stream?topic=x&token={WRONG_TOKEN}"),
        await scene.customer(
            hub_mode="subscribe", hub_topic=topic.url, hub_secret=long
        ),
    ):
        assert 400 <= wrong.status < 500, wrong


async def test_questions_that_are_confirmed_refused_and_unanswered(
    scene: Scene,
) -> None:
    topic, callback, refusing = scene.topic(), scene.callback(), scene.callback()
    await scene.feed(topic)
    refusing.on_question = lambda question: ServerAnswer(status=404)
    answer = await scene.web.ask("subscribe", topic, callback, secret=SUBSCRIPTION)
    assert answer.status == 202
    await scene.web.ask("subscribe", topic, refusing, secret=SUBSCRIPTION)
    open_topic = scene.web.topic()
    answer = await scene.web.subscribe(open_topic, callback, secret=SUBSCRIPTION)
    await scene.web.publish(open_topic)
    await eventually(lambda: bool(callback.deliveries))
    for verify in ("sync", "async"):
        for url in (callback.url, refusing.url, f"{NOBODY}/?{CALLBACK_QUERY}"):
            await scene.customer(
                hub_mode="subscribe",
                hub_topic=open_topic.url,
                hub_callback=url,
                hub_secret=SUBSCRIPTION,
                hub_verify=verify,
                hub_verify__token=VERIFY_TOKEN,
            )
    await eventually(lambda: len(refusing.questions) >= 2)


async def test_deliveries_that_arrive_and_do_not(scene: Scene) -> None:
    topic, good, bad, gone = scene.topic(), *(scene.callback() for _ in range(3))
    await scene.feed(topic)
    bad.answer(ServerAnswer(status=500, body=SUBSCRIPTION.encode()))
    gone.answer(ServerAnswer(status=410))
    for url in (good.url, bad.url, gone.url, f"{NOBODY}/?token={CALLBACK_QUERY}"):
        made = await scene.subscribe(topic, url, format="json")
        assert made.status == 201, made.text
    await scene.publish(topic, 2, 1)
    for each in (good, bad, gone):
        await eventually(lambda each=each: bool(each.deliveries))  # type: ignore[misc]
    assert "x-hub-signature" in good.deliveries[0].headers
    changed = await scene.subscribe(topic, good.url, format="json", secret=ROTATED)
    assert (changed.status, "former_secret_until" in changed.text) == (200, True)
    await scene.publish(topic, 3, 2, 1)
    await eventually(lambda: len(good.deliveries) > 1)
    assert " " in good.deliveries[1].headers["webhook-signature"]
    await scene.request("GET", "/api/subscriptions", headers=ADMIN)
    await scene.web.api.remove_feed(await scene.web.api.find_feed(topic.url))


async def test_content_that_is_taken_and_not(scene: Scene) -> None:
    topic = scene.topic()
    await scene.feed(topic)
    content = topic_document(5).replace(b"Entry", PAYLOAD.encode())
    for body, secret, status in (
        (content, PUBLISHING, 204),
        (content, "another", 403),
        (f"<rss>{PAYLOAD}".encode(), PUBLISHING, 204),
    ):
        signature = hmac.new(secret.encode(), body, "sha1").hexdigest()
        answer = await scene.web.api.bring(topic.url, body, signature)
        scene.errors.append(answer.text)
        assert answer.status == status, answer.text


async def test_live_connections_with_a_token(scene: Scene) -> None:
    topic = scene.web.topic()
    await scene.admin("POST", "/api/feeds", json={"url": topic.url})
    url = f"{scene.web.hub.url}/stream"
    for token in (scene.token, WRONG_TOKEN):
        parameters = {"topic": topic.url, "token": token}
        async with scene.web.api.session.ws_connect(url, params=parameters) as socket:
            await socket.receive(timeout=30)
            await socket.send_str(f'{{"type": "{SUBSCRIPTION}"')
            await socket.receive(timeout=30)


async def test_nothing_of_it_is_in_logs_metrics_health_or_errors(scene: Scene) -> None:
    """The last of the module: it looks at what all before it have left."""
    # Who asked may be told the callback that the request named.
    own = f"?token={CALLBACK_QUERY}"
    texts = {f"error {n}": each.replace(own, "") for n, each in enumerate(scene.errors)}
    for path in ("/metrics", "/healthz", "/readyz"):
        for headers in ({}, ADMIN):
            answer = await scene.request("GET", path, headers=headers)
            texts[f"{path} {bool(headers)}"] = answer.text
    assert await scene.web.hub.terminate() == 0
    texts |= {f"log {n}": line for n, line in enumerate(scene.web.hub.log)}
    assert len(scene.errors) > 10
    assert any("fetched for the first time" in line for line in scene.web.hub.log)

    leaks = [
        (where, secret, text)
        for where, text in texts.items()
        for secret in scene.planted
        if any(spelling in text for spelling in spellings(secret))
    ]
    assert leaks == []
