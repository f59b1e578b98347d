"""Connections to the server, and the calls made over them.

Each call is one statement, and so one transaction and one round trip: no lock is ever
held while the server waits for the hub. A task that takes several statements is a
function of the database (see the folder ``functions``).
"""

from __future__ import annotations

import asyncio
import secrets as randomness
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import ConnStatus, Format, TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown

from storage.errors import (
    OutcomeUnknown,
    StorageBusy,
    StorageClosed,
    StorageError,
    TermEnded,
    WriteFailed,
)
from storage.postgres.driver_errors import (
    is_away,
    is_fault_of_server,
    is_undone,
    read_failure,
    said,
    write_failure,
)
from storage.postgres.packed_rows import register_rows
from storage.read_patience import READ_PATIENCE
from storage.records import NodeTerm, WriteFaults
from storage.sqlite.columns import to_milliseconds

MOST_CONNECTIONS: Final = 10
"""The most connections of one process: a server with a hundred has room for nine
hubs."""
CAPACITY: Final = 10_000
"""Writes that may wait; the next one is refused with `StorageBusy`."""
TRIES: Final = 5
"""How often a write is tried that conflicts with other transactions."""
STATEMENT_SECONDS: Final = 60
LOCK_SECONDS: Final = 10
IDLE_SECONDS: Final = 10
"""How long one call may take, and may wait for a lock of another; and how long a
transaction may wait for its hub, which none ever should."""
CONNECT_SECONDS: Final = 10
UNANSWERED_MILLISECONDS: Final = 15_000
"""A server that acknowledges no packet for so long counts as gone."""

AWAY_PAUSE: Final = 0.25
"""Seconds between two tries to read from a server that is away."""
RESOLVING_SECONDS: Final = 30
RESOLVING_PAUSE: Final = 0.25
"""How long, and how often, a server is asked for a write's outcome if the answer was
lost."""
_TERM_ENDED: Final = "FF001"

Row = tuple[Any, ...]
"""A row as the driver gives it; read at once into a value of `storage.records`."""
Parameters: TypeAlias = Sequence[object] | Mapping[str, object]
ASKED: Final = (
    "unnest(ARRAY(SELECT unnest(%s::bigint[]))) WITH ORDINALITY asked (id, place)"
)
"""SQL for ids that are given as a list, with their places. The planner does not see how
many there are: if it did, it would plan again for each few of them wherever tables are
large, which takes many times as long as to read a few rows."""
Result = TypeVar("Result")
_Connection: TypeAlias = AsyncConnection[Row]
_Outcome: TypeAlias = tuple[list[Row], int]
"""The rows that a call returns, and how many it has changed."""


class _Unknown(psycopg.OperationalError):
    """The connection was lost: the statement may have been executed, or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach the server, as libpq's parameters.

    ``is_pooled``: PgBouncer stands before the server and gives each transaction another
    of its connections. Then no statement may be prepared, and nothing be set for a
    connection.
    """

    parameters: Mapping[str, str]
    is_pooled: bool = False
    name: str = field(default="", kw_only=True)  # for messages: without a password

    def conninfo(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {
            "application_name": "fanfare",
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": UNANSWERED_MILLISECONDS,
            "target_session_attrs": "read-write",
        }
        if not self.is_pooled:
            limits = {
                "statement_timeout": f"{STATEMENT_SECONDS}s",
                "lock_timeout": f"{LOCK_SECONDS}s",
                "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
                "jit": "off",
            }
            defaults["options"] = " ".join(f"-c {k}={v}" for k, v in limits.items())
        return defaults | dict(self.parameters)


async def connect(settings: ConnectionSettings) -> _Connection:
    """Open a connection. Raises `psycopg.Error`."""
    connection: _Connection = await AsyncConnection.connect(
        **settings.conninfo(),
        autocommit=True,
        prepare_threshold=None if settings.is_pooled else 5,
    )
    adapters = connection.adapters
    # One type for all integers: else each size of them prepares a statement of its own.
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(datetime, _TimeDumper)
    adapters.register_dumper(datetime, _TimeBinaryDumper)
    adapters.register_dumper(str, _TextBinaryDumper)
    adapters.register_dumper(str, _TextDumper)
    register_rows(adapters)
    return connection


class _TimeDumper(Dumper):
    """Dumps times as whole milliseconds since 1970, as in SQLite's columns."""

    oid = Int8Dumper.oid

    def dump(self, obj: datetime) -> Buffer | None:
        return str(to_milliseconds(obj)).encode()


class _TimeBinaryDumper(Dumper):
    format = Format.BINARY
    oid = Int8Dumper.oid

    def dump(self, obj: datetime) -> Buffer | None:
        return to_milliseconds(obj).to_bytes(8, "big", signed=True)


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(storable(obj))


class _TextBinaryDumper(StrBinaryDumper):
    """Dumps texts in lists."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(storable(obj))


def storable(text: str) -> str:
    """The text without the character NUL, which PostgreSQL's texts cannot contain."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


class Connections:
    """A few connections, opened when needed; a call waits until one is free.

    ``write_error`` is why the last write failed by a fault of the server; "" if it did
    not. ``term``: this node's term, under which it writes; None: it has not joined.
    ``is_alone``: during its term no other node joins.
    """

    def __init__(self, settings: ConnectionSettings, first: _Connection) -> None:
        self._settings = settings
        self._idle = [first]
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._writes: set[asyncio.Task[_Outcome]] = set()
        self._is_closed = False
        self._node = randomness.randbits(63)
        self.term: NodeTerm | None = None
        self.is_alone = False
        self._warnings: dict[_Connection, list[str]] = {}
        self.write_error = ""
        self.faults = WriteFaults()
        self._heed_warnings(first)

    @property
    def incarnation(self) -> int:
        """That of this node's term; 0: it has not joined."""
        return 0 if self.term is None else self.term.incarnation

    @property
    def owner(self) -> int:
        """The incarnation that shards of this node name; 0: it owns everything."""
        return 0 if self.is_alone else self.incarnation

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Read every row of a short page; for writes see `write`.

        While the server is away the read waits, as long as `READ_PATIENCE` says.
        """
        until = asyncio.get_running_loop().time() + READ_PATIENCE.get()
        while True:
            if self._is_closed:
                raise StorageClosed("the database is closed")
            try:
                rows, _ = await self._call(sql, parameters, is_repeatable=True)
            except psycopg.Error as error:
                now = asyncio.get_running_loop().time()
                if not is_away(error) or now + AWAY_PAUSE > until:
                    raise read_failure(error) from error
                await asyncio.sleep(AWAY_PAUSE)
            else:
                return rows

    async def first(self, sql: str, parameters: Parameters = ()) -> Row | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def write(
        self,
        sql: str,
        parameters: Parameters = (),
        then: Callable[[list[Row]], None] | None = None,
    ) -> list[Row]:
        """Write, and return the resulting rows once the write is durable.

        Cancelling the caller does not cancel the write, and ``then`` is called all the
        same, on the event loop, with the rows. Raises `StorageBusy`, `StorageClosed`,
        `WriteFailed`.
        """
        rows, _ = await self._submit(sql, parameters, then)
        return rows

    async def change(self, sql: str, parameters: Parameters = ()) -> int:
        """Like `write`, but returns how many rows have changed."""
        _, count = await self._submit(sql, parameters, None)
        return count

    async def _submit(
        self,
        sql: str,
        parameters: Parameters,
        then: Callable[[list[Row]], None] | None,
    ) -> _Outcome:
        if self._is_closed:
            raise StorageClosed("the database is closed")
        if len(self._writes) >= CAPACITY:
            raise StorageBusy(f"{CAPACITY} writes are waiting already")
        task = asyncio.create_task(
            self._write(sql, parameters, then), name="storage-write"
        )
        self._writes.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[_Outcome]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # its caller was cancelled: nobody takes the error

    async def _write(
        self,
        sql: str,
        parameters: Parameters,
        then: Callable[[list[Row]], None] | None,
    ) -> _Outcome:
        for left in reversed(range(TRIES)):
            try:
                outcome = await self._call(sql, parameters, is_repeatable=False)
            except psycopg.Error as error:
                if is_undone(error) and left:
                    continue
                raise self._explained(error) from error
            self.write_error = ""
            break
        if then is not None:
            then(outcome[0])
        return outcome

    def _explained(self, error: psycopg.Error) -> StorageError:
        if isinstance(error, _Unknown):
            text = f"the write may be stored, or not: {error}"
            self._note_fault(text)
            return OutcomeUnknown(text)
        if error.sqlstate == _TERM_ENDED and self.term is not None:
            return TermEnded(self.term.name, self.term.incarnation)
        failure = write_failure(error)
        if is_fault_of_server(error):
            self._note_fault(str(failure))
        return failure

    def _note_fault(self, reason: str) -> None:
        self.faults = self.faults.one_more(reason, is_first=not self.write_error)
        self.write_error = reason

    async def write_in_lane(
        self,
        sql: str,
        parameters: Sequence[object],
        *,
        number: int,
        then: Callable[[Row], None] | None = None,
    ) -> Row:
        """Like `write`, by a function of the database that notes its write in a lane;
        returns the one row of its answer.

        ``sql`` takes this node, ``number`` and its incarnation before the other
        parameters. If the answer is lost, the server is asked again for a while by the
        number, which no other write of the lane has. 0: the write has no number, and is
        not asked for again.
        """
        until = asyncio.get_running_loop().time() + RESOLVING_SECONDS
        given = (self._node, number, self.incarnation, *parameters)

        def tell(rows: list[Row]) -> None:
            if then is not None:
                then(rows[0])

        while True:
            try:
                rows = await self.write(sql, given, then=tell)
            except (OutcomeUnknown, WriteFailed) as error:
                is_lost = isinstance(error.__cause__, psycopg.OperationalError)
                now = asyncio.get_running_loop().time()
                if not number or not is_lost or now > until or self._is_closed:
                    raise
                await asyncio.sleep(RESOLVING_PAUSE)
            else:
                return rows[0]

    async def _call(
        self, sql: str, parameters: Parameters, *, is_repeatable: bool
    ) -> _Outcome:
        async with self._room:
            connection, is_new = await self._take()
            try:
                return await self._execute(connection, sql, parameters)
            except psycopg.OperationalError as error:
                if connection.closed and not is_repeatable:
                    raise _Unknown(said(error)) from error
                if is_new or not connection.closed:
                    raise
            finally:
                await self._put_back(connection)
            connection = await self._open()
            try:
                return await self._execute(connection, sql, parameters)
            finally:
                await self._put_back(connection)

    async def _execute(
        self, connection: _Connection, sql: str, parameters: Parameters
    ) -> _Outcome:
        warnings = self._warnings[connection]
        warnings.clear()
        cursor = connection.cursor(binary=True)
        await cursor.execute(sql, parameters)
        rows = await cursor.fetchall() if cursor.description else []
        if warnings:
            # For example, that a commit no longer waits for its standby.
            raise _Unknown(f"the server warns: {'; '.join(warnings)}")
        return rows, cursor.rowcount

    async def _take(self) -> tuple[_Connection, bool]:
        """Take an idle connection or open one; returns whether it was just opened."""
        while self._idle:
            connection = self._idle.pop()
            if _is_alive(connection):
                return connection, False
            await self._drop(connection)
        return await self._open(), True

    async def _open(self) -> _Connection:
        connection = await connect(self._settings)
        self._heed_warnings(connection)
        return connection

    def _heed_warnings(self, connection: _Connection) -> None:
        warnings: list[str] = []
        self._warnings[connection] = warnings

        def note(notice: psycopg.errors.Diagnostic) -> None:
            if notice.severity_nonlocalized == "WARNING":
                warnings.append(notice.message_primary or "without a message")

        connection.add_notice_handler(note)

    async def _put_back(self, connection: _Connection) -> None:
        status = connection.info.transaction_status
        if self._is_closed or status is not TransactionStatus.IDLE:
            await self._drop(connection)
        else:
            self._idle.append(connection)

    async def _drop(self, connection: _Connection) -> None:
        self._warnings.pop(connection, None)
        await connection.close()

    async def close(self) -> None:
        """Let calls under way end, then close. May be repeated."""
        self._is_closed = True
        if self._writes:
            await asyncio.wait(self._writes)
        for _ in range(MOST_CONNECTIONS):
            await self._room.acquire()
        while self._idle:
            await self._drop(self._idle.pop())
        for _ in range(MOST_CONNECTIONS):
            self._room.release()


def _is_alive(connection: _Connection) -> bool:
    """Whether the server has not closed the connection; reads what it has sent."""
    try:
        connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return not connection.closed and connection.pgconn.status == ConnStatus.OK
