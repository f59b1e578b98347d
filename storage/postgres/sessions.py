"""`storage.contract.SessionStore` on PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from storage.postgres.connections import Connections
from storage.postgres.tokens import SELECTED
from storage.records import StoredSession, TokenId
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.tokens import read_token

_FIND: Final = (
    f"SELECT s.created_at, s.used_at, {SELECTED} FROM sessions s"
    " LEFT JOIN tokens t ON t.id = s.token_id LEFT JOIN accounts a"
    " ON a.id = t.account_id WHERE s.digest = %s AND NOT s.is_link"
    " AND (s.token_id IS NULL OR t.id IS NOT NULL AND t.revoked_at IS NULL)"
)
_ADD: Final = (
    "INSERT INTO sessions (digest, token_id, is_link, created_at, used_at)"
    " VALUES (%(digest)s, %(token)s, %(is_link)s, %(now)s, %(now)s)"
)
_REDEEM: Final = (
    "UPDATE sessions SET digest = %(digest)s, is_link = FALSE, created_at = %(now)s,"
    " used_at = %(now)s"
    " WHERE digest = %(link)s AND is_link AND created_at > %(made_after)s"
)
_TOUCH: Final = "UPDATE sessions SET used_at = %(now)s WHERE digest = %(digest)s"
_END: Final = "DELETE FROM sessions WHERE digest = %(digest)s"
_TRIM: Final = (
    "DELETE FROM sessions WHERE digest IN (SELECT digest FROM sessions"
    " WHERE created_at < %(made_before)s OR used_at < %(used_before)s LIMIT %(limit)s)"
)


class PostgresSessions:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(
        self, digest: bytes, token: TokenId | None, now: datetime, *, is_link: bool
    ) -> None:
        await self._write(_ADD, digest=digest, token=token, now=now, is_link=is_link)

    async def redeem(
        self, link: bytes, digest: bytes, now: datetime, *, made_after: datetime
    ) -> bool:
        redeemed = await self._write(
            _REDEEM, link=link, digest=digest, now=now, made_after=made_after
        )
        return redeemed == 1

    async def find(self, digest: bytes) -> StoredSession | None:
        row = await self._connections.first(_FIND, (digest,))
        if row is None:
            return None
        created, used, *token = row
        return StoredSession(
            token=None if token[0] is None else read_token(tuple(token)),
            created_at=from_milliseconds(created),
            used_at=from_milliseconds(used),
        )

    async def touch(self, digest: bytes, now: datetime) -> None:
        await self._write(_TOUCH, digest=digest, now=now)

    async def end(self, digest: bytes) -> None:
        await self._write(_END, digest=digest)

    async def trim(
        self, *, made_before: datetime, used_before: datetime, limit: int
    ) -> int:
        return await self._write(
            _TRIM, made_before=made_before, used_before=used_before, limit=limit
        )

    async def _write(self, statement: str, **given: object) -> int:
        """Execute a statement; returns how many rows it changed."""
        return await self._connections.change(statement, given)
