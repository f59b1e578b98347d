"""The hub tests of websub.rocks, 100 to 106; see docs/reference/conformance.md."""

from __future__ import annotations

import hmac

import pytest

from tests.support.publisher import Document
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene

pytestmark = pytest.mark.asyncio(loop_scope="module")


def check_delivery(scene: WebSubScene, topic: Document, callback: Subscriber) -> None:
    """What websub.rocks requires of a notification."""
    (delivery,) = callback.deliveries
    assert delivery.body.strip() == topic.body.strip()
    assert delivery.headers["content-type"] == topic.content_type
    assert f'<{scene.hub_url}>; rel="hub"' in delivery.headers["link"]
    assert f'<{topic.url}>; rel="self"' in delivery.headers["link"]


def check_question(callback: Subscriber, mode: str, topic: Document) -> None:
    """What its callback requires of a verification request, or else answers 404."""
    query = callback.questions[-1].query
    assert query["hub.mode"] == mode
    assert query["hub.topic"] == topic.url
    assert query["hub.challenge"]
    assert ("hub.lease_seconds" in query) is (mode == "subscribe")


async def test_100_a_typical_request_is_verified_and_delivered_unsigned(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    check_question(callback, "subscribe", topic)
    assert (await scene.publish(topic)).status == 204
    await eventually(lambda: bool(callback.deliveries))
    check_delivery(scene, topic, callback)
    assert "x-hub-signature" not in callback.deliveries[0].headers


@pytest.mark.parametrize("algorithm", ["", "sha1", "sha256", "sha384", "sha512"])
async def test_101_with_a_secret_the_signature_is_valid(
    scene: WebSubScene, algorithm: str
) -> None:
    topic, callback = scene.topic(), scene.callback()
    secret = "twenty characters ok"
    await scene.subscribe(topic, callback, secret=secret, signature_algorithm=algorithm)
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    method, _, digest = callback.deliveries[0].headers["x-hub-signature"].partition("=")
    assert method == (algorithm or "sha256")
    body = callback.deliveries[0].body
    assert hmac.new(secret.encode(), body, method).hexdigest() == digest


async def test_102_additional_parameters_are_ignored(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    answer = await scene.post(
        {
            "hub.mode": "subscribe",
            "hub.topic": topic.url,
            "hub.callback": callback.url,
            "foo": "bar",
            "hub.foo": "hub.bar",
        }
    )
    assert answer.status == 202
    await scene.until(answer, "verified")
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    check_delivery(scene, topic, callback)


async def test_103_subscribing_again_before_the_end_is_verified_again(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.subscribe(topic, callback)
    assert callback.modes == ["subscribe", "subscribe"]
    witness = scene.callback()
    await scene.subscribe(topic, witness)
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries and witness.deliveries))
    check_delivery(scene, topic, callback)


async def test_104_after_an_unsubscription_nothing_is_delivered(
    scene: WebSubScene,
) -> None:
    topic, callback, witness = scene.topic(), scene.callback(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.subscribe(topic, witness)
    answer = await scene.ask("unsubscribe", topic, callback)
    assert answer.status == 202
    await scene.until(answer, "verified")
    check_question(callback, "unsubscribe", topic)
    await scene.publish(topic)
    await eventually(lambda: bool(witness.deliveries))
    assert callback.deliveries == []


@pytest.mark.parametrize(
    ("number", "content_type", "before", "after"),
    [
        (105, "text/plain; charset=utf-8", b"one\n", b"one\ntwo \xc3\xa9\n"),
        (106, "application/json", b'{"n": 1}', b'{"n": 2}'),
        (100, "text/html", b"<!doctype html><p>one", b"<!doctype html><p>two"),
    ],
)
async def test_105_and_106_a_topic_that_is_no_feed_is_sent_as_it_is(
    scene: WebSubScene, number: int, content_type: str, before: bytes, after: bytes
) -> None:
    topic, callback = scene.topic(before), scene.callback()
    topic.content_type = content_type
    await scene.subscribe(topic, callback)
    await scene.publish(topic, after)
    await eventually(lambda: bool(callback.deliveries))
    check_delivery(scene, topic, callback)
