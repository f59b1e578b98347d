"""Superfeedr's PuSH-suite, by its numbers; see docs/reference/conformance.md."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from tests.support.http_server import ServerAnswer
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_2_and_3_a_request_is_accepted_whatever_the_callback_will_say(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    callback.on_question = lambda request: None  # it hangs up
    assert (await scene.ask("subscribe", topic, callback)).status == 202


@pytest.mark.parametrize("url", ["https://reader.invalid/", "http://reader.invalid/"])
async def test_3_and_4_callbacks_may_be_http_or_https(
    scene: WebSubScene, url: str
) -> None:
    callback = scene.callback()
    callback.url = url
    assert (await scene.ask("subscribe", scene.topic(), callback)).status == 202


async def test_5_a_callback_may_have_a_query(scene: WebSubScene) -> None:
    await scene.subscribe(scene.topic(), scene.callback("?extra=query"))


@pytest.mark.parametrize(
    ("number", "name"), [(7, "hub.callback"), (8, "hub.mode"), (9, "hub.topic")]
)
async def test_7_to_9_a_missing_parameter_is_named(
    scene: WebSubScene, number: int, name: str
) -> None:
    parameters = {
        "hub.callback": scene.callback().url,
        "hub.mode": "subscribe",
        "hub.topic": scene.topic().url,
    }
    del parameters[name]
    answer = await scene.post(parameters)
    assert answer.status == 400
    assert name in answer.text


async def test_10_extra_parameters_are_ignored(scene: WebSubScene) -> None:
    answer = await scene.ask(
        "subscribe", scene.topic(), scene.callback(), fancy="parameter"
    )
    assert answer.status == 202


async def test_11_subscribing_again_is_accepted(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    answers = [await scene.ask("subscribe", topic, callback) for _ in range(2)]
    assert [each.status for each in answers] == [202, 202]
    await scene.until(answers[1], "verified")


async def test_14_to_18_the_question_has_all_parameters(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    values = dict(callback.parameters())
    assert values["hub.mode"] == "subscribe"
    assert values["hub.topic"] == topic.url
    assert values["hub.challenge"]
    assert int(values["hub.lease_seconds"]) == 864_000


async def test_19_to_22_a_notification_has_the_topics_type_and_links(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    headers = callback.deliveries[0].headers
    assert headers["content-type"].partition(";")[0] == topic.content_type
    assert headers["link"] == f'<{scene.hub_url}>; rel="hub", <{topic.url}>; rel="self"'


async def test_23_a_notification_refused_with_400_comes_again(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    callback.answer(ServerAnswer(status=400), ServerAnswer())
    await scene.subscribe(topic, callback)
    await scene.publish(topic)
    await eventually(lambda: len(callback.deliveries) == 2, seconds=60)


async def test_12_what_the_publisher_refuses_is_denied(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    publisher = scene.validator(topic, 401, b"members only")
    answer = await scene.ask("subscribe", topic, callback, secret="s3cret")
    await scene.until(answer, "denied")
    asked = dict(parse_qsl(publisher.deliveries[0].body.decode()))
    assert asked["hub.topic"] == topic.url
    assert asked["hub.callback"] == callback.url
    assert "hub.secret" not in asked
    assert callback.questions[-1].query["hub.mode"] == "denied"
    assert callback.questions[-1].query["hub.reason"] == "members only"


async def test_13_what_the_publisher_allows_is_verified(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    publisher = scene.validator(topic, 204)
    await scene.subscribe(topic, callback)
    assert len(publisher.deliveries) == 1
