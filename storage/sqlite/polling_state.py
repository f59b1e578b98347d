"""Polling states in the two parts that are stored: JSON objects, which the view
``stored_feeds`` puts together."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import fields

from storage.records import COLD_FIELDS, HOT_FIELDS, Polling, cold_values, hot_values

_TYPES: Final = {each.name: each.type for each in fields(Polling)}


def _part_of(name: str, members: tuple[str, ...]) -> Any:
    """A struct type with these fields of a polling state, for the encoder."""
    return msgspec.defstruct(name, [(each, _TYPES[each]) for each in members])


_Hot: Final = _part_of("Hot", HOT_FIELDS)
_Cold: Final = _part_of("Cold", COLD_FIELDS)
_encode: Final = msgspec.json.Encoder().encode


def encode_hot(polling: Polling) -> bytes:
    return _encode(_Hot(*hot_values(polling)))


def encode_cold(polling: Polling) -> bytes:
    return _encode(_Cold(*cold_values(polling)))
