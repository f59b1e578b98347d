"""Pages that are watched: who may, what is sent, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx2
import lxml.html
import pytest

from hub.services.token_authentication import CreateToken
from hub.web.admin.page_streams import (
    MOST_OF_ACCOUNT,
    MOST_OF_ACCOUNTS,
    MOST_WATCHING,
)
from storage.records import (
    IDLE_SESSION,
    FeedChange,
    Poll,
    PollOutcome,
    PollReason,
    TokenId,
    TokenScope,
)
from tests.support.admin import TOKEN
from tests.support.event_stream import EventClient
from tests.support.live_hub import LiveHub, live_hub
from tests.support.operator_browser import FROM_A_PAGE
from tests.support.storage_scene import START, Scene, fetch, written
from tests.support.waiting import eventually

EVENTS = {"Accept": "text/event-stream", "Sec_Fetch_Site": "same-origin"}
TOPIC = "https://example.org/feed"


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as live:
        await live.add_feed(TOPIC)
        yield live


async def log_in(live: LiveHub, token: str = TOKEN, pages: str = "/admin") -> str:
    """The cookie of a new session."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{live.port}") as client:
        answer = await client.post(
            f"{pages}/login", data={"token": token}, headers=FROM_A_PAGE
        )
    assert answer.status_code == 303
    return answer.headers["set-cookie"].partition(";")[0]


async def make_token(live: LiveHub, account: str) -> tuple[TokenId, str]:
    made = await live.hub.services.tokens.create(
        CreateToken(account=account, scopes=frozenset({TokenScope.LIST}))
    )
    return made.token.id, made.secret


async def watch(live: LiveHub, page: str, cookie: str) -> EventClient:
    stream = await live.ask(page, Cookie=cookie, **EVENTS)
    if stream.status == 200:
        await asyncio.sleep(0)
    return stream


async def parts_of(live: LiveHub, stream: EventClient) -> dict[str, str]:
    """What comes next, by id."""
    await live.hub.built.pages.look()
    elements = map(lxml.html.fromstring, await stream.next("parts"))
    return {it.get("id"): " ".join(it.text_content().split()) for it in elements}


async def test_all_parts_come_first_and_then_what_changes(live: LiveHub) -> None:
    stream = await watch(live, "/admin", await log_in(live))
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    first = await parts_of(live, stream)
    assert {"ready", "to-heed", "feeds-by-state", "delays", "waits"} <= set(first)
    assert first["feeds-all"] == "all1"
    await live.add_feed("https://example.org/other")
    changed = await parts_of(live, stream)
    assert changed.pop("feeds-all") == "all2"
    assert set(changed) <= {"feeds-ok", "waits"}


async def test_polls_of_one_moment_are_rows_of_their_own(live: LiveHub) -> None:
    feed_id = live.feeds[TOPIC]
    feed = await live.hub.storage.feeds.get(feed_id)
    assert feed is not None
    poll = Poll(
        at=START,
        reason=PollReason.PLANNED,
        outcome=PollOutcome.UNCHANGED,
        code=304,
        milliseconds=2,
    )
    for _ in range(3):
        await live.hub.storage.log.commit(fetch(feed, poll=poll))
    stream = await watch(live, f"/admin/feeds/{feed_id}", await log_in(live))
    assert (await parts_of(live, stream))["last-polls"].count("304") == 3


async def test_one_rendering_serves_all_who_see_the_same(live: LiveHub) -> None:
    cookies = [await log_in(live) for _ in range(3)]
    streams = [await watch(live, "/admin/feeds", each) for each in cookies]
    streams += [await watch(live, "/admin", each) for each in cookies]
    assert [each.status for each in streams] == [200] * 6
    assert live.hub.built.pages.views == 2
    await live.hub.built.pages.look()
    given = [await each.chunk() for each in streams[3:]]
    assert given[0] == given[1] == given[2]
    assert b"form_token" not in given[0]


async def test_who_comes_to_a_page_that_is_watched_is_sent_it_at_once(
    live: LiveHub,
) -> None:
    cookie = await log_in(live)
    first = await watch(live, "/admin", cookie)
    shown = await parts_of(live, first)
    second = await watch(live, "/admin", cookie)
    elements = map(lxml.html.fromstring, await second.next("parts"))
    assert {each.get("id") for each in elements} == set(shown)


async def test_what_moved_on_a_page_is_as_if_it_was_opened_just_now(
    live: LiveHub,
) -> None:
    scene, cookie = Scene(live.hub.storage), await log_in(live)
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    pages = [
        *("/admin/feeds", f"/admin/feeds/{feed.id}", "/admin/deliveries"),
        *("/admin/subscriptions", f"/admin/subscriptions/{late.id}"),
    ]
    streams = [await watch(live, page, cookie) for page in pages]
    await live.hub.built.pages.look()
    before = [set(await stream.next("parts")) for stream in streams]
    poll = Poll(
        at=START,
        reason=PollReason.PLANNED,
        outcome=PollOutcome.FAILED,
        code=500,
        milliseconds=2,
    )
    await live.hub.storage.log.commit(fetch(feed, poll=poll, **written("news")))
    change = FeedChange(private=True, category="of its own")
    await live.hub.storage.feeds.edit(feed.id, change, "", START)
    await scene.subscribe_retrying(feed, "later")
    await live.hub.storage.subscriptions.pause(late.id, START)
    await live.hub.built.pages.look()
    for page, old in zip(pages, before, strict=True):
        moved = await watch(live, page, cookie)
        opened = await watch(live, f"{page}?done=", cookie)
        await live.hub.built.pages.look()
        parts = set(await moved.next("parts"))
        assert parts == set(await opened.next("parts")) != old


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**EVENTS}, 401),
        ({**EVENTS, "Cookie": "fanfare=no-such-session"}, 401),
        ({**EVENTS, "Sec_Fetch_Site": "cross-site"}, 403),
        ({"Accept": EVENTS["Accept"], "Origin": "https://evil.example"}, 403),
    ],
    ids=["no session", "another's", "another site", "another origin"],
)
@pytest.mark.parametrize("page", ["/admin", "/account", "/account/subscriptions"])
async def test_a_stream_needs_a_session_and_the_hubs_own_page(
    live: LiveHub, page: str, headers: dict[str, str], status: int
) -> None:
    if status == 403:
        headers = {**headers, "Cookie": await log_in(live)}
    stream = await live.ask(page, **headers)
    assert stream.status == status
    assert stream.headers["content-type"] == "application/problem+json"


async def test_an_account_watches_its_own_pages_only(live: LiveHub) -> None:
    _, secret = await make_token(live, "alice")
    cookie = await log_in(live, secret, "/account")
    assert (await watch(live, "/admin", cookie)).status == 403
    assert (await watch(live, "/account/subscriptions", cookie)).status == 200


async def test_two_accounts_are_not_sent_the_same(live: LiveHub) -> None:
    _, of_alice = await make_token(live, "alice")
    _, of_bob = await make_token(live, "bob")
    for secret in (of_alice, of_bob):
        cookie = await log_in(live, secret, "/account")
        await watch(live, "/account/subscriptions", cookie)
    assert live.hub.built.pages.views == 2


async def revoke(live: LiveHub, token: TokenId) -> None:
    await live.hub.services.tokens.revoke(token)


async def let_idle(live: LiveHub, token: TokenId) -> None:
    live.hub.clock.advance(IDLE_SESSION.total_seconds())
    live.hub.built.pages.wake()


@pytest.mark.parametrize("end", [revoke, let_idle])
async def test_a_stream_ends_with_its_session(
    live: LiveHub, end: Callable[[LiveHub, TokenId], Awaitable[None]]
) -> None:
    token, secret = await make_token(live, "alice")
    stream = await watch(
        live, "/account/subscriptions", await log_in(live, secret, "/account")
    )
    await live.hub.built.pages.look()
    await end(live, token)
    await live.hub.built.pages.look()
    assert (await stream.next("closed"))["code"] == 3500


async def test_a_stream_ends_at_the_logout(live: LiveHub) -> None:
    cookie = await log_in(live)
    stream = await watch(live, "/admin", cookie)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{live.port}") as client:
        client.headers.update({**FROM_A_PAGE, "Cookie": cookie})
        page = lxml.html.fromstring((await client.get("/admin")).text)
        token = page.xpath("//input[@name='form_token']/@value")[0]
        await client.post("/admin/logout", data={"form_token": token})
    await live.hub.built.pages.look()
    assert (await stream.next("closed"))["code"] == 3500


async def test_a_stream_ends_when_its_page_is_gone(live: LiveHub) -> None:
    stream = await watch(live, "/admin/feeds/77", await log_in(live))
    await live.hub.built.pages.look()
    told = await stream.next("closed")
    assert told == {"type": "closed", "code": 3503, "reason": "no feed 77"}


async def test_streams_are_bounded(live: LiveHub) -> None:
    _, secret = await make_token(live, "alice")
    of_alice = await log_in(live, secret, "/account")
    for _ in range(MOST_OF_ACCOUNT):
        assert (await watch(live, "/account", of_alice)).status == 200
    assert (await watch(live, "/account", of_alice)).status == 429
    cookie = await log_in(live)
    for _ in range(MOST_WATCHING - MOST_OF_ACCOUNT):
        assert (await watch(live, "/admin", cookie)).status == 200
    assert (await watch(live, "/admin", cookie)).status == 503


async def test_accounts_leave_streams_to_operators(live: LiveHub) -> None:
    for number in range(MOST_OF_ACCOUNTS // MOST_OF_ACCOUNT):
        _, secret = await make_token(live, f"account-{number}")
        cookie = await log_in(live, secret, "/account")
        for _ in range(MOST_OF_ACCOUNT):
            assert (await watch(live, "/account", cookie)).status == 200
    _, secret = await make_token(live, "one-more")
    late = await log_in(live, secret, "/account")
    assert (await watch(live, "/account", late)).status == 503
    assert (await watch(live, "/admin", await log_in(live))).status == 200


async def test_a_stream_ends_with_its_session_although_pages_rest(
    live: LiveHub,
) -> None:
    token, secret = await make_token(live, "alice")
    stream = await watch(live, "/account", await log_in(live, secret, "/account"))
    await live.hub.built.pages.look()
    await revoke(live, token)
    await live.hub.built.pages.rest(0.01)
    assert (await stream.next("closed"))["code"] == 3500


async def test_nothing_is_made_for_who_has_gone(live: LiveHub) -> None:
    stream = await watch(live, "/admin", await log_in(live))
    assert live.hub.built.pages.views == 1
    stream.abort()
    await eventually(lambda: not live.hub.built.pages.views)


async def test_the_end_of_the_hub_ends_streams_and_lets_nobody_in(
    live: LiveHub,
) -> None:
    cookie = await log_in(live)
    stream = await watch(live, "/admin", cookie)
    live.hub.built.pages.close()
    assert (await stream.next("closed"))["code"] == 3001
    assert (await watch(live, "/admin", cookie)).status == 503
