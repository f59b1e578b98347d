"""A message ready to be written, with each encoding made once for all receivers."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from protocols.cursor import cursor_in_turn
from protocols.live.live_messages import (
    Heartbeat,
    NotificationMessage,
    ServerMessage,
)
from protocols.live.message_encoding import (
    deflated_text_frame,
    encode,
    event,
    event_of,
    text_frame,
)


class PreparedMessage:
    """Each encoding is made when the first connection needs it."""

    def __init__(self, message: ServerMessage) -> None:
        self.message = message

    @cached_property
    def in_turn(self) -> PreparedMessage:
        """A notification for subscriptions whose record is still to go to other
        topics."""
        message = self.message
        assert isinstance(message, NotificationMessage)  # noqa: S101 - others have none
        cursor = cursor_in_turn(message.cursor, message.topic)
        return PreparedMessage(replace(message, cursor=cursor))

    def encode(self) -> None:
        """Make all encodings now: for a large message that takes long."""
        _ = self.frame, self.deflated_frame, self.event_chunk

    @cached_property
    def payload(self) -> bytes:
        return encode(self.message)

    @cached_property
    def frame(self) -> bytes:
        """The message as a websocket frame."""
        return text_frame(self.payload)

    @cached_property
    def deflated_frame(self) -> bytes:
        return deflated_text_frame(self.payload)

    @cached_property
    def event(self) -> bytes:
        """The message as a server-sent event."""
        return event_of(self.message)

    @cached_property
    def event_chunk(self) -> bytes:
        """The event as a chunk of an HTTP/1.1 body (RFC 9112 7.1)."""
        return chunk_of(self.event)

    @cached_property
    def body_event_chunk(self) -> bytes:
        """Like `event_chunk`, but the data of a notification is its body alone."""
        message = self.message
        if not isinstance(message, NotificationMessage):
            return self.event_chunk
        return chunk_of(event("notification", bytes_of(message), message.cursor))

    @cached_property
    def line_chunk(self) -> bytes:
        """A chunk with a notification's body and the end of a line.

        For a heartbeat it is an empty line; b"" for a message that is no document.
        """
        message = self.message
        if isinstance(message, NotificationMessage):
            return chunk_of(bytes_of(message) + b"\n")
        return chunk_of(b"\n") if isinstance(message, Heartbeat) else b""


def chunk_of(data: bytes) -> bytes:
    """A chunk of an HTTP/1.1 body (RFC 9112 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def bytes_of(message: NotificationMessage) -> bytes:
    body = message.body
    return body.encode() if isinstance(body, str) else body
