"""Sessions of operators at the hub's pages, and links that begin one."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import StoredSession, TokenId


class SessionStore(Protocol):
    """Sessions and links, by the digest of a secret that only the browser, or who was
    given the link, knows."""

    async def add(
        self, digest: bytes, token: TokenId | None, now: datetime, *, is_link: bool
    ) -> None:
        """``token`` None: it is the administrator's. A link is no session yet."""
        ...

    async def redeem(
        self, link: bytes, digest: bytes, now: datetime, *, made_after: datetime
    ) -> bool:
        """Make a session of a link, once; False if there is no such link that is so
        new."""
        ...

    async def find(self, digest: bytes) -> StoredSession | None:
        """A session whose token was not revoked; never a link."""
        ...

    async def touch(self, digest: bytes, now: datetime) -> None:
        """It was used."""
        ...

    async def end(self, digest: bytes) -> None:
        """Forget it, if it is there."""
        ...

    async def trim(
        self, *, made_before: datetime, used_before: datetime, limit: int
    ) -> int:
        """Forget those that either holds of; how many they were."""
        ...
