"""Lists of ids as one JSON text: a parameter for ``json_each``, or a column. And of
hashes, as two parameters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

_decoder = msgspec.json.Decoder(list[int])

HASHES: Final = "(SELECT substr(?, 1 + 16 * value, 16) FROM json_each(?))"
"""The hashes of `pack_hashes`, as a subquery."""


def pack_ids(ids: Collection[int]) -> str:
    return msgspec.json.encode(list(ids)).decode()


def unpack_ids(packed: str) -> list[int]:
    return _decoder.decode(packed)


def pack_hashes(hashes: Sequence[bytes]) -> tuple[bytes, str]:
    """Hashes of 16 bytes each."""
    return b"".join(hashes), pack_ids(range(len(hashes)))
