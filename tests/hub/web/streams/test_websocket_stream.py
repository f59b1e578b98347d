"""``/stream`` as a websocket, over real sockets."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hub.services.token_authentication import CreateToken
from storage.records import RecordKind, TokenScope
from tests.support.admin import ADMIN_LOGIN, TOKEN
from tests.support.live_hub import LiveHub, live_hub, next_message, titles

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"
SECRET = "https://secret.example/feed"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        await hub.add_feed(SECRET, private=True)
        yield hub


async def say(client: ClientConnection, **message: object) -> None:
    await client.send(orjson.dumps(message).decode())


async def closing(client: ClientConnection) -> tuple[int | None, str | None]:
    """How the hub closed it, whatever it said before."""
    with suppress(ConnectionClosed):
        async with asyncio.timeout(60):
            while True:
                await client.recv()
    return client.close_code, client.close_reason


async def test_a_topic_of_the_url_sends_its_new_entries(hub: LiveHub) -> None:
    async with hub.connect(NEWS) as client:
        begun = await next_message(client)
        position = await hub.publish(NEWS, "one")
        told = await next_message(client)
    assert begun == {
        "type": "subscribed",
        "topic": NEWS,
        "cursor": await hub.cursor(0),
    }
    assert titles(told) == ["one"]
    assert (told["type"], told["topic"], told["kind"]) == (
        "notification",
        NEWS,
        "entries",
    )
    assert told["cursor"] == await hub.cursor(position)
    assert told["prev"] is None
    assert told["body"]["status"]["feed"] == NEWS


async def test_subscribe_and_unsubscribe_are_answered_with_their_id(
    hub: LiveHub,
) -> None:
    async with hub.connect() as client:
        await say(client, type="subscribe", id="a", topic=NEWS)
        begun = await next_message(client)
        assert (begun["type"], begun["id"]) == ("subscribed", "a")
        await hub.publish(NEWS, "one")
        assert titles(await next_message(client)) == ["one"]
        await say(client, type="unsubscribe", id=2, topic=NEWS)
        assert await next_message(client) == {
            "type": "unsubscribed",
            "id": 2,
            "topic": NEWS,
        }
        await hub.publish(NEWS, "two")
        await say(client, type="subscribe", id=3, topic=NEWS)
        assert (await next_message(client))["id"] == 3


async def test_many_topics_share_a_connection(hub: LiveHub) -> None:
    async with hub.connect(NEWS) as client:
        await next_message(client)
        await say(client, type="subscribe", topic=OTHER, format="atom")
        await next_message(client)
        first = await hub.publish(NEWS, "one")
        await hub.publish(OTHER, "two")
        third = await hub.publish(NEWS, "three")
        told = [await next_message(client) for _ in range(3)]
    assert [each["topic"] for each in told] == [NEWS, OTHER, NEWS]
    assert told[1]["body"].startswith("<?xml")
    assert "two" in told[1]["body"]
    assert told[2]["prev"] == await hub.cursor(first)
    assert told[2]["cursor"] == await hub.cursor(third)


async def test_every_subscriber_gets_the_same_message(hub: LiveHub) -> None:
    async with hub.connect(NEWS) as one, hub.connect(NEWS) as two:
        await next_message(one)
        await next_message(two)
        await hub.publish(NEWS, "one", text="long enough to be compressed " * 50)
        assert await next_message(one) == await next_message(two)


async def test_a_client_without_compression_is_served(hub: LiveHub) -> None:
    async with connect(hub.url(NEWS), compression=None) as client:
        await next_message(client)
        await hub.publish(NEWS, "one", text="x" * 70_000)
        assert titles(await next_message(client)) == ["one"]


async def test_updates_and_deletions_come_to_those_who_ask(hub: LiveHub) -> None:
    await hub.publish(NEWS, "one")
    async with hub.connect(NEWS, updates="none") as few, hub.connect() as all_:
        await next_message(few)
        await say(all_, type="subscribe", topic=NEWS, updates="all")
        await next_message(all_)
        await hub.publish(NEWS, "one", kind=RecordKind.UPDATED)
        await hub.publish(NEWS, "two")
        assert (await next_message(all_))["kind"] == "updated"
        assert (await next_message(all_))["kind"] == "entries"
        assert (await next_message(few))["kind"] == "entries"


async def test_trouble_with_a_feed_is_told_without_items(hub: LiveHub) -> None:
    async with hub.connect(NEWS) as client:
        await next_message(client)
        await hub.publish(NEWS, kind=RecordKind.ERROR)
        told = await next_message(client)
    assert told["kind"] == "error"
    assert "items" not in told["body"]


async def test_subscribing_again_begins_anew(hub: LiveHub) -> None:
    await hub.publish(NEWS, "one")
    async with hub.connect(NEWS) as client:
        await next_message(client)
        await say(client, type="subscribe", topic=NEWS, cursor=await hub.cursor(0))
        assert (await next_message(client))["type"] == "subscribed"
        assert titles(await next_message(client)) == ["one"]
        await hub.publish(NEWS, "two")
        assert titles(await next_message(client)) == ["two"]
        await hub.publish(NEWS, "three")
        assert titles(await next_message(client)) == ["three"]


# --- what cannot be obeyed ---------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("", "message"),
        ("[]", "message"),
        ("{", "message"),
        ("[" * 10_000, "message"),
        ('{"topic": "https://news.example/feed"}', "type"),
        ('{"type": "shout"}', "type"),
        ('{"type": 1}', "type"),
        ('{"type": "subscribe"}', "topic"),
        ('{"type": "subscribe", "topic": ""}', "topic"),
        ('{"type": "subscribe", "topic": 7}', "topic"),
        ('{"type": "subscribe", "topic": "feed"}', "topic"),
        ('{"type": "subscribe", "topic": "https://x.example/' + "x" * 3000, "message"),
        (
            '{"type": "subscribe", "topic": "https://x.example/' + "x" * 3000 + '"}',
            "topic",
        ),
        ('{"type": "subscribe", "topic": "https://x", "format": "xml"}', "format"),
        ('{"type": "subscribe", "topic": "https://x", "updates": "few"}', "updates"),
        ('{"type": "subscribe", "topic": "https://x", "cursor": "soon"}', "cursor"),
        ('{"type": "subscribe", "topic": "https://x", "cursor": 5}', "cursor"),
        ('{"type": "subscribe", "topic": "https://x", "id": []}', "id"),
        ('{"type": "unsubscribe", "topic": "feed"}', "topic"),
    ],
)
async def test_a_message_that_is_wrong_is_answered_with_the_field(
    hub: LiveHub, message: str, field: str
) -> None:
    async with hub.connect() as client:
        await client.send(message)
        told = await next_message(client)
        assert (told["type"], told["error"], told["field"]) == (
            "error",
            "invalid",
            field,
        )
        assert field in told["reason"]
        await say(client, type="subscribe", topic=NEWS)  # and it goes on
        assert (await next_message(client))["type"] == "subscribed"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"cursor": "soon"}, "cursor"),
        ({"format": "xml"}, "format"),
        ({"updates": "few"}, "updates"),
    ],
)
async def test_a_url_that_is_wrong_is_answered_with_the_parameter(
    hub: LiveHub, query: dict[str, str], field: str
) -> None:
    async with hub.connect(NEWS, **query) as client:
        told = await next_message(client)
    assert (told["type"], told["field"]) == ("error", field)


async def test_a_private_topic_and_an_unknown_one_look_alike(hub: LiveHub) -> None:
    unknown = "https://nobody.example/feed"
    async with hub.connect(SECRET, unknown, NEWS) as client:
        told = [await next_message(client) for _ in range(3)]
    assert [each.pop("topic") for each in told] == [SECRET, unknown, NEWS]
    assert told[0] == told[1]
    assert told[0]["error"] == "unknown_topic"
    assert told[2]["type"] == "subscribed"


async def test_leaving_a_topic_nobody_listens_to_is_an_error(hub: LiveHub) -> None:
    async with hub.connect() as client:
        await say(client, type="unsubscribe", id=1, topic=NEWS)
        told = await next_message(client)
    assert (told["error"], told["id"]) == ("not_subscribed", 1)


async def test_the_topics_of_a_connection_are_counted(hub: LiveHub) -> None:
    hub.hub.services.live.most_topics = 1
    async with hub.connect(NEWS) as client:
        await next_message(client)
        await say(client, type="subscribe", topic=OTHER)
        assert (await next_message(client))["error"] == "too_many_topics"
        await say(client, type="subscribe", topic=NEWS)
        assert (await next_message(client))["type"] == "subscribed"


# --- who may ------------------------------------------------------------------------


def basic(user: str, token: str) -> str:
    return base64.b64encode(f"{user}:{token}".encode()).decode()


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"Basic {ADMIN_LOGIN}"])
async def test_the_admin_token_opens_private_topics(hub: LiveHub, header: str) -> None:
    headers = {"Authorization": header}
    async with connect(hub.url(SECRET), additional_headers=headers) as client:
        assert (await next_message(client))["type"] == "subscribed"


async def test_a_token_with_the_right_may_come_in_the_url(hub: LiveHub) -> None:
    tokens = hub.hub.services.tokens
    may = await tokens.create(
        CreateToken(account="ada", scopes=frozenset({TokenScope.RETRIEVE}))
    )
    may_not = await tokens.create(
        CreateToken(account="bob", scopes=frozenset({TokenScope.LIST}))
    )
    await hub.subscribe(SECRET, may.token.account.id)
    await hub.subscribe(SECRET, may_not.token.account.id)
    async with hub.connect(SECRET, authorization=basic("ada", may.secret)) as client:
        assert (await next_message(client))["type"] == "subscribed"
    async with hub.connect(
        SECRET, authorization=basic("bob", may_not.secret)
    ) as client:
        assert (await next_message(client))["error"] == "unknown_topic"


async def test_a_token_that_opens_nothing_is_closed_for_good(hub: LiveHub) -> None:
    async with hub.connect(NEWS, authorization=basic("admin", "guess")) as client:
        assert await closing(client) == (3500, "not authorized")


async def test_a_stream_that_is_not_open_takes_a_token(tmp_path: Path) -> None:
    async with live_hub(tmp_path, open_stream="off") as hub:
        await hub.add_feed(NEWS)
        async with hub.connect(NEWS) as client:
            assert await closing(client) == (3500, "not authorized")
        headers = {"Authorization": f"Basic {ADMIN_LOGIN}"}
        async with connect(hub.url(NEWS), additional_headers=headers) as client:
            assert (await next_message(client))["type"] == "subscribed"


async def test_another_site_cannot_use_the_credentials_a_browser_keeps(
    hub: LiveHub,
) -> None:
    foreign = {"Origin": "https://evil.example"}
    known = {"Authorization": f"Basic {ADMIN_LOGIN}"}
    with pytest.raises(InvalidStatus) as refused:
        await connect(hub.url(SECRET), additional_headers={**foreign, **known})
    assert refused.value.response.status_code == 403
    own = {"Origin": f"http://127.0.0.1:{hub.port}"}
    async with connect(hub.url(SECRET), additional_headers={**own, **known}) as client:
        assert (await next_message(client))["type"] == "subscribed"
    async with connect(hub.url(NEWS), additional_headers=foreign) as client:
        assert (await next_message(client))["type"] == "subscribed"


# --- bounds -------------------------------------------------------------------------


async def test_a_binary_message_ends_the_connection(hub: LiveHub) -> None:
    async with hub.connect() as client:
        await client.send(b"\0")
        assert (await closing(client))[0] == 1003


async def test_a_huge_message_ends_the_connection(hub: LiveHub) -> None:
    async with hub.connect() as client:
        await client.send("x" * 70_000)
        assert (await closing(client))[0] == 1009


@pytest.mark.parametrize("parts", [[b"\xff"], [b"{", b"\xc3", b"}"]])
async def test_what_is_not_utf_8_ends_the_connection(
    hub: LiveHub, parts: list[bytes]
) -> None:
    async with hub.connect() as client:
        await client.send(parts, text=True)
        assert await closing(client) == (1007, "expected text in UTF-8")


async def test_a_message_in_fragments_is_understood(hub: LiveHub) -> None:
    async with hub.connect() as client:
        await client.send(['{"type":"sub', 'scribe","topic":', f'"{NEWS}"', "}"])
        assert (await next_message(client))["type"] == "subscribed"


@pytest.mark.bulk
async def test_endless_fragments_end_the_connection(hub: LiveHub) -> None:
    async def fragments() -> AsyncIterator[str]:
        while True:
            yield ""

    async with hub.connect() as client:
        with pytest.raises(ConnectionClosed) as closed:
            await client.send(fragments())
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


async def test_who_takes_nothing_is_closed_and_delays_nobody(hub: LiveHub) -> None:
    slow = await connect(hub.url(NEWS), compression=None, max_queue=1)
    async with hub.connect(NEWS) as quick:
        await next_message(quick)
        slow.transport.pause_reading()
        for number in range(40):
            await hub.publish(NEWS, f"{number}", text=f"{number}" * 200_000)
            assert titles(await next_message(quick)) == [f"{number}"]
        slow.transport.resume_reading()
        code, _reason = await closing(slow)
    assert code == 3008


async def test_a_hub_that_is_full_answers_503(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        live_hub(tmp_path, stream_connections=1, stream_share=100) as hub,
        hub.connect() as client,
    ):
        await client.ping()
        with pytest.raises(InvalidStatus) as refused:
            await hub.connect()
        assert refused.value.response.status_code == 503
        assert "retry-after" in refused.value.response.headers
    assert [each for each in caplog.records if each.name == "hub.websocket"] == []


async def test_a_token_and_an_address_are_counted_apart(tmp_path: Path) -> None:
    async with live_hub(tmp_path, rate_limit_token=1, rate_limit_address=1) as hub:
        made = await hub.hub.services.tokens.create(
            CreateToken(account="ada", scopes=frozenset({TokenScope.RETRIEVE}))
        )
        for query in ({}, {"authorization": basic("ada", made.secret)}):
            async with hub.connect(**query) as client:
                await client.ping()
            with pytest.raises(InvalidStatus) as refused:
                await hub.connect(**query)
            assert refused.value.response.status_code == 429
            assert "retry-after" in refused.value.response.headers


async def test_shutting_down_tells_everybody_to_come_back(hub: LiveHub) -> None:
    async with hub.connect(NEWS) as one, hub.connect(OTHER) as two:
        await next_message(one)
        await next_message(two)
        await hub.hub.services.live.stream.drain()
        assert (await closing(one))[0] == 3001
        assert (await closing(two))[0] == 3001
        with pytest.raises(InvalidStatus):
            await hub.connect(NEWS)


async def test_a_topic_comes_back_as_it_was_spelled(hub: LiveHub) -> None:
    spelled = ["HTTPS://NEWS.example:443/feed", f"{NEWS}#mine", NEWS]
    async with hub.connect(*spelled) as client:
        begun = [await next_message(client) for _ in spelled]
        await hub.publish(NEWS, "one")
        told = [await next_message(client) for _ in spelled]
        await say(client, type="unsubscribe", topic=spelled[1])
        left = await next_message(client)
    assert [each["topic"] for each in begun] == spelled
    assert sorted(each["topic"] for each in told) == sorted(spelled)
    assert all(titles(each) == ["one"] for each in told)
    feeds = sorted(each["body"]["status"]["feed"] for each in told)
    assert feeds == sorted(spelled)
    assert (left["type"], left["topic"]) == ("unsubscribed", spelled[1])


async def test_a_private_topic_is_unknown_under_every_spelling(hub: LiveHub) -> None:
    async with hub.connect() as client:
        await say(client, type="subscribe", topic=SECRET.replace("secret", "SECRET"))
        assert (await next_message(client))["type"] == "error"
