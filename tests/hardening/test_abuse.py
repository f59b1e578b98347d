"""A hub that anybody may ask is not turned against others, or against itself."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from msgspec.structs import replace

from hub.http import Request
from hub.runtime.clock import SystemClock
from hub.services.account_subscriptions import SubscriptionRequest
from hub.services.open_hub_requests import (
    MOST_PENDING,
    MOST_PENDING_OF_ASKER,
    MOST_PENDING_OF_HOST,
)
from hub.services.service_errors import TooManyWaiting
from protocols.websub.signatures import sign_webhook
from protocols.websub.websub_parameters import UnsubscribeRequest
from storage.records import ANONYMOUS, SubscriptionState, VerificationState
from tests.support.admin import TOKEN
from tests.support.application_client import client_of
from tests.support.fake_network import Scripted, agree, answered
from tests.support.http_server import ServerAnswer, ServerRequest
from tests.support.open_hub import (
    CALLBACK,
    TOPIC,
    OpenHubScene,
    a_subscription_request,
    open_hub_scene,
)
from tests.support.publisher import Document
from tests.support.services import open_hub
from tests.support.waiting import eventually, in_background
from tests.support.websub import WebSubScene, topic_document, websub_scene

VICTIM = "victim.example"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[OpenHubScene]:
    async with open_hub_scene(tmp_path) as scene:
        yield scene


@asynccontextmanager
async def verifying(scene: OpenHubScene) -> AsyncIterator[None]:
    async with in_background(scene.verifier.run):
        yield


def at_victim(number: int) -> str:
    """Another port, another spelling, another path: one host all the same."""
    spelled = (VICTIM, VICTIM.upper(), f"{VICTIM}:8080", f"{VICTIM}:{9000 + number}")
    return f"https://{spelled[number % 4]}/{number}?a={number}"


async def test_no_host_is_flooded_with_questions_by_thousands_of_requests(
    hub: OpenHubScene,
) -> None:
    asked_at: list[float] = []

    def noted(request: Request) -> Scripted:
        asked_at.append(hub.clock.monotonic())
        return agree(request)

    hub.callbacks.answer_with(noted)
    await asyncio.gather(*(asks(hub, at_victim(number)) for number in range(500)))
    async with verifying(hub):
        for seconds in range(1, 11):
            await eventually(lambda least=seconds: len(asked_at) >= least)  # type: ignore[misc]
            hub.clock.advance(1)
            hub.verifier.wake()
    assert all(later - earlier >= 1 for earlier, later in pairwise(asked_at))


async def test_only_so_many_requests_wait_for_one_host(hub: OpenHubScene) -> None:
    many = MOST_PENDING_OF_HOST + 100
    taken = await asyncio.gather(*(asks(hub, at_victim(each)) for each in range(many)))
    assert taken.count(True) == MOST_PENDING_OF_HOST
    assert await asks(hub, "https://other.example/")


async def test_no_stranger_fills_the_queue_of_all(tmp_path: Path) -> None:
    """By many hosts, each within its own bound; nor does an account."""
    async with open_hub(tmp_path) as hub:
        application = hub.application
        new = SubscriptionRequest(topic=TOPIC, account=ANONYMOUS).as_verification("")
        await asyncio.gather(
            *(
                hub.storage.verifications.add(
                    replace(
                        new,
                        callback=f"https://{number % 100}.example/{number}",
                        token=str(number),
                        asker="198.51.100.1",
                    ),
                    hub.clock.now(),
                    most=MOST_PENDING,
                    most_of_host=MOST_PENDING_OF_HOST,
                )
                for number in range(MOST_PENDING_OF_ASKER)
            )
        )
        form = {"hub.mode": "subscribe", "hub.topic": TOPIC, "hub.callback": CALLBACK}
        for address, status in (("198.51.100.1", 503), ("198.51.100.2", 202)):
            async with client_of(application, address) as client:
                answer = await client.post("/hub", data=form)
                assert answer.status_code == status


async def asks(hub: OpenHubScene, callback: str) -> bool:
    try:
        await hub.request(a_subscription_request(callback=callback))
    except TooManyWaiting:
        return False
    return True


async def test_a_question_is_hardly_longer_than_what_asked_for_it(
    hub: OpenHubScene,
) -> None:
    """So the hub multiplies nobody's bytes: three questions at most, each a GET."""
    for callback, topic, token in (
        (CALLBACK, TOPIC, ""),
        (f"{CALLBACK}?{'a' * 1_900}", f"{TOPIC}?{'b' * 1_900}", "c" * 1_000),
    ):
        await hub.subscribe(callback=callback, topic=topic, verify_token=token)
        sent = urlencode(
            {
                "hub.mode": "subscribe",
                "hub.topic": topic,
                "hub.callback": callback,
                "hub.verify_token": token,
            }
        )
        assert len(hub.callbacks.requests[-1].url) <= len(sent) + 100


async def test_a_question_is_never_three_times_as_long_as_what_asked_for_it(
    hub: OpenHubScene,
) -> None:
    """Of a form whose sender leaves out all encoding that can be left out."""
    topic = f"{TOPIC}?{'=' * 2_000}"
    await hub.subscribe(topic=topic)
    sent = f"hub.mode=subscribe&hub.topic={topic}&hub.callback={CALLBACK}"
    assert len(hub.callbacks.requests[-1].url) <= 3 * len(sent) + 100


async def test_nobody_can_end_the_subscription_of_another(hub: OpenHubScene) -> None:
    await hub.add_feed()
    await hub.subscribe()
    for status, body in ((404, b""), (200, b""), (200, b"another challenge")):
        hub.callbacks.answer_with(answered(status, body))
        token = await hub.request(UnsubscribeRequest(topic=TOPIC, callback=CALLBACK))
        assert (await hub.settle(token)).state is VerificationState.FAILED
    kept = await hub.storage.subscriptions.find(ANONYMOUS, TOPIC, CALLBACK)
    assert kept is not None
    assert kept.state is SubscriptionState.ACTIVE


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[WebSubScene]:
    directory = tmp_path_factory.mktemp("hub")
    async with websub_scene(directory, FANFARE_OPEN_HUB="any") as scene:
        yield scene


on_sockets = pytest.mark.asyncio(loop_scope="module")


@on_sockets
@pytest.mark.parametrize(
    "path",
    [
        *("/hub", "/", "/hubbub", "/rpc", "/openfeeder", "/openfeeder/update"),
        *("/topics/1.atom", "/about", "/stream", "/api/subscriptions", "/nothing"),
        "/?hub.mode=publish&hub.url=x",
    ],
)
async def test_the_hub_is_no_callback_of_its_own(scene: WebSubScene, path: str) -> None:
    topic = scene.topic()
    answer = await scene.post(
        {
            "hub.mode": "subscribe",
            "hub.topic": topic.url,
            "hub.callback": f"{scene.hub.url}{path}",
        }
    )
    await scene.until(answer, "failed")


@on_sockets
async def test_whoever_echoes_everything_has_confirmed_nothing(
    scene: WebSubScene,
) -> None:
    """Another hub, or a page that shows what it is asked."""

    def echo(request: ServerRequest) -> ServerAnswer:
        return ServerAnswer(body=request.target.encode())

    callback = scene.callback()
    callback.on_question = echo
    await scene.until(await scene.ask("subscribe", scene.topic(), callback), "failed")


async def bring(scene: WebSubScene, topic: Document, signature: str) -> int:
    return (await scene.api.bring(topic.url, CONTENT, signature)).status


SECRET, CONTENT = "the publisher's", topic_document(5)


def signed(
    secret: str = SECRET, body: bytes = CONTENT, algorithm: str = "sha256"
) -> str:
    return hmac.new(secret.encode(), body, algorithm).hexdigest()


FORGED = {
    "another secret": f"sha256={signed('another')}",
    "no secret": f"sha256={signed('')}",
    "no key at all": f"sha256={hashlib.sha256(CONTENT).hexdigest()}",
    "the secret before the content": "sha256="
    + hashlib.sha256(SECRET.encode() + CONTENT).hexdigest(),
    "cut by a digit": f"sha256={signed()[:-1]}",
    "longer by a digit": f"sha256={signed()}0",
    "of another algorithm": f"sha1={signed()}",
    "of no algorithm that is known": f"none={signed()}",
    "of a broken algorithm": f"md5={signed(algorithm='md5')}",
    "of another content": f"sha256={signed(body=CONTENT + b' ')}",
    "the first half": f"sha256={signed()[:32]}",
    "no digits": "sha256=",
    "an algorithm alone": "sha256",
    "nothing but digits": "0" * 64,
    "several": f"sha256={signed('another')},sha256={signed('a third')}",
}


@on_sockets
@pytest.mark.parametrize("name", FORGED)
async def test_content_with_a_forged_signature_is_refused(
    scene: WebSubScene, name: str
) -> None:
    topic = scene.topic()
    await scene.api.add_feed(topic.url, publish_secret=SECRET)
    assert await bring(scene, topic, FORGED[name]) == 403


@on_sockets
async def test_a_signature_is_good_for_its_topic_only(scene: WebSubScene) -> None:
    ours, theirs, without = scene.topic(), scene.topic(), scene.topic()
    await scene.api.add_feed(ours.url, publish_secret=SECRET)
    await scene.api.add_feed(theirs.url, publish_secret="of others")
    await scene.api.add_feed(without.url)
    good = f"sha256={signed()}"
    for topic in (theirs, without, scene.topic()):
        assert await bring(scene, topic, good) == 403
    assert await bring(scene, ours, good) == 204


@on_sockets
async def test_a_publisher_s_secret_that_was_replaced_signs_nothing_more(
    scene: WebSubScene,
) -> None:
    topic = scene.topic()
    feed = await scene.api.add_feed(topic.url, publish_secret=SECRET)
    await scene.api.request("PATCH", f"/api/feeds/{feed}", publish_secret="the next")
    assert await bring(scene, topic, f"sha256={signed()}") == 403
    good = f"sha256={signed('the next')}"
    assert await bring(scene, topic, good) == 204


def secrets_of(request: ServerRequest, *candidates: str) -> list[str]:
    """Those that signed a notification, as WebSub has it."""
    given = request.headers["x-hub-signature"].partition("=")[2]
    return [each for each in candidates if signed(each, request.body) == given]


def webhook_secrets_of(request: ServerRequest, *candidates: str) -> list[str]:
    """Those that signed a notification, as Standard Webhooks has it."""
    id, at = request.headers["webhook-id"], int(request.headers["webhook-timestamp"])
    given = request.headers["webhook-signature"].split(" ")
    return [
        each for each in candidates if sign_webhook(each, id, at, request.body) in given
    ]


@on_sockets
async def test_a_subscription_is_signed_with_the_secret_it_has_now(
    scene: WebSubScene,
) -> None:
    """Also what was to be delivered before it was replaced, and is tried again."""
    topic, callback, other = scene.topic(), scene.callback(), scene.callback()
    wish = {"topic": topic.url, "format": "json"}
    first = {**wish, "callback": callback.url, "secret": "first"}
    await scene.api.subscribe(**first)
    await scene.api.subscribe(**{**wish, "callback": other.url, "secret": "other's"})
    everyone = ("first", "second", "other's", TOKEN)
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries and other.deliveries))
    assert secrets_of(callback.deliveries[0], *everyone) == ["first"]
    assert secrets_of(other.deliveries[0], *everyone) == ["other's"]

    callback.answer(ServerAnswer(status=503), ServerAnswer())
    await scene.publish(topic, topic_document(3, 2, 1))
    await eventually(lambda: len(callback.deliveries) == 2)
    await scene.api.subscribe(**{**first, "secret": "second"})

    await eventually(lambda: len(callback.deliveries) > 2, seconds=60)
    assert secrets_of(callback.deliveries[-1], *everyone) == ["second"]
    both = ["first", "second"]
    assert webhook_secrets_of(callback.deliveries[-1], *everyone) == both
    assert webhook_secrets_of(other.deliveries[-1], *everyone) == ["other's"]


async def test_a_secret_that_was_retired_signs_nothing_after_its_time(
    tmp_path: Path,
) -> None:
    """A day by default; here a second."""
    async with websub_scene(tmp_path, FANFARE_SECRET_OVERLAP="1") as scene:
        topic, callback = scene.topic(), scene.callback()
        await scene.api.add_feed(topic.url)
        for secret in ("first", "second"):
            answer = await scene.ask("subscribe", topic, callback, secret=secret)
            await scene.until(answer, "verified")
        listed = await scene.api.request("GET", "/api/subscriptions")
        until = listed["subscriptions"][0]["former_secret_until"]
        over = datetime.fromisoformat(until)
        await eventually(lambda: SystemClock().now() > over)

        await scene.publish(topic)
        await eventually(lambda: bool(callback.deliveries))

        everyone = ("first", "second")
        assert secrets_of(callback.deliveries[0], *everyone) == ["second"]
        assert webhook_secrets_of(callback.deliveries[0], *everyone) == ["second"]
