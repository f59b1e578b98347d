"""What opens the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import Account, NewToken, Token, TokenId


class TokenStore(Protocol):
    """What opens the API for which account."""

    async def add(self, new: NewToken, now: datetime) -> Token | None:
        """None if there is one with that SHA-256 already, revoked or not."""
        ...

    async def account(self, name: str) -> Account | None:
        """The account of that name, if some token was made for it."""
        ...

    async def find(self, digest: bytes) -> Token | None:
        """The token with that SHA-256, unless it was revoked."""
        ...

    async def page(self, *, after: TokenId, limit: int) -> list[Token]:
        """Tokens by id, revoked ones included."""
        ...

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        """Which of them open nothing any more; unknown ids are among them."""
        ...

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        """It was used."""
        ...

    async def revoke(self, token_id: TokenId, now: datetime) -> Token:
        """It opens nothing any more; one revoked before stays so. Raises `NotFound`."""
        ...
