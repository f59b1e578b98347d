"""Compressed bytes for values that are stored whole: entries, feed heads, documents."""

from __future__ import annotations

import zlib
from typing import Final, TypeVar

import msgspec

from protocols.model import Feed

Value = TypeVar("Value")

_GZIP: Final = 31
"""Window bits of zlib for gzip, which says at its end how long the whole is."""
_EITHER: Final = 47
"""For gzip, and for zlib, which former versions packed with."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_USUAL_RATIO: Final = 4


def pack(value: object) -> bytes:
    """Encode a dataclass compactly. The inverse is `unpack` with its type."""
    return pack_bytes(msgspec.json.encode(value))


def unpack(packed: bytes, type: type[Value]) -> Value:
    return msgspec.json.decode(unpack_bytes(packed), type=type)


def unpack_head(packed: bytes | None) -> Feed:
    """What a feed says of itself; nothing where no head is stored."""
    return unpack(packed, Feed) if packed else Feed()


def encoded_size(value: object) -> int:
    """Bytes of a value before they are packed."""
    return len(msgspec.json.encode(value))


def pack_bytes(body: bytes) -> bytes:
    return zlib.compress(body, 6, wbits=_GZIP)


def unpack_bytes(packed: bytes) -> bytes:
    return zlib.decompress(packed, wbits=_EITHER)


def unpacked_size(packed: bytes) -> int:
    """Bytes of what was packed, which may be a thousand times more; of what a former
    version has packed only by guess. It decides on which thread it is unpacked."""
    if packed.startswith(_GZIP_MAGIC):
        return int.from_bytes(packed[-4:], "little")
    return len(packed) * _USUAL_RATIO
