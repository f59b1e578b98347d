"""Lists of ids as one JSON text: a parameter for ``json_each``, or a column."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_decoder = msgspec.json.Decoder(list[int])


def pack_ids(ids: Sequence[int]) -> str:
    return msgspec.json.encode(list(ids)).decode()


def unpack_ids(packed: str) -> list[int]:
    return _decoder.decode(packed)
