"""``wait``: an answer that is kept open, with entries as they come.

``wait=stream`` gives documents, each ending a line, ``wait=poll`` one document as soon
as there is one, and ``Accept: text/event-stream`` gives events. All of them read the
log as the websocket does, and begin where the stored entries were read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hub.delivery.notifications import NotificationBody
from hub.live.live_connections import ChannelKey, Client, Interest
from hub.live.prepared_message import PreparedMessage, bytes_of, chunk_of
from hub.services.entry_notifications import render
from hub.services.entry_retrieval import EntryRange, RetrievalService, Selection
from hub.services.live_access import LiveService
from hub.web.rate_limits import RateLimits
from hub.web.streams.event_stream import (
    BodyEventWriter,
    EventWriter,
    LineWriter,
    hold_connection,
    serve,
)
from hub.web.streams.stream_requests import last_event_of, refuse_without_room
from hub.web.superfeedr.calls import Call
from protocols.live.live_messages import SLOW, BodyFormat, Closing, NotificationMessage
from protocols.live.message_encoding import EVENT_STREAM, event
from protocols.superfeedr.atom_notifications import ATOM_TYPE
from protocols.superfeedr.json_notifications import JSON_TYPE
from storage.records import Format, RecordKind, Updates

POLL_SECONDS: Final = 300.0
"""Seconds after which a poll is answered without entries, if none have come."""
FIRST_SECONDS: Final = 120.0
"""Seconds for a client to read the stored entries, before new ones are sent."""
STATUS_ONLY: Final = frozenset({RecordKind.ERROR.value, RecordKind.RECOVERED.value})
_CONTENT_TYPES: Final = {BodyFormat.JSON: JSON_TYPE, BodyFormat.ATOM: ATOM_TYPE}


class Streaming:
    def __init__(
        self,
        live: LiveService,
        retrieval: RetrievalService,
        limits: RateLimits,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._live = live
        self._retrieval = retrieval
        self._limits = limits
        self._poll_seconds = poll_seconds

    async def documents(
        self, call: Call, selection: Selection, page: EntryRange, format: BodyFormat
    ) -> StreamingResponse:
        """Stored entries as one document, then each notification.

        Raises `Problem` 503 and 429, and `InvalidValue`.
        """
        refuse_without_room(self._live.stream, self._client(call))
        collected, cursor = await self._retrieval.collect_with_cursor(selection, page)
        first = await render(collected, format)
        return LiveAnswer(
            self._live,
            self._client(call),
            _interests(selection, format, cursor),
            LineWriter,
            first=chunk_of(first.body + b"\n"),
            content_type=_CONTENT_TYPES[format],
            transport="stream",
        )

    async def events(
        self, call: Call, selection: Selection, page: EntryRange
    ) -> StreamingResponse:
        """Like `documents`, in JSON, and resumed by ``Last-Event-ID``.

        Raises `Problem` 503 and 429, and `InvalidValue`.
        """
        refuse_without_room(self._live.stream, self._client(call))
        first, cursor = b"", last_event_of(call.request)
        if not cursor:
            collected, cursor = await self._retrieval.collect_with_cursor(
                selection, page
            )
            if collected.entries:
                stored = await render(collected, BodyFormat.JSON)
                first = chunk_of(event("notification", stored.body, cursor))
        return LiveAnswer(
            self._live,
            self._client(call),
            _interests(selection, BodyFormat.JSON, cursor),
            BodyEventWriter,
            first=first,
            content_type=f"{EVENT_STREAM}; charset=utf-8",
            transport="sse",
        )

    async def poll(
        self, call: Call, selection: Selection, page: EntryRange, format: BodyFormat
    ) -> NotificationBody:
        """Return the stored entries, or the first notification with entries.

        It waits for a notification only if there is no stored entry. Raises `Problem`
        503 and 429, and `InvalidValue`.
        """
        collected, cursor = await self._retrieval.collect_with_cursor(selection, page)
        if collected.entries:
            return await render(collected, format)
        refuse_without_room(self._live.stream, self._client(call))
        hold_connection(call.request.scope)
        writer = PollWriter()
        interests = _interests(selection, format, cursor)
        timer = asyncio.get_running_loop().call_later(self._poll_seconds, writer.end)
        try:
            await serve(
                self._live,
                self._client(call),
                interests,
                writer,
                call.request.receive,
                "poll",
            )
        finally:
            timer.cancel()
        if writer.body is None:
            return await render(collected, format)
        return NotificationBody(_CONTENT_TYPES[format], writer.body)

    def _client(self, call: Call) -> Client:
        address = self._limits.client(call.request)
        return self._live.client(call.principal, may_ask=False, address=address)


class LiveAnswer(StreamingResponse):
    """An answer that continues until the client disconnects or the hub ends it."""

    def __init__(
        self,
        live: LiveService,
        client: Client,
        interests: Sequence[Interest],
        writer: type[EventWriter],
        *,
        first: bytes,
        content_type: str,
        transport: str,
    ) -> None:
        """``first``: a chunk of the body that comes before all others."""
        super().__init__(
            (),
            headers={
                "Content-Type": content_type,
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",  # proxies would otherwise buffer it
            },
        )
        self._live = live
        self._client = client
        self._interests = interests
        self._writer = writer
        self._first = first
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        if scope["method"] != "HEAD":
            writer = self._writer(scope)
            if self._first:
                await write_first(writer, self._first)
            await serve(
                self._live,
                self._client,
                self._interests,
                writer,
                receive,
                self._transport,
            )
        await send({"type": "http.response.body"})


async def write_first(
    writer: EventWriter, chunk: bytes, patience: float = FIRST_SECONDS
) -> None:
    """Write a first chunk, which may be far larger than the usual limit.

    A client that has not taken most of it within ``patience`` seconds is cut off.
    """
    writer.write_chunk(chunk)
    try:
        async with asyncio.timeout(patience):
            await writer.room()
    except TimeoutError:
        writer.close(SLOW)


class PollWriter:
    """Takes one notification with entries, and ends the answer then."""

    waiting = 0

    def __init__(self) -> None:
        self.sent_messages = self.sent_bytes = 0
        self.body: bytes | None = None
        self.closed: asyncio.Future[Closing | None]
        self.closed = asyncio.get_running_loop().create_future()

    def write(self, message: PreparedMessage) -> None:
        news = message.message
        if self.body is not None or not isinstance(news, NotificationMessage):
            return
        if news.kind not in STATUS_ONLY:
            self.body = bytes_of(news)
            self.sent_messages, self.sent_bytes = 1, len(self.body)
            self.end()

    async def room(self) -> None:
        return

    def close(self, closing: Closing) -> None:
        self.end()

    def end(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


def _interests(selection: Selection, format: BodyFormat, cursor: str) -> list[Interest]:
    return [
        Interest(
            key=ChannelKey(
                feed_id=each.feed_id,
                topic=each.url,
                format=Format(format.value),
                updates=Updates.FRESH,
            ),
            cursor=cursor,
        )
        for each in selection.topics
    ]
