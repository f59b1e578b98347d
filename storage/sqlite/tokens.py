"""`storage.contract.TokenStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from storage.errors import NotFound
from storage.records import (
    EVERY_TOKEN,
    Account,
    AccountId,
    AccountSummary,
    NewToken,
    StoredToken,
    SubscriptionHealth,
    TokenFilter,
    TokenId,
    TokenScope,
)
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    pack_ids,
    to_milliseconds,
)
from storage.sqlite.control import SqliteControl
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer

SELECTED = (
    "t.id, t.account_id, a.name, t.rights, t.label, t.created_at, t.used_at,"
    " t.revoked_at"
)
_TOKENS = f"SELECT {SELECTED} FROM tokens t JOIN accounts a ON a.id = t.account_id"


_MAY: Final = (
    " AND t.revoked_at IS NULL AND (' ' || t.rights || ' ' LIKE '% ' || :scope || ' %'"
    " OR ' ' || t.rights || ' ' LIKE '% admin %')"
)
_ACCOUNTS: Final = (
    "SELECT a.id, a.name,"
    " (SELECT count(*) FROM tokens t WHERE t.account_id = a.id AND revoked_at IS NULL),"
    " (SELECT group_concat(rights, ' ') FROM tokens t WHERE t.account_id = a.id"
    "  AND revoked_at IS NULL),"
    " (SELECT max(used_at) FROM tokens t WHERE t.account_id = a.id),"
    " (SELECT json_group_object(health, total) FROM subscription_counts c"
    "  WHERE c.account_id = a.id AND total > 0)"
    " FROM accounts a WHERE name > :after AND name >= :prefix"
    " AND name < :prefix || char(1114111) ORDER BY name LIMIT :limit"
)
_counts: Final = msgspec.json.Decoder(dict[SubscriptionHealth, int])


class SqliteTokens:
    def __init__(
        self, writer: Writer, readers: Readers, control: SqliteControl
    ) -> None:
        self._control = control
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

    async def page(
        self, *, after: TokenId, limit: int, wanted: TokenFilter = EVERY_TOKEN
    ) -> list[StoredToken]:
        whose = "" if wanted.account is None else " AND t.account_id = :account"
        may = "" if wanted.scope is None else _MAY
        rows = await self._readers.all(
            f"{_TOKENS} WHERE t.id > :after{whose}{may} ORDER BY t.id LIMIT :limit",
            {
                "after": after,
                "limit": limit,
                "account": wanted.account,
                "scope": wanted.scope,
            },
        )
        return [read_token(row) for row in rows]

    async def accounts(
        self, *, prefix: str = "", after: str = "", limit: int
    ) -> list[AccountSummary]:
        rows = await self._readers.all(
            _ACCOUNTS, {"after": after, "prefix": prefix, "limit": limit}
        )
        return [read_summary(row) for row in rows]

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
        row = await self._writer.submit(
            unit, then=lambda _: self._control.access_ended(tokens=[token_id])
        )
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


def read_summary(row: Row) -> AccountSummary:
    """Read a row whose third last column has scopes, separated by blanks, each once or
    more, and whose last one has counts as JSON."""
    account_id, name, tokens, scopes, used_at, counts = row
    written = (scopes or "").split()
    return AccountSummary(
        account=Account(id=AccountId(account_id), name=name),
        tokens=tokens,
        scopes=frozenset(TokenScope(each) for each in written),
        used_at=from_milliseconds_or_none(used_at),
        subscriptions=_counts.decode(counts),
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
