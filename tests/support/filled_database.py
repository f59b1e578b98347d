"""A database of SQLite with rows in every table that a copy takes along."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import msgspec

from storage.copying.copied_tables import TABLES, CopiedColumn, CopiedTable, ValueKind
from storage.records import Format, Polling, RecordKind, Updates
from storage.secrets import SecretBox, key_path, read_key
from storage.sqlite import open_database
from storage.sqlite.polling_state import encode_hot

FIRST: Final = 3
"""The lowest id: two accounts are always there."""
ROWS: Final = 3
HEAD: Final = FIRST + ROWS - 1
_NUMBERS: Final = (0.1, 86_400.0, -2.5)
_TEXTS: Final = ("", "Grüße, 世界 🎉", "two\nlines\t\\N 'quoted'")
_EVENT: Final = msgspec.json.encode({"type": "feed.dead", "at": "2026-01-01T00:00:00Z"})
_AT: Final = datetime(2026, 1, 1, 12, 30, 15, 123_456, tzinfo=UTC)
_FETCH_STATES: Final = (
    b"",
    encode_hot(
        Polling(
            period=1 / 3,
            last_fetch=_AT,
            last_success=_AT,
            last_parse=_AT,
            fresh_until=_AT + timedelta(hours=1),
            code=304,
        )
    ),
    encode_hot(
        Polling(
            price=1e300,
            last_fetch=_AT,
            last_parse=_AT - timedelta(days=1),
            fresh_until=_AT + timedelta(microseconds=1),
            error=_TEXTS[2],
            unchanged=7,
        )
    ),
)
_MADE_OF_OTHERS: Final = (
    "UPDATE accounts SET notified = id * 7 WHERE id > 3",
    "UPDATE schedule SET is_active = 1",
    "UPDATE page_sections SET withdrawals = 4 WHERE name <> ''",
    "UPDATE fanouts SET is_next = 1, turn = position + 40",
    "UPDATE search_state SET days = 30",
    "UPDATE meta SET head = 5, tail = 2, queries = 5, checked_at = 8,"
    " seen_at = 1700000000000",
)
"""What has no row of its own in SQLite."""


async def make_filled(path: Path) -> None:
    """Triggers have counted and listed what is in it."""
    storage = await open_database(path)
    await storage.close()
    box = SecretBox(read_key(key_path(path)) or b"")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in TABLES:
            if not table.sqlite_write or table.name == "fanouts":
                _fill(table, box, connection)
        for statement in _MADE_OF_OTHERS:
            connection.execute(statement)


def _fill(table: CopiedTable, box: SecretBox, connection: sqlite3.Connection) -> None:
    info = connection.execute(f"PRAGMA table_info({table.sqlite})")
    optional = {
        name for _, name, _, is_needed, _, key in info if not (is_needed or key)
    }
    names = [each.sqlite for each in table.columns]
    values = [[*_values(each, box)] for each in table.columns]
    for place, column in enumerate(table.columns):
        if column.sqlite in optional:
            values[place][1] = None
    if table.name == "fanouts":
        names, values = [*names, "is_next"], [*values, [0] * ROWS]
    connection.executemany(
        f"INSERT OR REPLACE INTO {table.sqlite} ({', '.join(names)})"  # noqa: S608
        f" VALUES ({', '.join('?' * len(names))})",
        zip(*values, strict=True),
    )


def _values(column: CopiedColumn, box: SecretBox) -> Iterator[Any]:
    """Of each row, in this column."""
    ids = range(FIRST, FIRST + ROWS)
    for number, text in zip(ids, cycle(_TEXTS), strict=False):
        match column.kind:
            case ValueKind.INTEGER:
                yield number
            case ValueKind.NUMBER:
                yield _NUMBERS[number - FIRST]
            case ValueKind.BOOLEAN:
                yield number % 2
            case ValueKind.BYTES:
                yield b"{}" if column.name in ("status", "record") else bytes([number])
            case ValueKind.TEXT:
                yield _text(column.name, number, text, box)
            case kind:
                yield _packed(kind, number)


def _packed(kind: ValueKind, number: int) -> Any:
    match kind:
        case ValueKind.IDS:
            return f"[{number},{number + 1}]"
        case ValueKind.REFERENCES:
            return struct.pack("<qq", number, number << 1 | number % 2)
        case ValueKind.FETCH_STATE:
            return _FETCH_STATES[number - FIRST]
        case ValueKind.LATEST_POLLS:
            return bytes(range(14 * (number - FIRST)))


def _text(name: str, number: int, text: str, box: SecretBox) -> str:
    place = number - FIRST
    match name:
        case "kind":
            found = [each.value for each in RecordKind][place]
        case "format":
            found = (Format.JSON, Format.AS_IS, Format.BY_TOPIC)[place].value
        case "updates":
            found = [each.value for each in Updates][place % len(Updates)]
        case "state":
            found = "active"
        case "event":
            found = _EVENT.decode()
        case "credentials":
            found = box.encrypt('{"username":"me"}') if place else ""
        case "secret" | "former_secret":
            found = box.encrypt(f"secret {number}") if place else ""
        case "url" | "callback" | "topic":
            found = f"https://{name}{number}.example/Path"
        case _:
            found = f"{text}{number}"
    return str(found)
