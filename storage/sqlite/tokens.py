"""`storage.contract.TokenStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from storage.errors import NotFound
from storage.records import (
    Account,
    AccountId,
    NewToken,
    StoredToken,
    TokenId,
    TokenScope,
)
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    pack_ids,
    to_milliseconds,
)
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer

SELECTED = (
    "t.id, t.account_id, a.name, t.rights, t.label, t.created_at, t.used_at,"
    " t.revoked_at"
)
_TOKENS = f"SELECT {SELECTED} FROM tokens t JOIN accounts a ON a.id = t.account_id"


class SqliteTokens:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, new: NewToken, now: datetime) -> StoredToken | None:
        parameters = {
            "account": new.account,
            "digest": new.digest,
            "rights": " ".join(sorted(new.scopes)),
            "label": new.label,
            "now": to_milliseconds(now),
        }
        row = await self._writer.submit(partial(_add, parameters))
        return None if row is None else read_token(row)

    async def account(self, name: str) -> Account | None:
        row = await self._readers.first(
            "SELECT id, name FROM accounts WHERE name = ?", (name,)
        )
        return None if row is None else Account(id=AccountId(row[0]), name=row[1])

    async def names(self, accounts: Sequence[AccountId]) -> dict[AccountId, str]:
        rows = await self._readers.all(
            "SELECT id, name FROM accounts"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (pack_ids(accounts),),
        )
        return {AccountId(account): name for account, name in rows}

    async def find(self, digest: bytes) -> StoredToken | None:
        row = await self._readers.first(
            f"{_TOKENS} WHERE t.digest = ? AND t.revoked_at IS NULL", (digest,)
        )
        return None if row is None else read_token(row)

    async def page(self, *, after: TokenId, limit: int) -> list[StoredToken]:
        rows = await self._readers.all(
            f"{_TOKENS} WHERE t.id > ? ORDER BY t.id LIMIT ?", (after, limit)
        )
        return [read_token(row) for row in rows]

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        rows = await self._readers.all(
            "SELECT asked.value FROM json_each(?) asked"
            " LEFT JOIN tokens t ON t.id = asked.value"
            " WHERE t.id IS NULL OR t.revoked_at IS NOT NULL",
            (pack_ids(ids),),
        )
        return frozenset(TokenId(token_id) for (token_id,) in rows)

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        unit = partial(_touch, token_id, to_milliseconds(now))
        await self._writer.submit(unit, is_single=True)

    async def revoke(self, token_id: TokenId, now: datetime) -> StoredToken:
        unit = partial(_revoke, token_id, to_milliseconds(now))
        row = await self._writer.submit(unit)
        if row is None:
            raise NotFound("token", token_id)
        return read_token(row)


def read_token(row: Row) -> StoredToken:
    token_id, account_id, name, rights, label, created, used, revoked = row
    return StoredToken(
        id=token_id,
        account=Account(id=AccountId(account_id), name=name),
        scopes=frozenset(TokenScope(each) for each in rights.split()),
        label=label,
        created_at=from_milliseconds(created),
        used_at=from_milliseconds_or_none(used),
        revoked_at=from_milliseconds_or_none(revoked),
    )


# --- units of work ---


def _add(parameters: dict[str, object], connection: sqlite3.Connection) -> Row | None:
    taken = "SELECT 1 FROM tokens WHERE digest = :digest"
    if connection.execute(taken, parameters).fetchone():
        return None
    connection.execute(
        "INSERT INTO accounts (name) VALUES (:account) ON CONFLICT (name) DO NOTHING",
        parameters,
    )
    token_id = connection.execute(
        "INSERT INTO tokens (account_id, digest, rights, label, created_at)"
        " VALUES ((SELECT id FROM accounts WHERE name = :account), :digest, :rights,"
        " :label, :now)",
        parameters,
    ).lastrowid
    row: Row = connection.execute(f"{_TOKENS} WHERE t.id = ?", (token_id,)).fetchone()
    return row


def _touch(token_id: TokenId, now: int, connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE tokens SET used_at = ? WHERE id = ?", (now, token_id))


def _revoke(token_id: TokenId, now: int, connection: sqlite3.Connection) -> Row | None:
    connection.execute(
        "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
        (now, token_id),
    )
    row: Row | None = connection.execute(
        f"{_TOKENS} WHERE t.id = ?", (token_id,)
    ).fetchone()
    return row
