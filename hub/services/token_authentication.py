"""Tokens: how an account authenticates, and its scopes.

A token is 32 hexadecimal characters that only its holder knows; the hub keeps their
SHA-256. A valid token is remembered for some seconds, so that it is not looked up for
every request, and is still refused soon after it was revoked, even by another process.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from hub.runtime.caching import BoundedDict
from hub.runtime.clock import Clock
from protocols.protocol_errors import InvalidValue
from storage.contract import TokenStore
from storage.errors import StorageError
from storage.records import (
    ANONYMOUS,
    NOBODY,
    OPERATOR,
    Account,
    AccountId,
    NewToken,
    StoredToken,
    TokenFilter,
    TokenId,
    TokenScope,
)

REMEMBERED_SECONDS = 5.0
MOST_REMEMBERED = 10_000
USE_NOTED_EVERY = timedelta(hours=1)
LONGEST_LABEL = 200
NAMELESS = frozenset({"anonymous", "admin"})
"""Names that no account may have: the open hub's account, and the user name that goes
with the admin token."""

_ACCOUNT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[0-9a-f]{32}")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request, and what they may do. ``token`` None: the admin token."""

    account: Account
    scopes: frozenset[TokenScope]
    token: TokenId | None = None

    @property
    def is_admin(self) -> bool:
        return TokenScope.ADMIN in self.scopes

    @property
    def viewer(self) -> AccountId | None:
        """The account that the principal reads feeds as; None: the operator, who reads
        all.

        Without the scope `retrieve` it reads public feeds only, as `NOBODY`.
        """
        if not self.may(TokenScope.RETRIEVE):
            return NOBODY
        is_operator = self.is_admin or self.account.id == OPERATOR
        return None if is_operator else self.account.id

    def may(self, scope: TokenScope) -> bool:
        """Whether the principal has this scope; the scope ``admin`` includes all
        scopes."""
        return scope in self.scopes or self.is_admin


ADMINISTRATOR = Principal(
    account=Account(id=OPERATOR, name="operator"), scopes=frozenset(TokenScope)
)
"""The holder of the admin token."""
WITHOUT_TOKEN = Principal(
    account=Account(id=ANONYMOUS, name="anonymous"), scopes=frozenset()
)
"""A client without a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateToken:
    """A token to create. ``value``: the token itself, for instance one of Superfeedr's;
    "" for a new one."""

    account: str
    scopes: frozenset[TokenScope]
    label: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedToken:
    """A new token. ``secret`` is what the holder is given; it cannot be shown again."""

    token: StoredToken
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """A page of tokens, by id. ``next``: the ``after`` of the following page, None
    after the last."""

    tokens: tuple[StoredToken, ...]
    next: TokenId | None


class TokenService:
    def __init__(self, tokens: TokenStore, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._remembered: BoundedDict[bytes, tuple[float, StoredToken]]
        self._remembered = BoundedDict(MOST_REMEMBERED)

    async def create(self, request: CreateToken) -> CreatedToken:
        """Make a token for an account, which may be a new one. Raises `InvalidValue`.

        No scope implies another, except ``admin``, which implies all scopes.
        """
        account = account_name("account", request.account)
        _check(request)
        secret = request.value.lower() or secrets.token_hex(16)
        new = NewToken(
            account=account,
            digest=_digest(secret),
            scopes=request.scopes,
            label=request.label,
        )
        token = await self._tokens.add(new, self._clock.now())
        if token is None:
            raise InvalidValue("value", "a token that has never been used")
        log.info("token_created", token=token.id, account=token.account.name)
        return CreatedToken(token=token, secret=secret)

    async def account(self, field: str, name: str) -> Account:
        """The account of that name, in upper or lower case. Raises `InvalidValue` if
        there is none."""
        written = account_name(field, name)
        found = await self._tokens.account(written)
        if found is None:
            raise InvalidValue(field, "an account that has a token", written)
        return found

    async def names(self, accounts: Sequence[AccountId]) -> dict[AccountId, str]:
        """The names of those accounts that exist."""
        return await self._tokens.names(accounts)

    async def page(
        self, wanted: TokenFilter, *, after: TokenId, limit: int
    ) -> TokenPage:
        """The tokens that a filter finds, revoked ones included."""
        found = await self._tokens.page(after=after, limit=limit, wanted=wanted)
        return TokenPage(
            tokens=tuple(found), next=found[-1].id if len(found) == limit else None
        )

    async def revoke(self, token_id: TokenId) -> StoredToken:
        """End a token for good. Raises `NotFound`."""
        revoked = await self._tokens.revoke(token_id, self._clock.now())
        self.forget([token_id])
        log.info("token_revoked", token=token_id, account=revoked.account.name)
        return revoked

    def forget(self, ended: Collection[TokenId] | None) -> None:
        """Remember nothing of tokens that were revoked, perhaps by another node. None:
        of any token."""
        for digest, (_until, token) in list(self._remembered.items()):
            if ended is None or token.id in ended:
                del self._remembered[digest]

    async def authenticate(self, secret: str, account: str = "") -> Principal | None:
        """The principal of a token; None if there is no such token of that account.
        Raises `StorageError`."""
        secret = secret.lower()
        if _TOKEN.fullmatch(secret) is None:
            return None
        token = await self._find(_digest(secret))
        if token is None or account not in ("", token.account.name):
            return None
        return Principal(account=token.account, scopes=token.scopes, token=token.id)

    async def _find(self, digest: bytes) -> StoredToken | None:
        """Look up a token by its digest, so that timing reveals nothing about existing
        tokens."""
        now = self._clock.monotonic()
        until, known = self._remembered.get(digest, (now, None))
        if known is not None and now < until:
            return known
        token = await self._tokens.find(digest)
        self._remembered.pop(digest, None)
        if token is not None:
            self._remembered[digest] = now + REMEMBERED_SECONDS, token
            await self._note_use(token)
        return token

    async def _note_use(self, token: StoredToken) -> None:
        now = self._clock.now()
        if token.used_at is not None and now - token.used_at < USE_NOTED_EVERY:
            return
        try:
            await self._tokens.touch(token.id, now)
        except StorageError as error:  # no reason to refuse the request
            log.warning("token_use_not_noted", token=token.id, error=str(error))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def account_name(field: str, written: str) -> str:
    """The name in lower case: Superfeedr ignored the case of logins. Raises
    `InvalidValue`."""
    name = written.lower()
    if _ACCOUNT.fullmatch(name) is None or name in NAMELESS:
        raise InvalidValue(
            field,
            "a name of 1 to 64 of a-z, 0-9, '.', '_', '-', other than"
            f" {' and '.join(sorted(NAMELESS))}",
            written,
        )
    return name


def _check(request: CreateToken) -> None:
    if request.value and _TOKEN.fullmatch(request.value.lower()) is None:
        raise InvalidValue("value", "32 hexadecimal digits, as a token has")
    if not request.scopes:
        raise InvalidValue("scopes", f"at least one of {', '.join(TokenScope)}")
    if len(request.label) > LONGEST_LABEL or not request.label.isprintable():
        raise InvalidValue("label", f"at most {LONGEST_LABEL} printable characters")
