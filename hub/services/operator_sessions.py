"""Sessions of people at the hub's pages, begun with a token or by a link: operators,
and accounts at their own pages.

A session is a random text that only the browser has. The hub keeps a digest of it,
keyed by the admin token: with another admin token all sessions are over. Sessions of a
token end when the token is revoked.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from hub.runtime.clock import Clock
from hub.services.token_authentication import ADMINISTRATOR, Principal
from storage.contract import SessionStore
from storage.errors import StorageError
from storage.records import IDLE_SESSION, LONGEST_SESSION

LINK_LASTS: Final = timedelta(minutes=5)
_USE_NOTED_EVERY: Final = timedelta(minutes=5)
MOST_UNWRITTEN: Final = 16
"""Sessions that are kept in memory only."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLink:
    """A link to log in. Its ``code`` begins a session, once."""

    code: str
    url: str
    expires_at: datetime


class SessionService:
    def __init__(
        self, sessions: SessionStore, clock: Clock, admin_token: str, public_url: str
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._key = hashlib.sha256(admin_token.encode(errors="replace")).digest()
        self._public_url = public_url
        self._unwritten: dict[bytes, datetime] = {}

    async def begin(self, principal: Principal) -> str:
        """Begin a session for a principal; returns the secret that the browser
        keeps."""
        secret = secrets.token_urlsafe(32)
        now = self._clock.now()
        digest = self._digest(secret)
        try:
            await self._sessions.add(digest, principal.token, now, is_link=False)
        except StorageError:
            if principal.token is not None:
                raise
            self._keep(digest, now)
        log.info("session_begun", account=principal.account.name)
        return secret

    def _keep(self, digest: bytes, now: datetime) -> None:
        """Keep a session of the admin token that cannot be stored, so that an operator
        can log in to free a full disk. It ends with the process."""
        self._unwritten[digest] = now
        if len(self._unwritten) > MOST_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]

    async def make_link(self, principal: Principal) -> LoginLink:
        """A link that begins a session of the same token."""
        code, now = secrets.token_urlsafe(32), self._clock.now()
        pages = "admin" if principal.is_admin else "account"
        digest = self._digest(code)
        await self._sessions.add(digest, principal.token, now, is_link=True)
        return LoginLink(
            code=code,
            url=f"{self._public_url}/{pages}/login?link={code}",
            expires_at=now + LINK_LASTS,
        )

    async def redeem(self, code: str) -> str | None:
        """The secret of a session begun by a link; None if the link was used or is too
        old."""
        secret, now = secrets.token_urlsafe(32), self._clock.now()
        is_good = await self._sessions.redeem(
            self._digest(code), self._digest(secret), now, made_after=now - LINK_LASTS
        )
        if is_good:
            log.info("session_begun", by="link")
        return secret if is_good else None

    async def principal(self, secret: str, *, is_use: bool = True) -> Principal | None:
        """The principal of a session; None if there is none, or it is over. ``is_use``:
        whether this use extends the session."""
        digest, now = self._digest(secret), self._clock.now()
        if begun := self._unwritten.get(digest):
            return None if self._is_over(begun, begun, now) else ADMINISTRATOR
        found = await self._sessions.find(digest)
        if found is None or self._is_over(found.created_at, found.used_at, now):
            return None
        if is_use and now - found.used_at >= _USE_NOTED_EVERY:
            await self._note_use(digest, now)
        if (token := found.token) is None:
            return ADMINISTRATOR
        return Principal(account=token.account, scopes=token.scopes, token=token.id)

    async def end(self, secret: str) -> None:
        digest = self._digest(secret)
        if self._unwritten.pop(digest, None) is None:
            await self._sessions.end(digest)

    def name_of(self, secret: str) -> str:
        """A name for a session, which does not open it."""
        return self._digest(secret).hex()[:8]

    def form_token(self, secret: str) -> str:
        """The token that each form of a session's pages contains, and that no other
        site knows."""
        return hmac.new(self._key, f"form {secret}".encode(), "sha256").hexdigest()

    def is_form_token(self, secret: str, given: str) -> bool:
        expected = self.form_token(secret).encode()
        return hmac.compare_digest(expected, given.encode(errors="replace"))

    @staticmethod
    def _is_over(created: datetime, used: datetime, now: datetime) -> bool:
        return now - created >= LONGEST_SESSION or now - used >= IDLE_SESSION

    async def _note_use(self, digest: bytes, now: datetime) -> None:
        try:
            await self._sessions.touch(digest, now)
        except StorageError as error:  # pages remain readable if the disk is full
            log.warning("session_use_not_noted", error=str(error))

    def _digest(self, secret: str) -> bytes:
        text = f"session {secret}".encode(errors="replace")
        return hmac.digest(self._key, text, "sha256")
