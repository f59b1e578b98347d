"""The body of an answer that goes into a sink, and is neither held nor decompressed."""

from __future__ import annotations

from hub.errors import TooLarge
from hub.net.messages import Sink


class Spooling:
    """As `hub.net.inflation.Inflation`; more than ``limit`` bytes are TooLarge."""

    def __init__(self, sink: Sink, limit: int) -> None:
        self._sink = sink
        self._limit = limit
        self._bytes = 0

    def feed(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._bytes > self._limit:
            raise TooLarge(self._limit)
        self._sink.write(piece)

    def finish(self) -> bytes:
        return b""
