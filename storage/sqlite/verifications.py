"""`storage.interface.VerificationStore` on SQLite."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

from protocols.urls import normal_url
from storage.records import (
    NewVerification,
    Verification,
    VerificationState,
    VerificationTry,
)
from storage.secrets import SecretBox

from .log_rows import hash_key
from .readers import Readers
from .times import from_milliseconds_or_none, to_milliseconds
from .verification_rows import read_verification
from .writer import Writer


class SqliteVerifications:
    def __init__(self, writer: Writer, readers: Readers, box: SecretBox) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box

    async def add(
        self, new: NewVerification, now: datetime, *, most: int, most_of_host: int
    ) -> bool:
        topic, callback = normal_url(new.topic), normal_url(new.callback)
        parameters = {
            "account": new.account,
            "mode": new.mode,
            "topic": new.topic,
            "callback": new.callback,
            "host": urlsplit(callback).hostname or "",
            "key_hash": hash_key(f"{new.account} {topic} {callback}"),
            "token_hash": hash_key(new.token),
            "lease_seconds": new.lease_seconds,
            "secret": self._box.encrypt(new.secret),
            "algorithm": new.algorithm,
            "format": new.format,
            "verify_token": new.verify_token,
            "now": to_milliseconds(now),
            "most": most,
            "most_of_host": most_of_host,
        }
        return await self._writer.submit(partial(_add, parameters))

    async def due(
        self, now: datetime, *, per_host: int, limit: int
    ) -> list[Verification]:
        rows = await self._readers.all(_DUE, (to_milliseconds(now), per_host, limit))
        return [read_verification(row, self._box) for row in rows]

    async def next_due(self) -> datetime | None:
        row = await self._readers.first(
            "SELECT min(due) FROM verifications WHERE due IS NOT NULL"
        )
        return from_milliseconds_or_none(row[0] if row else None)

    async def retry(
        self, verification_id: int, last: VerificationTry, due: datetime
    ) -> None:
        parameters = {
            **_last(verification_id, last),
            "due": to_milliseconds(due),
        }
        await self._writer.submit(partial(_execute, _RETRY, parameters), is_single=True)

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        parameters = {
            **_last(verification_id, last),
            "state": state,
            "kept_until": to_milliseconds(kept_until),
        }
        await self._writer.submit(
            partial(_execute, _FINISH, parameters), is_single=True
        )

    async def find(self, token: str) -> Verification | None:
        row = await self._readers.first(
            "SELECT v.* FROM verifications t JOIN stored_verifications v ON v.id = t.id"
            " WHERE t.token_hash = ?",
            (hash_key(token),),
        )
        return None if row is None else read_verification(row, self._box)

    async def trim(self, now: datetime, limit: int) -> int:
        unit = partial(_trim, to_milliseconds(now), limit)
        return await self._writer.submit(unit, is_single=True)


_DUE = """
WITH turns AS (
    SELECT id, due, row_number() OVER (PARTITION BY host ORDER BY due, id) AS turn
    FROM verifications v
    WHERE due <= ? AND NOT EXISTS (
        SELECT 1 FROM verifications earlier WHERE earlier.key_hash = v.key_hash
            AND earlier.id < v.id AND earlier.due IS NOT NULL
    )
)
SELECT v.* FROM turns JOIN stored_verifications v ON v.id = turns.id
WHERE turn <= ? ORDER BY turns.due, turns.id LIMIT ?
"""

_RETRY = """
UPDATE verifications SET attempts = attempts + 1, due = :due, tried_at = :at,
    status = :status, excerpt = :excerpt, reason = :reason
WHERE id = :id AND due IS NOT NULL
"""

_FINISH = """
UPDATE verifications SET attempts = attempts + 1, due = NULL, tried_at = :at,
    status = :status, excerpt = :excerpt, reason = :reason,
    state = :state, secret = '', kept_until = :kept_until
WHERE id = :id AND due IS NOT NULL
"""

_INSERT = """
INSERT INTO verifications (account_id, mode, topic, callback, host, key_hash,
    token_hash, lease_seconds, secret, algorithm, format, verify_token, state,
    created_at, attempts, due, status, excerpt, reason)
VALUES (:account, :mode, :topic, :callback, :host, :key_hash, :token_hash,
    :lease_seconds, :secret, :algorithm, :format, :verify_token, 'pending', :now, 0,
    :now, 0, '', '')
"""

_REPLACE = """
UPDATE verifications SET due = NULL, state = 'replaced', secret = '',
    kept_until = :now + 86400000
WHERE key_hash = :key_hash AND mode = :mode AND due IS NOT NULL
"""


def _last(verification_id: int, last: VerificationTry) -> dict[str, object]:
    return {
        "id": verification_id,
        "at": to_milliseconds(last.at),
        "status": last.status,
        "excerpt": last.excerpt,
        "reason": last.reason,
    }


# --- units of work ---


def _add(parameters: dict[str, object], connection: sqlite3.Connection) -> bool:
    replaced = connection.execute(_REPLACE, parameters).rowcount
    if not replaced and not _has_room(parameters, connection):
        return False
    connection.execute(_INSERT, parameters)
    return True


def _has_room(parameters: dict[str, object], connection: sqlite3.Connection) -> bool:
    is_full = connection.execute(
        "SELECT 1 FROM pending_counts WHERE (host = '' AND pending >= :most)"
        " OR (host = :host AND pending >= :most_of_host)",
        parameters,
    ).fetchone()
    return is_full is None


def _execute(
    sql: str, parameters: dict[str, object], connection: sqlite3.Connection
) -> None:
    connection.execute(sql, parameters)


def _trim(now: int, limit: int, connection: sqlite3.Connection) -> int:
    return connection.execute(
        "DELETE FROM verifications WHERE id IN (SELECT id FROM verifications"
        " WHERE kept_until < ? ORDER BY kept_until LIMIT ?)",
        (now, limit),
    ).rowcount
