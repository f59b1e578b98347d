"""progrium's suite for hubs, by its numbers; see docs/reference/conformance.md."""

from __future__ import annotations

import hmac
import json
import re
from urllib.parse import quote

import pytest

from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubAnswer
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene, topic_document

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODES = ["subscribe", "unsubscribe"]


def asked_for(mode: str, scene: WebSubScene) -> dict[str, str]:
    """A whole request of 0.3, with a topic and a callback of its own."""
    return {
        "hub.mode": mode,
        "hub.topic": scene.topic().url,
        "hub.callback": scene.callback().url,
        "hub.verify": "sync",
        "hub.verify_token": "a token of theirs",
    }


def is_refused(answer: HubAnswer, about: str) -> bool:
    is_plain = answer.headers["Content-Type"].startswith("text/plain")
    return 400 <= answer.status < 500 and is_plain and about in answer.text


@pytest.mark.parametrize("mode", MODES)
async def test_1_a_request_is_accepted(scene: WebSubScene, mode: str) -> None:
    assert (await scene.post(asked_for(mode, scene))).status == 202


@pytest.mark.parametrize("mode", [*MODES, "publish"])
async def test_2_and_35_the_same_by_get_is_refused(
    scene: WebSubScene, mode: str
) -> None:
    answer = await scene.api.ask(
        "GET", scene.hub_url, params={**asked_for(mode, scene), "hub.url": "http://a/"}
    )
    assert answer.status == 405


@pytest.mark.parametrize("mode", [*MODES, "publish"])
async def test_3_and_36_a_json_body_is_refused(scene: WebSubScene, mode: str) -> None:
    body = json.dumps(asked_for(mode, scene)).encode()
    answer = await scene.post(body, Content_Type="application/json")
    assert answer.status == 415


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["hub.callback", "hub.topic", "hub.mode"])
@pytest.mark.parametrize("value", [None, "", " "])
async def test_4_5_and_37_a_missing_or_empty_parameter_is_named(
    scene: WebSubScene, mode: str, name: str, value: str | None
) -> None:
    parameters = asked_for(mode, scene)
    del parameters[name]
    if value is not None:
        parameters[name] = value
    assert is_refused(await scene.post(parameters), name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("words", [["sync", "foobar"], ["async", "sync", "other"]])
async def test_8_and_11_unknown_ways_to_verify_are_ignored(
    scene: WebSubScene, mode: str, words: list[str]
) -> None:
    parameters = [*asked_for(mode, scene).items()]
    parameters += [("hub.verify", word) for word in words]
    assert (await scene.post(parameters)).status == 202


async def test_10_asynchronous_verification_comes_within_3_seconds(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    assert (await scene.ask("subscribe", topic, callback, verify="async")).status == 202
    await eventually(lambda: bool(callback.questions))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["hub.topic", "hub.callback"])
async def test_12_and_13_a_url_with_a_fragment_is_refused(
    scene: WebSubScene, mode: str, name: str
) -> None:
    parameters = asked_for(mode, scene)
    parameters[name] += "#fragment"
    assert is_refused(await scene.post(parameters), name)


@pytest.mark.parametrize("query", ["?z=y&a=b", "?hub.challenge=imahacker", "?x=y"])
async def test_14_to_16_the_callbacks_own_query_comes_first(
    scene: WebSubScene, query: str
) -> None:
    topic, callback = scene.topic(), scene.callback(query)
    await scene.subscribe(topic, callback)
    assert callback.questions[0].target.partition("?")[2].startswith(f"{query[1:]}&")
    names = [name for name, _ in callback.parameters()]
    for name in ("hub.mode", "hub.topic", "hub.challenge"):
        assert name in names[query.count("=") :]


@pytest.mark.parametrize("mode", MODES)
async def test_17_to_20_the_question_is_a_get_with_all_that_was_asked(
    scene: WebSubScene, mode: str
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    answer = await scene.ask(mode, topic, callback, verify_token="a token of theirs")
    await scene.until(answer, "verified")
    parameters = callback.parameters()
    for name in ("hub.mode", "hub.topic", "hub.challenge", "hub.verify_token"):
        assert [each for each, _ in parameters].count(name) == 1
    values = dict(parameters)
    assert callback.questions[-1].method == "GET"
    assert (values["hub.mode"], values["hub.topic"]) == (mode, topic.url)
    assert values["hub.verify_token"] == "a token of theirs"
    assert re.fullmatch(r"[+\-./0-9=A-Z_a-z]+", values["hub.challenge"])


@pytest.mark.parametrize("status", [404, 500])
async def test_25_an_answer_is_final(scene: WebSubScene, status: int) -> None:
    topic, callback = scene.topic(), scene.callback()
    callback.on_question = lambda request: ServerAnswer(status=status)
    answer = await scene.ask("subscribe", topic, callback)
    await scene.until(answer, "failed")
    document = await scene.diagnose(answer)
    assert document["verification"]["next_try"] is None  # type: ignore[index]


async def test_27_after_a_failed_verification_nothing_is_delivered(
    scene: WebSubScene,
) -> None:
    topic, callback, witness = scene.topic(), scene.callback(), scene.callback()
    callback.on_question = lambda request: ServerAnswer(body=b"something else")
    await scene.until(await scene.ask("subscribe", topic, callback), "failed")
    await scene.subscribe(topic, witness)
    await scene.publish(topic)
    await eventually(lambda: bool(witness.deliveries))
    assert callback.deliveries == []


async def test_29_an_unsubscription_ends_it(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.until(await scene.ask("unsubscribe", topic, callback), "verified")
    again = await scene.ask("unsubscribe", topic, callback)
    await scene.until(again, "needless")
    assert callback.modes == ["subscribe", "unsubscribe"]


async def test_30_a_failed_unsubscription_changes_nothing(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    callback.on_question = lambda request: ServerAnswer(status=404)
    await scene.until(await scene.ask("unsubscribe", topic, callback), "failed")
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))


@pytest.mark.parametrize("mode", MODES)
async def test_31_a_verify_token_is_not_needed(scene: WebSubScene, mode: str) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.until(await scene.ask(mode, topic, callback), "verified")
    assert "hub.verify_token" not in dict(callback.parameters())


async def test_32_an_invalid_url_is_explained_in_plain_text(
    scene: WebSubScene,
) -> None:
    parameters = {**asked_for("subscribe", scene), "hub.callback": "invalid url"}
    answer = await scene.post(parameters)
    assert is_refused(answer, "hub.callback")
    assert re.search(r"ur[li]", answer.text, re.IGNORECASE)


async def test_34_and_39_a_ping_is_answered_with_204(scene: WebSubScene) -> None:
    answer = await scene.publish(scene.topic())
    assert (answer.status, answer.text) == (204, "")


async def test_38_a_ping_without_a_url_is_refused(scene: WebSubScene) -> None:
    assert is_refused(await scene.post({"hub.mode": "publish"}), "hub.url")


async def test_40_41_and_47_a_ping_leads_to_a_fetch_and_a_post(
    scene: WebSubScene,
) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    fetched_before = len(topic.requests)
    await scene.publish(topic)
    await eventually(lambda: len(topic.requests) > fetched_before)
    await eventually(lambda: bool(callback.deliveries))
    assert callback.deliveries[0].method == "POST"


async def test_42_the_content_type_is_the_topics(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    assert callback.deliveries[0].headers["content-type"] == "application/atom+xml"


async def test_45_49_50_and_51_a_document_arrives_whole(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.publish(topic, topic_document(3, 2, 1))
    await eventually(lambda: bool(callback.deliveries))
    assert callback.deliveries[0].body == topic_document(3, 2, 1)


async def test_46_with_a_secret_there_is_a_signature(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback, secret="a secret")
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    assert callback.deliveries[0].headers["x-hub-signature"].startswith("sha256=")


async def test_48_the_publisher_is_told_how_many_subscribe(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    await scene.subscribe(topic, callback)
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    assert topic.requests[-1].headers["x-hub-subscribers"] == "1"
    assert "1 subscriber;" in topic.requests[-1].headers["user-agent"]


async def test_52_a_refused_delivery_is_made_again(scene: WebSubScene) -> None:
    topic, callback = scene.topic(), scene.callback()
    callback.answer(ServerAnswer(status=500), ServerAnswer())
    await scene.subscribe(topic, callback)
    await scene.publish(topic)
    await eventually(lambda: len(callback.deliveries) == 2, seconds=60)
    first, second = callback.deliveries
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.parametrize(
    "form",
    [
        "hub.mode=publish&hub.url={a}&hub.url={b}",
        "hub.mode=publish&hub.topic={a}&hub.topic={b}",
        "hub.mode=publish&hub.url[]={a}&hub.url[]={b}",
        "hub.mode=publish&hub.url%5B0%5D={a}&hub.url%5B1%5D={b}",
        "hub.mode=publish&hub.url={a},{b}",
        "hub.mode=publish&hub.url={a}%2C%20{b}&hub.url=nonsense",
    ],
)
@pytest.mark.parametrize("is_query", [False, True])
async def test_every_form_of_ping_in_use_is_understood(
    scene: WebSubScene, form: str, is_query: bool
) -> None:
    topics, callback = [scene.topic(), scene.topic()], scene.callback()
    for topic in topics:
        await scene.subscribe(topic, callback)
        topic.body = topic_document(2, 1)
    urls = [quote(topic.url, safe="") for topic in topics]
    form = form.format(a=urls[0], b=urls[1])
    answer = await (
        scene.post(b"", query=f"?{form}") if is_query else scene.post(form.encode())
    )
    assert answer.status == 204
    await eventually(lambda: len(callback.deliveries) == 2)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("", ["sha1", "sha256"]), ("sha1", ["sha1"]), ("sha512", ["sha512"])],
)
async def test_a_client_of_that_time_gets_the_signature_that_it_knows(
    scene: WebSubScene, chosen: str, expected: list[str]
) -> None:
    topic, callback = scene.topic(), scene.callback()
    chosen_by = {"hub.signature_algorithm": chosen} if chosen else {}
    answer = await scene.post(
        [
            *[("hub.mode", "subscribe"), ("hub.secret", "s3cret")],
            *[("hub.topic", topic.url), ("hub.callback", callback.url)],
            *[("hub.verify", "async"), ("hub.verify", "sync")],
            *chosen_by.items(),
        ]
    )
    await scene.until(answer, "verified")
    await scene.publish(topic)
    await eventually(lambda: bool(callback.deliveries))
    delivery = callback.deliveries[0]
    names = ("x-hub-signature", "x-hub-signature-256")
    assert [delivery.headers[name] for name in names if name in delivery.headers] == [
        f"{each}={hmac.new(b's3cret', delivery.body, each).hexdigest()}"
        for each in expected
    ]
