"""Server-sent events (the HTML standard, "Server-sent events").

Nothing that is sent can end a field or an event early: line ends in data become lines
of data, and in a name or an id they are refused.
"""

from __future__ import annotations

import re
from typing import Final

from protocols.errors import InvalidValue
from protocols.live.encoding import encode, type_of
from protocols.live.messages import Heartbeat, ServerMessage

EVENT_STREAM: Final = "text/event-stream"

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BREAKING: Final = re.compile(r"[\r\n\0]")


def event(name: str, data: bytes, id: str | None = None) -> bytes:
    """One event. Raises `InvalidValue` for a name or id that would break it."""
    head = _field("event", name) + (b"" if id is None else _field("id", id))
    lines = b"".join(b"data: %b\n" % line for line in _LINE_END.split(data))
    return head + lines + b"\n"


def comment(text: str, id: str | None = None) -> bytes:
    """What a client does not see. With an ``id``, its Last-Event-ID moves there:

    an event without data is not dispatched, but its id is remembered.
    """
    line = f": {_checked('comment', text)}\n".encode()
    return line + (b"" if id is None else _field("id", id)) + b"\n"


def event_of(message: ServerMessage) -> bytes:
    """A message of the live stream as an event.

    A heartbeat only moves the client's Last-Event-ID, where its library reads the
    standard so; many know only ids of events with data, so the beginning is one.
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
