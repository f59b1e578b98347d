"""Messages of the live stream as they are sent: JSON, server-sent events, frames.

In events (the HTML standard, "Server-sent events") nothing that is sent can end a field
or an event early: data with line ends becomes several lines of data, and a name or an
id with line ends is refused.

Websocket frames are built once and written to every connection that gets the message: a
hub's frames are not masked, so the same bytes serve all. A compressed frame depends on
no earlier message ("server_no_context_takeover", RFC 7692 7.1.1.1) and on a window that
every negotiated connection has.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import fields
from typing import Final

import orjson

from protocols.live.live_messages import (
    ClientMessage,
    Closed,
    ErrorMessage,
    Heartbeat,
    NotificationMessage,
    Reset,
    ServerMessage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from protocols.protocol_errors import InvalidValue

_TYPES: dict[type[ServerMessage | ClientMessage], str] = {
    Subscribe: "subscribe",
    Unsubscribe: "unsubscribe",
    Subscribed: "subscribed",
    Unsubscribed: "unsubscribed",
    Reset: "reset",
    NotificationMessage: "notification",
    Heartbeat: "heartbeat",
    ErrorMessage: "error",
    Closed: "closed",
}


def type_of(message: ServerMessage | ClientMessage) -> str:
    """The message's ``type`` member, which is also the name of its event."""
    return _TYPES[type(message)]


def encode(message: ServerMessage | ClientMessage) -> bytes:
    """One line of JSON; members without a value are left out, except ``prev``."""
    document: dict[str, object] = {"type": type_of(message)}
    for each in fields(message):
        value = getattr(message, each.name)
        if isinstance(value, bytes):
            value = orjson.Fragment(value)
        if value is not None or each.name == "prev":
            document[each.name] = value
    return orjson.dumps(document)


EVENT_STREAM: Final = "text/event-stream"

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BREAKING: Final = re.compile(r"[\r\n\0]")


def event(name: str, data: bytes, id: str | None = None) -> bytes:
    """One event. Raises `InvalidValue` for a name or id that contains a line end or
    NUL.
    """
    head = _field("event", name) + (b"" if id is None else _field("id", id))
    lines = b"".join(b"data: %b\n" % line for line in _LINE_END.split(data))
    return head + lines + b"\n"


def comment(text: str, id: str | None = None) -> bytes:
    """A comment line, which a client ignores.

    With an ``id``, the client's Last-Event-ID becomes this one: an event without data
    is not dispatched, but its id is remembered.
    """
    line = f": {_checked('comment', text)}\n".encode()
    return line + (b"" if id is None else _field("id", id)) + b"\n"


def event_of(message: ServerMessage) -> bytes:
    """A message of the live stream as an event.

    A heartbeat is a comment that only updates the client's Last-Event-ID, if its
    library follows the standard. Many know only ids of events with data, so
    `Subscribed` is an event.
    """
    cursor = getattr(message, "cursor", None)
    if isinstance(message, Heartbeat):
        return comment(type_of(message), cursor)
    return event(type_of(message), encode(message), cursor)


def _field(name: str, value: str) -> bytes:
    return f"{name}: {_checked(name, value)}\n".encode()


def _checked(field: str, value: str) -> str:
    if _BREAKING.search(value):
        raise InvalidValue(field, "text without line ends and NUL", value)
    return value


WINDOW_BITS: Final = 12
SMALLEST_DEFLATED: Final = 512
"""Bytes. Compressing a smaller message saves less than it costs."""

_TEXT: Final = 0x81  # FIN and the opcode of text
_COMPRESSED: Final = 0x40  # RSV1
_TAIL: Final = b"\x00\x00\xff\xff"


def text_frame(payload: bytes) -> bytes:
    """A whole text message as one frame. ``payload`` is UTF-8."""
    return _head(_TEXT, len(payload)) + payload


def deflated_text_frame(payload: bytes) -> bytes:
    """Like `text_frame`, compressed, for connections with ``permessage-deflate``.

    A message that would not become smaller is not compressed, which RFC 7692 6 allows.
    """
    if len(payload) < SMALLEST_DEFLATED:
        return text_frame(payload)
    compressor = zlib.compressobj(wbits=-WINDOW_BITS, memLevel=5)
    deflated = compressor.compress(payload) + compressor.flush(zlib.Z_SYNC_FLUSH)
    # "Remove 4 octets (that are 0x00 0x00 0xff 0xff) from the tail end" (7.2.1).
    deflated = deflated.removesuffix(_TAIL)
    if len(deflated) >= len(payload):
        return text_frame(payload)
    return _head(_TEXT | _COMPRESSED, len(deflated)) + deflated


def _head(first: int, length: int) -> bytes:
    if length < 126:
        return bytes((first, length))
    if length < 1 << 16:
        return bytes((first, 126)) + length.to_bytes(2)
    return bytes((first, 127)) + length.to_bytes(8)
