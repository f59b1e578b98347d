"""A message ready to be written, its encodings made once for all who get it."""

from __future__ import annotations

from functools import cached_property

from protocols.live.encoding import encode
from protocols.live.frames import deflated_text_frame, text_frame
from protocols.live.messages import ServerMessage
from protocols.live.sse import event_of


class Prepared:
    """Each encoding is made when the first connection needs it."""

    def __init__(self, message: ServerMessage) -> None:
        self.message = message

    @cached_property
    def payload(self) -> bytes:
        return encode(self.message)

    @cached_property
    def frame(self) -> bytes:
        """A websocket frame."""
        return text_frame(self.payload)

    @cached_property
    def deflated_frame(self) -> bytes:
        return deflated_text_frame(self.payload)

    @cached_property
    def event(self) -> bytes:
        """A server-sent event."""
        return event_of(self.message)

    @cached_property
    def event_chunk(self) -> bytes:
        """The same as a chunk of an HTTP/1.1 body (RFC 9112 7.1)."""
        return b"%x\r\n%b\r\n" % (len(self.event), self.event)
