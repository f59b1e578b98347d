"""`storage.contract.AuditStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from storage.postgres.connections import Connections
from storage.postgres.fetch_commits import to_jsonb
from storage.records import AuditFilter, AuditPage, AuditRecord
from storage.sqlite.audit import audit_row, most_looked_at, read_audit
from storage.sqlite.columns import from_milliseconds

_COLUMNS: Final = (
    "at, token_id, is_admin, session, address, source, operation, target, target_id,"
    " target_name, status, detail"
)
_ADD: Final = f"""
INSERT INTO audit (account_id, {_COLUMNS})
SELECT (r ->> 0)::bigint, (r ->> 1)::bigint, (r ->> 2)::bigint, (r ->> 3)::boolean,
    r ->> 4, r ->> 5, r ->> 6, r ->> 7, r ->> 8, (r ->> 9)::bigint, r ->> 10,
    (r ->> 11)::bigint, r ->> 12
FROM jsonb_array_elements(convert_from(%s, 'UTF8')::jsonb) WITH ORDINALITY a (r, place)
ORDER BY place
"""
_BY_INDEX: Final = (
    ("target_id", "target_id = %(target_id)s AND target = %(target)s"),
    ("token", "token_id = %(token)s"),
    ("operation", "operation = %(operation)s"),
    ("account", "account_id = %(account)s"),
)
"""Conditions for which an index gives the records in order of time; the most selective
first."""
_CONDITIONS: Final = (
    ("account", "account_id = %(account)s"),
    ("token", "token_id = %(token)s"),
    ("operation", "operation = %(operation)s"),
    ("without", "operation <> %(without)s"),
    ("session", "session = %(session)s"),
    ("source", "source = %(source)s"),
    ("target", "target = %(target)s"),
    ("target_id", "target_id = %(target_id)s"),
    (
        "outcome",
        "CASE WHEN status BETWEEN 1 AND 399 THEN 'done'"
        " WHEN status BETWEEN 400 AND 499 THEN 'refused' ELSE 'failed' END"
        " = %(outcome)s",
    ),
)
_RANGE: Final = (
    ("since", "at >= %(since)s"),
    ("until", "at < %(until)s"),
    ("before_at", "(at, id) < (%(before_at)s, %(before_id)s)"),
)


class PostgresAudit:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(self, records: Sequence[AuditRecord]) -> None:
        rows = to_jsonb([audit_row(each) for each in records])
        await self._connections.write(_ADD, (rows,))

    async def page(
        self, wanted: AuditFilter, *, before: tuple[datetime, int] | None, limit: int
    ) -> AuditPage:
        """Find the records of one condition by an index, and check at most `LOOKED_AT`
        of them for the others."""
        parameters: dict[str, object] = {
            "account": wanted.account,
            "token": wanted.token,
            "session": wanted.session,
            "source": wanted.source,
            "operation": wanted.operation,
            "without": wanted.without,
            "target": wanted.target,
            "target_id": wanted.target_id,
            "outcome": wanted.outcome,
            "since": wanted.since,
            "until": wanted.until,
            "before_at": before and before[0],
            "before_id": before and before[1],
            "limit": limit + 1,
        }
        by_index = [sql for name, sql in _BY_INDEX if parameters[name] is not None][:1]
        most = most_looked_at(parameters, limit + 1)
        looked_at = (
            f"SELECT * FROM audit WHERE"
            f" {' AND '.join([*by_index, _all_of(_RANGE, parameters)])}"
            " ORDER BY at DESC, id DESC"
        )
        rows = await self._connections.all(
            f"SELECT a.id, a.account_id, c.name, {_COLUMNS} FROM"
            f" ({looked_at} LIMIT {most}) a JOIN accounts c ON c.id = a.account_id"
            f" WHERE {_all_of(_CONDITIONS, parameters)}"
            " ORDER BY a.at DESC, a.id DESC LIMIT %(limit)s",
            parameters,
        )
        found = tuple(read_audit(row) for row in rows[:limit])
        if len(rows) > limit:
            return AuditPage(records=found, next=(found[-1].at, found[-1].id))
        last = await self._connections.first(
            f"SELECT at, id FROM ({looked_at} LIMIT 1 OFFSET {most - 1}) a",
            parameters,
        )
        next = None if last is None else (from_milliseconds(last[0]), int(last[1]))
        return AuditPage(records=found, next=next)

    async def trim(self, *, before: datetime, kept: int, limit: int) -> int:
        ((trimmed,),) = await self._connections.write(
            "SELECT trim_audit(%s, %s, %s)", (before, kept, limit)
        )
        return int(trimmed)


def _all_of(conditions: Sequence[tuple[str, str]], given: Mapping[str, object]) -> str:
    found = [sql for name, sql in conditions if given[name] is not None]
    return " AND ".join(found) or "TRUE"
