"""``wait=stream``, ``wait=poll`` and events, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import orjson
import pytest
from starlette.requests import Request

from hub.services.entry_retrieval import EntryRange, RetrievalRequest
from hub.web.rate_limits import RateLimits
from hub.web.streams.event_stream import EventWriter
from hub.web.superfeedr.calls import Call
from hub.web.superfeedr.retrieval_streams import Streaming, write_first
from protocols.live.live_messages import SLOW, BodyFormat, Closing
from protocols.superfeedr.parameters import Parameters
from storage.records import RecordKind
from tests.support.event_stream import EventClient
from tests.support.golden import find, read_xml
from tests.support.library import CALLBACK, Library, id_of, topic_of
from tests.support.live_hub import LiveHub, live_hub
from tests.support.waiting import eventually

NEWS = topic_of("news")


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def library(hub: LiveHub) -> Library:
    """The account subscribes to the private feed ``news``, which has an entry."""
    library = await Library.open(hub.hub)
    await library.add_feed("news", private=True)
    await library.subscribe("news")
    await library.publish("news", "old")
    return library


async def ask(
    hub: LiveHub,
    library: Library,
    path: str = "/",
    headers: dict[str, str] | None = None,
    **given: str,
) -> EventClient:
    """As browsers do, with the credential in the query."""
    named = {name.replace("hub_", "hub."): it for name, it in given.items()}
    query = {
        "hub.mode": "retrieve",
        "hub.topic": NEWS,
        "authorization": library.credential,
        **named,
    }
    given_values = {name: it for name, it in query.items() if it}
    return await hub.ask(f"{path}?{urlencode(given_values)}", **(headers or {}))


async def document(client: EventClient) -> dict[str, Any]:
    """The next line that is one, as JSON."""
    async with asyncio.timeout(60):
        while not (chunk := await client.chunk()).strip():
            pass
    assert chunk.endswith(b"\n")
    assert chunk.count(b"\n") == 1
    found: dict[str, Any] = orjson.loads(chunk)
    return found


def titles(found: dict[str, Any]) -> list[str]:
    return [item["title"] for item in found["items"]]


@pytest.mark.parametrize("path", ["/", "/hubbub", "/stream"])
async def test_a_stream_is_stored_entries_and_then_each_notification_on_a_line(
    hub: LiveHub, library: Library, path: str
) -> None:
    client = await ask(hub, library, path, wait="stream", format="json")

    assert client.status == 200
    assert client.headers["content-type"] == "application/json; charset=utf-8"
    assert client.headers["access-control-allow-origin"] == "*"
    assert "content-length" not in client.headers
    assert titles(await document(client)) == ["old"]
    for title in ("one", "two"):
        await library.publish("news", title, minutes=1)
        told = await document(client)
        assert titles(told) == [title]
        assert told["status"]["feed"] == NEWS


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream"])
async def test_at_the_path_of_streams_the_mode_may_be_left_out(
    hub: LiveHub, library: Library, accept: str
) -> None:
    """Superfeedr 1.9: the same parameters as retrieve, and nothing else there."""
    client = await ask(
        hub,
        library,
        "/stream",
        {"Accept": accept},
        hub_mode="",
        wait="stream",
        format="json",
    )

    assert client.status == 200
    assert client.headers["access-control-allow-origin"] == "*"
    assert b"old" in await client.chunk()
    await library.publish("news", "one", minutes=1)
    async with asyncio.timeout(60):
        while b'"one"' not in await client.chunk():
            pass


async def test_elsewhere_the_mode_is_missed(hub: LiveHub, library: Library) -> None:
    client = await ask(hub, library, "/", hub_mode="", wait="stream")

    assert client.status == 422
    assert b"hub.mode" in await client.body()


async def test_a_stream_is_of_atom_documents_unless_json_is_asked_for(
    hub: LiveHub, library: Library
) -> None:
    client = await ask(hub, library, wait="stream")

    assert client.headers["content-type"] == "application/atom+xml"
    first = await client.chunk()
    await library.publish("news", "one", minutes=1)
    second = await client.chunk()
    for chunk, title in ((first, "old"), (second, "one")):
        assert chunk.endswith(b"\n")
        (found,) = find(read_xml(chunk), "atom:entry/atom:title")
        assert found.text == title


async def test_nothing_stored_meanwhile_is_missed_or_said_twice(
    hub: LiveHub, library: Library
) -> None:
    client = await ask(hub, library, wait="stream", format="json", after=id_of("old"))
    assert titles(await document(client)) == []

    for number in range(20):
        await library.publish("news", f"n{number}", minutes=number)

    told = [titles(await document(client)) for _ in range(20)]
    assert told == [[f"n{number}"] for number in range(20)]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("hub.callback", CALLBACK),
        ("hub.callback[endpoint][hostname]", "you.example"),
    ],
)
async def test_a_stream_of_callbacks_has_all_their_topics(
    hub: LiveHub, library: Library, parameter: str, value: str
) -> None:
    for name in ("second", "unheard"):
        await library.add_feed(name, private=True)
    await library.subscribe("second")
    wish = {"hub_topic": "", parameter: value, "wait": "stream", "format": "json"}
    client = await ask(hub, library, **wish)
    stored = await document(client)
    assert titles(stored) == ["old"]
    assert stored["items"][0]["source"]["title"] == "About news"

    await library.publish("unheard", "nothing")
    await library.publish("second", "one", minutes=1)
    await library.publish("news", "two", minutes=2)

    told = [await document(client) for _ in range(2)]
    assert [titles(each) for each in told] == [["one"], ["two"]]
    assert [each["status"]["feed"] for each in told] == [topic_of("second"), NEWS]


async def test_a_stream_of_a_track_query_has_what_it_finds(
    hub: LiveHub, library: Library
) -> None:
    topic = "http://track.superfeedr.com/?query=laurel"
    query = await hub.hub.tracks.ensure(topic)
    assert query is not None
    await library.add_feed("public")
    await library.publish("public", "found", matching=[query.id])

    client = await ask(hub, library, hub_topic=topic, wait="stream", format="json")

    assert titles(await document(client)) == ["found"]
    await library.publish("public", "again", minutes=1, matching=[query.id])
    again = await document(client)
    assert titles(again) == ["again"]
    assert again["status"]["http"] == "Track feed"


async def test_several_streams_get_everything_each(
    hub: LiveHub, library: Library
) -> None:
    clients = [await ask(hub, library, wait="stream", format="json") for _ in range(3)]
    for client in clients:
        await document(client)
    await library.publish("news", "one", minutes=1)

    assert [titles(await document(client)) for client in clients] == [["one"]] * 3


async def test_a_quiet_stream_has_empty_lines(tmp_path: Path) -> None:
    async with live_hub(tmp_path, heartbeat_seconds=0.05) as hub:
        library = await Library.open(hub.hub)
        await library.add_feed("news")
        client = await ask(hub, library, wait="stream", format="json")
        await document(client)

        assert await client.chunk() == b"\n"


async def test_a_stream_ends_when_the_hub_stops(hub: LiveHub, library: Library) -> None:
    client = await ask(hub, library, wait="stream", format="json")
    await document(client)

    await hub.hub.services.live.stream.drain()

    with pytest.raises(EOFError):
        await client.chunk()
    refused = await ask(hub, library, wait="stream")
    assert refused.status == 503
    assert refused.headers["retry-after"]


async def test_a_stream_ends_when_its_token_is_revoked(
    hub: LiveHub, library: Library
) -> None:
    client = await ask(hub, library, wait="stream", format="json")
    await document(client)

    (token,) = await hub.hub.storage.tokens.page(after=0, limit=9)
    await hub.hub.services.tokens.revoke(token.id)

    async with asyncio.timeout(60):
        with pytest.raises(EOFError):
            await client.chunk()


async def test_there_are_only_so_many_streams(tmp_path: Path) -> None:
    async with live_hub(tmp_path, stream_connections=1, stream_share=100) as hub:
        library = await Library.open(hub.hub)
        await library.add_feed("news")
        first = await ask(hub, library, wait="stream", format="json")
        await document(first)

        for more in ({"wait": "stream"}, {"wait": "poll"}):
            refused = await ask(hub, library, **more)
            assert refused.status == 503

        first.abort()
        await eventually(lambda: not len(hub.hub.services.live.stream.registry))
        assert (await ask(hub, library, wait="stream")).status == 200


# --- long polling ---


async def test_a_poll_is_answered_at_once_if_anything_is_stored(
    hub: LiveHub, library: Library
) -> None:
    client = await ask(hub, library, wait="poll", format="json")

    assert client.status == 200
    assert titles(orjson.loads(await client.body())) == ["old"]


@pytest.mark.parametrize("format", ["json", "atom"])
async def test_a_poll_waits_for_entries_and_is_answered_with_them(
    hub: LiveHub, library: Library, format: str
) -> None:
    asking = asyncio.create_task(
        ask(hub, library, wait="poll", format=format, after=id_of("old"))
    )
    audience = hub.hub.services.live.stream.registry
    await eventually(lambda: len(audience) == 1)

    await library.publish("news", "one", minutes=1)

    client = await asking
    assert client.status == 200
    assert client.headers["access-control-allow-origin"] == "*"
    body = await client.body()
    if format == "json":
        assert titles(orjson.loads(body)) == ["one"]
    else:
        (title,) = find(read_xml(body), "atom:entry/atom:title")
        assert title.text == "one"
    assert not len(audience)


async def test_a_poll_is_not_answered_by_trouble(
    hub: LiveHub, library: Library
) -> None:
    hub.feeds[NEWS] = library.feeds["news"]
    asking = asyncio.create_task(
        ask(hub, library, wait="poll", format="json", after=id_of("old"))
    )
    await eventually(lambda: len(hub.hub.services.live.stream.registry) == 1)

    await hub.publish(NEWS, kind=RecordKind.ERROR)
    await hub.publish(NEWS, kind=RecordKind.RECOVERED)
    await library.publish("news", "one", minutes=1)

    assert titles(orjson.loads(await (await asking).body())) == ["one"]


async def test_a_poll_for_which_nothing_comes_is_answered_in_the_end(
    hub: LiveHub, library: Library
) -> None:
    services = hub.hub.services
    streaming = Streaming(
        services.live,
        services.retrieval,
        RateLimits(),
        poll_seconds=0.0,
    )
    wanted = RetrievalRequest(topic=NEWS)
    principal = await services.tokens.authenticate(library.token)
    assert principal is not None
    selection = await services.retrieval.select(principal, wanted)
    waiting = asyncio.Event()

    async def receive() -> dict[str, str]:
        await waiting.wait()
        return {"type": "http.disconnect"}

    call = Call(
        parameters=Parameters({}),
        principal=principal,
        request=Request({"type": "http", "headers": []}, receive),
    )
    page = EntryRange(after=id_of("old"))

    document = await streaming.poll(call, selection, page, BodyFormat.JSON)

    assert titles(orjson.loads(document.body)) == []


async def test_a_poll_of_the_last_entry_goes_on_from_there(
    hub: LiveHub, library: Library
) -> None:
    last = "old"
    for number in range(5):
        await library.publish("news", f"n{number}", minutes=number + 1)
        client = await ask(hub, library, wait="poll", format="json", after=id_of(last))
        (last,) = titles(orjson.loads(await client.body()))
        assert last == f"n{number}"


async def test_a_poll_is_answered_without_entries_when_the_hub_stops(
    hub: LiveHub, library: Library
) -> None:
    asking = asyncio.create_task(
        ask(hub, library, wait="poll", format="json", after=id_of("old"))
    )
    stream = hub.hub.services.live.stream
    await eventually(lambda: len(stream.registry) == 1)

    await stream.drain()

    client = await asking
    assert client.status == 200
    assert titles(orjson.loads(await client.body())) == []


async def test_a_poll_whose_client_has_gone_leaves_nothing(
    hub: LiveHub, library: Library
) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    query = {
        "hub.mode": "retrieve",
        "hub.topic": NEWS,
        "wait": "poll",
        "after": id_of("old"),
        "authorization": library.credential,
    }
    writer.write(f"GET /?{urlencode(query)} HTTP/1.1\r\nHost: hub\r\n\r\n".encode())
    audience = hub.hub.services.live.stream.registry
    await eventually(lambda: len(audience) == 1)

    writer.transport.abort()

    await eventually(lambda: not len(audience))


# --- events ---


async def listen(
    hub: LiveHub, library: Library, path: str = "/", last: str = "", **given: str
) -> EventClient:
    headers = {"Accept": "text/event-stream"}
    if last:
        headers["Last_Event_ID"] = last
    return await ask(hub, library, path, headers, **given)


@pytest.mark.parametrize("path", ["/", "/stream"])
async def test_events_are_notifications_in_json_whatever_the_format(
    hub: LiveHub, library: Library, path: str
) -> None:
    client = await listen(hub, library, path, format="atom")

    assert client.status == 200
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert titles(await client.next()) == ["old"]
    await library.publish("news", "one", minutes=1)
    told = await client.next()
    assert titles(told) == ["one"]
    assert told["status"]["feed"] == NEWS


async def test_a_reconnect_goes_on_after_the_last_event(
    hub: LiveHub, library: Library
) -> None:
    client = await listen(hub, library)
    await client.next()
    client.abort()
    await library.publish("news", "one", minutes=1)
    await library.publish("news", "two", minutes=2)

    client = await listen(hub, library, last=client.parser.last_id)
    assert titles(await client.next()) == ["one"]
    client.abort()

    client = await listen(hub, library, last=client.parser.last_id)
    assert titles(await client.next()) == ["two"]


async def test_without_stored_entries_events_begin_with_the_first_news(
    hub: LiveHub, library: Library
) -> None:
    client = await listen(hub, library, after=id_of("old"))
    begun = await client.chunk()
    assert begun.startswith(b"event: subscribed\nid: ")

    await library.publish("news", "one", minutes=1)

    assert titles(await client.next()) == ["one"]


@pytest.mark.parametrize("wait", ["", "stream"])
async def test_stored_entries_of_many_megabytes_are_given_their_time(
    hub: LiveHub, library: Library, wait: str
) -> None:
    """More than may wait for a client, and more than the system takes at once."""
    for number in range(1, 13):
        await library.publish("news", f"{number}", minutes=number, text="x" * 10**6)
    headers = {} if wait else {"Accept": "text/event-stream"}
    client = await ask(
        hub, library, headers=headers, wait=wait, count="50", format="json"
    )
    stored = await client.chunk()
    assert len(stored) > 12 * 10**6
    await library.publish("news", "next", minutes=99)
    told = await (document(client) if wait else client.next())
    assert titles(told) == ["next"]


async def test_who_does_not_take_them_is_too_slow() -> None:
    writer = UntakenWriter()
    await write_first(cast(EventWriter, writer), b"12 megabytes", patience=0.01)
    assert (writer.written, writer.closings) == ([b"12 megabytes"], [SLOW])


class UntakenWriter:
    """Never has room."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closings: list[Closing] = []

    def write_chunk(self, chunk: bytes) -> None:
        self.written.append(chunk)

    async def room(self) -> None:
        await asyncio.Event().wait()

    def close(self, closing: Closing) -> None:
        self.closings.append(closing)


async def test_a_last_event_id_of_elsewhere_is_a_reset(
    hub: LiveHub, library: Library
) -> None:
    client = await listen(hub, library, last="garbage")

    assert (await client.next("reset"))["topic"] == NEWS


async def test_the_hubs_own_stream_stays_at_its_path(
    hub: LiveHub, library: Library
) -> None:
    await library.add_feed("public")
    query = urlencode({"topic": topic_of("public")})
    client = await hub.ask(f"/stream?{query}", Accept="text/event-stream")
    await client.chunk()

    await library.publish("public", "one")

    assert (await client.next())["type"] == "notification"


@pytest.mark.parametrize("wait", ["stream", "poll"])
async def test_what_is_wrong_is_answered_before_anything_else(
    hub: LiveHub, library: Library, wait: str
) -> None:
    for given, status in (
        ({"after": "unknown"}, 422),
        ({"hub_topic": topic_of("unknown")}, 404),
        ({"hub_topic": ""}, 422),
        ({"authorization": ""}, 401),
    ):
        client = await ask(hub, library, wait=wait, **given)
        assert client.status == status
