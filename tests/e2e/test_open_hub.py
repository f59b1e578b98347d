"""The open hub on real sockets: who may subscribe, what they get, what they can see."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.http_server import ServerAnswer, ServerRequest
from tests.support.subscribers import confirm
from tests.support.waiting import eventually
from tests.support.websub import topic_document, websub_scene


async def test_a_topic_is_fetched_before_its_callback_is_asked(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        fetched_by_then: list[int] = []

        def answer(request: ServerRequest) -> ServerAnswer:
            fetched_by_then.append(len(topic.requests))
            return confirm(request)

        callback.on_question = answer
        await scene.subscribe(topic, callback, secret="s")
        assert fetched_by_then == [1]  # looked at, which was its baseline
        await scene.publish(topic)
        await eventually(lambda: bool(callback.deliveries))


async def test_only_topics_that_are_public_or_name_the_hub_are_served(
    tmp_path: Path,
) -> None:
    async with websub_scene(tmp_path) as scene:
        public, private, unknown = (scene.topic(names_hub=False) for _ in range(3))
        await scene.api.request("POST", "/api/feeds", url=public.url)
        await scene.api.request("POST", "/api/feeds", url=private.url, private=True)
        await scene.subscribe(public, scene.callback())

        reasons = set()
        for topic in (private, unknown):
            callback = scene.callback()
            answer = await scene.ask("subscribe", topic, callback)
            assert answer.status == 202
            await scene.until(answer, "denied")
            assert callback.modes == ["denied"]
            assert callback.questions[0].query["hub.topic"] == topic.url
            reasons.add(callback.questions[0].query["hub.reason"])
        assert reasons == {"the topic does not name this hub"}


async def test_an_open_hub_serves_any_topic(tmp_path: Path) -> None:
    async with websub_scene(tmp_path, FANFARE_OPEN_HUB="any") as scene:
        topic, callback = scene.topic(names_hub=False), scene.callback()
        await scene.subscribe(topic, callback)
        await scene.publish(topic)
        await eventually(lambda: bool(callback.deliveries))


async def test_a_closed_hub_serves_none(tmp_path: Path) -> None:
    async with websub_scene(tmp_path, FANFARE_OPEN_HUB="off") as scene:
        topic, callback = scene.topic(), scene.callback()
        answer = await scene.ask("subscribe", topic, callback)
        assert (answer.status, "FANFARE_OPEN_HUB" in answer.text) == (403, True)
        assert (await scene.publish(topic)).status == 204


async def test_a_pending_request_survives_a_kill(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        callback.on_question = ServerAnswer(silent=True)
        answer = await scene.ask("subscribe", topic, callback)
        await eventually(lambda: bool(callback.questions))
        await scene.hub.kill()
        callback.on_question = confirm
        await scene.hub.start()
        await scene.hub.wait_ready()
        await scene.until(answer, "verified")


async def test_normalized_formats_bring_only_what_is_new(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, as_json, as_atom = scene.topic(), scene.callback(), scene.callback()
        for callback, format in ((as_json, "json"), (as_atom, "atom")):
            answer = await scene.post(
                {
                    "hub.mode": "subscribe",
                    "hub.topic": topic.url,
                    "hub.callback": callback.url,
                    "format": format,
                }
            )
            await scene.until(answer, "verified")
        await scene.publish(topic, topic_document(2, 1))
        await eventually(lambda: bool(as_json.deliveries and as_atom.deliveries))
        document = json.loads(as_json.deliveries[0].body)
        assert [item["title"] for item in document["items"]] == ["Entry 2"]
        assert document["status"]["feed"] == topic.url
        assert b"Entry 2" in as_atom.deliveries[0].body
        assert b"Entry 1" not in as_atom.deliveries[0].body


async def test_a_failed_renewal_leaves_the_old_secret_at_work(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        await scene.subscribe(topic, callback)
        callback.on_question = lambda request: ServerAnswer(status=404)
        answer = await scene.ask("subscribe", topic, callback, secret="a new secret")
        await scene.until(answer, "failed")
        await scene.publish(topic)
        await eventually(lambda: bool(callback.deliveries))
        assert "x-hub-signature" not in callback.deliveries[0].headers


async def test_a_lease_that_is_over_is_told_and_nothing_is_delivered(
    tmp_path: Path,
) -> None:
    async with websub_scene(tmp_path, FANFARE_MIN_LEASE="1") as scene:
        topic, brief, lasting = scene.topic(), scene.callback(), scene.callback()
        await scene.subscribe(topic, lasting)
        answer = await scene.subscribe(topic, brief, lease_seconds="1")
        assert dict(brief.parameters(0))["hub.lease_seconds"] == "1"
        await eventually(lambda: "denied" in brief.modes, seconds=60)
        told = dict(brief.parameters())
        assert told["hub.topic"] == topic.url
        assert told["hub.reason"] == "the lease has expired"
        document = await scene.diagnose(answer)
        assert document["subscription"]["ended_reason"] == told["hub.reason"]  # type: ignore[index]

        await scene.publish(topic)
        await eventually(lambda: bool(lasting.deliveries), seconds=60)
        assert brief.deliveries == []
        assert lasting.modes == ["subscribe"]


async def test_the_diagnostics_tell_of_everything_that_happened(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        answer = await scene.subscribe(topic, callback, lease_seconds="3600")
        callback.answer(*[ServerAnswer(status=503)] * 3, ServerAnswer())
        await scene.publish(topic)
        await eventually(lambda: bool(callback.deliveries))

        async def has_a_retry() -> bool:
            return (await scene.diagnose(answer))["next_retry"] is not None

        await eventually(has_a_retry)
        document = await scene.diagnose(answer)
        assert document["lease_seconds"] == 3600
        assert document["subscription"]["lease_end"]  # type: ignore[index]
        assert document["verification"]["status"] == 200  # type: ignore[index]
        assert document["verification"]["excerpt"] == ""  # type: ignore[index]
        assert document["topic_fetch"]["status"] == 200  # type: ignore[index]
        assert {each["status"] for each in document["deliveries"]} == {503}  # type: ignore[attr-defined]


async def test_a_redirecting_callback_is_not_followed(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback, other = scene.topic(), scene.callback(), scene.callback()
        callback.on_question = lambda request: ServerAnswer(
            status=302, headers={"Location": other.url}
        )
        answer = await scene.ask("subscribe", topic, callback)
        await scene.until(answer, "failed")
        assert other.questions == []


async def test_a_huge_answer_of_a_callback_is_not_read(tmp_path: Path) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        callback.on_question = lambda request: ServerAnswer(body=b"x" * 5_000_000)
        answer = await scene.ask("subscribe", topic, callback)
        await scene.until(answer, "failed")
        document = await scene.diagnose(answer)
        assert "is not the challenge" in document["verification"]["reason"]  # type: ignore[index]
