"""`storage.contract.AuditStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from storage.records import (
    Account,
    AuditFilter,
    AuditId,
    AuditPage,
    AuditRecord,
    AuditSource,
    AuditTarget,
)
from storage.sqlite.columns import (
    from_milliseconds,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer

LOOKED_AT: Final = 2_000
"""Records that one page looks at, if a filter has more than one condition."""
_COLUMNS: Final = (
    "at, token_id, is_admin, session, address, source, operation, target, target_id,"
    " target_name, status, detail"
)
_ADD: Final = (
    f"INSERT INTO audit (account_id, {_COLUMNS})"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_LATEST: Final = "ORDER BY at DESC, id DESC"
_BY_INDEX: Final = (
    ("target_id", "target_id = :target_id AND target = :target"),
    ("token", "token_id = :token"),
    ("operation", "operation = :operation"),
    ("account", "account_id = :account"),
)
"""Conditions for which an index gives the records in order of time; the most selective
first."""
_CONDITIONS: Final = (
    ("account", "account_id = :account"),
    ("token", "token_id = :token"),
    ("operation", "operation = :operation"),
    ("without", "operation <> :without"),
    ("session", "session = :session"),
    ("source", "source = :source"),
    ("target", "target = :target"),
    ("target_id", "target_id = :target_id"),
    (
        "outcome",
        "CASE WHEN status BETWEEN 1 AND 399 THEN 'done'"
        " WHEN status BETWEEN 400 AND 499 THEN 'refused' ELSE 'failed' END = :outcome",
    ),
)
_RANGE: Final = (
    ("since", "at >= :since"),
    ("until", "at < :until"),
    ("before_at", "(at, id) < (:before_at, :before_id)"),
)


class SqliteAudit:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, records: Sequence[AuditRecord]) -> None:
        await self._writer.submit(partial(_add, [audit_row(each) for each in records]))

    async def page(
        self, wanted: AuditFilter, *, before: tuple[datetime, int] | None, limit: int
    ) -> AuditPage:
        """Find the records of one condition by an index, and check at most `LOOKED_AT`
        of them for the others."""
        parameters: dict[str, object] = {
            **_given(wanted),
            "before_at": before and to_milliseconds(before[0]),
            "before_id": before and before[1],
            "limit": limit + 1,
        }
        parameters["looked_at"] = most_looked_at(parameters, limit + 1)
        looked_at = f"SELECT * FROM audit WHERE {_drive(parameters)} {_LATEST}"
        rows = await self._readers.all(
            f"SELECT a.id, a.account_id, c.name, {_COLUMNS} FROM"
            f" ({looked_at} LIMIT :looked_at) a JOIN accounts c ON c.id = a.account_id"
            f" WHERE {_all_of(_CONDITIONS, parameters)}"
            " ORDER BY a.at DESC, a.id DESC LIMIT :limit",
            parameters,
        )
        found = tuple(read_audit(row) for row in rows[:limit])
        if len(rows) > limit:
            return AuditPage(records=found, next=(found[-1].at, found[-1].id))
        last = await self._readers.first(
            f"SELECT at, id FROM ({looked_at} LIMIT 1 OFFSET :looked_at - 1)",
            parameters,
        )
        next = None if last is None else (from_milliseconds(last[0]), int(last[1]))
        return AuditPage(records=found, next=next)

    async def trim(self, *, before: datetime, kept: int, limit: int) -> int:
        unit = partial(_trim, to_milliseconds(before), kept, limit)
        return await self._writer.submit(unit)


def audit_row(record: AuditRecord) -> tuple[object, ...]:
    return (
        record.account.id,
        to_milliseconds(record.at),
        record.token,
        record.is_admin,
        record.session,
        record.address,
        record.source,
        record.operation,
        record.target,
        record.target_id,
        record.target_name,
        record.status,
        record.detail,
    )


def read_audit(row: Row) -> AuditRecord:
    number, account, name, at, token, is_admin, session, address, source, *rest = row
    operation, target, target_id, target_name, status, detail = rest
    return AuditRecord(
        id=AuditId(number),
        at=from_milliseconds(at),
        account=Account(id=account, name=name),
        token=token,
        is_admin=bool(is_admin),
        session=session,
        address=address,
        source=AuditSource(source),
        operation=operation,
        target=AuditTarget(target) if target else None,
        target_id=target_id,
        target_name=target_name,
        status=status,
        detail=detail,
    )


def _given(wanted: AuditFilter) -> dict[str, object]:
    return {
        "account": wanted.account,
        "token": wanted.token,
        "session": wanted.session,
        "source": wanted.source,
        "operation": wanted.operation,
        "without": wanted.without,
        "target": wanted.target,
        "target_id": wanted.target_id,
        "outcome": wanted.outcome,
        "since": to_milliseconds_or_none(wanted.since),
        "until": to_milliseconds_or_none(wanted.until),
    }


def most_looked_at(given: Mapping[str, object], limit: int) -> int:
    """How many records to look at in order to find so many: just these if an index
    finds what is wanted, without further conditions."""
    wanted = {name for name, _ in _CONDITIONS if given[name] is not None}
    by_index = [name for name, _ in _BY_INDEX if name in wanted][:1]
    if by_index == ["target_id"]:
        by_index.append("target")
    return limit if wanted <= {*by_index} else LOOKED_AT


def _drive(given: dict[str, object]) -> str:
    """The condition that an index is used for, and the range of time within it."""
    by_index = [sql for name, sql in _BY_INDEX if given[name] is not None][:1]
    return " AND ".join([*by_index, _all_of(_RANGE, given)])


def _all_of(conditions: tuple[tuple[str, str], ...], given: dict[str, object]) -> str:
    found = [sql for name, sql in conditions if given[name] is not None]
    return " AND ".join(found) or "TRUE"


# --- units of work ---


def _add(rows: Sequence[tuple[object, ...]], connection: sqlite3.Connection) -> None:
    connection.executemany(_ADD, rows)


def _trim(before: int, kept: int, limit: int, connection: sqlite3.Connection) -> int:
    parameters = {"before": before, "kept": kept, "limit": limit}
    trimmed = connection.execute(
        "DELETE FROM audit WHERE id IN"
        " (SELECT id FROM audit WHERE at < :before ORDER BY at LIMIT :limit)",
        parameters,
    ).rowcount
    for is_admin in (0, 1):
        trimmed += connection.execute(
            "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE is_admin ="
            " :is_admin AND id <= (SELECT id FROM audit WHERE is_admin = :is_admin"
            " ORDER BY id DESC LIMIT 1 OFFSET :kept) ORDER BY id LIMIT :left)",
            {**parameters, "is_admin": is_admin, "left": limit - trimmed},
        ).rowcount
    return trimmed
