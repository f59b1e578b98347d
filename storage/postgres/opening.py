"""Opening a database: server, version, rights, migrations, key and epoch, in this
order. What makes a database unusable is explained in words for operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import AsyncConnection, conninfo

from storage.database_names import name_location
from storage.errors import DatabaseTooNew, DatabaseUnusable
from storage.postgres.connections import Connections, ConnectionSettings, Row, connect
from storage.postgres.driver_errors import explained, said
from storage.postgres.fetch_commits import read_row_types
from storage.postgres.known_end import KnownEnd
from storage.postgres.membership import new_epoch
from storage.postgres.operations import PostgresStorage
from storage.postgres.schema import (
    check_schema,
    find_schema,
    is_migration_due,
    latest_schema,
    refuse_outdated,
    refuse_unfinished_copy,
    run_migrations,
    scripts,
)
from storage.records import Cursor, Position
from storage.secrets import SecretBox, create_key, read_key

LEAST_SERVER: Final = 150_000
"""PostgreSQL 15, as the server numbers it."""
_OWN: Final = ("password_file", "pgbouncer")
"""Parameters of the URL that are this program's, not libpq's."""


async def open_at(
    url: str, key_file: Path, *, migrate: bool, on_close: Callable[[], None]
) -> PostgresStorage:
    """See `storage.postgres.open_database`."""
    settings = read_location(url)
    connection = await _connect(settings)
    try:
        await _prepare(connection, settings.name, migrate=migrate)
        box = await _open_box(connection, settings.name, key_file)
        known_end = KnownEnd(key_file.with_suffix(".end"))
        epoch, log_end = await _begin_epoch(connection, known_end.cursor)
        row_types = await read_row_types(connection)
    except psycopg.Error as error:
        await connection.close()
        raise DatabaseUnusable(settings.name, explained(error)) from error
    except BaseException:
        await connection.close()
        raise
    return PostgresStorage(
        location=settings.name,
        connections=Connections(settings, connection),
        box=box,
        row_types=row_types,
        epoch=epoch,
        log_end=log_end,
        known_end=known_end,
        on_close=on_close,
    )


async def prepare_to_copy(url: str, *, is_target: bool) -> ConnectionSettings:
    """How a server is reached whose database can be read, or, as a target, written.

    A target without tables gets them. Raises `DatabaseUnusable`.
    """
    settings = read_location(url)
    connection = await _connect(settings)
    try:
        is_new = is_target and not (await find_schema(connection)).version
        await _prepare(connection, settings.name, migrate=is_new, is_target=is_target)
        await _require_latest(connection, settings.name)
    except psycopg.Error as error:
        raise DatabaseUnusable(settings.name, explained(error)) from error
    finally:
        await connection.close()
    return settings


async def _require_latest(connection: AsyncConnection[Row], name: str) -> None:
    """Tables and columns of another version would not be copied."""
    found, latest = await find_schema(connection), latest_schema()
    if found.version > latest:
        raise DatabaseTooNew(name, found.version, latest)
    refuse_outdated(name, found, latest)


# --- the location ---


def read_location(url: str) -> ConnectionSettings:
    """Read a URL: libpq's parameters, and the hub's own ``password_file``, whose first
    line is the password, and ``pgbouncer=true``.

    Raises `DatabaseUnusable`.
    """
    parts = urlsplit(url)
    name = name_location(url)
    # In a URL of libpq a plus is a plus.
    query = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))
    own = {str(each): query.pop(each) for each in _OWN if each in query}
    rest = urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
    try:
        parameters = {
            key: str(value) for key, value in conninfo.conninfo_to_dict(rest).items()
        }
    except psycopg.Error as error:
        raise DatabaseUnusable(
            name, f"not a URL of PostgreSQL: {said(error)}"
        ) from None
    if path := own.get("password_file"):
        parameters["password"] = _read_password(path, name)
    return ConnectionSettings(
        parameters=parameters, is_pooled=_is_pooled(own, name), name=name
    )


def _read_password(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatabaseUnusable(name, f"password_file: {error}") from error
    if not lines or not lines[0]:
        raise DatabaseUnusable(name, f"password_file: {path} is empty")
    return lines[0]


def _is_pooled(own: Mapping[str, str], name: str) -> bool:
    value = own.get("pgbouncer", "false")
    if value not in ("true", "false"):
        raise DatabaseUnusable(
            name, f'pgbouncer: expected "true" or "false", not {value!r}'
        )
    return value == "true"


# --- the server ---


async def _connect(settings: ConnectionSettings) -> AsyncConnection[Row]:
    try:
        connection = await connect(settings)
    except psycopg.Error as error:
        reason = f"the server cannot be used: {said(error)}"
        if "session is read-only" in reason or "server is in hot standby" in reason:
            reason = "the server is read-only; name the primary, or all: //a,b/"
        if "unsupported startup parameter" in reason:
            reason += "; for PgBouncer add pgbouncer=true to the URL"
        raise DatabaseUnusable(settings.name, reason) from error
    version = connection.info.server_version
    if version < LEAST_SERVER:
        await connection.close()
        raise DatabaseUnusable(
            settings.name,
            f"the server is PostgreSQL {version // 10_000}; Fanfare needs 15 or newer",
        )
    return connection


async def _prepare(
    connection: AsyncConnection[Row],
    name: str,
    *,
    migrate: bool,
    is_target: bool = False,
) -> None:
    """``is_target``: of a copy, which may be unfinished."""
    cursor = await connection.execute(
        "SELECT current_setting('server_encoding'), current_schema() IS NOT NULL"
    )
    encoding, has_schema = await cursor.fetchone() or ("", False)
    if encoding != "UTF8":
        raise DatabaseUnusable(name, f"its encoding is {encoding}; Fanfare needs UTF8")
    if not has_schema:
        raise DatabaseUnusable(name, "the schema of its search_path does not exist")
    if not is_target:
        await refuse_unfinished_copy(connection, name)
    found = await check_schema(connection, name, migrate=migrate)
    if migrate and is_migration_due(found):
        await run_migrations(connection, name, scripts())
    await _require_rights(connection, name)


async def _require_rights(connection: AsyncConnection[Row], name: str) -> None:
    """Require rights on every table now, rather than fail at the first delivery."""
    found = await connection.execute(
        "SELECT c.relname FROM pg_class c"
        " WHERE c.relnamespace = current_schema()::regnamespace"
        " AND c.relkind IN ('r', 'p')"
        " AND NOT (has_table_privilege(c.oid, 'SELECT')"
        "  AND has_table_privilege(c.oid, 'INSERT')"
        "  AND has_table_privilege(c.oid, 'UPDATE')"
        "  AND has_table_privilege(c.oid, 'DELETE'))"
        " ORDER BY c.relname LIMIT 1"
    )
    row = await found.fetchone()
    if row is not None:
        user = connection.info.user
        raise DatabaseUnusable(
            name,
            f"the user {user!r} may not read and write the table {row[0]}; have it own"
            " the tables, or GRANT it all on them",
        )


# --- the key ---


async def _open_box(
    connection: AsyncConnection[Row], name: str, key_file: Path
) -> SecretBox:
    """Open the database with its key, which is created if it never had one.

    A key belongs to one database: neither is of use with another one.
    """
    key = read_key(key_file)
    row = await (await connection.execute("SELECT key_check FROM hub")).fetchone()
    key_check = row[0] if row else ""
    if key is None and key_check:
        reason = f"its key file {key_file} is missing; copy that of the other hubs"
        raise DatabaseUnusable(name, reason)
    box = SecretBox(key or _create_key(key_file, name))
    if not key_check:
        await connection.execute(
            "UPDATE hub SET key_check = %s WHERE key_check = ''", (box.key_check,)
        )
        row = await (await connection.execute("SELECT key_check FROM hub")).fetchone()
        key_check = row[0] if row else ""
    if key_check != box.key_check:
        reason = f"the key file {key_file} belongs to another database"
        raise DatabaseUnusable(name, reason)
    return box


def _create_key(path: Path, name: str) -> bytes:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return create_key(path)
    except OSError as error:
        reason = f"the key cannot be written: {error.strerror or error}"
        raise DatabaseUnusable(name, reason) from error


# --- the log ---

_BEGIN: Final = (
    "SELECT ensure_epoch(%s, %s, %s), head, ensure_partitions() FROM log_head"
)


async def _begin_epoch(
    connection: AsyncConnection[Row], known: Cursor
) -> tuple[str, Position]:
    """Return the epoch and the log's end; ``known``: the end this machine last saw.

    A database that was restored, copied or promoted begins a new epoch: records that
    readers have seen may be missing.
    """
    parameters = (new_epoch(), known.epoch, known.position)
    cursor = await connection.execute(_BEGIN, parameters)
    epoch, last, _ = await cursor.fetchone() or ("", 0, None)
    return epoch, Position(last)
