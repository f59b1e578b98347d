"""The playground by the API: what is sent, what is noted, and whose it is."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import httpx2
import pytest
from msgspec.structs import replace

from hub.http import Purpose, Request
from hub.http.network_errors import Blocked, TimedOut, Unreachable
from hub.services.playground import SENDING
from hub.services.token_authentication import CreateToken, Principal
from hub.websub.playground_runs import (
    KEPT,
    MOST_EXCHANGES,
    MOST_OF_ACCOUNT,
    MOST_RUNS,
    without_secret,
)
from protocols.websub.signatures import sign
from storage.records import Account, AccountId, FeedId, FeedState, NewFeed, TokenScope
from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.chosen_engine import stored_bytes
from tests.support.fake_network import answered
from tests.support.operator_browser import OperatorBrowser, text_of
from tests.support.services import Hub, open_hub
from tests.support.waiting import eventually, in_background

HUB = "http://hub.example/hub"
ELSEWHERE = "https://site.example/feed"
OTHER_HUB = "https://hub.other.example/"
CALLBACK = "https://you.example/hook"
BOTH = f'<{OTHER_HUB}>; rel="hub", <{ELSEWHERE}>; rel="self"'


@dataclass
class Playground:
    """One run, as a developer has it."""

    hub: Hub
    client: httpx2.AsyncClient
    run: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/api/playground/{self.run['id']}"

    async def step(self, step: str, **more: str) -> list[dict[str, Any]]:
        answer = await self.client.post(
            f"{self.path}/steps", json={"step": step, **more}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["exchanges"]

    async def send(self, **message: Any) -> httpx2.Response:
        return await self.client.post(f"{self.path}/messages", json=message)

    async def all(self) -> list[dict[str, Any]]:
        return (await self.client.get(self.path)).json()["exchanges"]

    async def manner(self, **manners: str) -> None:
        answer = await self.client.patch(self.path, json=manners)
        assert answer.status_code == 200, answer.text

    async def come(self, method: str, where: str, **more: Any) -> httpx2.Response:
        """A request of somebody else to an address of the hub."""
        url = where.removeprefix("http://hub.example")
        headers = {
            "Authorization": "",
            "User-Agent": "Others/1",
            **more.pop("headers", {}),
        }
        return await self.client.request(method, url, headers=headers, **more)

    async def ask(self, **changes: str) -> httpx2.Response:
        """The question of a hub, at the run's callback."""
        question = {
            "hub.mode": "subscribe",
            "hub.topic": self.run["topic"],
            "hub.challenge": "abc",
            "hub.lease_seconds": "60",
            **changes,
        }
        return await self.come("GET", self.run["callback"], params=question)


async def start(of: Hub, client: httpx2.AsyncClient, **asked: str) -> Playground:
    answer = await client.post("/api/playground", json=asked)
    assert answer.status_code == 201, answer.text
    return Playground(of, client, answer.json())


@pytest.fixture
async def playground(hub: Hub, client: httpx2.AsyncClient) -> Playground:
    """A hub that does not reach itself; steps wait for nothing."""
    hub.services.playground.patience = 0.01
    hub.services.playground.slowly = 0.01
    hub.network.answer_with(Blocked())
    return await start(hub, client)


def levels(exchange: dict[str, Any]) -> list[str]:
    return [each["level"] for each in exchange["remarks"]]


def said(exchange: dict[str, Any]) -> str:
    return "; ".join(each["text"] for each in exchange["remarks"])


async def test_a_run_says_if_the_hub_does_not_reach_itself(
    playground: Playground, hub: Hub, client: httpx2.AsyncClient
) -> None:
    assert "blocked" in playground.run["self_unreachable"]
    hub.network.answer_with(answered(body=b"a parked domain"))
    other = await start(hub, client)
    assert other.run["self_unreachable"] == ("something else answers at the public URL")
    hub.network.answer_with(answered(headers={"Fanfare-Playground": "topic"}))
    assert (await start(hub, client)).run["self_unreachable"] == ""


async def test_the_own_topic_is_discovered_and_subscribed_to_by_its_own_hub(
    playground: Playground,
) -> None:
    [found] = await playground.step("discover")
    assert found["sender"] == "playground"
    assert found["request"]["line"].startswith("GET /playground/topics/")
    assert found["response"]["line"] == "HTTP/1.1 200"
    assert levels(found) == ["good", "good"]
    assert playground.run["own_topic"] in found["response"]["body"]
    [asked] = await playground.step("subscribe")
    assert asked["url"] == HUB
    assert asked["status"] == 202
    assert "hub.secret=(secret)" in asked["request"]["body"]
    assert await playground.hub.storage.verifications.due(
        playground.hub.clock.now(), per_host=9, limit=9
    )


async def test_the_hub_verifies_and_notifies_inside_if_it_cannot_otherwise(
    playground: Playground,
) -> None:
    hub = playground.hub
    async with in_background(hub.built.background["verifier"]):
        await playground.step("subscribe")

        async def is_asked() -> bool:
            return any(each["step"] == "verify" for each in await playground.all())

        await eventually(is_asked)
    [asked] = [each for each in await playground.all() if each["step"] == "verify"]
    assert asked["sender"] == "hub"
    assert "bad" not in levels(asked)
    assert hub.network.urls == [playground.run["own_topic"]], "the probe alone"


async def test_a_callback_confirms_only_what_was_asked_for_here(
    playground: Playground,
) -> None:
    answer = await playground.ask()
    assert answer.status_code == 404
    await playground.step("subscribe")
    answer = await playground.ask()
    assert (answer.status_code, answer.text) == (200, "abc")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    other = await playground.ask(**{"hub.topic": ELSEWHERE})
    assert other.status_code == 404
    assert "but http://hub.example" in said((await playground.all())[-1])


@pytest.mark.parametrize(
    ("manner", "status", "body"),
    [
        ("confirm-all", 200, "abc"),
        ("wrong-challenge", 200, "not the challenge"),
        ("not-found", 404, "There is no such subscription.\n"),
        ("slow", 200, "abc"),
    ],
)
async def test_a_callback_answers_challenges_as_it_is_told(
    playground: Playground, manner: str, status: int, body: str
) -> None:
    if manner != "confirm-all":
        await playground.step("subscribe")
    await playground.manner(challenge=manner)
    answer = await playground.ask()
    assert (answer.status_code, answer.text) == (status, body)
    is_wrong = manner in ("wrong-challenge", "not-found")
    assert ("bad" in levels((await playground.all())[-1])) is is_wrong


@pytest.mark.parametrize(
    ("manner", "status"),
    [("accept", 204), ("error", 500), ("gone", 410), ("redirect", 302), ("slow", 204)],
)
async def test_a_callback_answers_notifications_as_it_is_told(
    playground: Playground, manner: str, status: int
) -> None:
    await playground.manner(delivery=manner, secret="of another hub")
    body = "<feed/>"
    headers = {
        "Content-Type": "application/atom+xml",
        "Link": f'<{OTHER_HUB}>; rel="hub", <{ELSEWHERE}>; rel="self"',
        "X-Hub-Signature": sign("sha256", "of another hub", body.encode()),
    }
    answer = await playground.come(
        "POST", playground.run["callback"], content=body, headers=headers
    )
    assert answer.status_code == status
    [noted] = await playground.all()
    assert "the signature is right" in said(noted)
    assert noted["response"]["line"].startswith(f"HTTP/1.1 {status} ")


async def test_who_sends_something_shows_no_credentials(
    playground: Playground,
) -> None:
    own = {
        "Authorization": "Bearer theirs",
        "Cookie": "fanfare=theirs",
        "Proxy-Authorization": "Basic theirs",
    }
    topic, callback = playground.run["topic"], playground.run["callback"]
    question = {"hub.mode": "publish", "hub.url": topic, "hub.secret": "theirs"}
    await playground.come("GET", topic, headers=own)
    await playground.come("GET", callback, headers=own)
    await playground.come("POST", callback, headers=own)
    await playground.come("POST", "/hub", params=question, headers=own)
    exchanges = await playground.all()
    assert len(exchanges) == 4
    for each in exchanges:
        shown = dict(each["request"]["headers"])
        assert shown["authorization"] == shown["cookie"] == "(not shown)"
    assert "theirs" not in json.dumps(exchanges)


async def test_a_denial_is_read(playground: Playground) -> None:
    answer = await playground.ask(**{"hub.mode": "denied", "hub.reason": "closed"})
    assert answer.status_code == 200
    assert "closed" in said((await playground.all())[-1])


async def test_nothing_is_published_before_a_hub_is_known(
    playground: Playground, hub: Hub, client: httpx2.AsyncClient
) -> None:
    hub.network.at = {ELSEWHERE: answered()}
    await playground.send(step="discover", method="GET", url=ELSEWHERE)
    step = {"step": "publish", "title": "too early"}
    refused = await client.post(f"{playground.path}/steps", json=step)
    assert refused.status_code == 409
    topic = await playground.come("GET", playground.run["topic"])
    assert topic.text.count("<entry>") == 1


@pytest.mark.parametrize(("field", "length"), [("title", 201), ("text", 65_537)])
async def test_what_is_too_long_to_publish_is_named(
    playground: Playground, client: httpx2.AsyncClient, field: str, length: int
) -> None:
    step = {"step": "publish", field: "x" * length}
    refused = await client.post(f"{playground.path}/steps", json=step)
    assert (refused.status_code, refused.json()["field"]) == (422, field)


async def test_the_hub_of_a_topic_elsewhere_is_found_along_redirects(
    playground: Playground, hub: Hub, client: httpx2.AsyncClient
) -> None:
    there = await start(hub, client, topic="https://site.example/old")
    hub.network.at = {
        "https://site.example/old": answered(301, headers={"Location": "/feed"}),
        ELSEWHERE: answered(headers={"Link": BOTH}),
        OTHER_HUB: answered(202),
    }
    refused = await client.post(f"{there.path}/steps", json={"step": "subscribe"})
    assert refused.status_code == 409
    old, new = await there.step("discover")
    assert (old["status"], new["url"]) == (301, ELSEWHERE)
    [asked] = await there.step("subscribe")
    assert asked["url"] == OTHER_HUB
    sent = hub.network.requests[-1]
    assert sent.purpose is Purpose.HUB
    form = parse_qs((sent.body or b"").decode())
    assert form["hub.topic"] == [ELSEWHERE]
    assert form["hub.callback"] == [there.run["callback"]]
    assert len(form["hub.secret"][0]) == 40
    [pinged] = await there.step("publish")
    assert "hub.mode=publish" in pinged["request"]["body"]


@pytest.mark.parametrize(
    ("step", "status", "location"),
    [
        ("discover", 302, "http://site.example/plain"),
        ("discover", 302, "javascript:alert(1)"),
        ("discover", 302, ""),
        ("subscribe", 302, "/elsewhere"),
        ("publish", 307, "/elsewhere"),
    ],
)
async def test_a_redirect_is_not_followed_to_where_it_should_not_lead(
    playground: Playground, hub: Hub, step: str, status: int, location: str
) -> None:
    hub.network.answer_with(answered(status, headers={"Location": location}))
    before = len(hub.network.requests)
    answer = await playground.send(
        step=step, method="POST", url="https://site.example/", headers="A: b"
    )
    assert answer.status_code == 200
    assert len(hub.network.requests) == before + 1


async def test_no_redirect_is_followed_for_ever(
    playground: Playground, hub: Hub
) -> None:
    numbers = iter(range(100))
    hub.network.answer_with(
        lambda request: answered(307, headers={"Location": f"/{next(numbers)}"})
    )
    answer = await playground.send(
        step="subscribe", method="POST", url="https://site.example/"
    )
    assert len(answer.json()["exchanges"]) == 6


@pytest.mark.parametrize("error", [Blocked(), TimedOut("late"), Unreachable("gone")])
async def test_why_there_is_no_answer_is_told(
    playground: Playground, hub: Hub, error: Exception
) -> None:
    hub.network.answer_with(error)
    answer = await playground.send(
        step="discover", method="GET", url="https://10.0.0.1/"
    )
    [noted] = answer.json()["exchanges"]
    assert noted["error"] == str(error)
    assert noted["response"] is None


async def test_a_message_is_sent_again_as_it_was_edited(
    playground: Playground,
) -> None:
    await playground.step("subscribe")
    answer = await playground.send(again=1, body="hub.mode=subscribe\nhub.topic=x y&z")
    [noted] = answer.json()["exchanges"]
    assert noted["request"]["body"] == "hub.mode=subscribe&hub.topic=x%20y%26z"
    assert noted["status"] == 400
    assert "bad" in levels(noted)


async def test_a_notification_is_signed_anew(playground: Playground) -> None:
    await playground.manner(secret="the secret")
    message = {
        "step": "notify",
        "method": "POST",
        "url": playground.run["callback"],
        "headers": "Content-Type: text/plain\nX-Hub-Signature: sha1=00",
        "body": "text",
    }
    [wrong] = (await playground.send(**message)).json()["exchanges"]
    assert "the signature is wrong" in said(wrong)
    [right] = (await playground.send(**message, sign=True)).json()["exchanges"]
    assert sign("sha1", "the secret", b"text") in said(right)
    assert "the signature is right" in said(right)
    assert len(await playground.all()) == 2


async def test_a_subscriber_elsewhere_is_watched(
    playground: Playground, hub: Hub
) -> None:
    """What it asks the hub for, what the hub asks it, and what it answers."""
    form = {
        "hub.mode": "subscribe",
        "hub.topic": playground.run["own_topic"],
        "hub.callback": CALLBACK,
        "hub.secret": "of the subscriber",
    }
    answer = await playground.come("POST", "/hub", data=form)
    assert answer.status_code == 202
    hub.network.at[CALLBACK] = answered(204)
    hub.network.answer_with(
        answered(body=b"<script>", headers={"Content-Type": "text/html"})
    )
    async with in_background(hub.built.background["verifier"]):

        async def is_asked() -> bool:
            return any(each["step"] == "verify" for each in await playground.all())

        await eventually(is_asked)
    asked, fetched, verified = await playground.all()
    assert (asked["step"], asked["sender"]) == ("subscribe", "others")
    assert "hub.secret=(secret)" in asked["request"]["body"]
    assert fetched["step"] == "fetch"
    assert verified["url"].startswith(f"{CALLBACK}?hub.mode=subscribe")
    assert verified["response"]["body"] == "<script>"
    assert "the body is not the challenge" in said(verified)
    assert "of the subscriber" not in str(await playground.all())


async def test_a_notification_to_a_subscriber_elsewhere_is_judged_by_its_secret(
    playground: Playground, hub: Hub
) -> None:
    form = {
        "hub.mode": "subscribe",
        "hub.topic": playground.run["own_topic"],
        "hub.callback": CALLBACK,
        "hub.secret": "of the subscriber",
    }
    await playground.come("POST", "/hub", data=form)
    network = hub.services.playground._network
    hub.network.answer_with(answered(500))
    body = b"<feed/>"
    await network.send(
        Request(
            method="POST",
            url=CALLBACK,
            purpose=Purpose.CALLBACK,
            headers={
                "X-PubSubHubbub-Topic": playground.run["own_topic"],
                "X-Hub-Signature": sign("sha256", "of the subscriber", body),
            },
            body=body,
        )
    )
    noted = (await playground.all())[-1]
    assert (noted["step"], noted["sender"]) == ("notify", "hub")
    assert "the signature is right" in said(noted)
    assert "the callback answers 500" in said(noted)
    hub.network.answer_with(TimedOut("no answer in time"))
    with pytest.raises(TimedOut):
        await network.send(
            Request(
                method="GET",
                url=f"{CALLBACK}?hub.topic={quote(playground.run['own_topic'])}",
                purpose=Purpose.CALLBACK,
            )
        )
    assert (await playground.all())[-1]["error"] == "no answer in time"


async def test_other_requests_are_nobody_s_business(
    playground: Playground, hub: Hub
) -> None:
    form = {"hub.mode": "subscribe", "hub.topic": ELSEWHERE, "hub.callback": CALLBACK}
    await playground.come("POST", "/hub", data=form)
    network = hub.services.playground._network
    hub.network.answer_with(answered(200))
    for request in (
        Request(method="GET", url=f"{CALLBACK}?a=b", purpose=Purpose.CALLBACK),
        Request(method="POST", url=CALLBACK, purpose=Purpose.CALLBACK),
        Request(method="GET", url=ELSEWHERE, purpose=Purpose.TOPIC),
    ):
        await network.send(request)
    assert await playground.all() == []


async def test_only_the_hub_s_endpoint_is_handed_requests_inside(
    playground: Playground, hub: Hub
) -> None:
    before = len(hub.network.requests)
    for url in ("http://hub.example/api/feeds", "http://hub.example.evil/hub"):
        answer = await playground.send(step="discover", method="GET", url=url)
        assert answer.json()["exchanges"][0]["error"]
    assert len(hub.network.requests) == before + 2


async def test_publishing_adds_an_entry_of_that_name(
    playground: Playground,
) -> None:
    hostile = "<b>&\x0b]]>\U0001f984"
    await playground.step("publish", title=hostile, text="some text")
    answer = await playground.come("GET", playground.run["own_topic"])
    assert "<title>&lt;b&gt;&amp;]]&gt;\U0001f984</title>" in answer.text
    assert answer.headers["link"].startswith(f'<{HUB}>; rel="hub"')
    assert (await playground.all())[-1]["step"] == "fetch"
    [row] = await playground.step("publish")
    assert "hub.url=" in row["request"]["body"]
    again = await playground.come("GET", playground.run["own_topic"])
    assert again.text.count("<entry>") == 3


async def test_a_topic_names_another_hub_if_it_is_to(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    hub.network.answer_with(Blocked())
    there = await start(hub, client, hub=OTHER_HUB)
    answer = await there.come("GET", there.run["own_topic"])
    assert answer.headers["link"].startswith(f'<{OTHER_HUB}>; rel="hub"')
    assert there.run["hub"] == OTHER_HUB


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"step": "other"}, "step"),
        ({"method": "DELETE"}, "method"),
        ({"url": "ftp://site.example/"}, "url"),
        ({"url": "https://user:password@site.example/"}, "url"),
        ({"headers": "no colon"}, "headers"),
        ({"headers": "A B: c"}, "headers"),
        ({"headers": "A: b\x00"}, "headers"),
        ({"headers": "A: b\n" * 41}, "headers"),
        ({"body": "x" * 65_537}, "body"),
    ],
)
async def test_what_cannot_be_sent_is_refused_by_its_field(
    playground: Playground, message: dict[str, str], field: str
) -> None:
    good = {"step": "discover", "method": "POST", "url": "https://site.example/"}
    answer = await playground.send(**{**good, **message})
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field


async def test_headers_of_the_client_are_its_own(
    playground: Playground, hub: Hub
) -> None:
    hub.network.answer_with(answered(200))
    await playground.send(
        step="discover",
        method="POST",
        url="https://site.example/",
        headers="Host: inside.example\nContent-Length: 9\nX-A: b",
        body="text",
    )
    assert dict(hub.network.requests[-1].headers) == {"X-A": "b"}


async def test_a_large_answer_and_many_of_them_are_bounded(
    playground: Playground, hub: Hub
) -> None:
    hub.network.answer_with(
        answered(
            body=b"x" * 100_000,
            headers={f"x-{number}": "y" * 10_000 for number in range(100)},
            complete=False,
        )
    )
    for _ in range(MOST_EXCHANGES + 3):
        await playground.send(step="discover", method="GET", url=ELSEWHERE)
    report = (await playground.client.get(playground.path)).json()
    kept = report["exchanges"]
    size = sum(len(str(each["response"])) for each in kept)
    assert size < 1_500_000
    assert report["run"]["forgotten"] == MOST_EXCHANGES + 3 - len(kept)
    assert report["run"]["last"] == MOST_EXCHANGES + 3
    assert kept[-1]["number"] == MOST_EXCHANGES + 3
    assert len(kept[-1]["response"]["body"]) == 32_768
    later = await playground.client.get(f"{playground.path}?after=102")
    assert [each["number"] for each in later.json()["exchanges"]] == [103]


async def test_what_arrives_is_bounded(playground: Playground) -> None:
    statuses = [(await playground.ask()).status_code for _ in range(32)]
    assert statuses[:30] == [404] * 30
    assert statuses[30:] == [503] * 2
    too_large = await playground.come(
        "POST", playground.run["callback"], content=b"x" * (2 * 1024 * 1024 + 1)
    )
    assert too_large.status_code == 413


async def test_a_slow_callback_keeps_few_waiting(
    playground: Playground, hub: Hub
) -> None:
    await playground.manner(delivery="slow")
    hub.services.playground.slowly = 0.2
    where = playground.run["callback"]
    posts = (playground.come("POST", where, content=b"") for _ in range(6))
    statuses = [each.status_code for each in await asyncio.gather(*posts)]
    assert sorted(statuses) == [204, 204, 204, 204, 503, 503]


async def test_a_run_that_is_forgotten_is_gone_with_the_feed_of_its_topic(
    playground: Playground, hub: Hub
) -> None:
    topic = playground.run["own_topic"]
    feed, _ = await hub.storage.feeds.add(
        NewFeed(url=topic, private=True), hub.clock.now()
    )
    await playground.client.delete(playground.path)
    assert (await playground.come("GET", topic)).status_code == 410
    assert (await playground.ask()).status_code == 410
    assert (await playground.client.get(playground.path)).status_code == 404
    assert await is_removed(hub, feed.id)


async def is_removed(hub: Hub, feed_id: FeedId) -> bool:
    feed = await hub.storage.feeds.get(feed_id)
    return feed is None or feed.state is FeedState.REMOVED


async def test_runs_end_a_month_after_they_were_used(
    playground: Playground, hub: Hub
) -> None:
    left, _ = await hub.storage.feeds.add(
        NewFeed(url="http://hub.example/playground/topics/left", private=True),
        hub.clock.now(),
    )
    hub.clock.advance((KEPT + timedelta(seconds=1)).total_seconds())
    async with in_background(hub.built.background["playground"]):

        async def is_gone() -> bool:
            is_swept = await is_removed(hub, left.id)
            return is_swept and not hub.services.playground.latest(None)

        await eventually(is_gone)


async def test_the_least_used_run_of_an_account_makes_room(
    playground: Playground, hub: Hub
) -> None:
    for _ in range(MOST_OF_ACCOUNT):
        hub.clock.advance(1)
        await start(hub, playground.client)
    assert (await playground.client.get(playground.path)).status_code == 404
    listed = (await playground.client.get("/api/playground")).json()["runs"]
    assert len(listed) == MOST_OF_ACCOUNT


async def test_a_run_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub, client_of(hub.application) as client:
        client.headers.update(ADMIN)
        hub.services.playground.patience = 0.01
        hub.network.answer_with(Blocked())
        before = await start(hub, client)
        async with in_background(hub.built.background["playground"]):
            await before.manner(challenge="confirm-all", secret="a secret of its own")
            await before.step("all")
        report = (await client.get(before.path)).json()
        document = (await before.come("GET", before.run["own_topic"])).content
    assert report["exchanges"]
    async with open_hub(tmp_path) as hub, client_of(hub.application) as client:
        client.headers.update(ADMIN)
        after = Playground(hub, client, before.run)
        assert (await client.get(after.path)).json() == report
        browser = OperatorBrowser(client)
        await browser.log_in()
        permalink = await browser.open(after.path.replace("/api/", "/admin/"))
        assert "2. Subscribe 202" in text_of(permalink)
        assert (await after.ask()).text == "abc"
        there = (await after.come("GET", before.run["own_topic"])).content
        assert there == document
        assert b"a secret of its own" not in stored_bytes(tmp_path / "hub.db")


async def test_runs_are_not_gone_while_they_cannot_be_read(
    playground: Playground, hub: Hub
) -> None:
    hub.services.playground._is_loaded = False  # as after a read that failed
    assert (
        await playground.come("GET", playground.run["own_topic"])
    ).status_code == 503
    assert (await playground.ask()).status_code == 503
    assert (await playground.client.get(playground.path)).status_code == 503


async def test_what_could_not_be_published_is_no_entry(
    playground: Playground, hub: Hub, alice: dict[str, str]
) -> None:
    client = playground.client
    made = (await client.post("/api/playground", json={}, headers=alice)).json()
    own = f"/api/playground/{made['id']}/steps"
    publish = {"step": "publish", "title": "News"}
    statuses = [
        (await client.post(own, json=publish, headers=alice)).status_code
        for _ in range(int(SENDING.burst) + 1)
    ]
    assert statuses[-2:] == [200, 503]
    document = await playground.come("GET", made["own_topic"])
    last = int(SENDING.burst) + 1  # beside the first one, that is there from the start
    assert f"#entry-{last}<" in document.text
    assert f"#entry-{last + 1}<" not in document.text


async def test_no_account_pushes_out_the_runs_of_another(
    playground: Playground, hub: Hub, alice: dict[str, str]
) -> None:
    runs = hub.services.playground.latest(None)
    for number in range(MOST_RUNS - 1):
        principal = Principal(
            account=Account(id=AccountId(100 + number), name=f"{number}"),
            scopes=frozenset({TokenScope.SUBSCRIBE}),
        )
        await hub.services.playground.start(principal)
    client = playground.client
    refused = await client.post("/api/playground", json={}, headers=alice)
    assert refused.status_code == 503
    assert "all of other accounts" in refused.json()["detail"]
    assert len(hub.services.playground.latest(None)) == MOST_RUNS
    await start(hub, client)  # in the place of its own
    assert hub.services.playground.latest(None)[-1] not in runs


# --- accounts ---


@pytest.fixture
async def alice(hub: Hub, anybody: httpx2.AsyncClient) -> dict[str, str]:
    made = await hub.services.tokens.create(
        CreateToken(account="alice", scopes=frozenset({TokenScope.SUBSCRIBE}))
    )
    return {"Authorization": f"Bearer {made.secret}"}


async def test_an_account_has_its_own_runs_only(
    playground: Playground, alice: dict[str, str], hub: Hub
) -> None:
    client = playground.client
    assert (await client.get(playground.path, headers=alice)).status_code == 404
    made = await client.post("/api/playground", json={}, headers=alice)
    assert "/account/playground/" in made.json()["page"]
    listed = (await client.get("/api/playground", headers=alice)).json()["runs"]
    assert [each["id"] for each in listed] == [made.json()["id"]]
    assert len((await client.get("/api/playground")).json()["runs"]) == 2


async def test_an_account_is_not_shown_answers_of_allowed_networks(
    playground: Playground, alice: dict[str, str], hub: Hub
) -> None:
    made = await playground.client.post("/api/playground", json={}, headers=alice)
    inside = answered(body=b"an internal page", headers={"X-Inside": "a"})
    hub.network.answer_with(replace(inside, is_exempt=True))
    message = {"step": "discover", "method": "GET", "url": "https://inside.example/"}
    path = f"/api/playground/{made.json()['id']}/messages"
    answer = await playground.client.post(path, json=message, headers=alice)
    [noted] = answer.json()["exchanges"]
    assert noted["withheld"]
    assert noted["response"] is None
    assert "internal page" not in answer.text
    [shown] = (await playground.send(**message)).json()["exchanges"]
    assert shown["response"]["body"] == "an internal page"


async def test_an_account_sends_so_much_and_no_more(
    playground: Playground, alice: dict[str, str], hub: Hub
) -> None:
    made = await playground.client.post("/api/playground", json={}, headers=alice)
    hub.network.answer_with(answered(200))
    message = {"step": "discover", "method": "GET", "url": ELSEWHERE}
    path = f"/api/playground/{made.json()['id']}/messages"
    statuses = [
        (await playground.client.post(path, json=message, headers=alice)).status_code
        for _ in range(int(SENDING.burst) + 1)
    ]
    assert statuses == [200] * int(SENDING.burst) + [503]


@pytest.mark.parametrize("name", ["hub.secret", "hub%2Esecret", "h%75b.secret"])
def test_the_secret_of_a_url_is_hidden_too(name: str) -> None:
    line = f"POST /hub?a=b&{name}=s3cr3t&c=d HTTP/1.1"
    assert without_secret(line) == f"POST /hub?a=b&{name}=(secret)&c=d HTTP/1.1"
    assert without_secret(f"http://a/?{name}=x") == f"http://a/?{name}=(secret)"
