"""Messages written as JSON, on one line."""

from __future__ import annotations

from dataclasses import fields

import orjson

from protocols.live.messages import (
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
    """One line of JSON; members without a value are left out, but for ``prev``."""
    document: dict[str, object] = {"type": type_of(message)}
    for each in fields(message):
        value = getattr(message, each.name)
        if isinstance(value, bytes):
            value = orjson.Fragment(value)
        if value is not None or each.name == "prev":
            document[each.name] = value
    return orjson.dumps(document)
