"""`storage.contract.TokenStore` as a simple model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    EVERY_TOKEN,
    OPERATOR,
    Account,
    AccountId,
    AccountSummary,
    NewToken,
    StoredToken,
    TokenFilter,
    TokenId,
    TokenScope,
)


class MemoryTokens:
    def __init__(self) -> None:
        self._accounts = {"anonymous": ANONYMOUS, "operator": OPERATOR}
        self._tokens: dict[TokenId, tuple[bytes, StoredToken]] = {}

    async def add(self, new: NewToken, now: datetime) -> StoredToken | None:
        if any(digest == new.digest for digest, _ in self._tokens.values()):
            return None
        next_id = AccountId(len(self._accounts) + 1)
        account = self._accounts.setdefault(new.account, next_id)
        token = StoredToken(
            id=TokenId(len(self._tokens) + 1),
            account=Account(id=account, name=new.account),
            scopes=new.scopes,
            label=new.label,
            created_at=now,
            used_at=None,
            revoked_at=None,
        )
        self._tokens[token.id] = new.digest, token
        return token

    async def account(self, name: str) -> Account | None:
        known = self._accounts.get(name)
        return None if known is None else Account(id=known, name=name)

    async def names(self, accounts: Sequence[AccountId]) -> dict[AccountId, str]:
        named = {account: name for name, account in self._accounts.items()}
        return {each: named[each] for each in accounts if each in named}

    async def find(self, digest: bytes) -> StoredToken | None:
        for known, token in self._tokens.values():
            if known == digest and token.revoked_at is None:
                return token
        return None

    async def page(
        self, *, after: TokenId, limit: int, wanted: TokenFilter = EVERY_TOKEN
    ) -> list[StoredToken]:
        scopes = {wanted.scope, TokenScope.ADMIN}
        found = [
            token
            for _, token in self._tokens.values()
            if token.id > after
            and wanted.account in (None, token.account.id)
            and (wanted.scope is None or token.scopes & scopes)
            and (wanted.scope is None or token.revoked_at is None)
        ]
        return found[:limit]

    async def accounts(
        self, *, prefix: str = "", after: str = "", limit: int
    ) -> list[AccountSummary]:
        """Accounts without their subscriptions, which it does not know."""
        names = sorted(
            each for each in self._accounts if each.startswith(prefix) and each > after
        )
        return [self._summary(each) for each in names[:limit]]

    def _summary(self, name: str) -> AccountSummary:
        id = self._accounts[name]
        tokens = [each for _, each in self._tokens.values() if each.account.id == id]
        good = [each for each in tokens if each.revoked_at is None]
        return AccountSummary(
            account=Account(id=id, name=name),
            tokens=len(good),
            scopes=frozenset(scope for each in good for scope in each.scopes),
            used_at=max((it.used_at for it in tokens if it.used_at), default=None),
            subscriptions={},
        )

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        living = {
            token.id for _, token in self._tokens.values() if token.revoked_at is None
        }
        return frozenset(ids) - living

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        if token_id in self._tokens:
            digest, token = self._tokens[token_id]
            self._tokens[token_id] = digest, replace(token, used_at=now)

    async def revoke(self, token_id: TokenId, now: datetime) -> StoredToken:
        if token_id not in self._tokens:
            raise NotFound("token", token_id)
        digest, token = self._tokens[token_id]
        revoked = replace(token, revoked_at=token.revoked_at or now)
        self._tokens[token_id] = digest, revoked
        return revoked
