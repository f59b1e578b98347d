from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import httpx2
import pytest
from msgspec.structs import replace

from hub.web.websub.diagnostics import meaning_of
from storage.errors import StorageFull
from storage.records import (
    NewFeed,
    NewSubscription,
    Verification,
    VerificationState,
    VerificationTry,
)
from tests.support.services import Hub
from tests.support.work_claims import finish_verification

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REQUEST = {
    "hub.mode": "subscribe",
    "hub.topic": "https://example.org/feed",
    "hub.callback": "https://you.example/<script>",
}


async def post(
    client: httpx2.AsyncClient, parameters: dict[str, str], **headers: str
) -> httpx2.Response:
    body = urlencode(parameters)
    return await client.post("/hub", content=body, headers={**FORM, **headers})


def diagnostics_path(answer: httpx2.Response) -> str:
    link = answer.headers["Link"]
    assert link.startswith("<http://hub.example/hub/subscriptions/")
    assert link.endswith('>; rel="status"')
    return str(link[1:].partition(">")[0])


async def finish(hub: Hub, state: VerificationState, excerpt: str = "") -> Verification:
    now = hub.clock.now()
    (found,) = await hub.storage.verifications.due(now, per_host=1, limit=1)
    last = VerificationTry(at=now, status=404, excerpt=excerpt, reason="answered 404")
    await finish_verification(hub.storage, found.id, state, last, now)
    return found


async def test_a_request_is_accepted_with_a_link_to_its_diagnostics(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    answer = await post(anybody, REQUEST)
    assert answer.status_code == 202
    document = (await anybody.get(diagnostics_path(answer))).json()
    assert document["state"] == "pending"
    assert document["topic"] == REQUEST["hub.topic"]
    assert document["lease_seconds"] == 864_000
    assert document["verification"]["next_try"]
    assert document["subscription"] is document["topic_fetch"] is None
    assert document["deliveries"] == []


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded; charset=UTF-8",
        "Application/X-WWW-Form-Urlencoded",
    ],
)
async def test_the_content_type_may_be_spelled_otherwise(
    anybody: httpx2.AsyncClient, content_type: str
) -> None:
    answer = await post(anybody, REQUEST, **{"Content-Type": content_type})
    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"hub.mode": "what"}, "hub.mode"),
        ({"hub.topic": ""}, "hub.topic"),
        ({"hub.callback": "nowhere"}, "hub.callback"),
        ({"hub.secret": "s" * 200}, "hub.secret"),
        ({"hub.lease_seconds": "long"}, "hub.lease_seconds"),
        ({"format": "xml"}, "format"),
    ],
)
async def test_an_error_is_plain_text_that_names_the_parameter(
    anybody: httpx2.AsyncClient, changes: dict[str, str], name: str
) -> None:
    answer = await post(anybody, {**REQUEST, **changes})
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith(f"{name}: expected ")


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
async def test_another_body_than_a_form_is_refused(
    anybody: httpx2.AsyncClient, content_type: str
) -> None:
    answer = await anybody.post(
        "/hub", content=b"{}", headers={"Content-Type": content_type}
    )
    assert answer.status_code == 415
    assert "urlencoded" in answer.text


async def test_a_body_that_is_too_large_is_refused(anybody: httpx2.AsyncClient) -> None:
    answer = await post(anybody, {**REQUEST, "x": "y" * 1_100_000})
    assert answer.status_code == 413


@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
async def test_the_path_may_end_with_a_slash_and_an_end_promises_no_question(
    anybody: httpx2.AsyncClient, mode: str
) -> None:
    form = {**REQUEST, "hub.mode": mode}
    answer = await anybody.post("/hub/", data=form)
    assert answer.status_code == 202
    is_promised = answer.text.startswith("The callback will be asked")
    assert is_promised is (mode == "subscribe")
    assert (await anybody.get("/hub/")).status_code == 405


async def test_nothing_is_done_by_get(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/hub", params=REQUEST)
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"


async def test_a_full_disk_is_said(
    hub: Hub, anybody: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: object, **more: object) -> bool:
        raise StorageFull("no space left")

    monkeypatch.setattr(hub.storage.verifications, "add", fail)
    answer = await post(anybody, REQUEST)
    assert (answer.status_code, answer.text) == (503, "no space left\n")
    assert answer.headers["Retry-After"] == "5"


async def test_when_too_many_wait_it_is_said_when_to_come_back(
    hub: Hub, anybody: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.services.open_hub_requests.MOST_PENDING", 1)
    await post(anybody, REQUEST)
    answer = await post(anybody, {**REQUEST, "hub.callback": "https://a.example/"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")


async def test_pings_are_answered_by_url_when_json_is_accepted(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    await hub.storage.feeds.add(
        NewFeed(url="https://example.org/feed"), hub.clock.now()
    )
    answer = await anybody.post(
        "/hub?hub.mode=publish&hub.url=https://example.org/feed"
        "&hub.url=https://example.org/other&hub.url=nonsense",
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 200
    assert [(each["url"], each["status"]) for each in answer.json()["urls"]] == [
        ("https://example.org/feed", "fetching"),
        ("https://example.org/other", "not-listed"),
        ("nonsense", "invalid"),
    ]


async def test_the_page_escapes_all_and_runs_nothing(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    path = diagnostics_path(await post(anybody, REQUEST))
    await finish(hub, VerificationState.FAILED, "<img src=x onerror=alert(1)>")
    page = await anybody.get(path, headers={"Accept": "text/html,*/*"})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'")
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cache-Control"] == "no-store"
    assert "<script" not in page.text
    assert "<img" not in page.text
    assert "https://you.example/&lt;script&gt;" in page.text
    assert "Your callback answered 404: it must answer 200 and echo" in page.text


def tried(status: int, reason: str = "") -> VerificationTry:
    return VerificationTry(
        at=datetime(2026, 1, 1, tzinfo=UTC), status=status, reason=reason
    )


@pytest.mark.parametrize(
    ("state", "last", "said"),
    [
        (VerificationState.PENDING, None, "has not been asked yet"),
        (VerificationState.PENDING, tried(0, "timeout"), "timeout. It is asked again"),
        (VerificationState.FAILED, None, "did not confirm"),
        (VerificationState.FAILED, tried(0, "refused"), "no answer of your callback"),
        (
            VerificationState.FAILED,
            tried(200, "not it"),
            "not it. The body must be",
        ),
        (VerificationState.FAILED, tried(301), "follows no redirect"),
        (VerificationState.FAILED, tried(500), "it must answer 200 and echo"),
        (VerificationState.DENIED, tried(0, "off"), "does not serve this topic: off."),
        (VerificationState.REPLACED, None, "A later request"),
        (VerificationState.NEEDLESS, None, "nothing to unsubscribe"),
    ],
)
async def test_the_page_says_what_became_of_a_request_and_what_to_do(
    hub: Hub,
    anybody: httpx2.AsyncClient,
    state: VerificationState,
    last: VerificationTry | None,
    said: str,
) -> None:
    await post(anybody, REQUEST)
    now = hub.clock.now()
    (asked,) = await hub.storage.verifications.due(now, per_host=1, limit=1)
    assert said in meaning_of(replace(asked, state=state, last=last))


async def test_the_page_of_a_verified_request_shows_the_subscription(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    path = diagnostics_path(await post(anybody, REQUEST))
    asked = await finish(hub, VerificationState.VERIFIED)
    await add_subscription(hub, asked)
    page = (await anybody.get(path, headers={"Accept": "text/html"})).text
    assert "Lease ends" in page
    assert "Last deliveries" in page
    document = (await anybody.get(path)).json()
    assert document["subscription"]["state"] == "active"
    assert document["subscription"]["lease_end"]
    assert document["topic_fetch"]["status"] == 200
    assert document["verification"]["status"] == 404


async def test_the_page_of_a_request_that_is_not_confirmed_shows_what_to_answer(
    anybody: httpx2.AsyncClient,
) -> None:
    path = diagnostics_path(await post(anybody, REQUEST))
    page = (await anybody.get(path, headers={"Accept": "text/html"})).text
    asked = "GET https://you.example/&lt;script&gt;?hub.mode=subscribe&amp;hub.topic="
    assert asked in page
    assert "hub.challenge=a-random-text" in page
    assert "the challenge as the whole body" in page


async def test_an_unknown_token_is_not_found(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/hub/subscriptions/guessed")
    assert answer.status_code == 404


async def add_subscription(hub: Hub, asked: Verification) -> None:
    now = hub.clock.now()
    feed, _ = await hub.storage.feeds.add(NewFeed(url=asked.topic), now)
    await hub.poller.fetch_now(feed.id)
    new = NewSubscription(
        account=asked.account,
        topic=asked.topic,
        feed_id=feed.id,
        callback=asked.callback,
        lease_end=now + timedelta(days=10),
    )
    await hub.storage.subscriptions.add(new, now)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("hub.topic", "example"),
        ("hub.callback", "ftp://you.example/"),
        ("hub.mode", "forget"),
        ("hub.lease_seconds", "long"),
    ],
)
async def test_who_accepts_json_is_told_which_parameter_is_at_fault(
    anybody: httpx2.AsyncClient, parameter: str, value: str
) -> None:
    answer = await post(
        anybody, {**REQUEST, parameter: value}, Accept="application/json"
    )
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["field"], problem["type"]) == (parameter, "/problems/invalid-value")
    assert problem["status"] == answer.status_code
    plain = await post(anybody, {**REQUEST, parameter: value})
    assert (plain.status_code, plain.text.strip()) == (
        answer.status_code,
        problem["detail"],
    )
    assert plain.text.startswith(f"{parameter}: ")
