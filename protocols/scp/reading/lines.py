"""Lines out of a stream of bytes, each of a bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """`feed` pieces, then take the `last` line, which may lack its line feed.

    Lines come as they are, without the line feed; one of more than ``limit`` bytes
    comes as ``None``, and is never held.
    """

    __slots__ = ("_is_too_long", "_limit", "_rest")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""
        self._is_too_long = False

    def feed(self, piece: bytes) -> Iterator[bytes | None]:
        lines = piece.split(b"\n")
        lines[0] = self._rest + lines[0]
        self._rest = lines.pop()
        for line in lines:
            if self._is_too_long or len(line) > self._limit:
                self._is_too_long = False
                yield None
            else:
                yield line
        if len(self._rest) > self._limit:
            self._is_too_long = True
            self._rest = b""

    def last(self) -> bytes | None:
        """``b""`` if the file ends with a line feed."""
        return None if self._is_too_long else self._rest
