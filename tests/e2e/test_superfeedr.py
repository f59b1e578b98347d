"""A Superfeedr customer's day: subscribe, be notified, publish, leave."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
import pytest_asyncio

from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubAnswer
from tests.support.publisher import Document
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene, topic_document, websub_scene

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Customer:
    def __init__(self, scene: WebSubScene, token: str) -> None:
        self.scene = scene
        self._credentials = base64.b64encode(f"demo:{token}".encode()).decode()

    async def ask(self, **parameters: str) -> HubAnswer:
        return await self.scene.api.ask("POST", "/", data=self.form(**parameters))

    def form(self, **parameters: str) -> dict[str, str]:
        form = {
            name.replace("hub_", "hub.", 1): value for name, value in parameters.items()
        }
        return {"authorization": self._credentials, **form}

    async def subscribe(
        self, topic: Document, callback: Subscriber, **more: str
    ) -> HubAnswer:
        return await self.ask(
            hub_mode="subscribe",
            hub_topic=topic.url,
            hub_callback=callback.url,
            **more,
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[WebSubScene]:
    async with websub_scene(tmp_path_factory.mktemp("hub")) as scene:
        yield scene


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def customer(scene: WebSubScene) -> Customer:
    scopes = ("subscribe", "unsubscribe", "list", "retrieve")
    return Customer(scene, await scene.api.create_token("demo", *scopes))


async def delivered(callback: Subscriber, count: int = 1) -> list[Any]:
    await eventually(lambda: len(callback.deliveries) >= count)
    return [json.loads(each.body) for each in callback.deliveries]


async def test_a_notification_has_all_that_clients_read_of_it(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callback = scene.topic(names_hub=False), scene.callback("?id=7")
    answer = await customer.subscribe(
        topic, callback, format="json", hub_secret="s3cret"
    )
    assert answer.status == 204
    for number in (2, 3):
        await scene.publish(topic, topic_document(*range(number, 0, -1)))
        await delivered(callback, number - 1)
    first, second = callback.deliveries
    assert json.loads(first.body)["items"][0]["title"] == "Entry 2"
    headers = first.headers
    assert headers["content-type"] == "application/json; charset=utf-8"
    digest = hmac.new(b"s3cret", first.body, hashlib.sha1).hexdigest()
    assert headers["x-hub-signature"] == f"sha1={digest}"
    assert headers["x-pubsubhubbub-topic"] == topic.url
    assert headers["x-pubsubhubbub-callback"] == callback.url
    assert 'rel="hub"' in headers["link"]
    assert headers["webhook-id"]
    assert int(headers["x-superfeedr-pubsubhubbub-expire"]) > 2_000_000_000
    left = [int(each.headers["x-superfeedr-credits"]) for each in (first, second)]
    assert left[0] - left[1] == 1


async def test_who_subscribes_to_a_broken_feed_is_told_so_once(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callback = scene.topic(b"no feed at all", names_hub=False), scene.callback()
    topic.instead = ServerAnswer(status=500)
    for _ in range(2):
        assert (await customer.subscribe(topic, callback, format="json")).status == 204
        (body,) = await delivered(callback)
    assert body["status"]["code"] == 500
    assert "items" not in body
    topic.instead = None
    await scene.publish(topic, topic_document(1))
    recovered, *_ = (await delivered(callback, 2))[1:]
    assert recovered["status"]["code"] == 200


async def test_without_a_format_a_feed_comes_as_atom_and_the_rest_as_it_is(
    scene: WebSubScene, customer: Customer
) -> None:
    feed, page = scene.topic(), scene.topic(b"one")
    page.content_type = "text/plain"
    callbacks = scene.callback(), scene.callback()
    for topic, callback in zip((feed, page), callbacks, strict=True):
        assert (await customer.subscribe(topic, callback)).status == 204
    await scene.publish(feed, topic_document(2, 1))
    await scene.publish(page, b"two")
    await eventually(lambda: all(each.deliveries for each in callbacks))
    as_atom, as_it_is = (each.deliveries[0] for each in callbacks)
    assert as_atom.headers["content-type"] == "application/atom+xml"
    assert b"Entry 2" in as_atom.body
    assert as_it_is.body == b"two"
    assert as_it_is.headers["content-type"] == "text/plain"


async def test_with_retrieve_the_newest_entries_come_at_once(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callback = scene.topic(topic_document(3, 2, 1)), scene.callback()
    answer = await customer.subscribe(
        topic, callback, format="json", retrieve="true", count="2"
    )
    assert answer.status == 200
    titles = [each["title"] for each in json.loads(answer.text)["items"]]
    assert titles == ["Entry 3", "Entry 2"]


async def test_an_error_is_told_without_items(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await customer.subscribe(topic, callback, format="json")
    topic.instead = ServerAnswer(status=503)
    await scene.publish(topic)
    [told] = await delivered(callback)
    assert "items" not in told
    assert told["status"]["code"] == 503
    assert told["status"]["feed"] == topic.url


async def test_sync_tells_the_callback_what_superfeedr_told(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callback = scene.topic(), scene.callback("?id=7")
    answer = await customer.subscribe(
        topic, callback, hub_verify="sync", hub_verify_token="vt"
    )
    assert answer.status == 204
    asked = dict(callback.parameters())
    assert asked["id"] == "7"
    assert asked["hub.mode"] == "subscribe"
    assert asked["hub.topic"] == topic.url
    assert asked["hub.callback"] == callback.url
    assert asked["hub.lease_seconds"] == "315359999"
    assert asked["hub.verify_token"] == "vt"
    assert asked["hub.challenge"]


async def test_what_was_ended_is_told_nothing_more(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callbacks = scene.topic(), (scene.callback(), scene.callback())
    for each in callbacks:
        await customer.subscribe(topic, each, format="json")
    answer = await customer.ask(
        hub_mode="unsubscribe", hub_topic=topic.url, hub_callback=callbacks[0].url
    )
    assert answer.status == 204
    await scene.publish(topic)
    await delivered(callbacks[1])
    assert not callbacks[0].deliveries


async def test_a_fragment_makes_another_topic_of_the_same_feed(
    scene: WebSubScene, customer: Customer
) -> None:
    topic, callback = scene.topic(), scene.callback()
    answer = await customer.ask(
        hub_mode="subscribe",
        hub_topic=f"{topic.url}#part",
        hub_callback=callback.url,
        format="json",
    )
    assert answer.status == 204
    await scene.publish(topic)
    [told] = await delivered(callback)
    assert told["status"]["feed"] == f"{topic.url}#part"


@pytest.mark.parametrize("algorithm", ["", "sha1=", "sha256="])
async def test_content_that_its_publisher_signed_is_told_without_a_fetch(
    scene: WebSubScene, customer: Customer, algorithm: str
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.api.add_feed(topic.url, publish_secret="ours")
    await customer.subscribe(topic, callback, format="json")
    fetches = len(topic.requests)
    content = topic_document(5)
    name = algorithm.rstrip("=") or "sha1"
    digest = hmac.new(b"ours", content, name).hexdigest()
    answer = await scene.api.bring(topic.url, content, f"{algorithm}{digest}")
    assert answer.status == 204, answer.text
    [told] = await delivered(callback)
    assert [each["title"] for each in told["items"]] == ["Entry 5"]
    assert "gap" not in told["status"]["http"]
    assert len(topic.requests) == fetches


async def test_content_is_refused_from_whoever_has_not_signed_it(
    scene: WebSubScene,
) -> None:
    topic, unknown = scene.topic(), scene.topic()
    await scene.api.add_feed(topic.url, publish_secret="ours")
    wrong = hmac.new(b"theirs", topic_document(5), "sha1").hexdigest()
    for each in (topic, unknown):
        answer = await scene.api.bring(each.url, topic_document(5), wrong)
        assert answer.status == 403
        assert "hub.signature" in answer.text
    missing = await scene.api.bring(topic.url, topic_document(5), "")
    assert missing.status == 422
    assert "hub.signature" in missing.text


@pytest.mark.parametrize(
    ("status", "text", "answered", "told"),
    [
        (204, b"", 204, ""),
        (401, b"members only", 422, "members only (hub.topic)"),
        (401, b"", 422, "refuses the subscription"),
        (500, b"oops", 422, "refuses the subscription"),
    ],
)
async def test_a_publisher_who_wants_that_is_asked(
    scene: WebSubScene,
    customer: Customer,
    status: int,
    text: bytes,
    answered: int,
    told: str,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    publisher = scene.validator(topic, status, text)
    answer = await customer.subscribe(
        topic, callback, format="json", hub_secret="s3cret", plan="gold"
    )
    assert answer.status == answered
    assert told in answer.text
    asked = dict(parse_qsl(publisher.deliveries[0].body.decode()))
    assert asked["hub.callback"] == callback.url
    assert asked["plan"] == "gold"
    assert not {"hub.secret", "authorization"} & set(asked)


async def test_a_removed_feed_that_returns_is_asked_anew_whom_to_ask(
    scene: WebSubScene, customer: Customer
) -> None:
    topic = scene.topic()
    former = scene.validator(topic, 401)
    assert (await customer.subscribe(topic, scene.callback())).status == 422
    await scene.api.remove_feed(await scene.api.find_feed(topic.url))
    topic.links.pop()
    assert (await customer.subscribe(topic, scene.callback())).status == 204
    assert len(former.deliveries) == 1


@pytest.mark.parametrize(("status", "answer"), [(204, 204), (401, 422), (302, 422)])
async def test_a_feeds_subscription_callback_is_asked_with_all_of_the_request(
    scene: WebSubScene, customer: Customer, status: int, answer: int
) -> None:
    topic, publisher, named = scene.topic(), scene.callback(), scene.callback()
    topic.links.append(f'<{named.url}>; rel="validate"')
    publisher.answer(ServerAnswer(status=status, body=b"members only"))
    await scene.api.add_feed(topic.url, subscription_callback=publisher.url)

    reply = await scene.api.ask(
        "POST",
        "/",
        data=customer.form(
            hub_mode="subscribe",
            hub_topic=topic.url,
            hub_callback=scene.callback().url,
            hub_secret="s3cret",
            my="own",
        ),
        headers={"X-Member": "42", "Cookie": "a=b"},
    )

    assert reply.status == answer
    if status == 401:
        assert "members only" in reply.text
    [asked] = publisher.deliveries
    told = dict(parse_qsl(asked.body.decode()))
    assert (told["hub.mode"], told["my"]) == ("subscribe", "own")
    assert not {"hub.secret", "authorization"} & told.keys()
    assert asked.headers["x-member"] == "42"
    assert "cookie" not in asked.headers
    assert named.deliveries == []


async def test_a_publisher_who_cannot_be_asked_has_not_allowed_it(
    scene: WebSubScene, customer: Customer
) -> None:
    content = topic_document(
        1, links='<link rel="validate" href="http://127.0.0.1:1/"/>'
    )
    topic, callback = scene.topic(content), scene.callback()
    answer = await customer.subscribe(topic, callback)
    assert answer.status == 422
    assert "could not be asked" in answer.text


def resource(scene: WebSubScene, body: bytes, content_type: str) -> Document:
    topic = scene.topic(body, names_hub=False)
    topic.content_type = content_type
    return topic


async def told_of(
    scene: WebSubScene, topic: Document, callback: Subscriber, body: bytes
) -> tuple[str, bytes]:
    """Type and body of what is sent when the topic has changed."""
    before = len(callback.deliveries)
    topic.body = body
    await scene.publish(topic, body)
    await eventually(lambda: len(callback.deliveries) > before)
    delivery = callback.deliveries[-1]
    return delivery.headers["content-type"], delivery.body


async def test_without_a_format_a_resource_comes_as_it_is_though_it_was_down_at_first(
    scene: WebSubScene, customer: Customer
) -> None:
    topic = resource(scene, b'{"price": 1}', "application/json")
    topic.instead = ServerAnswer(status=503)
    callback = scene.callback()
    assert (await customer.subscribe(topic, callback)).status == 204
    topic.instead = None
    asked = len(topic.requests)
    await scene.publish(topic, topic.body)
    await eventually(lambda: len(topic.requests) > asked)
    topic.body = b'{"price": 2}'
    await scene.publish(topic, topic.body)
    # A status that it was down comes first if it was found after the subscription.
    await eventually(lambda: topic.body in {each.body for each in callback.deliveries})
    assert callback.deliveries[-1].headers["content-type"] == "application/json"


async def test_a_resource_is_not_told_to_be_a_feed_that_fails(
    scene: WebSubScene, customer: Customer
) -> None:
    topic = resource(scene, b"<p>one</p>", "text/html")
    callback = scene.callback()
    assert (await customer.subscribe(topic, callback)).status == 204
    asked = len(topic.requests)
    await scene.publish(topic, topic.body)
    await eventually(lambda: len(topic.requests) > asked)
    assert await told_of(scene, topic, callback, b"<p>two</p>") == (
        "text/html",
        b"<p>two</p>",
    )
    assert len(callback.deliveries) == 1
    search = {"search[feed.url]": topic.url}
    [listed] = json.loads((await customer.ask(hub_mode="list", **search)).text)
    assert listed["subscription"]["format"] is None


@pytest.mark.parametrize(
    ("content_type", "fragment", "before", "after", "part"),
    [
        (
            "text/html",
            "#.price",
            b"<title>Shop</title><p class=price>1</p><p>news</p>",
            b"<title>Shop</title><p class=price>2</p><p>news</p>",
            ("text/html; charset=utf-8", b'<p class="price">2</p>'),
        ),
        (
            "application/json",
            "#%24.price",
            b'{"price": 1, "x": 2}',
            b'{"price": 2, "x": 2}',
            ("application/json", b"2"),
        ),
    ],
)
async def test_without_a_format_a_part_comes_as_it_is(
    scene: WebSubScene,
    customer: Customer,
    content_type: str,
    fragment: str,
    before: bytes,
    after: bytes,
    part: tuple[str, bytes],
) -> None:
    topic = resource(scene, before, content_type)
    topic.url += fragment
    callback = scene.callback()
    subscribed = await customer.subscribe(topic, callback, retrieve="true")
    assert subscribed.status == 200
    assert subscribed.headers["content-type"] == part[0]
    assert subscribed.text.encode() == part[1].replace(b"2", b"1")
    assert await told_of(scene, topic, callback, after) == part


@pytest.mark.parametrize("content_type", ["text/plain", "text/html; charset=utf-8"])
async def test_retrieving_a_resource_while_subscribing_gives_the_resource(
    scene: WebSubScene, customer: Customer, content_type: str
) -> None:
    topic = resource(scene, b"<p>as it is</p>", content_type)
    callback = scene.callback()
    answer = await customer.subscribe(topic, callback, retrieve="true")
    assert (answer.status, answer.text) == (200, "<p>as it is</p>")
    assert answer.headers["content-type"] == content_type
    assert answer.headers["content-security-policy"] == "sandbox"
    sent = await told_of(scene, topic, callback, b"<p>another</p>")
    assert sent == (content_type, b"<p>another</p>")


@pytest.mark.parametrize("fragment", ["", "#p"])
async def test_what_is_no_feed_is_retrieved_as_it_is_kept(
    scene: WebSubScene, customer: Customer, fragment: str
) -> None:
    topic = resource(scene, b"<p>as it is</p>", "text/html")
    topic.url += fragment
    await customer.subscribe(topic, scene.callback(), retrieve="true")

    async def retrieve(**more: str) -> HubAnswer:
        return await customer.ask(hub_mode="retrieve", hub_topic=topic.url, **more)

    as_it_is, as_atom = await retrieve(), await retrieve(format="atom")

    assert (as_it_is.status, as_it_is.text) == (200, "<p>as it is</p>")
    assert as_it_is.headers["content-type"].startswith("text/html")
    assert as_it_is.headers["content-security-policy"] == "sandbox"
    assert as_atom.headers["content-type"] == "application/atom+xml"
