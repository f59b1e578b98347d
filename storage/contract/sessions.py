"""Sessions of operators at the hub's pages, and links that start one."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import StoredSession, TokenId


class SessionStore(Protocol):
    """Sessions and links, by the digest of a secret that only the browser, or the
    person given the link, knows."""

    async def add(
        self, digest: bytes, token: TokenId | None, now: datetime, *, is_link: bool
    ) -> None:
        """Store a session or a link. ``token`` None: the administrator's. A link is not
        a session until it is redeemed."""
        ...

    async def redeem(
        self, link: bytes, digest: bytes, now: datetime, *, made_after: datetime
    ) -> bool:
        """Turn a link into a session, once; False if no such link was made after
        ``made_after``."""
        ...

    async def find(self, digest: bytes) -> StoredSession | None:
        """A session whose token was not revoked; never a link."""
        ...

    async def touch(self, digest: bytes, now: datetime) -> None:
        """Store that the session was used."""
        ...

    async def end(self, digest: bytes) -> None:
        """Delete the session, if it exists."""
        ...

    async def trim(
        self, *, made_before: datetime, used_before: datetime, limit: int
    ) -> int:
        """Delete sessions and links that were made or last used before these times;
        returns how many."""
        ...
