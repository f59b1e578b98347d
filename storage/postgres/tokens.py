"""`storage.contract.TokenStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.errors import NotFound
from storage.postgres.connections import Connections
from storage.postgres.control import PostgresControl
from storage.records import (
    EVERY_TOKEN,
    Account,
    AccountId,
    AccountSummary,
    NewToken,
    StoredToken,
    TokenFilter,
    TokenId,
    TokenScope,
)
from storage.sqlite.tokens import read_summary, read_token

SELECTED: Final = (
    "t.id, t.account_id, a.name, t.scopes, t.label, t.created_at, t.used_at,"
    " t.revoked_at"
)
_TOKENS: Final = (
    f"SELECT {SELECTED} FROM tokens t JOIN accounts a ON a.id = t.account_id"
)
_ADD: Final = f"""
WITH a AS (
    INSERT INTO accounts (name) SELECT %(account)s
        WHERE NOT EXISTS (SELECT 1 FROM tokens WHERE digest = %(digest)s)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id, name
), t AS (
    INSERT INTO tokens (account_id, digest, scopes, label, created_at)
    SELECT id, %(digest)s, %(scopes)s, %(label)s, %(now)s FROM a
    ON CONFLICT (digest) DO NOTHING RETURNING *
)
SELECT {SELECTED} FROM t JOIN a ON a.id = t.account_id
"""
_REVOKE: Final = f"""
WITH t AS (
    UPDATE tokens SET revoked_at = coalesce(revoked_at, %(now)s) WHERE id = %(id)s
    RETURNING *
)
SELECT {SELECTED} FROM t JOIN accounts a ON a.id = t.account_id
CROSS JOIN LATERAL note_control('revoked', ARRAY[t.id], 0, '')
"""


_MAY: Final = (
    " AND t.revoked_at IS NULL AND string_to_array(t.scopes, ' ') && %(scopes)s::text[]"
)
_ACCOUNTS: Final = """
SELECT a.id, a.name,
    (SELECT count(*) FROM tokens t WHERE t.account_id = a.id AND revoked_at IS NULL),
    (SELECT string_agg(DISTINCT scopes, ' ') FROM tokens t WHERE t.account_id = a.id
        AND revoked_at IS NULL),
    (SELECT max(used_at) FROM tokens t WHERE t.account_id = a.id),
    (SELECT coalesce(json_object_agg(health, total), '{}')::text FROM (
        SELECT health, sum(total)::bigint AS total FROM subscription_counts c
        WHERE c.account_id = a.id GROUP BY health HAVING sum(total) > 0) counts)
FROM accounts a WHERE name > %(after)s AND starts_with(name, %(prefix)s)
ORDER BY name LIMIT %(limit)s
"""


class PostgresTokens:
    def __init__(self, connections: Connections, control: PostgresControl) -> None:
        self._control = control
        self._connections = connections

    async def add(self, new: NewToken, now: datetime) -> StoredToken | None:
        parameters = {
            "account": new.account,
            "digest": new.digest,
            "scopes": " ".join(sorted(new.scopes)),
            "label": new.label,
            "now": now,
        }
        rows = await self._connections.write(_ADD, parameters)
        return read_token(rows[0]) if rows else None

    async def account(self, name: str) -> Account | None:
        row = await self._connections.first(
            "SELECT id, name FROM accounts WHERE name = %s", (name,)
        )
        return None if row is None else Account(id=AccountId(row[0]), name=row[1])

    async def names(self, accounts: Sequence[AccountId]) -> dict[AccountId, str]:
        rows = await self._connections.all(
            "SELECT id, name FROM accounts WHERE id = ANY(%s::bigint[])",
            (list(accounts),),
        )
        return {AccountId(account): name for account, name in rows}

    async def find(self, digest: bytes) -> StoredToken | None:
        row = await self._connections.first(
            f"{_TOKENS} WHERE t.digest = %s AND t.revoked_at IS NULL", (digest,)
        )
        return None if row is None else read_token(row)

    async def page(
        self, *, after: TokenId, limit: int, wanted: TokenFilter = EVERY_TOKEN
    ) -> list[StoredToken]:
        whose = "" if wanted.account is None else " AND t.account_id = %(account)s"
        may = "" if wanted.scope is None else _MAY
        rows = await self._connections.all(
            f"{_TOKENS} WHERE t.id > %(after)s{whose}{may} ORDER BY t.id"
            " LIMIT %(limit)s",
            {
                "after": after,
                "limit": limit,
                "account": wanted.account,
                "scopes": [wanted.scope, TokenScope.ADMIN],
            },
        )
        return [read_token(row) for row in rows]

    async def accounts(
        self, *, prefix: str = "", after: str = "", limit: int
    ) -> list[AccountSummary]:
        rows = await self._connections.all(
            _ACCOUNTS, {"after": after, "prefix": prefix, "limit": limit}
        )
        return [read_summary(row) for row in rows]

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        rows = await self._connections.all(
            "SELECT asked.id FROM unnest(%s::bigint[]) asked (id)"
            " LEFT JOIN tokens t ON t.id = asked.id"
            " WHERE t.id IS NULL OR t.revoked_at IS NOT NULL",
            (list(ids),),
        )
        return frozenset(TokenId(token_id) for (token_id,) in rows)

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        await self._connections.write(
            "UPDATE tokens SET used_at = %s WHERE id = %s", (now, token_id)
        )

    async def revoke(self, token_id: TokenId, now: datetime) -> StoredToken:
        rows = await self._connections.write(
            _REVOKE,
            {"id": token_id, "now": now},
            then=lambda _: self._control.access_ended(tokens=[token_id]),
        )
        if not rows:
            raise NotFound("token", token_id)
        return read_token(rows[0])
