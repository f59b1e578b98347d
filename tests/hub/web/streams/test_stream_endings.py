"""``/stream`` when what somebody listens to, or was let in with, is no more."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from hub.live.live_watch import LiveWatch
from hub.services.feed_requests import EditFeed
from hub.services.token_authentication import CreatedToken, CreateToken
from storage.records import Credentials, FeedState, TokenScope
from tests.support.admin import ADMIN
from tests.support.event_stream import EventClient
from tests.support.live_hub import START, LiveHub, live_hub, next_message, titles
from tests.support.waiting import in_background

NEWS = "https://example.org/news"
OTHER = "https://example.org/other"
SECRET = "https://example.org/secret"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        await add_feeds(hub)
        yield hub


@pytest.fixture
async def watchful(tmp_path: Path) -> AsyncIterator[LiveHub]:
    """A hub that looks by itself, without being told of a change."""
    async with live_hub(tmp_path) as hub:
        await add_feeds(hub)
        storage = hub.hub.storage
        watch = LiveWatch(hub.hub.built.live, storage.feeds, storage.tokens, 0.05)
        async with in_background(watch.run):
            yield hub


async def add_feeds(hub: LiveHub) -> None:
    await hub.add_feed(NEWS)
    await hub.add_feed(OTHER)
    await hub.add_feed(SECRET, private=True)


async def new_token(
    hub: LiveHub, scope: TokenScope = TokenScope.RETRIEVE
) -> CreatedToken:
    request = CreateToken(account="ada", scopes=frozenset({scope}))
    return await hub.hub.services.tokens.create(request)


def of(token: CreatedToken) -> str:
    return base64.b64encode(f"ada:{token.secret}".encode()).decode()


async def listen(hub: LiveHub, *topics: str, **query: str) -> EventClient:
    """An event stream that has begun."""
    pairs = [("topic", topic) for topic in topics] + list(query.items())
    client = await hub.ask(f"/stream?{urlencode(pairs)}")
    for _ in topics:
        await client.chunk()
    return client


async def closing(client: ClientConnection) -> tuple[int | None, str | None]:
    with suppress(ConnectionClosed):
        async with asyncio.timeout(20):
            while True:
                await client.recv()
    return client.close_code, client.close_reason


async def ending(client: EventClient) -> dict[str, Any]:
    """The last event of a stream."""
    told = await client.next("closed")
    with pytest.raises(EOFError):
        await client.chunk()
    return told


# --- tokens -------------------------------------------------------------------------


async def test_a_revoked_token_closes_all_that_was_opened_with_it(
    hub: LiveHub,
) -> None:
    token, other = await new_token(hub), await new_token(hub)
    await hub.subscribe(SECRET, token.token.account.id)
    async with (
        hub.connect(SECRET, authorization=of(token)) as first,
        hub.connect(NEWS, authorization=of(token)) as second,
        hub.connect(SECRET, authorization=of(other)) as bystander,
    ):
        events = await listen(hub, SECRET, authorization=of(token))
        for client in (first, second, bystander):
            await next_message(client)
        await hub.hub.services.tokens.revoke(token.token.id)
        ended = (3500, "not authorized: the token was revoked or expired")
        assert await closing(first) == await closing(second) == ended
        told = await ending(events)
        assert (told["code"], told["reason"]) == ended
        await hub.publish(SECRET, "one")
        assert titles(await next_message(bystander)) == ["one"]


async def test_a_token_that_ended_unnoticed_closes_them_too(watchful: LiveHub) -> None:
    token = await new_token(watchful)
    async with watchful.connect(NEWS, authorization=of(token)) as client:
        events = await listen(watchful, NEWS, authorization=of(token))
        await next_message(client)
        await watchful.hub.storage.tokens.revoke(token.token.id, START)
        assert (await closing(client))[0] == 3500
        assert (await ending(events))["code"] == 3500


async def test_after_its_end_a_token_opens_nothing(hub: LiveHub) -> None:
    token = await new_token(hub)
    async with hub.connect(NEWS, authorization=of(token)) as client:
        await next_message(client)
        await hub.hub.services.tokens.revoke(token.token.id)
        await closing(client)
    async with hub.connect(NEWS, authorization=of(token)) as client:
        assert await closing(client) == (3500, "not authorized")
    client_of_events = await hub.ask(f"/stream?topic={NEWS}&authorization={of(token)}")
    assert client_of_events.status == 401


# --- topics -------------------------------------------------------------------------


async def test_listeners_of_a_removed_feed_are_told_and_keep_their_other_topics(
    hub: LiveHub,
) -> None:
    async with hub.connect(NEWS, OTHER) as client:
        events = await listen(hub, NEWS, OTHER)
        for _ in range(2):
            await next_message(client)
        await hub.hub.services.feeds.remove(hub.feeds[NEWS])
        gone = {"type": "unsubscribed", "topic": NEWS, "reason": "no such topic"}
        assert await next_message(client) == gone
        assert await events.next("unsubscribed") == gone
        await hub.publish(OTHER, "one")
        assert titles(await next_message(client)) == ["one"]
        assert titles(await events.next()) == ["one"]


async def test_a_websocket_whose_last_topic_goes_may_ask_for_others(
    hub: LiveHub,
) -> None:
    async with hub.connect(NEWS) as client:
        await next_message(client)
        await hub.hub.services.feeds.remove(hub.feeds[NEWS])
        assert (await next_message(client))["type"] == "unsubscribed"
        await client.send(f'{{"type": "unsubscribe", "topic": "{NEWS}"}}')
        assert (await next_message(client))["error"] == "not_subscribed"
        await client.send(f'{{"type": "subscribe", "topic": "{NEWS}"}}')
        assert (await next_message(client))["error"] == "unknown_topic"
        await client.send(f'{{"type": "subscribe", "topic": "{OTHER}"}}')
        assert (await next_message(client))["type"] == "subscribed"


async def test_an_event_stream_ends_with_its_last_topic(hub: LiveHub) -> None:
    events = await listen(hub, NEWS, OTHER)
    for topic in (NEWS, OTHER):
        await hub.hub.services.feeds.remove(hub.feeds[topic])
        assert (await events.next("unsubscribed"))["topic"] == topic
    assert await ending(events) == {
        "type": "closed",
        "code": 3501,
        "reason": "all topics have ended",
    }


async def test_a_feed_that_becomes_private_is_gone_for_those_who_may_not_see_it(
    hub: LiveHub,
) -> None:
    may, may_not = await new_token(hub), await new_token(hub, TokenScope.LIST)
    await hub.subscribe(NEWS, may.token.account.id)
    async with (
        hub.connect(NEWS) as stranger,
        hub.connect(NEWS, authorization=of(may_not)) as without_right,
        hub.connect(NEWS, authorization=of(may)) as reader,
        connect(hub.url(NEWS), additional_headers=ADMIN) as operator,
    ):
        events = await listen(hub, NEWS)
        for client in (stranger, without_right, reader, operator):
            await next_message(client)
        await hub.hub.services.feeds.edit(hub.feeds[NEWS], EditFeed(private=True))
        told = [await next_message(each) for each in (stranger, without_right)]
        told.append(await events.next("unsubscribed"))
        # As for a feed that was removed: nobody learns that it is there.
        gone = {"type": "unsubscribed", "topic": NEWS, "reason": "no such topic"}
        assert told == [gone] * 3
        await hub.publish(NEWS, "one")
        assert titles(await next_message(reader)) == ["one"]
        assert titles(await next_message(operator)) == ["one"]


async def test_a_feed_that_takes_credentials_is_gone_for_all_but_the_operator(
    hub: LiveHub,
) -> None:
    token = await new_token(hub)
    await hub.subscribe(NEWS, token.token.account.id)
    async with (
        hub.connect(NEWS, authorization=of(token)) as reader,
        connect(hub.url(NEWS), additional_headers=ADMIN) as operator,
    ):
        for client in (reader, operator):
            await next_message(client)
        login = EditFeed(credentials=Credentials(username="ann", password="pass"))
        await hub.hub.services.feeds.edit(hub.feeds[NEWS], login)
        assert (await next_message(reader))["type"] == "unsubscribed"
        await hub.publish(NEWS, "one")
        assert titles(await next_message(operator)) == ["one"]


async def test_who_unsubscribes_from_a_private_topic_reads_it_no_longer(
    watchful: LiveHub,
) -> None:
    token = await new_token(watchful)
    made = await watchful.subscribe(SECRET, token.token.account.id)
    async with watchful.connect(SECRET, authorization=of(token)) as reader:
        assert (await next_message(reader))["type"] == "subscribed"
        end = watchful.hub.storage.subscriptions.end
        await end(made.id, "", START, tell=False)
        assert (await next_message(reader))["type"] == "unsubscribed"


async def test_a_feed_removed_by_another_process_is_noticed(watchful: LiveHub) -> None:
    feeds = watchful.hub.storage.feeds
    async with watchful.connect(NEWS) as client:
        await next_message(client)
        await feeds.set_state(watchful.feeds[NEWS], FeedState.REMOVED, START)
        assert (await next_message(client))["type"] == "unsubscribed"


async def test_a_replay_of_a_removed_feed_ends(hub: LiveHub) -> None:
    begin = await hub.cursor(0)
    for number in range(60):
        await hub.publish(NEWS, f"{number}", text=f"{number}" * 200_000)
    url = hub.url(NEWS, cursor=begin)
    async with connect(url, compression=None, max_queue=1) as client:
        received = [await next_message(client)]
        client.transport.pause_reading()
        await hub.hub.services.feeds.remove(hub.feeds[NEWS])
        client.transport.resume_reading()
        while received[-1]["type"] != "unsubscribed":
            received.append(await next_message(client))
        assert len(received) < 62  # it was more than fits between the two
        await client.send(f'{{"type": "subscribe", "topic": "{OTHER}"}}')
        assert (await next_message(client))["topic"] == OTHER
