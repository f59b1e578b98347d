"""`storage.contract.SessionStore` as a simple model."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from storage.records import StoredSession, TokenId

from .tokens import MemoryTokens


class MemorySessions:
    def __init__(self, tokens: MemoryTokens) -> None:
        self._tokens = tokens
        self._links: dict[bytes, tuple[TokenId | None, datetime]] = {}
        self._sessions: dict[bytes, tuple[TokenId | None, StoredSession]] = {}

    async def add(
        self, digest: bytes, token: TokenId | None, now: datetime, *, is_link: bool
    ) -> None:
        if is_link:
            self._links[digest] = token, now
        else:
            session = StoredSession(token=None, created_at=now, used_at=now)
            self._sessions[digest] = token, session

    async def redeem(
        self, link: bytes, digest: bytes, now: datetime, *, made_after: datetime
    ) -> bool:
        if link not in self._links or self._links[link][1] <= made_after:
            return False
        token, _ = self._links.pop(link)
        await self.add(digest, token, now, is_link=False)
        return True

    async def find(self, digest: bytes) -> StoredSession | None:
        if digest not in self._sessions:
            return None
        token_id, session = self._sessions[digest]
        if token_id is None:
            return session
        tokens = await self._tokens.page(after=TokenId(token_id - 1), limit=1)
        if not tokens or tokens[0].id != token_id or tokens[0].revoked_at:
            return None
        return replace(session, token=tokens[0])

    async def touch(self, digest: bytes, now: datetime) -> None:
        if digest in self._sessions:
            token_id, session = self._sessions[digest]
            self._sessions[digest] = token_id, replace(session, used_at=now)

    async def end(self, digest: bytes) -> None:
        self._sessions.pop(digest, None)
        self._links.pop(digest, None)

    async def trim(
        self, *, made_before: datetime, used_before: datetime, limit: int
    ) -> int:
        made = {digest: (at, at) for digest, (_, at) in self._links.items()}
        for digest, (_, session) in self._sessions.items():
            made[digest] = session.created_at, session.used_at
        old = [
            digest
            for digest, (created, used) in made.items()
            if created < made_before or used < used_before
        ][:limit]
        for digest in old:
            await self.end(digest)
        return len(old)
