"""Compressed bytes for values that are stored whole: entries, feed heads, documents."""

from __future__ import annotations

import zlib
from typing import Final, TypeVar

import msgspec

from protocols.model import Feed

Value = TypeVar("Value")

_GZIP: Final = 16
"""Added to zlib's window bits for gzip, whose trailer holds the length of the unpacked
data."""
_LEVEL: Final = 6
_MEMORY: Final = 7
_SMALLEST_WINDOW: Final = 9
_LARGEST_WINDOW: Final = 15
_LOOKED_AHEAD: Final = 262
"""Bytes that zlib keeps free in its window."""
_EITHER: Final = 47
"""zlib's window bits to read gzip, and zlib, which former versions packed with."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_USUAL_RATIO: Final = 4


def pack(value: object) -> bytes:
    """Encode a dataclass compactly. The inverse is `unpack` with its type."""
    return pack_bytes(msgspec.json.encode(value))


def unpack(packed: bytes, type: type[Value]) -> Value:
    return msgspec.json.decode(unpack_bytes(packed), type=type)


def unpack_head(packed: bytes | None) -> Feed:
    """What a feed says of itself; an empty head if none is stored."""
    return unpack(packed, Feed) if packed else Feed()


def encoded_size(value: object) -> int:
    """The size of a value in bytes before it is packed."""
    return len(msgspec.json.encode(value))


def pack_bytes(body: bytes) -> bytes:
    """With a window that just holds the body: to allocate and clear the usual one can
    take ten times as long as to pack a short entry."""
    needed = (len(body) + _LOOKED_AHEAD - 1).bit_length()
    window = min(max(needed, _SMALLEST_WINDOW), _LARGEST_WINDOW)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP + window, _MEMORY)
    return packer.compress(body) + packer.flush()


def unpack_bytes(packed: bytes) -> bytes:
    return zlib.decompress(packed, wbits=_EITHER)


def unpacked_size(packed: bytes) -> int:
    """Bytes of packed data once unpacked, which may be a thousand times more; only a
    guess for what a former version packed. It decides on which thread the data is
    unpacked."""
    if packed.startswith(_GZIP_MAGIC):
        return int.from_bytes(packed[-4:], "little")
    return len(packed) * _USUAL_RATIO
