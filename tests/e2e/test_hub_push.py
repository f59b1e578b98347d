"""Feeds that hubs of others push, well or badly: entries come once, and soon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from tests.support.chosen_engine import stored_bytes
from tests.support.hub_process import HubProcess
from tests.support.upstream_hub import (
    TEN_DAYS,
    UpstreamScene,
    upstream_process,
    upstream_scene,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_SUCH = b"There is no such subscription.\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HubProcess]:
    async with upstream_process(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest_asyncio.fixture(loop_scope="module")
async def scene(hub: HubProcess) -> AsyncIterator[UpstreamScene]:
    async with upstream_scene(hub) as scene:
        yield scene


async def test_a_feed_is_subscribed_to_at_the_hub_it_names(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    [asked] = scene.upstream.requests
    assert asked["hub.mode"] == "subscribe"
    assert asked["hub.topic"] == scene.topic
    assert asked["hub.lease_seconds"] == str(TEN_DAYS)
    assert len(asked["hub.secret"]) >= 32
    assert len(asked["hub.secret"]) < 200
    path = urlsplit(asked["hub.callback"]).path
    assert asked["hub.callback"].startswith(f"{scene.hub.url}/upstream/")
    assert len(path.rpartition("/")[2]) >= 32
    [answered] = scene.upstream.answers
    assert (answered.status, answered.body) == (200, b"a-challenge")
    assert answered.headers["content-type"] == "application/octet-stream"
    assert answered.headers["x-content-type-options"] == "nosniff"
    push = await scene.push_of(feed_id)
    assert (push["way"], push["hub"]) == ("websub", f"{scene.server_url}/hub")


async def test_what_is_pushed_is_told_without_a_poll_and_makes_polls_rare(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    polls = len(scene.polls)
    for number, algorithm in enumerate(("sha1", "sha256", "sha384", "sha512")):
        taken = await scene.push(scene.document(f"n{number}"), algorithm=algorithm)
        assert (taken.status, taken.body) == (202, b"")
        await scene.until(feed_id, lambda push, n=number: push["brought"] == n + 1)
    await scene.until_titles(feed_id, "one", "n0", "n1", "n2", "n3")
    assert len(scene.polls) == polls
    assert (await scene.push_of(feed_id))["is_trusted"] is True

    scene.entries = ["one", "n0", "n1", "n2", "n3"]
    await scene.api.fetch(feed_id)
    plan = await scene.api.request("GET", f"/api/feeds/{feed_id}/plan")
    assert plan["period"] == 86_400.0
    assert "its hub pushes new entries" in str(plan["sentence"])
    assert (await scene.push_of(feed_id))["missed"] == 0
    found = (await scene.api.request("GET", "/api/findings?kind=pushed&limit=1000"))[
        "feeds"
    ]
    assert isinstance(found, list)
    assert feed_id in [each["id"] for each in found]


async def test_the_same_entry_by_push_and_by_poll_is_one_notification(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    first = await _head(scene)
    await scene.push(scene.document("two", "one"))
    await scene.until_titles(feed_id, "one", "two")
    scene.entries = ["two", "one"]
    await scene.api.fetch(feed_id)
    await scene.push(scene.document("one", "two"))  # late, and in another order
    await scene.push(scene.document("three", "two"))
    await scene.until_titles(feed_id, "one", "three", "two")
    assert await _head(scene) == first + 2


async def _head(scene: UpstreamScene) -> int:
    """The position of the last record of the log."""
    return (await _numbers(scene, "fanfare_log_head"))[""]


async def test_a_poll_that_finds_what_nobody_pushed_makes_polls_normal_again(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    for name in ("two", "three"):
        await scene.push(scene.document(name))
        await scene.until_titles(
            feed_id, *(["one", "two"] if name == "two" else ["one", "two", "three"])
        )
    scene.entries = ["one", "two", "three", "four"]
    await scene.api.fetch(feed_id)
    push = await scene.push_of(feed_id)
    assert (push["missed"], push["is_trusted"]) == (1, False)
    assert (await scene.api.feed(feed_id))["period"] != 86_400.0
    await scene.push(scene.document("four"))  # it was only late
    push = await scene.until(feed_id, lambda push: push["late"] == 1)
    assert push["is_trusted"] is True


async def test_what_is_not_signed_rightly_is_ignored_and_counted(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    polls = len(scene.polls)
    forged = scene.document("forged")
    for signature in ("", "sha256=00", "nonsense", "md5=00", f"sha256={'0' * 64}"):
        answer = await scene.push(forged, signature=signature)
        assert (answer.status, answer.body) == (202, b"")
    await scene.push(scene.document("two"))  # after all of them
    await scene.until_titles(feed_id, "one", "two")
    assert len(scene.polls) == polls
    assert (await _counts(scene))["forged"] == 5
    assert (await _counts(scene))["delivered"] == 1


async def _counts(scene: UpstreamScene) -> dict[str, int]:
    hubs = (await scene.api.request("GET", "/api/hubs"))["hubs"]
    assert isinstance(hubs, list)
    found: dict[str, int] = {each["hub"]: each["counts"] for each in hubs}[
        f"{scene.server_url}/hub"
    ]
    return found


async def test_questions_that_were_never_asked_for_are_answered_with_404(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    callback = scene.upstream.callback
    right = {
        "hub.mode": "subscribe",
        "hub.topic": scene.topic,
        "hub.challenge": "c",
        "hub.lease_seconds": "9999",
    }
    for changes in (
        {"hub.topic": f"{scene.topic}/other"},
        {"hub.mode": "unsubscribe"},
        {"hub.mode": "publish"},
        {"hub.challenge": ""},
        {"hub.challenge": "\x00"},
        {"hub.challenge": "c" * 5_000},
        {"hub.mode": "denied", "hub.topic": f"{scene.topic}/other"},
        {"hub.mode": "", "url": scene.topic, "challenge": "c"},
    ):
        answer = await scene.ask(callback, **{**right, **changes})
        assert (answer.status, answer.body) == (
            404,
            b"There is no such subscription.\n",
        )
    other = await scene.ask(f"{scene.hub.url}/upstream/guessed", **right)
    assert (other.status, other.body) == (404, NO_SUCH)
    assert (await scene.push_of(feed_id))["state"] == "subscribed"
    again = await scene.ask(callback, **right)  # it may not have heard the first
    assert (again.status, again.body) == (200, b"c")


async def test_pushes_to_what_is_no_subscription_are_gone(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    polls = len(scene.polls)
    nowhere = f"{scene.hub.url}/upstream/guessed"
    answer = await scene.push(scene.document("x"), callback=nowhere)
    assert answer.status == 410
    await scene.api.remove_feed(feed_id)
    await eventually(lambda: bool(scene.upstream.of_mode("unsubscribe")))
    [ended] = scene.upstream.of_mode("unsubscribe")
    assert ended["hub.callback"] == scene.upstream.callback
    assert ended["hub.topic"] == scene.topic

    async def is_gone() -> bool:
        return (await scene.push(scene.document("y"))).status == 410

    await eventually(is_gone)
    assert len(scene.polls) == polls


async def test_a_paused_feed_is_left_and_a_resumed_one_asked_for_again(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    await scene.api.request("POST", f"/api/feeds/{feed_id}/pause")
    await scene.until(feed_id, lambda push: push["state"] == "unwanted")
    await eventually(lambda: bool(scene.upstream.of_mode("unsubscribe")))
    await eventually(lambda: len(scene.upstream.answers) == 2)
    assert scene.upstream.answers[-1].status == 200
    await scene.api.request("POST", f"/api/feeds/{feed_id}/resume")
    push = await scene.until(feed_id, lambda push: push["state"] == "waiting")
    assert push["asked_at"] is not None


async def test_too_much_is_refused(scene: UpstreamScene) -> None:
    feed_id = await scene.subscribed()
    polls = len(scene.polls)
    answer = await scene.push(b"x" * (10 * 1024 * 1024 + 1))
    assert answer.status == 413
    await scene.push(scene.document("two"))
    await scene.until_titles(feed_id, "one", "two")
    assert len(scene.polls) == polls
    assert (await _counts(scene))["rejected"] == 1


async def test_a_document_of_another_feed_is_not_told_but_the_feed_is_asked(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    other = scene.document("stranger", id="x:other", head="<title/>")
    await scene.push(other)
    push = await scene.until(feed_id, lambda push: push["foreign"] == 1)
    assert push["brought"] == 0
    assert await scene.titles(feed_id) == ["one"]
    feed = await scene.api.feed(feed_id)
    assert "another feed" in str(feed["message"])


async def test_a_document_that_is_cut_off_is_no_loss(scene: UpstreamScene) -> None:
    feed_id = await scene.subscribed()
    scene.entries = ["two", "one"]
    await scene.push(b"<feed><entry><title>half")
    await scene.until(feed_id, lambda push: push["foreign"] == 1)
    await scene.api.fetch(feed_id)
    await scene.until_titles(feed_id, "one", "two")


async def test_a_hub_that_refuses_costs_nothing_but_polls(
    scene: UpstreamScene,
) -> None:
    scene.upstream.status = 400
    before = await _numbers(scene, "fanfare_upstream_total")
    feed_id = await scene.add_feed()
    push = await scene.until(feed_id, lambda push: push["error"] != "")
    assert (push["state"], push["error"]) == ("waiting", "the hub answered 400")
    assert push["retry_at"] is not None
    scene.entries = ["two", "one"]
    await scene.api.fetch(feed_id)
    assert await scene.titles(feed_id) == ["one", "two"]
    assert len(scene.upstream.requests) == 1
    after = await _numbers(scene, "fanfare_upstream_total")
    assert after["refused"] == before["refused"] + 1


async def _numbers(scene: UpstreamScene, name: str) -> dict[str, int]:
    """Of a metric, by its label."""
    text = (await scene.api.ask("GET", "/metrics")).text
    lines = [each for each in text.splitlines() if each.startswith(name)]
    return {
        each.partition('"')[2].partition('"')[0]: int(float(each.split()[-1]))
        for each in lines
    }


async def test_a_hub_that_is_not_there_costs_nothing_but_polls(
    scene: UpstreamScene,
) -> None:
    scene.links = '<link rel="hub" href="http://127.0.0.1:9/hub"/>'
    feed_id = await scene.add_feed()
    push = await scene.until(feed_id, lambda push: push["error"] != "")
    assert push["state"] == "waiting"
    await scene.api.fetch(feed_id)
    assert await scene.titles(feed_id) == ["one"]


async def test_a_hub_that_never_confirms_is_waited_for_and_pushes_in_vain(
    scene: UpstreamScene,
) -> None:
    scene.upstream.verifies = False
    feed_id = await scene.add_feed()
    await scene.until(feed_id, lambda push: push["state"] == "asked")
    await eventually(lambda: bool(scene.upstream.requests))
    answer = await scene.push(scene.document("two"))
    assert answer.status == 410
    assert await scene.titles(feed_id) == ["one"]


async def test_a_hub_that_denies_is_left_alone_for_a_week(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    answer = await scene.ask(
        scene.upstream.callback,
        **{"hub.mode": "denied", "hub.topic": scene.topic, "hub.reason": "no more"},
    )
    assert (answer.status, answer.body) == (200, b"")
    push = await scene.push_of(feed_id)
    assert (push["state"], push["until"]) == ("waiting", None)
    assert push["error"] == "the hub denied it: no more"
    assert (await scene.push(scene.document("two"))).status == 410


async def test_a_lease_of_seconds_is_none(scene: UpstreamScene) -> None:
    scene.upstream.lease = "10"
    feed_id = await scene.add_feed()
    push = await scene.until(feed_id, lambda push: push["error"] != "")
    assert push["error"] == "the hub denied it: it grants only 10 s"
    await eventually(lambda: bool(scene.upstream.answers))
    assert scene.upstream.answers[0].status == 404


async def test_a_hub_may_redirect_the_request(scene: UpstreamScene) -> None:
    scene.name_hub("/moved")
    await scene.subscribed()
    assert len(scene.upstream.requests) == 1


async def test_this_very_hub_is_not_subscribed_to(scene: UpstreamScene) -> None:
    scene.links = f'<link rel="hub" href="{scene.hub.url}/hub"/>'
    feed_id = await scene.add_feed()
    assert (await scene.api.feed(feed_id))["push"] is None


async def test_a_cloud_tells_that_there_is_news(scene: UpstreamScene) -> None:
    feed_id = await scene.add_feed("/cloud-feed")
    push = await scene.until(feed_id, lambda push: push["state"] == "subscribed")
    assert (push["way"], push["hub"]) == ("rsscloud", f"{scene.server_url}/cloud")
    [asked] = scene.cloud.requests
    assert asked["url1"] == f"{scene.server_url}/cloud-feed"
    assert asked["protocol"] == "http-post"
    assert [each.body for each in scene.cloud.answers] == [b"a-challenge"]

    scene.entries = ["two", "one"]
    polls = len(scene.polls)
    other = await scene.api.ask(
        "POST", scene.cloud.callback, data={"url": "https://other.example/"}
    )
    assert other.status == 202
    notice = {"url": f"{scene.server_url}/cloud-feed"}
    told = await scene.api.ask("POST", scene.cloud.callback, data=notice)
    assert told.status == 202
    await scene.until_titles(feed_id, "one", "two")
    assert len(scene.polls) == polls + 1
    assert (await scene.push_of(feed_id))["brought"] == 1
    wrong = await scene.ask(
        scene.cloud.callback, url="https://o.example/", challenge="c"
    )
    assert wrong.status == 404


async def test_a_cloud_that_does_not_take_it_costs_nothing_but_polls(
    scene: UpstreamScene,
) -> None:
    scene.cloud.is_success = False
    feed_id = await scene.add_feed("/cloud-feed")
    push = await scene.until(feed_id, lambda push: push["error"] != "")
    assert push["error"] == "the cloud refused the registration"


async def test_subscriptions_outlive_the_process(scene: UpstreamScene) -> None:
    feed_id = await scene.subscribed()
    await scene.hub.kill()
    await scene.hub.start()
    await scene.hub.wait_ready()
    await scene.push(scene.document("two"))
    await scene.until_titles(feed_id, "one", "two")
    assert len(scene.upstream.requests) == 1


async def test_callbacks_and_secrets_are_told_to_the_hub_only(
    scene: UpstreamScene,
) -> None:
    feed_id = await scene.subscribed()
    await scene.push(scene.document("forged"), signature="sha256=00")
    await scene.push(scene.document("two"))
    await scene.until_titles(feed_id, "one", "two")
    token = scene.upstream.callback.rpartition("/")[2]
    paths = ("feeds", f"feeds/{feed_id}", f"feeds/{feed_id}/plan", "hubs", "findings")
    said = [str(await scene.api.request("GET", f"/api/{path}")) for path in paths]
    said.append((await scene.api.ask("GET", "/metrics")).text)
    said += scene.hub.log
    stored = stored_bytes(scene.hub.database)
    for secret in (token, scene.upstream.secret):
        assert not any(secret in each for each in said)
        assert secret.encode() not in stored


async def test_what_was_acknowledged_is_found_though_the_hub_dies(
    tmp_path: Path,
) -> None:
    async with upstream_process(tmp_path) as hub, upstream_scene(hub) as scene:
        feed_id = await scene.subscribed()
        await hub.terminate()
        await hub.start(failpoint="before-commit")
        await hub.wait_ready()
        scene.entries = ["two", "one"]
        assert (await scene.push(scene.document("two"))).status == 202
        await hub.wait_exit()
        await hub.start()
        await hub.wait_ready()
        await scene.until_titles(feed_id, "one", "two")


async def test_switched_off_it_asks_nobody_and_takes_nothing(tmp_path: Path) -> None:
    """Nobody elsewhere can reach a public URL of 127.0.0.1."""
    off = upstream_process(tmp_path, FANFARE_UPSTREAM="auto")
    async with off, upstream_scene(off) as scene:
        feed_id = await scene.add_feed()
        assert (await scene.api.feed(feed_id))["push"] is None
        answer = await scene.api.ask("POST", "/upstream/guessed", data=b"x")
        assert answer.status == 410
        assert scene.upstream.requests == []
