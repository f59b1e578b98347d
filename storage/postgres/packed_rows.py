"""Rows of the database's own types, packed as the server takes them in an array.

The server reads them faster than JSON, and the hub packs them faster than as many
arrays as there are columns. A row is the columns that always have a value, then the
others, then two numbers by which rows of one call belong together.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from typing import Final

from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format


class Column(Enum):
    """Of a value that is always there: its type's number in PostgreSQL, its form, and
    its length in bytes."""

    BOOLEAN = 16, "?", 1
    HASH = 17, "16s", 16
    INT8 = 20, "q", 8
    INT2 = 21, "h", 2
    INT4 = 23, "i", 4
    FLOAT8 = 701, "d", 8


class FirstColumns:
    """The first columns of a row of ``count`` columns."""

    def __init__(self, count: int, *columns: Column) -> None:
        forms = ("ii" + form for _, form, _ in (each.value for each in columns))
        self._pack = struct.Struct(">i" + "".join(forms)).pack
        self._values: list[object] = [count]
        for each in columns:
            number, _, length = each.value
            self._values += (number, length, None)

    def pack(self, *values: object) -> bytes:
        packed = self._values.copy()
        packed[3::3] = values
        return self._pack(*packed)


_HEAD: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")
_INT8: Final = struct.Struct(">iiq")
_INT4: Final = struct.Struct(">iii")
_PLACE: Final = struct.Struct(">iiiiii")
_ARRAY: Final = struct.Struct(">iiIii")
_NO_ROWS: Final = struct.Struct(">iiI")
_NULL: Final = -1
_BYTEA: Final = 17
_INT8_TYPE: Final = 20
_INT4_TYPE: Final = 23
_TEXT: Final = 25
_JSONB: Final = 3802
_NULL_BYTES: Final = _HEAD.pack(_BYTEA, _NULL)
_NULL_TEXT: Final = _HEAD.pack(_TEXT, _NULL)
_NULL_JSONB: Final = _HEAD.pack(_JSONB, _NULL)
_NULL_INT8: Final = _HEAD.pack(_INT8_TYPE, _NULL)
_NULL_INT4: Final = _HEAD.pack(_INT4_TYPE, _NULL)
_JSONB_VERSION: Final = b"\x01"


def column_of_bytes(value: bytes | None) -> bytes:
    return _NULL_BYTES if value is None else _HEAD.pack(_BYTEA, len(value)) + value


def column_of_text(value: str | None) -> bytes:
    """``value``: without the character NUL."""
    if value is None:
        return _NULL_TEXT
    encoded = value.encode()
    return _HEAD.pack(_TEXT, len(encoded)) + encoded


def column_of_json(value: bytes | None) -> bytes:
    if value is None:
        return _NULL_JSONB
    return _HEAD.pack(_JSONB, len(value) + 1) + _JSONB_VERSION + value


def column_of_int8(value: int | None) -> bytes:
    return _NULL_INT8 if value is None else _INT8.pack(_INT8_TYPE, 8, value)


def column_of_int4(value: int | None) -> bytes:
    return _NULL_INT4 if value is None else _INT4.pack(_INT4_TYPE, 4, value)


def pack_row(*columns: bytes) -> bytes:
    """All of a row but its place, which `pack_place` makes."""
    packed = b"".join(columns)
    return _LENGTH.pack(len(packed) + _PLACE.size) + packed


def pack_place(place: int, first: int) -> bytes:
    """The last two columns of a row."""
    return _PLACE.pack(_INT4_TYPE, 4, place, _INT4_TYPE, 4, first)


class PackedRows(bytes):
    """An array of rows; as a parameter it wants a cast to its type."""


def pack_rows(row_type: int, parts: Sequence[bytes]) -> PackedRows:
    """``row_type``: its number in this database. ``parts``: rows and their places in
    turn."""
    if not parts:
        return PackedRows(_NO_ROWS.pack(0, 0, row_type))
    head = _ARRAY.pack(1, 0, row_type, len(parts) // 2, 1)
    return PackedRows(head + b"".join(parts))


class _RowsDumper(Dumper):
    format = Format.BINARY
    oid = 0  # what the cast says

    def dump(self, obj: PackedRows) -> Buffer | None:
        return obj


def register_rows(adapters: AdaptersMap) -> None:
    adapters.register_dumper(PackedRows, _RowsDumper)
