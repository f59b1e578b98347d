"""Decompression of answers, bounded as it proceeds, so that no answer becomes a bomb.

It knows gzip, br and deflate, with and without its zlib wrapper. A mislabelled body is
taken as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli

from hub.http.exchange import BodyAllowance
from hub.http.network_errors import BadAnswer, TooLarge

_GZIP_BEGINNING = b"\x1f"
_UNKNOWN_CODINGS = frozenset({"zstd", "compress", "dcb", "dcz"})
_RATIO = 200  # a wordy document shrinks to a fiftieth, a bomb to a thousandth
_RATIO_COUNTS_FROM = 1 << 20  # bytes of output
_OUTPUT_STEP = 1 << 18  # bytes at a time, about
_INPUT_STEP = 1 << 12
_MOST_MEMBERS = 1_000  # of a gzip body; an empty one costs 20 bytes to send


class DecompressionStream(Protocol):
    @property
    def is_whole(self) -> bool:
        """Whether the stream's own end has been seen."""
        ...

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Output in bounded pieces; raises ValueError for data of another kind."""
        ...


class ZlibStream:
    """gzip (31), zlib (15) or raw deflate (-15), by the window bits of `zlib`."""

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._member = zlib.decompressobj(window_bits)
        self._members = 1

    @property
    def is_whole(self) -> bool:
        return self._member.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        is_full = False
        while data or is_full:
            if self._member.eof and not self._begin_member(data):
                return
            try:
                output = self._member.decompress(data, _OUTPUT_STEP)
            except zlib.error as error:
                raise ValueError(str(error)) from None
            yield output
            is_full = len(output) >= _OUTPUT_STEP
            data = self._member.unconsumed_tail or self._member.unused_data

    def _begin_member(self, data: bytes) -> bool:
        """RFC 1952, 2.2: "a gzip file consists of a series of members"; the rest of
        what follows a stream is padding."""
        if self._window_bits != 31 or not data.startswith(_GZIP_BEGINNING):
            return False
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise ValueError("too many members")
        self._member = zlib.decompressobj(self._window_bits)
        return True


class BrotliStream:
    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()

    @property
    def is_whole(self) -> bool:
        return bool(self._decompressor.is_finished())

    def decompress(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._decompressor.process(data, output_buffer_limit=_OUTPUT_STEP)
            while not self._decompressor.can_accept_more_data():
                yield self._decompressor.process(b"", output_buffer_limit=_OUTPUT_STEP)
        except brotli.error as error:
            raise ValueError(str(error)) from None


class Decompressor:
    """One body as it comes in: `feed` it piece by piece, `finish` gives the whole.

    ``coding`` is the Content-Encoding as sent. More than ``limit`` bytes, or output
    out of all proportion to its input, is TooLarge; a coding that we did not ask for,
    a broken or an unfinished stream is a BadAnswer. What it gives is taken from the
    ``allowance``, whose errors are raised as well.
    """

    def __init__(
        self, coding: str, limit: int, allowance: BodyAllowance | None = None
    ) -> None:
        self._allowance = allowance
        self._coding = coding.strip().lower().removeprefix("x-")
        self._limit = limit
        self._stream: DecompressionStream | None = None
        self._is_plain = self._coding not in ("gzip", "deflate", "br")
        self._held: list[bytes] = []  # as it came, while the label may prove wrong
        self._output: list[bytes] = []
        self._wire_bytes = 0
        self._output_bytes = 0
        if "," in self._coding or self._coding in _UNKNOWN_CODINGS:
            raise BadAnswer(f"unknown Content-Encoding {coding[:40]!r}")

    def feed(self, piece: bytes) -> None:
        if self._wire_bytes + len(piece) > self._limit:
            raise TooLarge(self._limit)
        if self._is_plain:
            self._wire_bytes += len(piece)
            self._put(piece)
            return
        for start in range(0, len(piece), _INPUT_STEP):
            self._inflate(piece[start : start + _INPUT_STEP])

    def finish(self) -> bytes:
        if self._wire_bytes and not self._is_plain and not self._is_whole:
            if not self._held:
                raise BadAnswer("the compressed answer ends early")
            self._take_as_it_came()
        return self._output[0] if len(self._output) == 1 else b"".join(self._output)

    @property
    def _is_whole(self) -> bool:
        return self._stream is not None and self._stream.is_whole

    def _inflate(self, piece: bytes) -> None:
        self._wire_bytes += len(piece)
        if self._is_plain:  # it turned out to be
            self._put(piece)
            return
        if not self._output_bytes:
            self._take(piece)
            self._held.append(piece)
        if self._stream is None:
            piece = b"".join(self._held)
            self._stream = _open_stream(self._coding, piece)
            if self._stream is None:
                return
        try:
            for output in self._stream.decompress(piece):
                self._add(output)
        except ValueError:
            if not self._held:
                raise BadAnswer("the compressed answer is damaged") from None
            self._take_as_it_came()

    def _add(self, output: bytes) -> None:
        if not output:
            return
        self._held.clear()
        self._put(output)
        self._output_bytes += len(output)
        is_bomb = (
            self._output_bytes > _RATIO_COUNTS_FROM
            and self._output_bytes > _RATIO * self._wire_bytes
        )
        if is_bomb or self._output_bytes > self._limit:
            raise TooLarge(self._limit)

    def _put(self, output: bytes) -> None:
        self._take(output)
        self._output.append(output)

    def _take(self, held: bytes) -> None:
        if self._allowance is not None:
            self._allowance.take(len(held))

    def _take_as_it_came(self) -> None:
        self._is_plain = True
        self._output = self._held
        self._held = []


def _open_stream(coding: str, beginning: bytes) -> DecompressionStream | None:
    """The stream for a coding; None if the beginning is too short to tell the two kinds
    of deflate apart."""
    if coding == "br":
        return BrotliStream()
    if coding == "gzip":
        return ZlibStream(31)
    if len(beginning) < 2:
        return None
    # RFC 1950, 2.2: CM = 8, and the first two bytes are a multiple of 31
    is_wrapped = (
        beginning[0] & 0x0F == 8 and int.from_bytes(beginning[:2], "big") % 31 == 0
    )
    return ZlibStream(15 if is_wrapped else -15)
