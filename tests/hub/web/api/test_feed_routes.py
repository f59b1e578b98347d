from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

import httpx2
import pytest
from msgspec.structs import replace

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    Credentials,
    DocumentWrite,
    FeedHealth,
    FeedId,
    FeedState,
    FetchCommit,
    NewSubscription,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
)
from tests.support.services import Hub
from tests.support.storage_scene import START, fetch

URL = "https://example.org/feed.xml"


async def test_a_new_feed_is_created_and_fetched_at_once(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    answer = await client.post("/api/feeds", json={"url": URL, "category": "news"})
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    feed = answer.json()
    assert feed["url"] == URL
    assert feed["category"] == "news"
    assert (feed["code"], feed["entries"], feed["title"]) == (200, 3, "A feed")
    assert feed["next_fetch"].endswith("Z")
    assert hub.poller.fetched == [feed["id"]]


async def test_a_known_feed_is_not_fetched_again(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    await client.post("/api/feeds", json={"url": URL})
    answer = await client.post("/api/feeds", json={"url": URL})
    assert answer.status_code == 200
    assert len(hub.poller.fetched) == 1


async def test_a_feed_that_fails_that_is_given_a_key_is_asked_at_once(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.poller.outcome = lambda polling: replace(polling, code=401, error="no key")
    made = await client.post("/api/feeds", json={"url": URL})
    hub.poller.outcome = lambda polling: replace(polling, code=200, error="")

    key = {"headers": {"Authorization": "Bearer key"}}
    answer = await client.patch(f"/api/feeds/{made.json()['id']}", json=key)

    assert (answer.status_code, answer.json()["error"]) == (200, "")
    assert len(hub.poller.fetched) == 2


@pytest.mark.parametrize(
    "terms",
    [
        {"private": True},
        {"category": "sport"},
        {"basic": "ann:pass"},
        {"headers": {"X-Key": "k"}},
        {"publish_secret": "another"},
        {"subscription_callback": "https://you.example/may"},
    ],
)
async def test_adding_a_known_feed_otherwise_is_refused_and_changes_nothing(
    client: httpx2.AsyncClient, hub: Hub, terms: dict[str, object]
) -> None:
    as_it_is = {"url": URL, "category": "news", "publish_secret": "s"}
    made = await client.post("/api/feeds", json=as_it_is)
    feed_id = made.json()["id"]
    before = await hub.storage.feeds.targets([feed_id])

    refused = await client.post("/api/feeds", json={**as_it_is, **terms})

    assert refused.status_code == 409
    (name,) = terms
    said = "credentials" if name in ("basic", "headers") else name
    assert f"does not change its {said}: use" in refused.json()["detail"]
    assert f"fanfare feeds edit {feed_id}" in refused.json()["detail"]
    assert await hub.storage.feeds.targets([feed_id]) == before
    assert await hub.storage.feeds.publish_secret(feed_id) == "s"
    assert await hub.storage.feeds.subscription_callback(feed_id) == ""
    for same in (as_it_is, {"url": URL}):
        again = await client.post("/api/feeds", json=same)
        assert (again.status_code, again.json()["category"]) == (200, "news")


async def test_a_private_feed_stays_private_when_it_is_added_again(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/api/feeds", json={"url": URL, "private": True})
    again = await client.post("/api/feeds", json={"url": URL})
    assert (again.status_code, again.json()["private"]) == (200, True)


async def test_a_removed_feed_returns_as_it_is_added_now(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = await client.post("/api/feeds", json={"url": URL, "private": True})
    path = f"/api/feeds/{made.json()['id']}"
    await client.delete(path)
    more = {"category": "news", "publish_secret": "s"}
    again = await client.post("/api/feeds", json={"url": URL, **more})
    shown = again.json()
    assert (shown["id"], shown["private"]) == (made.json()["id"], False)
    assert shown["category"] == "news"
    assert await hub.storage.feeds.publish_secret(shown["id"]) == "s"


WITHDRAWN = "it is private: it leaves"
SHOWN = "it is public, including stored entries"
KEPT = "accounts that subscribe to it can still read it"
OPERATORS = "only the operator can read it"
UNLOCKED = "it is fetched without credentials, and stays private"
ENDED = "2 subscriptions of others ended"
STRANGERS_ENDED = "1 subscription of others ended"


@pytest.mark.parametrize(
    ("before", "change", "after", "follows"),
    [
        ({}, {"private": True}, (True, False), [WITHDRAWN, KEPT, STRANGERS_ENDED]),
        ({"private": True}, {"private": False}, (False, False), [SHOWN]),
        ({"private": True}, {"private": True}, (True, False), []),
        ({}, {"private": False}, (False, False), []),
        ({}, {"category": ""}, (False, False), []),
        ({}, {"basic": "a:b"}, (True, True), [WITHDRAWN, OPERATORS, ENDED]),
        ({"private": True}, {"basic": "a:b"}, (True, True), [OPERATORS, ENDED]),
        ({"basic": "a:b"}, {"basic": ""}, (True, False), [UNLOCKED]),
        ({"basic": "a:b"}, {"headers": {"X-Key": "k"}}, (True, True), []),
        (
            {"basic": "a:b"},
            {"headers": {}, "private": False},
            (False, False),
            [SHOWN, UNLOCKED],
        ),
    ],
)
async def test_editing_a_feed_says_what_follows(
    client: httpx2.AsyncClient,
    hub: Hub,
    before: dict[str, object],
    change: dict[str, object],
    after: tuple[bool, bool],
    follows: list[str],
) -> None:
    made = await client.post("/api/feeds", json={"url": URL, **before})
    feed = made.json()
    if not feed["has_credentials"]:
        for account in (ANONYMOUS, 7):
            await hub.storage.subscriptions.add(
                NewSubscription(
                    account=AccountId(account),
                    topic=URL,
                    feed_id=feed["id"],
                    callback="https://you.example/",
                ),
                hub.clock.now(),
            )

    answer = await client.patch(f"/api/feeds/{feed['id']}", json=change)

    shown = answer.json()
    assert answer.status_code == 200
    assert (shown["private"], shown["has_credentials"]) == after
    assert len(shown["follows"]) == len(follows)
    for said, expected in zip(shown["follows"], follows, strict=True):
        assert said.startswith(expected)
    ended = {ENDED: 2, STRANGERS_ENDED: 1}
    assert shown["subscriptions_ended"] == sum(ended.get(each, 0) for each in follows)


async def test_a_feed_with_credentials_is_not_made_public(
    client: httpx2.AsyncClient,
) -> None:
    made = await client.post("/api/feeds", json={"url": URL, "basic": "a:b"})
    path = f"/api/feeds/{made.json()['id']}"
    answer = await client.patch(path, json={"private": False})
    assert (answer.status_code, answer.json()["field"]) == (422, "private")


async def test_more_subscriptions_than_a_transaction_ends_are_ended_too(
    client: httpx2.AsyncClient, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.services.feed_registration.END_PAGE", 2)
    made = await client.post("/api/feeds", json={"url": URL})
    for number in range(5):
        await hub.storage.subscriptions.add(
            NewSubscription(
                account=ANONYMOUS,
                topic=URL,
                feed_id=made.json()["id"],
                callback=f"https://you.example/{number}",
            ),
            hub.clock.now(),
        )
    path = f"/api/feeds/{made.json()['id']}"
    answer = await client.patch(path, json={"private": True})
    assert answer.json()["subscriptions_ended"] == 5


@pytest.mark.parametrize("state", ["removed", "unknown"])
async def test_what_is_not_there_cannot_be_edited(
    client: httpx2.AsyncClient, state: str
) -> None:
    path = "/api/feeds/99"
    if state == "removed":
        made = await client.post("/api/feeds", json={"url": URL})
        path = f"/api/feeds/{made.json()['id']}"
        await client.delete(path)
    answer = await client.patch(path, json={"private": True})
    assert answer.status_code == (409 if state == "removed" else 404)


async def test_nobody_has_to_wait(client: httpx2.AsyncClient, hub: Hub) -> None:
    answer = await client.post("/api/feeds?wait=0", json={"url": URL})
    assert answer.json()["last_fetch"] is None
    assert hub.poller.fetched == []
    assert hub.poller.woken == 1


async def test_many_feeds_are_added_at_once_and_none_keeps_others_from_it(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    known = (await client.post("/api/feeds", json={"url": URL})).json()
    urls = [
        f"{URL}#.part",
        "not a url",
        *(f"https://example.org/{n}" for n in range(200)),
    ]
    feeds = [{"url": URL, "category": "other"}, *({"url": each} for each in urls)]
    body = {"feeds": feeds, "category": "all", "keeps_known": True}

    answer = await client.post("/api/imports", json=body)

    assert answer.status_code == 200
    first, *others = answer.json()["feeds"]
    assert (first["url"], first["outcome"]) == (URL, "known")
    assert first["feed"]["category"] == known["category"]
    assert first["feed"]["private"] is False
    assert [each["url"] for each in others] == urls
    assert [each["outcome"] for each in others] == ["added", "refused"] + [
        "added"
    ] * 200
    assert "url" in others[1]["reason"]
    assert others[1]["feed"] is None
    added = others[-1]["feed"]
    assert (added["category"], added["private"]) == ("all", False)
    assert added["last_fetch"] is None  # nobody has waited
    again = await client.post("/api/imports", json=body)
    outcomes = {each["outcome"] for each in again.json()["feeds"]}
    assert outcomes == {"known", "refused"}


@pytest.mark.parametrize(
    ("terms", "named"),
    [
        ({"category": "other"}, "category"),
        ({"private": True}, "private"),
        ({"private": True, "keeps_known": True}, "private"),
        ({"private": True, "keeps_known": True, "dry_run": True}, "private"),
    ],
)
async def test_a_known_feed_that_is_not_as_it_is_to_be_is_refused_by_an_import(
    client: httpx2.AsyncClient, terms: dict[str, object], named: str
) -> None:
    before = (await client.post("/api/feeds", json={"url": URL})).json()

    answer = await client.post("/api/imports", json={"feeds": [{"url": URL}], **terms})

    (imported,) = answer.json()["feeds"]
    assert imported["outcome"] == "refused"
    assert f"does not change its {named}: use" in imported["reason"]
    after = (await client.get("/api/feeds", params={"url": URL})).json()["feeds"][0]
    assert (after["category"], after["private"]) == (before["category"], False)


async def test_what_an_import_would_add_can_be_asked(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feeds = [{"url": URL}, {"url": "http://10.0.0.1/feed"}, {"url": "not a url"}]
    answer = await client.post("/api/imports", json={"feeds": feeds, "dry_run": True})
    outcomes = [each["outcome"] for each in answer.json()["feeds"]]
    assert outcomes == ["addable", "refused", "refused"]
    assert (await client.get("/api/feeds")).json()["feeds"] == []


async def test_a_fetch_that_takes_too_long_leaves_the_feed_registered(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.poller.hangs = True
    answer = await client.post("/api/feeds?wait=1", json={"url": URL})
    assert answer.status_code == 201
    assert answer.json()["last_fetch"] is None


async def test_an_error_is_told_and_the_feed_stays(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    hub.poller.outcome = lambda polling: replace(polling, code=0, error="no such host")
    answer = await client.post("/api/feeds", json={"url": URL})
    assert answer.status_code == 201
    assert answer.json()["error"] == "no such host"


@pytest.mark.parametrize(
    ("body", "credentials"),
    [
        (
            {"url": "https://me:p%40ss@example.org/feed.xml"},
            Credentials(username="me", password="p@ss"),
        ),
        (
            {"url": URL, "basic": "me:a:b"},
            Credentials(username="me", password="a:b"),
        ),
        (
            {"url": URL, "headers": {"X-Key": "1"}},
            Credentials(headers={"X-Key": "1"}),
        ),
    ],
)
async def test_credentials_make_a_feed_private_and_are_not_shown(
    client: httpx2.AsyncClient,
    hub: Hub,
    body: dict[str, object],
    credentials: Credentials,
) -> None:
    answer = await client.post("/api/feeds", json=body)
    feed = answer.json()
    assert feed["url"] == URL
    assert feed["private"]
    assert feed["has_credentials"]
    assert "p@ss" not in answer.text
    [target] = await hub.storage.feeds.targets([FeedId(feed["id"])])
    assert target.credentials == credentials


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": 7}, "url"),
        ({"url": "example.org/feed"}, "url"),
        ({"url": "ftp://example.org/"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://example.org:0/"}, "url"),
        ({"url": "http://example.org:port/"}, "url"),
        ({"url": "http://exa mple.org/"}, "url"),
        ({"url": f"http://example.org/{'a' * 2_048}"}, "url"),
        ({"url": URL, "uri": URL}, "uri"),
        ({"url": URL, "private": "yes"}, "private"),
        ({"url": URL, "headers": {"X": 1}}, "headers[...]"),
        ({"url": URL, "headers": {"X Y": "1"}}, "headers"),
        ({"url": URL, "headers": {"X": "a\r\nHost: b"}}, "headers"),
        ({"url": URL, "basic": "me"}, "basic"),
        ({"url": URL, "category": "news\x1b[31m"}, "category"),
        ({"url": URL, "category": "a\0"}, "category"),
        ({"url": URL, "category": "s" * 201}, "category"),
        ({"url": "http://127.0.0.1/feed"}, "url"),
        ({"url": "http://[::1]/feed"}, "url"),
        ({"url": "http://inside.example/feed"}, "url"),
        ({"url": "http://example.org:25/feed"}, "url"),
    ],
)
async def test_a_bad_value_is_refused_by_its_field_and_nothing_is_stored(
    client: httpx2.AsyncClient, hub: Hub, body: dict[str, object], field: str
) -> None:
    answer = await client.post("/api/feeds", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["field"] == field
    assert problem["title"] == HTTPStatus(422).phrase
    assert (await client.get("/api/feeds")).json()["feeds"] == []


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "content-length", "Transfer-Encoding", "Connection", "TE"),
        *("Trailer", "Upgrade", "Expect", "Accept-Encoding", "Range", "If-Range"),
        *("If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"),
    ],
)
async def test_headers_that_frame_a_request_or_make_it_conditional_are_refused(
    client: httpx2.AsyncClient, name: str
) -> None:
    body = {"url": URL, "headers": {name: "1"}}
    answer = await client.post("/api/feeds", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "headers")
    expected = f"expected a header that the hub does not set itself, not '{name}'"
    assert expected in answer.json()["detail"]


async def test_cookies_are_credentials_too(client: httpx2.AsyncClient) -> None:
    body = {"url": URL, "headers": {"Cookie": "session=1"}}
    answer = await client.post("/api/feeds", json=body)
    assert answer.json()["has_credentials"]


async def test_passwords_are_not_repeated_in_problems(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.post("/api/feeds", json={"url": "ftp://me:geheim@x.example/"})
    assert "geheim" not in answer.text


async def test_an_unknown_host_is_no_matter_of_the_guard(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.post("/api/feeds", json={"url": "https://nowhere.example/"})
    assert answer.status_code == 201


async def test_the_list_is_paged_by_id(client: httpx2.AsyncClient) -> None:
    for number in range(3):
        await client.post("/api/feeds?wait=0", json={"url": f"{URL}?{number}"})
    first = (await client.get("/api/feeds?limit=2")).json()
    assert [feed["url"] for feed in first["feeds"]] == [f"{URL}?0", f"{URL}?1"]
    rest = (await client.get(f"/api/feeds?limit=2&after={first['next']}")).json()
    assert [feed["url"] for feed in rest["feeds"]] == [f"{URL}?2"]
    assert rest["next"] is None


async def test_the_list_can_be_of_one_url_or_state(client: httpx2.AsyncClient) -> None:
    feed = (await client.post("/api/feeds?wait=0", json={"url": URL})).json()
    found = (await client.get("/api/feeds", params={"url": URL})).json()["feeds"]
    assert [each["id"] for each in found] == [feed["id"]]
    assert (await client.get("/api/feeds?url=x")).json()["feeds"] == []
    assert (await client.get("/api/feeds?state=paused")).json()["feeds"] == []


@pytest.mark.parametrize(
    "query", ["limit=many", "after=-1", "limit=1001", "state=odd", "after=1e3"]
)
async def test_a_bad_query_is_refused_by_its_field(
    client: httpx2.AsyncClient, query: str
) -> None:
    answer = await client.get(f"/api/feeds?{query}")
    assert answer.status_code == 422
    assert answer.json()["field"] == query.partition("=")[0]


async def test_one_feed_is_explained(client: httpx2.AsyncClient) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()
    report = (await client.get(f"/api/feeds/{feed['id']}")).json()
    assert report["subscribers"] == 0
    assert {"name", "value", "unit", "note"} == set(report["period_terms"][0])
    assert "period" in [term["name"] for term in report["period_terms"]]


async def test_the_plan_of_a_feed_has_a_route_of_its_own(
    client: httpx2.AsyncClient,
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()

    plan = (await client.get(f"/api/feeds/{feed['id']}/plan")).json()

    assert plan["sentence"].startswith("next fetch at 20")
    assert (len(plan["hours"]), len(plan["minutes"])) == (168, 12)
    assert {"name", "value", "unit", "note"} == set(plan["terms"][0])
    assert (await client.get("/api/feeds/99/plan")).status_code == 404


async def test_the_polls_of_a_feed_have_a_route_of_their_own(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()
    poll = Poll(
        at=START,
        reason=PollReason.ASKED_FOR,
        outcome=PollOutcome.NEW,
        code=200,
        milliseconds=31,
        entries=2,
    )
    stored = await hub.storage.feeds.get(FeedId(feed["id"]))
    assert stored is not None
    await hub.storage.log.commit(fetch(stored, poll=poll))

    history = (await client.get(f"/api/feeds/{feed['id']}/history")).json()

    assert history == {
        "id": feed["id"],
        "url": URL,
        "polls": [
            {
                "at": "2026-01-01T00:00:00Z",
                "reason": "asked_for",
                "outcome": "new",
                "code": 200,
                "milliseconds": 31,
                "entries": 2,
                "asked_by": None,
            }
        ],
        "before": None,
        "after": None,
        "pauses": [],
    }
    later = f"/api/feeds/{feed['id']}/history?since=2026-01-01T00:00:01Z"
    gap = (await client.get(later)).json()
    assert (gap["polls"], gap["before"]) == ([], history["polls"][0])
    assert (await client.get("/api/feeds/99/history")).status_code == 404


async def test_a_list_tells_the_last_failure_of_each_feed(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()
    stored = await hub.storage.feeds.get(FeedId(feed["id"]))
    assert stored is not None
    listed = (await client.get("/api/feeds")).json()["feeds"]
    assert [each["last_failure"] for each in listed] == [None]
    failed = Poll(
        at=START,
        reason=PollReason.PLANNED,
        outcome=PollOutcome.FAILED,
        code=503,
        milliseconds=9,
    )
    unchanged = replace(failed, outcome=PollOutcome.UNCHANGED, code=304)
    for poll in (failed, unchanged):
        await hub.storage.log.commit(fetch(stored, poll=poll))
    (found,) = (await client.get("/api/feeds", params={"url": URL})).json()["feeds"]
    told = {"at": "2026-01-01T00:00:00Z", "outcome": "failed", "code": 503}
    assert found["last_failure"] == told


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        (FeedHealth.OK, "2026-01-01T00:04:00Z"),
        (FeedHealth.SLOW, "2026-01-01T00:04:00Z"),
        (FeedHealth.FAILING, "2026-01-01T00:01:00Z"),
    ],
)
async def test_a_feed_is_well_since_it_was_resumed_and_fails_since_it_began_to(
    client: httpx2.AsyncClient, hub: Hub, condition: FeedHealth, since: str
) -> None:
    id = (await client.post("/api/feeds", json={"url": URL})).json()["id"]
    path = f"/api/feeds/{id}"
    stored = await hub.storage.feeds.get(FeedId(id))
    assert stored is not None
    began = fetch(stored, when=START + timedelta(minutes=1), condition=condition)
    await hub.storage.log.commit(began)
    hub.clock.advance(120)
    await client.post(f"{path}/pause")
    hub.clock.advance(120)
    await client.post(f"{path}/resume")
    await client.post(f"{path}/resume")
    hub.clock.advance(120)
    await client.post(f"{path}/resume")

    health = (await client.get(path)).json()["health"]

    assert (health["state"], health["since"]) == (condition, since)


async def test_the_report_has_the_feeds_that_something_may_be_done_about(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()
    other = (await client.post("/api/feeds", json={"url": f"{URL}?2"})).json()
    now = hub.clock.now()
    await hub.storage.feeds.set_state(FeedId(feed["id"]), FeedState.GONE, now)

    report = (await client.get("/api/findings")).json()

    (found,) = report["feeds"]
    assert (found["id"], found["url"], found["state"]) == (feed["id"], URL, "gone")
    assert found["polls_per_entry"] is None
    assert [each["kind"] for each in found["findings"]] == ["dead"]
    assert report["next"] is None
    moved = (await client.get("/api/findings?kind=moved")).json()
    assert moved == {"feeds": [], "next": None}
    page = (await client.get(f"/api/findings?after={feed['id']}&limit=1")).json()
    assert page == {"feeds": [], "next": other["id"]}


async def test_pause_resume_and_fetch(client: httpx2.AsyncClient, hub: Hub) -> None:
    feed = (await client.post("/api/feeds?wait=0", json={"url": URL})).json()
    path = f"/api/feeds/{feed['id']}"
    assert (await client.post(f"{path}/pause")).json()["state"] == "paused"
    assert (await client.post(f"{path}/resume")).json()["state"] == "active"
    fetched = (await client.post(f"{path}/fetch")).json()
    assert (fetched["code"], fetched["fetched"]) == (200, True)
    assert hub.poller.woken == 2


async def test_removing_ends_all_subscriptions(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds?wait=0", json={"url": URL})).json()
    for number in range(501):
        await hub.storage.subscriptions.add(
            NewSubscription(
                account=OPERATOR,
                topic=URL,
                feed_id=FeedId(feed["id"]),
                callback=f"https://you.example/{number}",
            ),
            hub.clock.now(),
        )
    answer = await client.delete(f"/api/feeds/{feed['id']}")
    assert answer.json() == {"subscriptions_ended": 501}
    assert await hub.storage.subscriptions.count(FeedId(feed["id"])) == 0
    assert (await client.get("/api/feeds", params={"url": URL})).json()["feeds"] == []
    removed = await hub.storage.feeds.get(FeedId(feed["id"]))
    assert removed is not None
    assert removed.state is FeedState.REMOVED


@pytest.mark.parametrize("verb", ["fetch", "pause", "resume"])
async def test_a_removed_feed_has_to_be_added_again_first(
    client: httpx2.AsyncClient, verb: str
) -> None:
    feed = (await client.post("/api/feeds?wait=0", json={"url": URL})).json()
    await client.delete(f"/api/feeds/{feed['id']}")
    answer = await client.post(f"/api/feeds/{feed['id']}/{verb}")
    assert answer.status_code == 409
    assert "add it again" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/feeds/999"),
        ("DELETE", "/api/feeds/999"),
        ("POST", "/api/feeds/999/fetch"),
        ("GET", "/api/feeds/none"),
        ("GET", "/api/feeds/99999999999999999999999"),
        ("GET", "/api/feeds/9999999999999999999"),
    ],
)
async def test_an_unknown_feed_is_not_found(
    client: httpx2.AsyncClient, method: str, path: str
) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("no feed")


OTHER_SPELLING = "HTTPS://Example.org:443/feed.xml#top"


async def test_a_feed_is_known_under_any_spelling(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()

    answer = await client.post("/api/feeds", json={"url": OTHER_SPELLING})

    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["url"]) == (feed["id"], URL)
    assert len(hub.poller.fetched) == 1
    for url in (OTHER_SPELLING, f" {URL} ", "https://u:p@example.org/feed.xml"):
        found = await client.get("/api/feeds", params={"url": url})
        assert [each["id"] for each in found.json()["feeds"]] == [feed["id"]]


async def test_other_credentials_under_another_spelling_are_another_feed(
    client: httpx2.AsyncClient,
) -> None:
    feeds = [
        (await client.post("/api/feeds", json={"url": url, **more})).json()
        for url, more in (
            (URL, {}),
            (f"{URL}#ann", {"basic": "ann:pass"}),
            (f"{URL}#bob", {"headers": {"X-Key": "bob"}}),
            (f"{URL}#ann2", {"basic": "ann:pass"}),
        )
    ]
    assert [feed["has_credentials"] for feed in feeds] == [False, True, True, True]
    ids = [feed["id"] for feed in feeds]
    assert (len(set(ids)), ids[3]) == (3, ids[1])


async def test_a_raw_document_comes_as_it_came_with_its_own_type(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()
    missing = await client.get(f"/api/feeds/{feed['id']}/raw")
    now = hub.clock.now()
    raw = DocumentWrite(content_type="application/json", body=b'{"a": 1}')
    await hub.storage.log.commit(
        FetchCommit(
            feed_id=feed["id"], at=now, next_fetch=now, polling=Polling(), raw=raw
        )
    )

    found = await client.get(f"/api/feeds/{feed['id']}/raw")

    assert missing.status_code == 404
    assert found.content == b'{"a": 1}'
    assert found.headers["content-type"] == "application/json"
    assert found.headers["x-content-type-options"] == "nosniff"


async def test_a_subscription_callback_is_set_kept_and_taken_away(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    callback = "https://you.example/may"
    feed = {"url": "https://example.org/feed", "subscription_callback": callback}
    made = await client.post("/api/feeds", json=feed)
    feed_id = made.json()["id"]
    for given, kept in (
        ({}, callback),
        ({"subscription_callback": ""}, ""),
        ({"subscription_callback": callback, "publish_secret": "s"}, callback),
    ):
        await client.patch(f"/api/feeds/{feed_id}", json=given)
        assert await hub.storage.feeds.subscription_callback(feed_id) == kept
    assert await hub.storage.feeds.publish_secret(feed_id) == "s"


@pytest.mark.parametrize(
    "url", ["no URL", "http://inside.example/", "ftp://a.example/"]
)
async def test_a_subscription_callback_must_be_one_that_can_be_asked(
    client: httpx2.AsyncClient, url: str
) -> None:
    answer = await client.post(
        "/api/feeds",
        json={"url": "https://example.org/feed", "subscription_callback": url},
    )
    assert answer.status_code == 422
    assert answer.json()["field"] == "subscription_callback"
