"""Websocket frames, built once and written to every connection that gets the message.

A hub's frames are not masked, so the same bytes serve all. A compressed one depends on
no message before it ("server_no_context_takeover", RFC 7692 7.1.1.1) and on a window
that every negotiated connection has.
"""

from __future__ import annotations

import zlib
from typing import Final

WINDOW_BITS: Final = 12
SMALLEST_DEFLATED: Final = 512
"""Bytes. Compressing less saves less than it costs."""

_TEXT: Final = 0x81  # FIN and the opcode of text
_COMPRESSED: Final = 0x40  # RSV1
_TAIL: Final = b"\x00\x00\xff\xff"


def text_frame(payload: bytes) -> bytes:
    """A whole text message as one frame. ``payload`` is UTF-8."""
    return _head(_TEXT, len(payload)) + payload


def deflated_text_frame(payload: bytes) -> bytes:
    """The same, compressed, for connections that negotiated ``permessage-deflate``.

    What would not become smaller is left as it is, which RFC 7692 6 allows.
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
