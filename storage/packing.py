"""Compressed bytes for what is stored whole: entries, feed heads, documents."""

from __future__ import annotations

import zlib
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


def pack(value: object) -> bytes:
    """Encode a dataclass compactly. The inverse is `unpack` with its type."""
    return pack_bytes(msgspec.json.encode(value))


def unpack(packed: bytes, type: type[Value]) -> Value:
    return msgspec.json.decode(unpack_bytes(packed), type=type)


def pack_bytes(body: bytes) -> bytes:
    return zlib.compress(body, 6)


def unpack_bytes(packed: bytes) -> bytes:
    return zlib.decompress(packed)
